/** What an investigator reads first: the verdict, how good the trace is, findings, the bill, the machine. */

import type { BillRow, Report } from "../../src/model.ts";
import { bytes, count, duration, number, percent } from "../../src/lib/format.ts";
import type { Panel } from "../app/panel.ts";
import { counted, visible } from "../base/value.ts";
import { Box, copy, Sql } from "../parts/box.tsx";
import { Findings } from "../parts/findings.tsx";
import { Guarded } from "../parts/guarded.tsx";
import { Episodes } from "../parts/live_bar.tsx";
import { Grid } from "../parts/grid.tsx";
import { Tiles } from "../parts/tiles.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { Who } from "../parts/who.tsx";
import { energy } from "../state/energy.ts";
import { also, clauses, shortened } from "../state/finding.ts";
import { addFilter, inForce, look, report, set, setting, view, wholeReport } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";

interface Settings {
  kind: string | null;
}

const ns = (value: number | null) => (value === null ? "–" : duration(value));

const joules = (row: BillRow) => (row.energy_low_j === null || row.energy_high_j === null ? "–" : energy(row.energy_low_j, row.energy_high_j)[0]);

/** Culprits first; what nobody can be blamed for after them, and unused time last. */
const rank = (row: BillRow) => (row.is_idle ? 3 : row.is_unattributed ? 2 : row.part !== "culprit" || row.culprit.startsWith("[") ? 1 : 0);
const KINDS = ["process", "driver", "product", "category"];

const BILL: { id: string; title: string; doc: string; number?: boolean; width?: string; text: (row: BillRow) => string }[] = [
  { id: "culprit", title: "Who", doc: "Program, driver, product or category that the time is charged to", width: "minmax(170px, 2fr)", text: (row) => visible(row.culprit) },
  { id: "kind", title: "Kind", doc: "What it is: time is charged once within one kind", width: "84px", text: (row) => row.kind },
  { id: "vendor", title: "Vendor", doc: "Who makes it, from the knowledge base or the file's version", width: "minmax(80px, 1fr)", text: (row) => visible(row.vendor ?? "–") },
  { id: "category", title: "Category", doc: "What it is for, from the knowledge base", width: "minmax(80px, 1fr)", text: (row) => visible(row.category ?? "–") },
  { id: "total_cpu_ns", title: "CPU", doc: "All CPU time charged to it: its own, that of Windows on its behalf, DPCs and ISRs", number: true, width: "84px", text: (row) => ns(row.total_cpu_ns) },
  { id: "share_percent", title: "Share", doc: "Part of the observed time of all processors", number: true, width: "70px", text: (row) => (row.share_percent === null ? "–" : percent(row.share_percent / 100)) },
  { id: "dpc_ns", title: "DPC+ISR", doc: "Time in deferred procedure calls and interrupt service routines", number: true, width: "84px", text: (row) => ns(row.dpc_ns + row.isr_ns) },
  { id: "imposed_wait_ns", title: "Wait caused", doc: "Time that threads of others waited for it", number: true, width: "100px", text: (row) => ns(row.imposed_wait_ns) },
  { id: "filter_ns", title: "File delay", doc: "Time that file operations of others spent in its filter driver", number: true, width: "84px", text: (row) => ns(row.filter_ns) },
  { id: "energy_j", title: "Energy", doc: "Estimated by the watt model: from the lower to the upper bound", number: true, width: "110px", text: joules },
  { id: "confidence", title: "Confidence", doc: "How sure the charge is", width: "84px", text: (row) => row.confidence },
];

const TIMES: Record<string, ((row: BillRow) => number | null) | undefined> = {
  total_cpu_ns: (row) => row.total_cpu_ns,
  dpc_ns: (row) => row.dpc_ns + row.isr_ns,
  imposed_wait_ns: (row) => row.imposed_wait_ns,
  filter_ns: (row) => row.filter_ns,
};

function Bill(props: { data: Report }) {
  const kinds = [...new Set(props.data.bill.map((row) => row.kind))].sort((a, b) => KINDS.indexOf(a) - KINDS.indexOf(b));
  const kind = setting<Settings>("overview", { kind: null }).kind ?? kinds[0] ?? "all";
  // Without samples nobody is charged: capacity that is left over is not a cost.
  const measured = props.data.cpu.samples > 0 || props.data.bill.some((row) => row.part === "culprit");
  const rows = (measured ? props.data.bill : []).filter((row) => (kind === "all" || row.kind === kind) && row.total_cpu_ns + (row.imposed_wait_ns ?? 0) + (row.filter_ns ?? 0) > 0);
  rows.sort((a, b) => rank(a) - rank(b) || b.total_cpu_ns - a.total_cpu_ns);
  /** Times of all columns in one unit: they are parts of each other. So are energies. */
  const timed = (id: string) => {
    const of = TIMES[id];
    if (id === "energy_j") return { unit: energy(0, 0)[1] };
    return of ? { amounts: { unit: "ns", with: "time", of: (row: number) => (rows[row] ? of(rows[row]) : null) } } : {};
  };
  // What is chosen above needs no column.
  const columns = BILL.filter((one) => one.id !== "kind" || kind === "all");
  return (
    <Box
      title="The bill"
      tools={
        <>
          <div class="segmented" role="group" aria-label="Kind of culprit">
            {[...kinds, "all"].map((name) => (
              <button type="button" key={name} aria-pressed={kind === name} onClick={() => set<Settings>("overview", { kind: name })}>
                {name}
              </button>
            ))}
          </div>
          {!inForce.value && <Sql sql="SELECT * FROM bill ORDER BY total_cpu_ns DESC" />}
        </>
      }
    >
      <p class="about">{measured ? "Within one kind no time is charged twice; between kinds it is the same time seen from another side." : props.data.quality.samples_recorded ? "Nobody can be charged: there are no CPU samples in this range." : "Nobody can be charged: this trace holds no CPU samples."}</p>
      {measured && (
      <Grid
        label="The bill"
        columns={columns.map(({ id, title, doc, number: isNumber, width }) => ({ id, title, doc, ...timed(id), ...(isNumber ? { number: true } : {}), ...(width ? { width } : {}) }))}
        count={rows.length}
        text={(row, column) => {
          const data = rows[row];
          return data ? (columns[column]?.text(data) ?? "") : "";
        }}
        draw={(row, column) => {
          const data = rows[row];
          return data && column === 0 ? rank(data) === 0 ? <Who name={data.culprit} /> : <span class="muted">{visible(data.culprit)}</span> : null;
        }}
        onActivate={(row) => {
          const data = rows[row];
          if (data && ["driver", "module"].includes(data.kind)) {
            addFilter({ kind: "module", value: data.culprit, label: data.culprit });
            look({ panel: "stacks" });
          }
        }}
        most={14}
      />
      )}
    </Box>
  );
}

function Machine(props: { data: Report }) {
  const { quality } = props.data;
  const trace = view.value.trace;
  const lost = quality.events_lost + quality.buffers_lost;
  const sessions = useAnswer(`sessions ${trace}`, (signal) => askRows("figures", { trace, sql: "SELECT count(*) AS n FROM logger" }, signal));
  const facts: [string, string, string][] = [
    ["file", quality.files.map(visible).join(", "), ""],
    ["system", visible(quality.os), ""],
    ["processors", count(quality.cpus), "Logical processors"],
    ["memory", quality.memory_bytes === null ? "unknown" : bytes(quality.memory_bytes), ""],
    ["began", quality.start_utc, "Coordinated universal time"],
    // Seconds too: the time axis has them.
    ["length", quality.duration_ns < 60e9 ? duration(quality.duration_ns) : `${duration(quality.duration_ns)} (${number(quality.duration_ns / 1e9)}\u00a0s)`, ""],
    ["events", `${count(quality.events)} of ${count(quality.event_types)} types`, ""],
    ["not decoded", quality.undecoded_types > 0 ? counted(quality.undecoded_types, "type") : "none", "Types of events whose meaning is not known here"],
    ["lost", lost > 0 ? `${counted(quality.events_lost, "event")}, ${counted(quality.buffers_lost, "buffer")}` : "nothing", "What the recording session could not write"],
    ["samples with stacks", quality.stacks_percent === null ? "no samples" : percent(quality.stacks_percent / 100), ""],
    ["with names", quality.named_percent === null ? "–" : percent(quality.named_percent / 100), "Part of the sampled time whose function has a name: symbols were found"],
    ["sampled every", quality.sample_interval_ns === null ? "–" : duration(quality.sample_interval_ns), ""],
    ["sessions seen", sessions.value ? count(sessions.value.num(0, "n")) : "…", "Trace sessions that were running; panel Recording sessions names them"],
  ];
  return (
    <Box title="Trace and machine">
      <dl class="facts wide">
        {facts.map(([name, text, doc]) => (
          <div key={name} class={name === "lost" && lost > 0 ? "bad" : ""}>
            <dt data-hint={doc || undefined}>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {quality.ledger.length > 0 && (
        <p>
          {counted(quality.ledger.length, "kind of anomaly", "kinds of anomalies, the worst")}: {visible(quality.ledger[0]?.meaning ?? "")}{" "}
          <button type="button" class="small" onClick={() => look({ panel: "ledger" })}>
            Ledger
          </button>
        </p>
      )}
      {props.data.cannot_tell.length > 0 && (
        <details class="rest">
          <summary>What cannot be determined from this trace ({props.data.cannot_tell.length})</summary>
          <ul>
            {props.data.cannot_tell.map((one) => (
              <li key={one.question}>
                {one.question}: {one.because} Record: <code>{one.record}</code>{" "}
                <button type="button" class="small" onClick={() => void copy(one.record, "command")}>
                  Copy
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Box>
  );
}

function Overview() {
  const data = report.value;
  if (!data) return null;
  const more = also(data);
  const [first, then] = clauses(shortened(data.sentence));
  return (
    <div class="overview">
      <section class="answer">
        <h1 class="verdict" title={visible(data.sentence)}>
          {visible(first)}
          {then && <span class="then"> {visible(then)}</span>}
        </h1>
        {more.length > 0 && (
          <p>
            <b>Also:</b> {more.map(visible).join(" · ")}
          </p>
        )}
      </section>
      <Episodes />
      <Tiles data={data} />
      <Findings data={data} />
      <Guarded keeps="timeline" title="The time axis">
        <Timeline panel={panel} />
      </Guarded>
      <Bill data={data} />
      <Machine data={wholeReport.value ?? data} />
    </div>
  );
}

export const panel: Panel = {
  id: "overview",
  title: "Overview",
  group: "look",
  order: 0,
  about: "The verdict, findings, the bill, the machine",
  tables: [],
  View: Overview,
};
