/** The first and the last of what comes, at most so many of each: what repeats for hours proves no more by its middle. */
export type FirstAndLast<Item> = {
  /** Whether the first are full: what comes now may be dropped again. */
  readonly full: boolean;
  add(item: Item): void;
  /** In the order they came. */
  all(): readonly Item[];
};

export function firstAndLast<Item>(each: number): FirstAndLast<Item> {
  const first: Item[] = [];
  const ring: Item[] = [];
  let at = 0;
  return {
    get full() {
      return first.length >= each;
    },
    add(item) {
      if (first.length < each) first.push(item);
      else {
        ring[at] = item;
        at = (at + 1) % each;
      }
    },
    all: () =>
      ring.length < each ? [...first, ...ring] : [...first, ...ring.slice(at), ...ring.slice(0, at)],
  };
}
