/** What the timeline shows at this instant: it runs ahead of the view while a hand moves, and the view follows when the hand rests. */

import { effect, signal } from "@preact/signals";
import { later } from "../../base/awaited.ts";
import { ahead, look, shown, view, whole, type Range } from "../../state/view.ts";

export const live = signal<Range>([0, 1]);
/** Where the pointer or the keyboard is: a moment and a lane. */
export const cursor = signal<{ ns: number; lane: string | null; x: number; y: number; pointer: boolean } | null>(null);

let before: Range | null | undefined;
let moving: (() => void) | undefined;
let selecting: (() => void) | undefined;
let next: Range | null = null;
let sent = 0;

/** The least that can be shown: ten ticks of a usual clock. */
const LEAST = 1000;

export function clamp([from, to]: Range): Range {
  const [first, end] = whole.value;
  const span = Math.min(end - first, Math.max(LEAST, to - from));
  const start = Math.round(Math.min(Math.max(first, from), end - span));
  return [start, Math.round(start + span)];
}

/** Shows another stretch; the view follows. All moves until the hand rests are one step to undo. */
export function show(range: Range): void {
  if (before === undefined) before = view.value.zoom;
  live.value = clamp(range);
  moving?.();
  moving = later(rest, 200);
}

/** Has the view the stretch that is shown. */
function rest(): void {
  const [first, end] = whole.value;
  const now = live.value;
  const zoom: Range | null = now[0] <= first && now[1] >= end ? null : now;
  const past = [...view.value.past.slice(-49), before ?? null];
  before = undefined;
  moving?.();
  moving = undefined;
  look({ zoom, past });
}

export function zoomBy(factor: number, around: number): void {
  const [from, to] = live.value;
  show([around - (around - from) * factor, around + (to - around) * factor]);
}

export function panBy(share: number): void {
  const [from, to] = live.value;
  const by = (to - from) * share;
  show([from + by, to + by]);
}

/** Selects while a hand drags: panels follow every 150 ms, and exactly at the end. */
export function select(range: Range | null, last: boolean): void {
  next = range && [Math.round(Math.min(...range)), Math.round(Math.max(...range, Math.min(...range) + 1))];
  drawn.value = next;
  if (last) send();
  else if (selecting === undefined) selecting = later(send, Math.max(0, 150 - (performance.now() - sent)));
}

/** Has the view what is drawn. */
function send(): void {
  selecting?.();
  selecting = undefined;
  sent = performance.now();
  const same = JSON.stringify(view.value.selection) === JSON.stringify(next);
  if (!same) look({ selection: next, ...(next ? {} : { finding: null }) });
}

/** The selection as it is drawn. */
export const drawn = signal<Range | null>(null);

/** Follows the view until the returned function is called. */
export function startWindow(): () => void {
  ahead.catchUp = () => {
    if (moving !== undefined) rest();
    if (selecting !== undefined) send();
  };
  return effect(() => {
    const [range, selection] = [shown.value, view.value.selection];
    if (moving === undefined) live.value = clamp(range);
    if (selecting === undefined) drawn.value = selection;
  });
}
