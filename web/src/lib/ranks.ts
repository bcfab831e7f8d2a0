// Nodes and ranks of a job, in words. Pure.
import { plural } from './format';

export interface Asked {
  nodes?: number;
  nodes_most?: number;
  processes?: number;
}

export const rankCount = ({ nodes, nodes_most: most, processes }: Asked = {}) => Math.max(nodes ?? 1, most ?? 0) * (processes ?? 1);

// "2 nodes with 4 processes each"; empty for one rank.
export function ranksText({ nodes = 1, nodes_most: most, processes = 1 }: Asked = {}): string {
  const each = plural(processes, 'process', 'processes');
  if (nodes === 1 && !most) return processes > 1 ? each : '';
  const many = most ? `${nodes}..${most} nodes` : plural(nodes, 'node');
  return processes > 1 ? `${many} with ${each} each` : many;
}

export const hostName = (host: number) => `algo-${host + 1}`;
