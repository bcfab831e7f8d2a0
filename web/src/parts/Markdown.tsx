// Draws the tree of lib/markdown.ts; nothing of the text becomes HTML.
import { useMemo } from 'preact/hooks';
import { createElement } from 'preact';

import { markdown, type Block, type Inline } from '../lib/markdown';

function Inlines({ of }: { of: Inline[] }) {
  return (
    <>
      {of.map((one, i) => {
        switch (one.kind) {
          case 'text': return one.text;
          case 'code': return <code key={i}>{one.text}</code>;
          case 'strong': return <strong key={i}><Inlines of={one.body} /></strong>;
          case 'em': return <em key={i}><Inlines of={one.body} /></em>;
          case 'strike': return <s key={i}><Inlines of={one.body} /></s>;
          case 'link':
            return <a key={i} href={one.href} target="_blank" rel="noopener noreferrer nofollow"><Inlines of={one.body} /></a>;
        }
      })}
    </>
  );
}

function Blocks({ of }: { of: Block[] }) {
  return (
    <>
      {of.map((block, i) => {
        switch (block.kind) {
          case 'heading':
            return createElement(`h${Math.min(6, block.level + 1)}`, { key: i }, <Inlines of={block.body} />);
          case 'paragraph': return <p key={i}><Inlines of={block.body} /></p>;
          case 'code': return <pre key={i}>{block.text}</pre>;
          case 'quote': return <blockquote key={i}><Blocks of={block.body} /></blockquote>;
          case 'list': {
            const items = block.items.map((item, k) => <li key={k}><Inlines of={item} /></li>);
            return block.ordered ? <ol key={i}>{items}</ol> : <ul key={i}>{items}</ul>;
          }
          case 'table':
            return (
              <div key={i} class="scroll" tabIndex={0}>
                <table class="plain-table">
                  <thead><tr>{block.head.map((cell, k) => <th key={k}><Inlines of={cell} /></th>)}</tr></thead>
                  <tbody>
                    {block.rows.map((row, k) => (
                      <tr key={k}>{row.map((cell, j) => <td key={j}><Inlines of={cell} /></td>)}</tr>
                    ))}
                  </tbody>
                </table>
              </div>
            );
          case 'rule': return <hr key={i} />;
        }
      })}
    </>
  );
}

export function Markdown({ text }: { text: string }) {
  const tree = useMemo(() => markdown(text), [text]);
  return <div class="markdown"><Blocks of={tree} /></div>;
}
