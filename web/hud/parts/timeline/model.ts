/** Lanes as the server gives them: numbers stay in typed arrays, bands are stretches of them. */

import { tableFromIPC } from "@uwdata/flechette";
import { Fault } from "../../wire/api.ts";
import type { Range } from "../../state/view.ts";

export interface Band {
  band: "process" | "rest" | "idle" | "dpc" | "isr" | "unknown" | "kernel" | "user" | "plain";
  name: string;
  upid: number | null;
  total: number;
  /** Its numbers: from (included) and to (not) in `buckets` and `values`. */
  from: number;
  to: number;
}

export interface Mark {
  from: number;
  to: number;
  text: string;
  what: string;
  upid: number | null;
  count: number;
  /** Which of the lane's levels it stands on, so that marks do not hide each other. */
  level?: number;
  /** Of findings. */
  finding?: { id: string; hit: number; severity: string };
}

export interface Lane {
  id: string;
  kind: string;
  title: string;
  unit: string;
  shape: "share" | "stack" | "level" | "marks";
  full: number;
  cpu: number | null;
  source: string;
  sql: string;
  series: Band[];
  marks: Mark[];
}

export interface Finding {
  finding: string;
  hit: number;
  title: string;
  severity: string;
  headline: string;
  culprit: string;
  range: Range | null;
}

export interface Lanes {
  /** What was asked about, but for the range. */
  key: string;
  start_ns: number;
  bucket_ns: number;
  count: number;
  lanes: Lane[];
  empty: { kind: string; about: string; why: string | null; recording: string }[];
  unused: string[];
  places: [number | null, number | null, number | null][];
  findings: Finding[] | null;
  events_lost: number;
  buffers_lost: number;
  start_unix_ns: number | null;
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
  if (lane.full > 0) return lane.full;
  let most = 0;
  if (lane.shape === "level") {
    for (const band of lane.series) most = Math.max(most, band.total);
    return most;
  }
  const sums = new Float64Array(data.count);
  for (const band of lane.series) {
    for (let at = band.from; at < band.to; at += 1) {
      const bucket = data.buckets[at] ?? 0;
      const sum = (sums[bucket] ?? 0) + (data.values[at] ?? 0);
      sums[bucket] = sum;
      if (sum > most) most = sum;
    }
  }
  return most;
}
