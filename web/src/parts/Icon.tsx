// Line icons, drawn here: no font and no file to load.
const kPaths: Record<string, string> = {
  home: 'M3 11 12 4l9 7M6 9v10h12V9',
  runs: 'M4 6h16M4 12h16M4 18h10',
  compare: 'M4 19V9m6 10V5m6 14v-7m4 7H2',
  experiments: 'M9 3h6M10 3v6l-5 9a2 2 0 0 0 2 3h10a2 2 0 0 0 2-3l-5-9V3M8 15h8',
  models: 'm12 3 8 4.500v9L12 21l-8-4.500v-9zM12 12l8-4.500M12 12v9M12 12 4 7.500',
  studies: 'M4 4v16h16M8 16l4-5 3 2 5-7',
  queue: 'M4 6h10M4 12h10M4 18h10M18 8v8m-2-2 2 2 2-2',
  server: 'M4 5h16v6H4zM4 13h16v6H4zM8 8h.010M8 16h.010',
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'm5 12 5 5L20 7',
  down: 'm6 9 6 6 6-6',
  right: 'm9 6 6 6-6 6',
  up: 'm6 15 6-6 6 6',
  stop: 'M7 7h10v10H7z',
  retry: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
  resume: 'M7 5v14l11-7z',
  pause: 'M8 5v14M16 5v14',
  clone: 'M8 8h12v12H8zM4 16V4h12',
  pin: 'M9 4h6l-1 6 4 4H6l4-4zM12 14v6',
  columns: 'M4 5h16v14H4zM10 5v14M15 5v14',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  save: 'M6 4h12v16l-6-4-6 4z',
  more: 'M5 11.500v1M12 11.500v1M19 11.500v1',
  download: 'M12 4v11m-5-4 5 5 5-5M5 20h14',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M20 20l-4-4',
  expand: 'M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  folder: 'M3 6h6l2 2h10v11H3z',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  tag: 'M4 4h8l8 8-8 8-8-8zM8 8h.010',
};

export function Icon({ name }: { name: keyof typeof kPaths | string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={kPaths[name] ?? ''} />
    </svg>
  );
}
