/** Sums of a table over two ranges, beside each other and per second of each. */

import { duration } from "../../../src/lib/format.ts";
import { visible } from "../../base/value.ts";
import { Box, Fault, Nothing, Sql } from "../box.tsx";
import { Grid } from "../grid.tsx";
import { session } from "../../state/session.ts";
import { part, scope, set, setting, table, view, whole, type Range } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import type { Rows } from "../../wire/rows.ts";
import type { ColumnInfo } from "../../wire/types.ts";
import { ratio } from "./ratio.ts";

export interface Settings {
  subject: number;
  way: "whole" | "ranges";
  kind: string;
  basis: "all" | "second" | "run";
  /** What one run is; the usual one if it is not known. */
  run: string;
}

export const FALLBACK: Settings = { subject: 0, way: "whole", kind: "function", basis: "all", run: "" };

/** What is compared in two ranges: a table, its key by name (ids mean nothing elsewhere), a figure. */
const SUBJECTS: { title: string; table: string; group: string[]; column: string | null }[] = [
  { title: "CPU by process", table: "sample", group: ["upid.name"], column: "weight_ns" },
  { title: "CPU by module (innermost frame)", table: "sample", group: ["stack_id.leaf_frame_id.module"], column: "weight_ns" },
  { title: "CPU by function (innermost frame)", table: "sample", group: ["stack_id.leaf"], column: "weight_ns" },
  { title: "CPU by processor", table: "sample", group: ["cpu"], column: "weight_ns" },
  { title: "DPC time by driver", table: "dpc", group: ["module"], column: "exclusive_ns" },
  { title: "ISR time by driver", table: "isr", group: ["module"], column: "exclusive_ns" },
  { title: "Waiting by process", table: "cswitch", group: ["new_upid.name"], column: "wait_ns" },
  { title: "Ready by process", table: "cswitch", group: ["new_upid.name"], column: "ready_ns" },
  { title: "System calls by function", table: "syscall", group: ["function"], column: "dur_ns" },
  { title: "File operations by process", table: "file_io", group: ["upid.name"], column: "dur_ns" },
  { title: "File operations by path", table: "file_io", group: ["path"], column: "dur_ns" },
  { title: "Filter drivers", table: "minifilter", group: ["driver"], column: "dur_ns" },
  { title: "Registry by process", table: "registry", group: ["upid.name"], column: "dur_ns" },
  { title: "Disk by process", table: "disk_io", group: ["upid.name"], column: "service_ns" },
  { title: "Hard faults by process", table: "hard_fault", group: ["upid.name"], column: "dur_ns" },
  { title: "Events by type", table: "event", group: ["provider", "name"], column: null },
];

interface Line {
  key: string;
  a: number;
  b: number;
  /** Per second of the range. */
  ra: number;
  rb: number;
}

function joined(a: Rows, b: Rows, keys: number, seconds: [number, number]): Line[] {
  const lines = new Map<string, Line>();
  const add = (rows: Rows, side: "a" | "b") => {
    for (let row = 0; row < rows.count; row += 1) {
      const key = rows.columns.slice(0, keys).map((column) => String(column.values[row] ?? "–")).join(" / ");
      const value = rows.columns[keys]?.values[row];
      const line = lines.get(key) ?? { key, a: 0, b: 0, ra: 0, rb: 0 };
      line[side] += typeof value === "number" ? value : 0;
      lines.set(key, line);
    }
  };
  add(a, "a");
  add(b, "b");
  for (const line of lines.values()) {
    line.ra = line.a / seconds[0];
    line.rb = line.b / seconds[1];
  }
  return [...lines.values()].sort((x, y) => Math.abs(y.rb - y.ra) - Math.abs(x.rb - x.ra));
}

export function Ranges() {
  const chosen = setting<Settings>("compare", FALLBACK).subject;
  const subject = SUBJECTS[chosen] ?? SUBJECTS[0];
  const other = view.value.other;
  const info = session.value?.traces[other?.trace ?? 0];
  if (!subject || !other || !info) return null;
  const here: Range = scope.value ?? whole.value;
  const there: Range = other.range ?? [info.first_ns, info.last_ns + 1];
  const body = { table: subject.table, group: subject.group, values: [subject.column ? { column: subject.column, fn: "sum" } : { fn: "count" }], limit: 50_000 };
  const one = { ...part.value, ...body };
  // Filters by number mean other processes in another trace; those by name mean the same.
  const kept = other.trace === view.value.trace ? part.value.filters : part.value.filters.filter((filter) => filter.kind === "module" || filter.kind === "frame");
  const two = { ...body, trace: other.trace, range: other.range, filters: kept };
  const after = useAnswer(`pivot ${JSON.stringify(one)}`, (signal) => askRows("pivot", one, signal));
  const before = useAnswer(`pivot ${JSON.stringify(two)}`, (signal) => askRows("pivot", two, signal));
  const column: ColumnInfo | undefined = table(subject.table)?.columns.find((c) => c.name === subject.column);
  const unit = column?.unit ?? "count";
  const seconds: [number, number] = [(there[1] - there[0]) / 1e9, (here[1] - here[0]) / 1e9];
  const lines = before.value && after.value ? joined(before.value, after.value, subject.group.length, seconds) : null;
  const dropped = part.value.filters.length - kept.length;
  return (
    <Box
      title="Two ranges"
      fill
      tools={
        <>
          <select aria-label="What is compared" value={chosen} onChange={(event) => set<Settings>("compare", { subject: Number(event.currentTarget.value) })}>
            {SUBJECTS.map((each, at) => (
              <option key={each.title} value={at} disabled={(table(each.table)?.rows ?? 0) === 0}>
                {each.title}
              </option>
            ))}
          </select>
          <Sql sql={[before.value?.facts.sql, after.value?.facts.sql].filter((sql) => sql !== undefined)} />
        </>
      }
    >
      <p class="about">
        Sums of each range, and per second of it, so that ranges of different length can be compared. The largest change per second comes first.
        {(seconds[1] > 1.2 * seconds[0] || seconds[0] > 1.2 * seconds[1]) && (
          <strong data-part="caveat">
            {" "}
            The ranges last {duration(seconds[0] * 1e9)} and {duration(seconds[1] * 1e9)}: if both did the same work, compare the sums.
          </strong>
        )}
        {dropped > 0 && ` ${dropped} of the filters name processes, threads or processors by number and are not applied to the other trace.`}
      </p>
      <Fault error={before.error ?? after.error} />
      {lines && lines.length === 0 && <Nothing why="Neither range has any rows of this." />}
      {lines && lines.length > 0 && (
        <Grid
          label={subject.title}
          columns={[
            { id: "key", title: subject.title, width: "minmax(200px, 3fr)" },
            { id: "a", title: "before", number: true, amounts: { unit, with: "sum", of: (row) => lines[row]?.a } },
            { id: "b", title: "after", number: true, amounts: { unit, with: "sum", of: (row) => lines[row]?.b } },
            { id: "ra", title: "before", number: true, doc: "Divided by the length of the range", amounts: { unit, with: "rate", per: "s", of: (row) => lines[row]?.ra } },
            { id: "rb", title: "after", number: true, doc: "Divided by the length of the range", amounts: { unit, with: "rate", per: "s", of: (row) => lines[row]?.rb } },
            { id: "d", title: "difference", number: true, amounts: { unit, with: "rate", per: "s", signed: true, of: (row) => (lines[row] ? lines[row].rb - lines[row].ra : undefined) } },
            { id: "r", title: "ratio per s", number: true, doc: "Per second: work that takes longer looks the same" },
            { id: "rr", title: "ratio of sums", number: true, doc: "After divided by before, however long the ranges are" },
          ]}
          count={lines.length}
          text={(row, at) => {
            const line = lines[row];
            if (!line) return "";
            return at === 0 ? visible(line.key) : at === 6 ? (line.ra > 0 ? ratio({ ratio: line.rb / line.ra }) : "new") : line.a > 0 ? ratio({ ratio: line.b / line.a }) : "new";
          }}
        />
      )}
    </Box>
  );
}
