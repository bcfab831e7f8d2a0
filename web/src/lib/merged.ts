// A list with some of its members asked for again. Pure.

// `found` are those of `changed` that belong to it now: they take their old places, new ones come
// first, and what was not found goes.
export function merged<T extends { id: string }>(list: T[], changed: string[], found: T[], most: number): T[] {
  const now = new Map(found.map((run) => [run.id, run]));
  const kept = list.flatMap((run) => {
    if (!changed.includes(run.id)) return [run];
    const fresh = now.get(run.id);
    now.delete(run.id);
    return fresh ? [fresh] : [];
  });
  return [...now.values(), ...kept].slice(0, most);
}
