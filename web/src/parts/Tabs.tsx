// Tabs as links: each has its own address.

export interface Tab {
  id: string;
  text: string;
  href: string;
}

export function Tabs({ tabs, current }: { tabs: Tab[]; current: string }) {
  return (
    <nav class="tabs" aria-label="Sections">
      {tabs.map((tab) => (
        <a key={tab.id} href={tab.href} class={tab.id === current ? 'on' : ''}
          aria-current={tab.id === current ? 'page' : undefined}>
          {tab.text}
        </a>
      ))}
    </nav>
  );
}
