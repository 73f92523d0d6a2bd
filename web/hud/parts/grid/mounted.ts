/** Tables that stand on the page now: what a pinned view keeps of them. */

export interface Kept {
  label: string;
  titles: string[];
  rows: string[][];
  /** Rows in all. */
  count: number;
}

/** Each gives its first rows as they are read. */
export const mounted = new Set<{ current: (most: number) => Kept }>();
