// The state of a job or run: by colour, shape and word, so that none is needed alone.

const kTone: Record<string, string> = {
  Running: 'run', RUNNING: 'run', Preparing: 'run', Placing: 'run', Uploading: 'run',
  Completed: 'good', FINISHED: 'good', Failed: 'bad', FAILED: 'bad',
  Starting: 'run', Lost: 'bad',
  Interrupted: 'warn', Interrupting: 'warn', Stopping: 'warn', Unknown: 'warn',
};
const kShape: Record<string, string> = {
  run: 'M1 1l8 4-8 4z',
  good: 'M1 5.500 4 8.500 9.500 2 8.300 1 3.800 6.300 2 4.300z',
  bad: 'M2 1 5 4l3-3 1 1-3 3 3 3-1 1-3-3-3 3-1-1 3-3-3-3z',
  warn: 'M5 0.500 9.700 9H0.300z',
  wait: 'M5 1a4 4 0 1 1 0 8 4 4 0 0 1 0-8z',
};
// MLflow's words, said as for jobs.
const kWords: Record<string, string> = {
  RUNNING: 'Running', FINISHED: 'Completed', FAILED: 'Failed', KILLED: 'Stopped', SCHEDULED: 'Queued',
};

export function toneOf(state: string): string {
  return kTone[state] ?? 'wait';
}

export const wordOf = (state: string) => kWords[state] ?? state;

export function State({ state, bare }: { state: string; bare?: boolean }) {
  const tone = toneOf(state);
  return (
    <span class={`state ${tone} ${bare ? 'bare' : ''}`}>
      <svg viewBox="0 0 10 10" aria-hidden="true"><path d={kShape[tone]} /></svg>
      {wordOf(state)}
    </span>
  );
}
