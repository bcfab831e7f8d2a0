// The graph of a model as a tree of its scopes: a large one is read by opening what matters.
import type { MediaItem } from '../../state/types';

type Node = NonNullable<MediaItem['nodes']>[number];

interface Scope {
  children: Map<string, Scope>;
  node?: Node;
  size: number;
}

export function tree(nodes: Node[]): Scope {
  const root: Scope = { children: new Map(), size: 0 };
  for (const node of nodes) {
    let at = root;
    ++at.size;
    for (const part of node.name.split('/')) {
      let next = at.children.get(part);
      if (!next) at.children.set(part, (next = { children: new Map(), size: 0 }));
      ++next.size;
      at = next;
    }
    at.node = node;
  }
  return root;
}

function Level({ scope }: { scope: Scope }) {
  return (
    <ul class="graph">
      {[...scope.children].slice(0, 200).map(([name, child]) => (
        <li key={name}>
          {child.children.size ? (
            <details>
              <summary>{name} <span class="dim">{child.size}</span></summary>
              <Level scope={child} />
            </details>
          ) : <span>{name} <span class="dim">{child.node?.op}{child.node?.inputs?.length ? ` ← ${child.node.inputs.slice(0, 3).join(', ')}` : ''}</span></span>}
        </li>
      ))}
    </ul>
  );
}

export function Graph({ items }: { items: MediaItem[] }) {
  const last = items[items.length - 1] ;
  if (!last?.nodes?.length) return <p class="dim">The graph has no nodes.</p>;
  return <div class="sample-text"><Level scope={tree(last.nodes)} /></div>;
}
