/**
 * Before and after: two traces as a whole (findings, processes, drivers, with the intervals of their ratios), or two ranges of any
 * table, divided by their length.
 */

import { count, duration, percent } from "../../src/lib/format.ts";
import type { Panel } from "../app/panel.ts";
import { amount, span, visible } from "../base/value.ts";
import { Box, copy, Fault, Nothing, Sql } from "../parts/box.tsx";
import { Badge } from "../parts/badge.tsx";
import { Grid } from "../parts/grid.tsx";
import { toTrace } from "../state/identity.ts";
import { session } from "../state/session.ts";
import { look, part, scope, set, setting, table, trace, view, whole, type Range } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask, askRows } from "../wire/api.ts";
import type { Rows } from "../wire/rows.ts";
import type { Change, ColumnInfo, Diff } from "../wire/types.ts";

interface Settings {
  subject: number;
  way: "whole" | "ranges";
}

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

/** A ratio in words; its interval where there is one. */
function ratio(change: { ratio: number | null; ratio_low?: number | null; ratio_high?: number | null; significant?: boolean }): string {
  if (change.ratio === null) return "new";
  if (change.ratio === 0) return "gone";
  const of = (value: number) => `${value < 10 ? value.toFixed(2) : count(value)}×`;
  const low = change.ratio_low ?? null;
  const high = change.ratio_high ?? null;
  return `${of(change.ratio)}${low !== null && high !== null ? ` (${of(low)} to ${of(high)})` : ""}`;
}

/** Whether it is more than chance, with what is new or gone as such. */
const chance = (change: Change) => `${change.what === "new" || change.what === "gone" ? `${change.what}, ` : ""}${change.significant ? "more than chance" : "may be chance"}`;

function Sides() {
  const traces = session.value?.traces ?? [];
  const other = view.value.other;
  const here = scope.value ?? whole.value;
  return (
    <div class="sides">
      <p>
        <strong>After</strong>: {visible(trace.value?.name ?? "")}, {span(here)}
        {scope.value ? "" : " (all of it)"}
      </p>
      <p>
        <strong>Before</strong>:{" "}
        <select
          aria-label="Trace to compare with"
          value={other ? other.trace : ""}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            look({ other: chosen === "" ? null : { trace: Number(chosen), range: null } });
          }}
        >
          <option value="">choose …</option>
          {traces.map((one) => (
            <option key={one.trace} value={one.trace}>
              {visible(one.name)}
              {one.trace === view.value.trace ? " (this trace, another range)" : ""}
            </option>
          ))}
        </select>{" "}
        {other && (other.range ? span(other.range) : "all of it")}{" "}
        <button type="button" class="small" disabled={!scope.value} onClick={() => look({ other: { trace: other?.trace ?? view.value.trace, range: scope.value } })} title="Takes the present selection as the other side; then select another range for this side">
          Take this range as Before
        </button>{" "}
        {other?.range && (
          <button type="button" class="small" onClick={() => look({ other: { ...other, range: null } })}>
            All of it
          </button>
        )}{" "}
        {other && (
          <button
            type="button"
            class="small"
            onClick={() => void toTrace(other.trace, { zoom: other.range, selection: null, past: [], finding: null, other: { trace: view.value.trace, range: scope.value } })}
          >
            Swap
          </button>
        )}
      </p>
    </div>
  );
}

const CHANGED: Record<string, string> = { resolved: "✔ resolved", new: "✖ new", worse: "▲ worse", better: "▼ better", same: "= same", absent: "absent", cannot_tell: "? cannot tell" };

function Whole() {
  const body = { trace: view.value.other?.trace ?? 0, other: view.value.trace };
  const answer = useAnswer(`diff ${JSON.stringify(body)}`, (signal) => ask("diff", body, signal));
  const data = answer.value;
  if (!data) return answer.error ? <Fault error={answer.error} /> : <p class="about">Comparing …</p>;
  const [a, b] = data.traces;
  const modules = data.modules[0];
  const busy = (side: Diff["traces"][number] | undefined) => (side?.busy_share != null ? percent(side.busy_share) : "unknown");
  return (
    <>
      <Box title="What changed">
        <p>
          Busy: {busy(a)} before, {busy(b)} after. Length {duration(a?.duration_ns ?? 0)} and {duration(b?.duration_ns ?? 0)}; times are shares of what was observed of each.
        </p>
        {data.caveats.map((caveat) => (
          <p class="caveat" key={caveat} data-part="caveat">
            <strong>But</strong> {visible(caveat)}.
          </p>
        ))}
        {modules && modules.added.length + modules.removed.length + modules.replaced.length > 0 && (
          <p data-part="modules">
            {modules.removed.length > 0 && <>Gone: <span class="name">{modules.removed.slice(0, 12).map(visible).join(", ")}</span>. </>}
            {modules.added.length > 0 && <>New: <span class="name">{modules.added.slice(0, 12).map(visible).join(", ")}</span>. </>}
            {modules.replaced.length > 0 && <>Other versions: {count(modules.replaced.length)}. </>}
            {modules.together && <strong>Several things changed at once: what helped cannot be told from these two traces.</strong>}
          </p>
        )}
        <ul class="verdicts">
          {data.verdicts.map((one) => (
            <li key={`${one.id} ${one.culprit}`}>
              <span class={`changed ${one.changes[0]}`}>{CHANGED[one.changes[0] ?? ""] ?? one.changes[0]}</span> <Badge name={one.severity} /> {visible(one.headline)} <code class="muted">{one.id}</code>
            </li>
          ))}
        </ul>
      </Box>
      <Box title="Programs, drivers, functions">
        <Grid
          label="Programs, drivers, functions"
          most={14}
          columns={[
            { id: "kind", title: "kind", width: "84px" },
            { id: "name", title: "name", width: "minmax(200px, 3fr)" },
            { id: "a", title: "before", number: true, doc: "CPU time as share of the observed time of all processors" },
            { id: "b", title: "after", number: true, doc: "CPU time as share of the observed time of all processors" },
            { id: "d", title: "difference", number: true, doc: "In percentage points" },
            { id: "r", title: "ratio (95 %)", number: true, width: "170px", doc: "After divided by before, with its interval: 95 of 100 times all names of a kind lie in theirs. Bursts make it wider" },
            { id: "s", title: "chance?", width: "140px", doc: "Whether the interval holds 1" },
            { id: "ra", title: "run before", number: true, doc: "CPU time of the whole trace, however long it took" },
            { id: "rb", title: "run after", number: true, doc: "CPU time of the whole trace, however long it took" },
            { id: "rr", title: "ratio of runs", number: true, width: "170px", doc: "CPU time of the whole trace after divided by before: what counts if both did the same work" },
          ]}
          count={data.entities.length}
          text={(row, column) => {
            const one = data.entities[row];
            const change = one?.changes[0];
            if (!one || !change) return "";
            return [one.kind, visible(one.name), percent(change.before), percent(change.after), `${change.after < change.before ? "−" : "+"}${percent(Math.abs(change.after - change.before)).replace("%", "pp")}`, ratio(change), chance(change), duration(one.cpu_ns[0] ?? 0), duration(one.cpu_ns[1] ?? 0), change.per_run ? ratio(change.per_run) : "–"][column] ?? "";
          }}
        />
      </Box>
      {data.interrupts.length > 0 && (
        <Box title="DPCs and ISRs">
          <Grid
            label="DPCs and ISRs"
            most={10}
            columns={[
              { id: "class", title: "class", width: "60px" },
              { id: "module", title: "driver" },
              { id: "pa", title: "per s before", number: true },
              { id: "pb", title: "after", number: true },
              { id: "ta", title: "total before", number: true },
              { id: "tb", title: "after", number: true },
              { id: "tr", title: "ratio of shares (95 %)", number: true, width: "180px", doc: "Time per second after divided by before; counts and durations both vary" },
              { id: "tc", title: "chance?", width: "130px" },
              { id: "ma", title: "mean before", number: true },
              { id: "mb", title: "after", number: true },
              { id: "oa", title: "over limit before", number: true, width: "130px" },
              { id: "ob", title: "after", number: true },
              { id: "r", title: "ratio of means (95 %)", number: true, width: "180px" },
            ]}
            count={data.interrupts.length}
            text={(row, column) => {
              const one = data.interrupts[row];
              const [x, y] = one?.traces ?? [];
              const change = one?.mean_changes[0];
              const whole = one?.changes[0];
              if (!one || !x || !y) return "";
              return [one.class, visible(one.module), count(x.per_second), count(y.per_second), duration(x.total_ns), duration(y.total_ns), whole ? ratio(whole) : "–", whole ? chance(whole) : "", duration(x.mean_ns), duration(y.mean_ns), count(x.over_limit), count(y.over_limit), change ? ratio(change) : "–"][column] ?? "";
            }}
          />
        </Box>
      )}
      <p class="about">
        The same in a terminal:{" "}
        <button type="button" class="small" onClick={() => void copy(`etwhy diff "${a?.label ?? ""}" "${b?.label ?? ""}"`, "command")}>
          Copy command
        </button>
      </p>
    </>
  );
}

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

function Ranges() {
  const chosen = setting<Settings>("compare", { subject: 0, way: "whole" }).subject;
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
        Sums of each range, and per second of it, so that ranges of different length can be compared. The largest change per second stands first.
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
            { id: "a", title: "before", number: true },
            { id: "b", title: "after", number: true },
            { id: "ra", title: "before / s", number: true, doc: "Divided by the length of the range" },
            { id: "rb", title: "after / s", number: true, doc: "Divided by the length of the range" },
            { id: "d", title: "difference / s", number: true },
            { id: "r", title: "ratio / s", number: true, doc: "Per second: work that takes longer looks the same" },
            { id: "rr", title: "ratio of sums", number: true, doc: "After divided by before, however long the ranges are" },
          ]}
          count={lines.length}
          text={(row, at) => {
            const line = lines[row];
            if (!line) return "";
            const show = (value: number) => amount(Math.round(value * 1000) / 1000, unit);
            const difference = line.rb - line.ra;
            return [visible(line.key), show(line.a), show(line.b), show(line.ra), show(line.rb), `${difference < 0 ? "−" : "+"}${show(Math.abs(difference))}`, line.ra > 0 ? ratio({ ratio: line.rb / line.ra }) : "new", line.a > 0 ? ratio({ ratio: line.b / line.a }) : "new"][at] ?? "";
          }}
        />
      )}
    </Box>
  );
}

function Compare() {
  const { way } = setting<Settings>("compare", { subject: 0, way: "whole" });
  const other = view.value.other;
  const same = other?.trace === view.value.trace;
  const shown = same ? "ranges" : way;
  return (
    <>
      <Box
        title="Compare"
        tools={
          other &&
          !same && (
            <div role="group" aria-label="What is compared">
              <button type="button" class="small" aria-pressed={shown === "whole"} onClick={() => set<Settings>("compare", { way: "whole" })}>
                Whole traces
              </button>
              <button type="button" class="small" aria-pressed={shown === "ranges"} onClick={() => set<Settings>("compare", { way: "ranges" })}>
                Ranges, any table
              </button>
            </div>
          )
        }
      >
        <Sides />
      </Box>
      {!other && (
        <Nothing why="Choose the other side: another trace (Open, or name several behind `etwhy serve`), or another range of this one: select it in the timeline and take it as Before, then select the range after." />
      )}
      {other && (shown === "whole" ? <Whole /> : <Ranges />)}
    </>
  );
}

export const panel: Panel = {
  id: "compare",
  title: "Compare",
  group: "look",
  order: 50,
  about: "Before and after: two traces or two ranges",
  tables: [],
  View: Compare,
};
