/** What an investigator reads first: the verdict, how good the trace is, findings, the bill, the machine. */

import type { BillRow, Outcome, Report } from "../../src/model.ts";
import { bytes, count, duration, number, percent } from "../../src/lib/format.ts";
import type { Panel } from "../app/panel.ts";
import { visible } from "../base/value.ts";
import { Box, copy, Sql } from "../parts/box.tsx";
import { Badge, FindingCard } from "../parts/finding_card.tsx";
import { Grid } from "../parts/grid.tsx";
import { addFilter, look, report, scope, set, setting, view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";

interface Settings {
  severity: string;
  kind: string;
}

function Findings(props: { data: Report }) {
  const { severity } = setting<Settings>("overview", { severity: "all", kind: "all" });
  const found = props.data.findings.filter((one) => one.answer === "found");
  const open = props.data.findings.filter((one) => one.answer === "cannot_tell");
  const without = props.data.findings.filter((one) => one.answer === "not_found");
  const names = ["critical", "warning", "notice", "info"];
  const shown = severity === "all" ? found : found.filter((one) => one.severity === severity);
  return (
    <Box
      title="Findings"
      id="findings"
      tools={
        <div role="group" aria-label="Severity">
          <button type="button" class="small" aria-pressed={severity === "all"} onClick={() => set<Settings>("overview", { severity: "all" })}>
            {count(found.length)} found
          </button>
          {names.map((name) => {
            const size = found.filter((one) => one.severity === name).length;
            return (
              size > 0 && (
                <button type="button" class="small" key={name} aria-pressed={severity === name} onClick={() => set<Settings>("overview", { severity: severity === name ? "all" : name })}>
                  {size} <Badge name={name} />
                </button>
              )
            );
          })}
        </div>
      }
    >
      {found.length === 0 && (
        <p class="about">
          None of the {count(without.length)} patterns that can be checked in this trace was found; {count(open.length)} cannot be checked.
        </p>
      )}
      {shown.map((one) => (
        <FindingCard key={one.id} finding={one} bill={props.data.bill} />
      ))}
      <Rest title={`${count(open.length)} questions cannot be answered from this trace`} list={open} />
      <Rest title={`${count(without.length)} ${without.length === 1 ? "pattern was" : "patterns were"} looked for and not found`} list={without} />
    </Box>
  );
}

/** Findings without culprits. */
function Rest(props: { title: string; list: Outcome[] }) {
  if (props.list.length === 0) return null;
  return (
    <details class="rest">
      <summary>{props.title}</summary>
      <ul>
        {props.list.map((one) => (
          <li key={one.id}>
            {one.title} <code>{one.id}</code>
            {one.reasons.map((reason) => (
              <span class="muted" key={reason.text}>
                {" "}
                {reason.text}
                {reason.record && (
                  <>
                    {" "}
                    Record: <code>{reason.record}</code>
                  </>
                )}
              </span>
            ))}
          </li>
        ))}
      </ul>
    </details>
  );
}

const ns = (value: number | null) => (value === null ? "–" : duration(value));

const BILL: { id: string; title: string; doc: string; number?: boolean; width?: string; text: (row: BillRow) => string }[] = [
  { id: "culprit", title: "who", doc: "Program, driver, product or category that the time is charged to", width: "minmax(170px, 2fr)", text: (row) => visible(row.culprit) },
  { id: "kind", title: "kind", doc: "What it is: time is charged once within one kind", width: "84px", text: (row) => row.kind },
  { id: "vendor", title: "vendor", doc: "Who makes it, from the knowledge base or the file's version", width: "minmax(80px, 1fr)", text: (row) => visible(row.vendor ?? "–") },
  { id: "category", title: "category", doc: "What it is for, from the knowledge base", width: "minmax(80px, 1fr)", text: (row) => visible(row.category ?? "–") },
  { id: "total_cpu_ns", title: "CPU", doc: "All CPU time charged to it: its own, that of Windows on its behalf, DPCs and ISRs", number: true, width: "84px", text: (row) => ns(row.total_cpu_ns) },
  { id: "share_percent", title: "share", doc: "Part of the observed time of all processors", number: true, width: "70px", text: (row) => (row.share_percent === null ? "–" : percent(row.share_percent / 100)) },
  { id: "dpc_ns", title: "DPC+ISR", doc: "Time in deferred procedure calls and interrupt service routines", number: true, width: "84px", text: (row) => ns(row.dpc_ns + row.isr_ns) },
  { id: "imposed_wait_ns", title: "wait imposed", doc: "Time that threads of others waited for it", number: true, width: "100px", text: (row) => ns(row.imposed_wait_ns) },
  { id: "filter_ns", title: "file delay", doc: "Time that file operations of others spent in its filter driver", number: true, width: "84px", text: (row) => ns(row.filter_ns) },
  { id: "energy_j", title: "energy", doc: "Estimate, with the bounds of the watt model in the report", number: true, width: "80px", text: (row) => (row.energy_j === null ? "–" : `${number(row.energy_j)}\u00a0J`) },
  { id: "confidence", title: "confidence", doc: "How sure the charge is", width: "84px", text: (row) => row.confidence },
];

function Bill(props: { data: Report }) {
  const { kind } = setting<Settings>("overview", { severity: "all", kind: "all" });
  const kinds = [...new Set(props.data.bill.map((row) => row.kind))];
  // Without samples nobody is charged: capacity that is left over is not a cost.
  const measured = props.data.cpu.samples > 0 || props.data.bill.some((row) => row.part === "culprit");
  const rows = (measured ? props.data.bill : []).filter((row) => (kind === "all" || row.kind === kind) && row.total_cpu_ns + (row.imposed_wait_ns ?? 0) + (row.filter_ns ?? 0) > 0);
  return (
    <Box
      title="The bill"
      tools={
        <>
          <div role="group" aria-label="Kind of culprit">
            {["all", ...kinds].map((name) => (
              <button type="button" class="small" key={name} aria-pressed={kind === name} onClick={() => set<Settings>("overview", { kind: name })}>
                {name}
              </button>
            ))}
          </div>
          <Sql sql="SELECT * FROM bill ORDER BY total_cpu_ns DESC" />
        </>
      }
    >
      {!measured && <p class="about">Nobody can be charged: this trace holds no CPU samples.</p>}
      <p class="about">For the whole trace. Within one kind no time is charged twice; between kinds it is the same time seen from another side.</p>
      <Grid
        label="The bill"
        columns={BILL.map(({ id, title, doc, number: isNumber, width }) => ({ id, title, doc, ...(isNumber ? { number: true } : {}), ...(width ? { width } : {}) }))}
        count={rows.length}
        text={(row, column) => {
          const data = rows[row];
          return data ? (BILL[column]?.text(data) ?? "") : "";
        }}
        draw={(row, column) => {
          const data = rows[row];
          return data && column === 0 ? <span data-knows={data.culprit}>{visible(data.culprit)}</span> : null;
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
    ["length", duration(quality.duration_ns), ""],
    ["events", `${count(quality.events)} of ${count(quality.event_types)} types`, ""],
    ["not decoded", quality.undecoded_types > 0 ? `${count(quality.undecoded_types)} types` : "none", "Types of events whose meaning is not known here"],
    ["lost", lost > 0 ? `${count(quality.events_lost)} events, ${count(quality.buffers_lost)} buffers` : "nothing", "What the recording session could not write"],
    ["samples with stacks", quality.stacks_percent === null ? "no samples" : percent(quality.stacks_percent / 100), ""],
    ["with names", quality.named_percent === null ? "–" : percent(quality.named_percent / 100), "Part of the sampled time whose function has a name: symbols were found"],
    ["sampled every", quality.sample_interval_ns === null ? "–" : duration(quality.sample_interval_ns), ""],
    ["sessions seen", sessions.value ? count(sessions.value.num(0, "n")) : "…", "Trace sessions that were running; panel Loggers names them"],
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
          {count(quality.ledger.length)} {quality.ledger.length === 1 ? "kind" : "kinds"} of anomalies, the worst: {visible(quality.ledger[0]?.meaning ?? "")}{" "}
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
  return (
    <div class="overview">
      <h1 class="verdict">{visible(data.sentence)}</h1>
      {scope.value && <p class="about">Verdict, findings and bill are those of the whole trace; the selection counts in the other panels.</p>}
      <Findings data={data} />
      <Bill data={data} />
      <Machine data={data} />
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
