/** The other side of a comparison on the time axis: how busy its processors were, as a line over those of this one, from its start on. */

import { effect, signal } from "@preact/signals";
import { scope, view, whole } from "../../state/view.ts";
import { askLanes, beside, busy, peak, type Lanes } from "./model.ts";

export interface Ghost {
  /** Where it begins on this trace's clock. */
  start: number;
  bucket: number;
  /** Parts of the whole lane, 0 to 1. */
  parts: Float64Array;
}

export const ghost = signal<Ghost | null>(null);

function line(data: Lanes, start: number): Ghost | null {
  const lane = data.lanes.find((one) => one.kind === "process");
  if (!lane) return null;
  const full = lane.full || peak(data, lane) || 1;
  const parts = busy(data, lane).map((sum) => Math.min(1, sum / full));
  return { start, bucket: data.bucket_ns, parts };
}

/** Follows the comparison until the returned function is called. */
export function startGhost(): () => void {
  let abort: AbortController | undefined;
  const stop = effect(() => {
    const { other, trace } = view.value;
    // It lies over the part that it is compared with.
    const start = (other?.range ? scope.value?.[0] : null) ?? whole.value[0];
    abort?.abort();
    ghost.value = null;
    beside.value = 0;
    if (!other || (other.trace === trace && !other.range)) return;
    const mine = new AbortController();
    abort = mine;
    askLanes({ trace: other.trace, range: other.range, width: 600, lanes: ["cpu"] }, "", mine.signal).then(
      (data) => {
        if (mine.signal.aborted) return;
        ghost.value = line(data, start);
        beside.value = ghost.value?.parts.reduce((most, part) => Math.max(most, part), 0) ?? 0;
      },
      () => undefined,
    );
  });
  return () => {
    stop();
    abort?.abort();
  };
}

/** Draws it over a lane: a line in the colour of text, with a halo of the ground. */
export function drawGhost(context: CanvasRenderingContext2D, of: Ghost, x: (ns: number) => number, top: number, tall: number, scale: number, text: string, ground: string): void {
  context.beginPath();
  of.parts.forEach((part, at) => {
    const y = top + tall - Math.min(1, part * scale) * tall;
    const from = x(of.start + at * of.bucket);
    if (at === 0) context.moveTo(from, y);
    else context.lineTo(from, y);
    context.lineTo(x(of.start + (at + 1) * of.bucket), y);
  });
  context.strokeStyle = ground;
  context.lineWidth = 3.5;
  context.stroke();
  context.strokeStyle = text;
  context.lineWidth = 1.3;
  context.stroke();
  context.lineWidth = 1;
}
