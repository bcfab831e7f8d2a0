// A small line without axes: how a number went so far.

export function Spark({ values, label }: { values: (number | string | null)[]; label: string }) {
  const numbers = values.map((v) => (v === null ? NaN : Number(v)));
  const finite = numbers.filter(Number.isFinite);
  if (finite.length < 2) return <svg class="spark" viewBox="0 0 100 40" aria-hidden="true" />;
  const low = Math.min(...finite);
  const high = Math.max(...finite);
  const x = (i: number) => (100 * i) / (numbers.length - 1);
  const y = (v: number) => 37 - (34 * (v - low)) / (high - low || 1);
  let path = '';
  let first = -1;
  let last = 0;
  numbers.forEach((v, i) => {
    if (!Number.isFinite(v)) return;
    path += `${path && last === i - 1 ? 'L' : 'M'}${x(i).toFixed(2)} ${y(v).toFixed(2)}`;
    if (first < 0) first = i;
    last = i;
  });
  const whole = !path.slice(1).includes('M');
  return (
    <svg class="spark" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={label}>
      {whole ? <path class="under" d={`${path}L${x(last)} 40L${x(first)} 40Z`} /> : null}
      <path d={path} />
    </svg>
  );
}
