/** Lanes for what is shown: asked for with a margin, so that a small pan needs nothing new; the newest answer stays until the next is there. */

import { effect, signal } from "@preact/signals";
import { pending } from "../../base/awaited.ts";
import { tick } from "../../state/live.ts";
import { trace as info, view, whole, type Range } from "../../state/view.ts";
import { shownOf } from "./catalog.ts";
import { askLanes, type Lanes } from "./model.ts";
import { withTracks } from "./tracks.ts";
import { live } from "./window.ts";

export const data = signal<Lanes | null>(null);
export const overview = signal<Lanes | null>(null);
export const findings = signal<Lanes["findings"]>(null);
export const error = signal<string | null>(null);
export const busy = signal(false);

/** Answers of this window, the latest last: who comes back to a panel sees at once what was there. */
const kept = new Map<string, Lanes>();
const KEEP = 24;
let keptOf = 0;

let width = 0;
let modes = false;
let inFlight = false;
let again = false;
let abort: AbortController | undefined;

const keyOf = () => JSON.stringify([view.value.trace, tick.value, modes, shownOf(view.value.panel).tracks.map((track) => track.id), view.value.filters.map(({ kind, value, not }) => [kind, value, not ?? false])]);

const body = (range: Range | null, buckets: number) => ({
  trace: view.value.trace,
  range,
  width: buckets,
  modes,
  filters: view.value.filters.map(({ kind, value, not }) => ({ kind, value, not: not ?? false })),
});

/** True if what is there is as fine as the screen, and covers what is shown. */
function enough(): boolean {
  const now = data.value;
  if (!now || now.key !== keyOf()) return false;
  const [from, to] = live.value;
  const [first, end] = whole.value;
  const covers = now.start_ns <= Math.max(first, from) && now.start_ns + now.bucket_ns * now.count >= Math.min(end, to);
  const fine = now.bucket_ns * width <= (to - from) * 1.05 || now.bucket_ns <= 1;
  return covers && fine && now.bucket_ns * width * 6 >= to - from;
}

async function ask(): Promise<void> {
  if (inFlight) {
    again = true;
    return;
  }
  if (width < 10 || !there() || enough()) return;
  const [from, to] = live.value;
  const [first, end] = whole.value;
  const margin = (to - from) * 0.25;
  const range: Range = [Math.round(Math.max(first, from - margin)), Math.round(Math.min(end, to + margin))];
  const share = (range[1] - range[0]) / (to - from);
  const key = keyOf();
  if (keptOf !== tick.peek()) kept.clear();
  keptOf = tick.peek();
  const question = JSON.stringify([key, range, width]);
  const known = kept.get(question);
  if (known) {
    data.value = known;
    return;
  }
  inFlight = true;
  busy.value = true;
  const close = pending();
  abort = new AbortController();
  try {
    const asked = body(range, Math.min(4096, Math.ceil(width * share * 1.5)));
    const tracks = shownOf(view.value.panel).tracks;
    const lanes = await askLanes(asked, key, abort.signal);
    const answer = await withTracks(lanes, tracks, { trace: asked.trace, filters: asked.filters }, abort.signal);
    data.value = answer;
    // While a trace is read there is more to come.
    if (info.peek()?.stage === "ready" && keptOf === tick.peek()) kept.set(question, answer);
    const oldest = kept.keys().next().value;
    if (kept.size > KEEP && oldest !== undefined) kept.delete(oldest);
    error.value = null;
  } catch (fault) {
    if (!abort.signal.aborted) error.value = fault instanceof Error ? fault.message : String(fault);
  }
  inFlight = false;
  busy.value = false;
  close();
  // An answer that was asked for something else by now, or a fault, is not asked for again by itself.
  if (again || (!error.value && keyOf() !== key)) {
    again = false;
    void ask();
  }
}

/** Pixels of the lanes, and whether user and kernel share are wanted. */
export function want(pixels: number, both: boolean): void {
  width = pixels;
  modes = both;
  void ask();
}

/** Of a trace whose verdict does not stand nothing can be asked. */
const there = () => ["ready", "verdict"].includes(info.peek()?.stage ?? "");

let reading = false;
/** The trace that the strip and the findings are of: another panel's time axis is no reason to ask for them again. */
let stripOf = -1;

/** The whole as a strip, and where findings are. */
async function once(trace: number, anew: boolean): Promise<void> {
  if (anew) {
    overview.value = null;
    findings.value = null;
  } else if (reading) return;
  reading = true;
  try {
    const all = await askLanes({ trace, range: null, width: 600, lanes: ["cpu", "disk"] }, "", new AbortController().signal);
    if (view.value.trace === trace) overview.value = all;
    const found = await askLanes({ trace, range: null, width: 1, lanes: [], findings: true }, "", new AbortController().signal);
    if (view.value.trace === trace) findings.value = found.findings;
  } catch {
    // The lanes themselves say what is wrong.
  }
  reading = false;
}

/** Time axes that are there, and how long one may be away: a panel's own ends before that of the next one begins. */
let axes = 0;
const AWAY_MS = 300;

/** Follows view and window until the returned function is called. */
export function startFeed(): () => void {
  axes += 1;
  let [trace, number] = [-1, 0];
  const stops = [
    effect(() => {
      void [live.value, view.value.filters, view.value.panel, view.value.settings["tracks"], whole.value];
      void ask();
    }),
    effect(() => {
      const now = view.value.trace;
      if (now === trace || !there()) return;
      if (trace >= 0) {
        abort?.abort();
        data.value = null;
      }
      trace = now;
      if (stripOf === now && overview.peek()) return;
      stripOf = now;
      void once(now, true);
    }),
    effect(() => {
      const [now, at] = [tick.value, view.peek().trace];
      if (at === trace && now > number && number > 0) void once(at, false);
      number = now;
    }),
  ];
  return () => {
    for (const stop of stops) stop();
    axes -= 1;
    setTimeout(() => axes === 0 && abort?.abort(), AWAY_MS);
  };
}
