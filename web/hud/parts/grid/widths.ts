/** Widths of columns, in px. */

/** A letter of a text, what stands around it, and how far a text may widen its column. */
const LETTER = 6.6;
const AROUND = 18;
const [LEAST, MOST] = [64, 380];

/** For texts: so wide that most of them can be read; what is left of the table is shared out by need. */
export function widthFor(title: string, texts: Iterable<string>): string {
  let longest = title.length + 2;
  for (const text of texts) longest = Math.max(longest, text.length);
  const px = Math.round(Math.min(MOST, Math.max(LEAST, AROUND + LETTER * longest)));
  return `minmax(${px}px, ${px}fr)`;
}

/** What a width comes to at least. */
export const leastOf = (width: string): number | null => {
  const found = /^(?:minmax\()?(\d+)px/.exec(width)?.[1];
  return found === undefined ? null : Number(found);
};
