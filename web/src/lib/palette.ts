// Colours of series: distinguishable also for people who cannot tell red from green (after Okabe
// and Ito), with enough contrast on either ground. Pure.

const kLight = ['#0b6bab', '#c94f00', '#00795a', '#a8407f', '#8f6400', '#2b8cc4', '#6d4bb0', '#4f5b66', '#b0281a', '#477500'];
const kDark = ['#5cb3ee', '#ff9a57', '#3fcf9f', '#ec9cc6', '#f0c14b', '#8fd3ff', '#b9a0f5', '#b4c0cc', '#ff8f80', '#a9d35a'];

export const kSeriesColours = kLight.length;

// The first ten differ by hue; each ten after them also by lightness.
export function seriesColour(index: number, dark: boolean): string {
  const list = dark ? kDark : kLight;
  const at = ((index % list.length) + list.length) % list.length;
  const round = Math.floor(Math.max(0, index) / list.length) % 2;
  return round === 0 ? list[at]! : mixed(list[at]!, dark ? '#2b3138' : '#ffffff', 0.42);
}

function mixed(hex: string, other: string, part: number): string {
  const at = (text: string, i: number) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `#${[0, 1, 2].map((i) =>
    Math.round(at(hex, i) * (1 - part) + at(other, i) * part).toString(16).padStart(2, '0')).join('')}`;
}

export function withAlpha(hex: string, alpha: number): string {
  return hex + Math.round(alpha * 255).toString(16).padStart(2, '0');
}

// From low to high, perceptually even (a short table after viridis), for values in 0..1.
const kRamp = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

// The end that would vanish on the ground is left out.
export function ramp(t: number, dark: boolean): string {
  const part = Math.min(1, Math.max(0, Number.isFinite(t) ? t : 0));
  const at = (dark ? 0.3 + 0.7 * part : 0.88 * part) * (kRamp.length - 1);
  const i = Math.min(kRamp.length - 2, Math.floor(at));
  const mix = kRamp[i]!.map((c, k) => Math.round(c + (kRamp[i + 1]![k]! - c) * (at - i)));
  return `rgb(${mix.join(',')})`;
}
