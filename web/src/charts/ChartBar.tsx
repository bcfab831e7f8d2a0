// The settings of all charts of a view, kept in its address.
import type { Settings } from './model';
import { Menu } from '../parts/Menu';
import { Views } from '../parts/Views';
import { chartSize, chartViews } from '../state/prefs';
import { route, setQuery } from '../state/router';

// What a view of charts keeps of the address: how they look and are arranged, not what they show.
const kKept = ['x', 'smooth', 'logx', 'logy', 'out', 'find', 'sec', 'size'];

export function settingsOf(query: Record<string, string>): Settings {
  const axis = query.x ?? 'step';
  const known = axis === 'step' || axis === 'time' || axis === 'relative';
  return {
    axis: known ? axis : 'metric',
    xMetric: known ? undefined : axis.replace(/^m:/, ''),
    smooth: Math.min(0.999, Math.max(0, Number(query.smooth ?? 0) || 0)),
    logX: query.logx === '1',
    logY: query.logy === '1',
    outliers: query.out === '1',
  };
}

export function rangeOf(query: Record<string, string>): [number, number] | undefined {
  const [low, high] = (query.zoom ?? '').split('~').map(Number);
  return low !== undefined && high !== undefined && high > low ? [low, high] : undefined;
}

export function setRange(range: [number, number] | undefined): void {
  setQuery({ zoom: range ? range.map((v) => Number(v.toPrecision(13))).join('~') : undefined });
}

export function ChartBar({ metrics }: { metrics: string[] }) {
  const { query } = route.value;
  const settings = settingsOf(query);
  const box = (key: string, on: boolean, text: string) => (
    <label class="row"><input type="checkbox" checked={on}
      onChange={(e) => setQuery({ [key]: e.currentTarget.checked ? '1' : undefined })} /> {text}</label>
  );
  return (
    <div class="toolbar chart-bar">
      <input type="search" data-search placeholder="Find a chart" aria-label="Find a chart" value={query.find ?? ''}
        onInput={(e) => setQuery({ find: e.currentTarget.value || undefined })} />
      <label class="row">x
        <select aria-label="x axis" value={query.x ?? 'step'} onChange={(e) => setQuery({ x: e.currentTarget.value, zoom: undefined })}>
          <option value="step">Step</option>
          <option value="relative">Time since start</option>
          <option value="time">Wall time</option>
          {metrics.slice(0, 300).map((name) => <option key={name} value={`m:${name}`}>{name}</option>)}
        </select>
      </label>
      <label class="row">Smooth
        <input type="range" min="0" max="0.99" step="0.01" value={settings.smooth} aria-label="Smoothing"
          onInput={(e) => setQuery({ smooth: Number(e.currentTarget.value) ? e.currentTarget.value : undefined })} />
        <span class="num dim chart-smooth">{settings.smooth.toFixed(2)}</span>
      </label>
      {box('logy', settings.logY, 'log y')}
      {box('logx', settings.logX, 'log x')}
      {box('out', settings.outliers, 'outliers')}
      {query.zoom ? <button class="button small on" onClick={() => setRange(undefined)}>Whole range</button> : null}
      <Menu label={`Size ${chartSize.value.toUpperCase()}`} choices={(['s', 'm', 'l'] as const).map((size) => ({
        text: { s: 'Small', m: 'Medium', l: 'Large' }[size], act: () => (chartSize.value = size) }))} />
      <Views small list={chartViews} take={() => Object.fromEntries(kKept.filter((key) => query[key]).map((key) => [key, query[key]!]))}
        open={(kept) => setQuery(Object.fromEntries(kKept.map((key) => [key, kept[key]])))} />
    </div>
  );
}
