/** Lanes as the server gives them: numbers stay in typed arrays, bands are ranges of them. */

import { signal } from "@preact/signals";
import { tableFromIPC } from "@uwdata/flechette";
import { Fault } from "../../wire/api.ts";
import type { LanesFacts, WireBand, WireLane, WireMark } from "../../wire/types.ts";

/** A band, and where its numbers are: from (included) and to (not) in `buckets` and `values`. */
export type Band = WireBand & {
  from: number;
  to: number;
  /** Variable of its colour, if it is not that of its name. */
  color?: string;
};

export interface Mark extends WireMark {
  /** Which of the lane's levels it stands on, so that marks do not hide each other. */
  level?: number;
  /** There was none left: it is drawn as a line. */
  thin?: boolean;
  /** Of findings. */
  finding?: { id: string; hit: number; severity: string };
}

export interface Lane extends WireLane {
  series: Band[];
  marks: Mark[];
  /** The heading under which it stands. */
  group?: string;
  /** Which track it is of, if it is not the server's. */
  track?: string;
}

export interface Lanes extends LanesFacts {
  lanes: Lane[];
  /** What was asked about, but for the range. */
  key: string;
  buckets: Int32Array;
  values: Float64Array;
}

/** Asks for lanes. */
export async function askLanes(body: object, key: string, signal: AbortSignal): Promise<Lanes> {
  const response = await fetch("api/v1/lanes", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
  if (!response.ok) throw new Fault(((await response.json()) as { error: string }).error, response.status);
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()), {});
  const facts = JSON.parse(table.schema.metadata?.get("etwhy.answer") ?? "{}") as Lanes;
  const series = table.getChild("series").toArray() as Int32Array;
  const out: Lanes = { ...facts, key, buckets: table.getChild("bucket").toArray() as Int32Array, values: table.getChild("value").toArray() as Float64Array };
  let at = 0;
  let number = 0;
  for (const lane of out.lanes) {
    for (const band of lane.series) {
      band.from = at;
      while (at < series.length && series[at] === number) at += 1;
      band.to = at;
      number += 1;
    }
  }
  return out;
}

/** What a band has in a bucket; null: nothing. */
export function valueAt(data: Lanes, band: Band, bucket: number): number | null {
  let [low, high] = [band.from, band.to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((data.buckets[middle] ?? 0) < bucket) low = middle + 1;
    else high = middle;
  }
  return low < band.to && data.buckets[low] === bucket ? (data.values[low] ?? null) : null;
}

/** The largest level, or the largest sum of a bucket. */
export function peak(data: Lanes, lane: Lane): number {
  const over = beside.value.get(lane.id) ?? 0;
  if (lane.full <= 0) return Math.max(largest(data, lane), lane.kind === "track" ? over * data.bucket_ns : 0);
  if (lane.id !== "process") return lane.full;
  // Of many processors few may be busy: an axis of all of them would show nothing. Half of them, or half of that, is a number that people see through.
  const most = Math.max(busy(data, lane).reduce((most, sum) => Math.max(most, sum), 0), over * lane.full);
  let top = lane.full;
  while ((top / data.bucket_ns / 2) % 1 === 0 && most * 1.02 <= top / 2) top /= 2;
  return top;
}

/** How busy all processors were in each bucket: interrupts are part of the runs, unless samples tell. */
export function busy(data: Lanes, lane: Lane): Float64Array {
  const sums = new Float64Array(data.count);
  for (const band of lane.series) {
    const interrupt = (band.band === "dpc" || band.band === "isr") && lane.source !== "sample";
    if (interrupt || ["idle", "kernel", "user"].includes(band.band)) continue;
    for (let at = band.from; at < band.to; at += 1) {
      const bucket = data.buckets[at] ?? 0;
      sums[bucket] = (sums[bucket] ?? 0) + (data.values[at] ?? 0);
    }
  }
  return sums;
}

/** What lines over lanes reach, by lane: a share of all processors; of tracks, an amount per nanosecond. */
export const beside = signal<ReadonlyMap<string, number>>(new Map());

/** What a lane comes to in each bucket. */
export function sums(data: Lanes, lane: Lane): Float64Array {
  const out = new Float64Array(data.count);
  for (const band of lane.series) {
    for (let at = band.from; at < band.to; at += 1) {
      const bucket = data.buckets[at] ?? 0;
      out[bucket] = (out[bucket] ?? 0) + (data.values[at] ?? 0);
    }
  }
  return out;
}

function largest(data: Lanes, lane: Lane): number {
  let most = 0;
  if (lane.shape === "level") {
    for (const band of lane.series) most = Math.max(most, band.total);
    return most;
  }
  return sums(data, lane).reduce((top, sum) => Math.max(top, sum), most);
}
