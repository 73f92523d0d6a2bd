/** What stands at a moment of a lane, in words: for the tooltip, for readers of the screen and for the table. */

import { amount, moment, visible } from "../../base/value.ts";
import { number, percent } from "../../../src/lib/format.ts";
import type { Row } from "./layout.ts";
import { valueAt, type Band, type Lane, type Lanes, type Mark } from "./model.ts";

export interface Reading {
  when: string;
  title: string;
  lines: { name: string; value: string; band: Band | null; index: number }[];
  /** The process with the most time, for a filter. */
  process: { upid: number; name: string } | null;
  mark: Mark | null;
}

/** A number of a band in its bucket. */
export function worded(lane: Lane, value: number, bucket: number): string {
  // Of all processors together people think in processors.
  if (lane.kind === "process" && lane.shape === "share") return `${number(value / bucket)} cores`;
  // A sample stands for more time than a short bucket has.
  if (lane.shape === "share" && lane.source === "sample") return `${amount(value, lane.unit)} of samples`;
  if (lane.shape === "share") return `${amount(value, lane.unit)} (${percent(value / (lane.full || bucket))})`;
  if (lane.shape === "stack" && lane.unit === "ns") return `${number(value / bucket)} on average`;
  if (lane.shape === "stack" && lane.unit === "bytes") return `${amount(value, "bytes")} (${amount((value / bucket) * 1e9, "bytes")}/s)`;
  if (lane.unit === "mhz") return `${number(value)} MHz`;
  return amount(value, lane.unit);
}

/** `level`: which of the row's levels is meant, if it has several; null: all. */
export function reading(data: Lanes, row: Row | undefined, ns: number, near: number, level: number | null = null): Reading {
  const lane = row?.lane;
  const bucket = Math.floor((ns - data.start_ns) / data.bucket_ns);
  const from = data.start_ns + bucket * data.bucket_ns;
  const utc = data.start_unix_ns === null ? "" : ` · ${new Date((data.start_unix_ns + ns) / 1e6).toISOString().replace("T", " ").replace("Z", " UTC")}`;
  const out: Reading = { when: `${moment(ns, data.bucket_ns)}${utc}`, title: row?.title ?? "", lines: [], process: null, mark: null };
  if (!lane) return out;
  if (lane.shape === "marks") {
    const hit = lane.marks.filter((mark) => mark.from - near <= ns && mark.to + near >= ns && (level === null || (mark.level ?? 0) === level));
    hit.sort((a, b) => a.to - a.from - (b.to - b.from));
    out.mark = hit[0] ?? null;
    for (const mark of hit.slice(0, 5)) {
      const long = mark.to > mark.from ? ` for ${amount(mark.to - mark.from, "ns")}` : "";
      out.lines.push({ name: `${mark.finding ? `${mark.finding.severity}: ` : ""}${visible(mark.text)}`, value: `${moment(mark.from, data.bucket_ns)}${long}${mark.count > 1 ? `, ${mark.count} together` : ""}`, band: null, index: 0 });
    }
    return out;
  }
  let most = 0;
  lane.series.forEach((band, index) => {
    const value = valueAt(data, band, bucket);
    if (value === null) return;
    out.lines.push({ name: visible(band.name), value: worded(lane, value, data.bucket_ns), band, index });
    if (band.band === "process" && band.upid !== null && value > most) {
      most = value;
      out.process = { upid: band.upid, name: band.name };
    }
  });
  const order = (band: Band | null) => (band?.band === "idle" ? 2 : band?.band === "dpc" || band?.band === "isr" ? 0 : 1);
  if (lane.shape !== "level") out.lines.sort((a, b) => order(a.band) - order(b.band) || (valueAt(data, b.band as Band, bucket) ?? 0) - (valueAt(data, a.band as Band, bucket) ?? 0));
  out.title += ` · ${moment(from, data.bucket_ns)} + ${amount(data.bucket_ns, "ns")}${lane.source === "sample" ? " · from samples" : ""}`;
  return out;
}

export const speak = (one: Reading): string => [one.title || one.when, ...one.lines.slice(0, 4).map((line) => `${line.name} ${line.value}`)].join("; ");
