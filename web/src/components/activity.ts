/** What a trace without kernel events shows: operations, rates, errors, and what could not be decoded. */

import type { Activity, Operation } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { count, duration, number, percent } from "../lib/format.ts";
import { dataTable, type Column } from "./table.ts";

const time = (ns: number | null) => (ns === null ? "–" : duration(ns));
const rate = (perSecond: number | null) => (perSecond === null ? "–" : number(perSecond));
const share = (value: number | null) => (value === null ? "–" : percent(value / 100));

/** Columns that say what was done, by whom. */
function who<Row extends { provider: string; name: string; process: string | null }>(): Column<Row>[] {
  return [
    { title: "operation", cell: (one) => one.name, key: (one) => one.name, head: true, name: true },
    { title: "provider", cell: (one) => one.provider, key: (one) => one.provider, name: true },
    { title: "process", cell: (one) => one.process ?? "–", key: (one) => one.process ?? "", name: true },
  ];
}

function operations(title: string, rows: Operation[]): Child {
  if (rows.length === 0) return null;
  return dataTable(
    rows,
    [
      ...who<Operation>(),
      { title: "number", cell: (one) => count(one.count), key: (one) => one.count },
      { title: "per second", cell: (one) => rate(one.per_second), key: (one) => one.per_second ?? 0 },
      { title: "without an end", cell: (one) => count(one.unfinished), key: (one) => one.unfinished },
      { title: "doubtful", cell: (one) => count(one.doubtful), key: (one) => one.doubtful },
      { title: "total", cell: (one) => duration(one.total_ns), key: (one) => one.total_ns },
      { title: "median", cell: (one) => time(one.median_ns), key: (one) => one.median_ns ?? 0 },
      { title: "95 %", cell: (one) => time(one.p95_ns), key: (one) => one.p95_ns ?? 0 },
      { title: "longest", cell: (one) => time(one.longest_ns), key: (one) => one.longest_ns ?? 0 },
    ],
    { caption: title, visible: true },
  );
}

/** How many intervals there are, and how many are whole; nothing where there are none. */
function tally(data: Activity): string | null {
  if (data.intervals === 0) return null;
  const parts: [number, string][] = [
    [data.complete, "complete"],
    [data.unfinished, "without an end"],
    [data.no_start, "without a start"],
    [data.doubtful, "doubtful, since buffers are missing inside"],
  ];
  const shown = parts.filter(([n]) => n > 0).map(([n, what]) => `${count(n)} ${what}`);
  return `${count(data.intervals)} ${data.intervals === 1 ? "operation" : "operations"} from a start to a stop event: ${shown.join(", ")}.`;
}

export function activity(data: Activity): Child {
  const operationsInAll = tally(data);
  const code = (text: string | null) => (text === null ? "–" : h("code", {}, text));
  return [
    h("p", {}, data.cannot),
    operationsInAll !== null && h("p", {}, operationsInAll),
    data.longest.length > 0 &&
      dataTable(
        data.longest,
        [
          ...who<Activity["longest"][number]>(),
          { title: "thread", cell: (one) => one.tid ?? "–", key: (one) => one.tid ?? 0 },
          { title: "activity", cell: (one) => one.activity ?? "–", name: true },
          { title: "begin", cell: (one) => duration(one.start_ns), key: (one) => one.start_ns },
          { title: "time", cell: (one) => duration(one.dur_ns), key: (one) => one.dur_ns },
        ],
        { caption: "Longest operations", visible: true },
      ),
    operations("Operations by total time", data.by_total),
    operations("Operations by number", data.by_count),
    data.rates.length > 0 &&
      dataTable(
        data.rates,
        [
          { title: "event", cell: (one) => one.name, key: (one) => one.name, head: true, name: true },
          { title: "provider", cell: (one) => one.provider, key: (one) => one.provider, name: true },
          { title: "number", cell: (one) => count(one.count), key: (one) => one.count },
          { title: "share", cell: (one) => share(one.share_percent), key: (one) => one.share_percent ?? 0 },
          { title: "per second", cell: (one) => rate(one.per_second), key: (one) => one.per_second ?? 0 },
          { title: "most in one second", cell: (one) => count(one.peak), key: (one) => one.peak },
          { title: "at", cell: (one) => duration(one.peak_ns), key: (one) => one.peak_ns },
        ],
        { caption: "Events by number", visible: true },
      ),
    data.problems.length > 0 &&
      dataTable(
        data.problems,
        [
          { title: "provider", cell: (one) => one.provider, key: (one) => one.provider, head: true, name: true },
          { title: "errors", cell: (one) => count(one.errors), key: (one) => one.errors },
          { title: "warnings", cell: (one) => count(one.warnings), key: (one) => one.warnings },
          { title: "most of them", cell: (one) => one.most, name: true },
        ],
        { caption: "Errors and warnings", visible: true },
      ),
    data.undecoded.length > 0 &&
      dataTable(
        data.undecoded,
        [
          { title: "provider", cell: (one) => one.provider, key: (one) => one.provider, head: true, name: true },
          { title: "events", cell: (one) => count(one.count), key: (one) => one.count },
          { title: "share", cell: (one) => share(one.share_percent), key: (one) => one.share_percent ?? 0 },
          { title: "why", cell: (one) => one.reason },
          { title: "needs", cell: (one) => one.needs ?? "–", name: true },
          { title: "read by", cell: (one) => code(one.option) },
          { title: "written by", cell: (one) => code(one.command) },
        ],
        { caption: `Could not be decoded: ${count(data.undecoded_events)} of ${count(data.events)} events`, visible: true },
      ),
  ];
}
