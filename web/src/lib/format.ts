// How numbers, times and sizes are written, everywhere the same. Pure.

const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value: number): string {
  let unit = 0;
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit < kUnits.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${value >= 99.95 ? Math.round(value) : Math.round(value * 10) / 10} ${kUnits[unit]}`;
}

// Four significant digits; large and tiny ones by exponent.
export function number(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const n = typeof value === 'string' ? Number(value) : value;
  if (Number.isNaN(n)) return 'NaN';
  if (!Number.isFinite(n)) return n > 0 ? '∞' : '−∞';
  if (Number.isInteger(n) && Math.abs(n) < 1e7) return String(n).replace('-', '−');
  const size = Math.abs(n);
  if (size >= 1e6 || size < 1e-4) return n.toExponential(2).replace('e+', 'e').replace('-', '−');
  return String(Number(n.toPrecision(4))).replace('-', '−');
}

// One word for a POSIX shell; left alone when no quoting is needed.
export function shellWord(text: string): string {
  return /^[\w./=:,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// The words of `ath` (HumanDuration): "320 ms", "4.2 s", "41 s", "1 m 02 s", "2 h", "3 d 4 h".
export function duration(ms: number): string {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 10) return `${Math.floor(ms / 100) / 10} s`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = (amount: string | number, unit: string) => (Number(amount) ? ` ${amount} ${unit}` : '');
  if (minutes < 60) return `${minutes} m${rest(pad(seconds % 60), 's')}`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h${rest(pad(minutes % 60), 'm')}`;
  return `${Math.floor(hours / 24)} d${rest(hours % 24, 'h')}`;
}

export function ago(ms: number): string {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

const pad = (n: number) => String(n).padStart(2, '0');

export function localTime(ms: number): string {
  const d = new Date(ms);
  return (
    `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ` +
    `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`
  );
}

export function utcTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function money(micros: number, currency = 'USD'): string {
  const value = micros / 1e6;
  const sign = currency === 'USD' ? '$' : `${currency} `;
  if (value === 0) return `${sign}0`;
  return `${sign}${value < 0.1 ? value.toFixed(4) : value.toFixed(2)}`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : '–';
}

export function shortId(id: string): string {
  return id.slice(-6);
}

export const px = (value: number) => `${value}px`;
