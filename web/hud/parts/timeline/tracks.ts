/** Rows of tables as lanes: pivot tables over time, added to what the server draws itself. */

import { count } from "../../../src/lib/format.ts";
import { ofInterrupts, table } from "../../state/view.ts";
import { askRows } from "../../wire/api.ts";
import type { Cell, Rows } from "../../wire/rows.ts";
import { show } from "../../base/value.ts";
import { parse } from "../pivot/spark.tsx";
import type { Track } from "./catalog.ts";
import type { Band, Lane, Lanes } from "./model.ts";

/** Time ranges of a track: as fine as the server draws lines. */
const PARTS = 300;
/** Bands of a track. */
const BANDS = 8;

/** Rows that are added up as one pans, unless a track says otherwise. */
const MOST = 8_000_000;

const rowsOf = (track: Track) => table(track.table)?.rows ?? 0;
const mostOf = (track: Track) => track.most ?? MOST;

interface Part {
  range: [number, number];
  trace: number;
  filters: { kind: string; value: number | string | null; not: boolean }[];
}

async function read(track: Track, part: Part, parts: number, signal: AbortSignal): Promise<Rows> {
  const group = [track.under, track.by].filter((one): one is string => one !== undefined);
  const filters = ["dpc", "isr"].includes(track.table) ? ofInterrupts(part.filters) : part.filters;
  return askRows("pivot", { ...part, filters, table: track.table, where: track.where ?? [], group, values: [track.sum ? { column: track.sum, fn: "sum" } : { fn: "count" }], sort: [], limit: track.apart ?? BANDS, spark: parts }, signal);
}

/** What people read of a key. */
function named(rows: Rows, row: number, key: string | undefined): string {
  if (!key) return "";
  const label = rows.get(row, `${key}.label`);
  const value: Cell = label !== null && label !== "" ? label : rows.get(row, key);
  return value === null ? "(none)" : show(value, { name: key, unit: "", role: "id" });
}

const short = (name: string) => name.replace(/^.*\\/, "");

/** The lanes with the tracks behind them. */
export async function withTracks(lanesOf: Lanes, list: Track[], part: Omit<Part, "range">, signal: AbortSignal): Promise<Lanes> {
  const wanted = list.filter((track) => rowsOf(track) > 0 && rowsOf(track) <= mostOf(track));
  // What is left out says so where lanes are chosen.
  const left = list.filter((track) => rowsOf(track) > mostOf(track));
  const base: Lanes = left.length === 0 ? lanesOf : { ...lanesOf, empty: [...lanesOf.empty, ...left.map((track) => ({ kind: `track ${track.id}`, about: track.title, why: `its ${count(rowsOf(track))} rows are too many to add up as one pans.`, recording: "" }))] };
  if (wanted.length === 0 || base.count === 0) return base;
  const parts = Math.min(PARTS, base.count);
  const range: [number, number] = [base.start_ns, base.start_ns + base.bucket_ns * base.count];
  const found = await Promise.all(
    wanted.map(async (track) => {
      try {
        return { track, rows: await read(track, { ...part, range }, parts, signal) };
      } catch {
        return null;
      }
    }),
  );
  const buckets: number[] = [];
  const values: number[] = [];
  const lanes: Lane[] = [];
  const offset = base.buckets.length;
  const band = (name: string, line: (number | null)[], color: string | undefined): Band => {
    const from = offset + buckets.length;
    let total = 0;
    line.forEach((value, at) => {
      if (value === null || value === 0) return;
      const [first, end] = [Math.floor((at * base.count) / line.length), Math.floor(((at + 1) * base.count) / line.length)];
      total += value;
      for (let bucket = first; bucket < end; bucket += 1) {
        buckets.push(bucket);
        // The same divisor everywhere: parts that fall on a bucket more would look lower.
        values.push((value * line.length) / base.count);
      }
    });
    return { band: "process", name, upid: null, total, from, to: offset + buckets.length, ...(color ? { color } : {}) };
  };
  for (const one of found) {
    if (!one) continue;
    const { track, rows } = one;
    const unit = track.sum ? (table(track.table)?.columns.find((column) => column.name === track.sum)?.unit ?? "") : "count";
    const line = (row: number) => parse(rows.text(row, "spark"));
    const lane = (id: string, title: string, series: Band[], group: string): Lane => ({ id, kind: "track", title, unit, shape: "stack", full: 0, cpu: null, source: track.table, sql: (rows.facts as { sql?: string }).sql ?? "", series, marks: [], track: track.id, ...(group ? { group } : {}) });
    if (track.apart) {
      const all = Array.from({ length: rows.count }, (_, row) => ({ under: named(rows, row, track.under), name: named(rows, row, track.by), row }));
      const order = [...new Set(all.map((each) => each.under))];
      all.sort((a, b) => order.indexOf(a.under) - order.indexOf(b.under));
      for (const each of all) lanes.push(lane(`${track.id} ${each.under} ${each.name}`, each.name, [band(each.under || each.name, line(each.row), track.color)], each.under));
    } else {
      const series = Array.from({ length: rows.count }, (_, row) => band(short(named(rows, row, track.by)) || track.title, line(row), track.color));
      if (series.some((each) => each.total > 0)) lanes.push(lane(`track ${track.id}`, track.title, series, ""));
    }
  }
  const merged = { buckets: new Int32Array(offset + buckets.length), values: new Float64Array(offset + buckets.length) };
  merged.buckets.set(base.buckets);
  merged.buckets.set(buckets, offset);
  merged.values.set(base.values);
  merged.values.set(values, offset);
  return { ...base, ...merged, lanes: [...base.lanes, ...lanes] };
}
