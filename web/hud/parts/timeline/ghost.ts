/** The other side of a comparison on the time axis: what its lanes were, as lines over those of this one, from its start on. */

import { effect, signal } from "@preact/signals";
import { scope, view, whole } from "../../state/view.ts";
import { shownOf } from "./catalog.ts";
import { askLanes, beside, busy, peak, sums, type Lanes } from "./model.ts";
import { withTracks } from "./tracks.ts";

export interface Ghost {
  /** Where it begins on this trace's clock. */
  start: number;
  bucket: number;
  /** Parts of the whole lane, 0 to 1; of tracks, amounts per nanosecond. */
  parts: Float64Array;
}

/** By lane. */
export const ghosts = signal<ReadonlyMap<string, Ghost>>(new Map());

function lines(data: Lanes, start: number): Map<string, Ghost> {
  const out = new Map<string, Ghost>();
  for (const lane of data.lanes) {
    if (lane.kind !== "process" && lane.kind !== "track") continue;
    const full = lane.kind === "track" ? data.bucket_ns : lane.full || peak(data, lane) || 1;
    const parts = (lane.kind === "track" ? sums(data, lane) : busy(data, lane)).map((sum) => sum / full);
    out.set(lane.id, { start, bucket: data.bucket_ns, parts: lane.kind === "track" ? parts : parts.map((part) => Math.min(1, part)) });
  }
  return out;
}

/** Follows the comparison until the returned function is called. */
export function startGhost(): () => void {
  let abort: AbortController | undefined;
  let asked = "";
  const stop = effect(() => {
    const { other, trace, panel, filters } = view.value;
    // It lies over the part that it is compared with.
    const start = (other?.range ? scope.value?.[0] : null) ?? whole.value[0];
    // Filters may name what the other side does not have. Threads of two traces are not the same.
    const tracks = filters.length > 0 ? [] : shownOf(panel).tracks.filter((track) => !track.apart);
    const key = JSON.stringify([other, trace, start, tracks.map((track) => track.id)]);
    if (key === asked) return;
    asked = key;
    abort?.abort();
    ghosts.value = new Map();
    beside.value = new Map();
    if (!other || (other.trace === trace && !other.range)) return;
    const mine = new AbortController();
    abort = mine;
    askLanes({ trace: other.trace, range: other.range, width: 600, lanes: ["cpu"] }, "", mine.signal)
      .then((data) => withTracks(data, tracks, { trace: other.trace, filters: [] }, mine.signal))
      .then(
        (data) => {
          if (mine.signal.aborted) return;
          const found = lines(data, start);
          beside.value = new Map([...found].map(([id, one]) => [id, one.parts.reduce((most, part) => Math.max(most, part), 0)]));
          ghosts.value = found;
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
