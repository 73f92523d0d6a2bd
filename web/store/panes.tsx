/** Ranking, machines, traces, a trace: from left to right, each row a link to what stands right of it. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count, duration, number } from "../src/lib/format.ts";
import { KINDS, link, view, type View } from "./state.ts";
import { ask, type Answers, type MachineRow, type Question, type RankRow, type TraceDetail, type TraceRow } from "./wire.ts";

/** The latest answer to a question, or why there is none; what was asked before is given up. */
function useAnswer<N extends keyof Answers>(name: N, question: Question): { answer?: Answers[N]; fault?: string } {
  const key = JSON.stringify([name, question]);
  const [state, put] = useState<{ key: string; answer?: Answers[N]; fault?: string }>({ key: "" });
  useEffect(() => {
    const given = new AbortController();
    ask(name, question, given.signal).then(
      (answer) => put({ key, answer }),
      (error: Error) => given.signal.aborted || put({ key, fault: error.message }),
    );
    return () => given.abort();
  }, [key]);
  return state.key === key ? state : {};
}

const NBSP = "\u00a0";

/** A share that is a percentage already, as `etwhy fleet` prints it. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (value === 0) return `0${NBSP}%`;
  return `${value < 0.01 ? "<0.01" : value.toFixed(value < 10 ? 2 : 1)}${NBSP}%`;
}

const machines = (many: number) => `${count(many)} machine${many === 1 ? "" : "s"}`;

function Pane({ title, about, children }: { title: string; about?: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {about ? <p class="about">{about}</p> : null}
      {children}
    </section>
  );
}

const Waiting = () => (
  <div class="bones" aria-label="Asking the store">
    <i /> <i /> <i />
  </div>
);

const Fault = ({ text }: { text: string }) => (
  <p class="fault" role="alert">
    {text}
  </p>
);

/** A bar below a number: its part of the largest. */
function Share({ value, of }: { value: number; of: number }) {
  return (
    <td class="number">
      {percent(value)}
      <i class="bar" style={{ width: `${of > 0 ? (100 * value) / of : 0}%` }} />
    </td>
  );
}

/** Rows, the first of them until somebody wants all. */
function List<T>({ rows, head, row, most = 100 }: { rows: T[]; head: [string, "" | "number"][]; row: (row: T) => ComponentChildren; most?: number }) {
  const [all, show] = useState(false);
  const shown = all ? rows : rows.slice(0, most);
  return (
    <>
      <div class="rows" tabIndex={0} role="group" aria-label="Rows">
        <table>
          <thead>
            <tr>
              {head.map(([name, kind]) => (
                <th scope="col" class={kind}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{shown.map(row)}</tbody>
        </table>
      </div>
      {shown.length < rows.length ? (
        <button type="button" class="small" onClick={() => show(true)}>
          Show all {count(rows.length)}
        </button>
      ) : null}
    </>
  );
}

function Row({ to, here, label, children }: { to: View; here: boolean; label: string; children: ComponentChildren }) {
  return (
    <tr class={here ? "here" : ""}>
      <th scope="row">
        <a href={link(to)} aria-current={here ? "true" : undefined} title={label}>
          {label}
        </a>
      </th>
      {children}
    </tr>
  );
}

const severity = (name: string | undefined) => (name ? <span class={`mark ${name}`}>{name}</span> : null);

export function Ranking() {
  const { what, name, filter } = view.value;
  const { answer, fault } = useAnswer("rank", { what, filter });
  const [wanted, want] = useState("");
  const [, title = ""] = KINDS.find(([kind]) => kind === what) ?? [];
  const nameOf = (row: RankRow) => (what === "finding" ? (row.finding_id ?? "") : (row.culprit ?? ""));
  const rows = answer?.rows.filter((row) => `${nameOf(row)} ${row.vendor ?? ""} ${row.title ?? ""}`.toLowerCase().includes(wanted.toLowerCase())) ?? [];
  const able = answer?.rows[0]?.machines_able;
  const about = !answer
    ? ""
    : what === "finding"
      ? `${count(answer.traces)} traces of ${machines(answer.machines)}. Rates are of traces that could tell.`
      : `${count(able ?? 0)} of ${machines(answer.machines)} could tell. Shares are of the time of their processors; idle time is nobody's.`;
  const most = Math.max(0, ...rows.map((row) => row.share_percent ?? 0));
  return (
    <Pane title={what === "finding" ? "What is found most" : `${title} that cost most`} about={about}>
      <nav class="segmented" aria-label="What is ranked">
        {KINDS.map(([kind, called]) => (
          <a href={link({ what: kind, filter })} aria-current={kind === what ? "page" : undefined}>
            {called}
          </a>
        ))}
      </nav>
      <input type="search" aria-label="Search the ranking" placeholder="Name, vendor" value={wanted} onInput={(event) => want(event.currentTarget.value)} />
      {fault ? <Fault text={fault} /> : !answer ? <Waiting /> : null}
      {answer && answer.rows.length === 0 ? (
        <p class="about">
          {what === "finding"
            ? "Nothing was found in a trace that could tell."
            : what === "driver"
              ? "Cannot be determined: no trace that is left has CPU samples with stacks (etwhy record --print cpu)."
              : "Cannot be determined: no trace that is left says who used the CPU (etwhy record --print cpu)."}
        </p>
      ) : null}
      {rows.length === 0 ? null : what === "finding" ? (
        <List
          rows={rows}
          head={[["Finding", ""], ["Machines", "number"], ["Traces", "number"], ["Critical", "number"]]}
          row={(row) => (
            <Row to={{ what, name: nameOf(row), filter }} here={nameOf(row) === name} label={nameOf(row)}>
              <td class="number">
                {count(row.machines_found ?? 0)} of {count(row.machines_able)}
              </td>
              <td class="number">
                {count(row.found ?? 0)} of {count(row.could_tell ?? 0)}
              </td>
              <td class="number">{count(row.critical ?? 0)}</td>
            </Row>
          )}
        />
      ) : (
        <List
          rows={rows}
          head={[["Name", ""], ["Share", "number"], ["Machines", "number"], ["Typical", "number"], ["Worst of 20", "number"], ["Wh a day", "number"], ["Vendor", ""]]}
          row={(row) => (
            <Row to={{ what, name: nameOf(row), filter }} here={nameOf(row) === name} label={nameOf(row)}>
              <Share value={row.share_percent ?? 0} of={most} />
              <td class="number">{count(row.machines ?? 0)}</td>
              <td class="number">{percent(row.p50_percent)}</td>
              <td class="number">{percent(row.p95_percent)}</td>
              <td class="number">{row.wh_per_day === null || row.wh_per_day === undefined ? "" : number(row.wh_per_day)}</td>
              <td class="cut">{row.vendor ?? ""}</td>
            </Row>
          )}
        />
      )}
    </Pane>
  );
}

export function Machines() {
  const { what, name = "", machine, filter } = view.value;
  const { answer, fault } = useAnswer("machines", { what, name, filter });
  const rows = answer?.rows ?? [];
  const most = Math.max(0, ...rows.map((row) => row.share_percent ?? 0));
  const versions = answer?.versions ?? [];
  const choose = (version: string) => {
    const { file: _file, version: _version, ...rest } = filter;
    location.hash = link({ what, name, filter: version ? { ...rest, file: name, version } : rest });
  };
  return (
    <Pane title={`Machines with ${name}`} about={answer ? `${machines(rows.length)}, the most affected first.` : ""}>
      {versions.length > 0 ? (
        <label>
          Version{" "}
          <select value={filter.file === name ? (filter.version ?? "") : ""} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">any</option>
            {versions.map((one) => (
              <option value={one.name}>
                {one.name} ({machines(one.machines)})
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {fault ? <Fault text={fault} /> : !answer ? <Waiting /> : null}
      {answer && rows.length === 0 ? <p class="about">None of the machines that are left.</p> : null}
      {rows.length === 0 ? null : (
        <List
          rows={rows}
          head={what === "finding" ? [["Machine", ""], ["Traces", "number"], ["Worst", ""], ["Model", ""]] : [["Machine", ""], ["Share", "number"], ["Traces", "number"], ["Version", ""], ["Model", ""]]}
          row={(row: MachineRow) => (
            <Row to={{ what, name, machine: row.machine_id, filter }} here={row.machine_id === machine} label={row.computer ?? row.machine_id}>
              {what === "finding" ? null : <Share value={row.share_percent ?? 0} of={most} />}
              <td class="number">{count(row.traces)}</td>
              {what === "finding" ? (
                <td>
                  {severity(row.severity)} {row.headline}
                </td>
              ) : (
                <td class="cut">{row.versions.join(", ")}</td>
              )}
              <td class="cut">{row.model ?? "not recorded"}</td>
            </Row>
          )}
        />
      )}
    </Pane>
  );
}

const when = (row: TraceRow) => row.captured_utc.slice(0, 16).replace("T", " ");

export function Traces() {
  const { what, name = "", machine = "", trace, filter } = view.value;
  const { answer, fault } = useAnswer("traces", { what, name, machine_id: machine, filter });
  const rows = answer?.rows ?? [];
  const first = rows[0];
  const most = Math.max(0, ...rows.map((row) => row.of?.share_percent ?? 0));
  return (
    <Pane title={`Traces of ${first?.computer ?? machine}`} about={first ? [first.model, first.os].filter(Boolean).join(", ") : ""}>
      {fault ? <Fault text={fault} /> : !answer ? <Waiting /> : null}
      {rows.length === 0 ? null : (
        <List
          rows={rows}
          head={[["Start (UTC)", ""], [what === "finding" ? "Found" : "Share", what === "finding" ? "" : "number"], ["Critical", "number"], ["Warnings", "number"]]}
          row={(row: TraceRow) => (
            <Row to={{ what, name, machine, trace: row.trace_id, filter }} here={row.trace_id === trace} label={when(row)}>
              {what === "finding" ? <td>{severity(row.of?.severity)}</td> : row.of?.share_percent === undefined ? <td class="number">not there</td> : <Share value={row.of.share_percent} of={most} />}
              <td class="number">{count(row.critical)}</td>
              <td class="number">{count(row.warning)}</td>
            </Row>
          )}
        />
      )}
    </Pane>
  );
}

export function Trace() {
  const { what, trace = "", filter } = view.value;
  const { answer, fault } = useAnswer("trace", { trace_id: trace });
  if (!answer) return <Pane title="Trace">{fault ? <Fault text={fault} /> : <Waiting />}</Pane>;
  const { trace: facts, hits, costs } = answer;
  return (
    <Pane title={`Trace of ${facts.computer ?? facts.machine_id}, ${when(facts)} UTC`}>
      <p class="verdict">{facts.sentence}</p>
      <Opening of={answer} />
      <dl>
        <dt>File</dt>
        <dd class="name">{facts.path}</dd>
        <dt>Length</dt>
        <dd>{duration(facts.duration_ns)}</dd>
        <dt>Windows</dt>
        <dd>{facts.os}</dd>
        <dt>Model</dt>
        <dd>{facts.model ?? "not recorded"}</dd>
        <dt>Id</dt>
        <dd class="name">{facts.trace_id}</dd>
      </dl>
      <h3>Findings</h3>
      {hits.length === 0 ? <p class="about">Nothing was found. What this trace cannot tell is said by etwhy fleet coverage.</p> : null}
      <ul class="hits">
        {hits.map((hit) => (
          <li>
            {severity(hit.severity)} <a href={link({ what: "finding", name: hit.finding_id, filter })}>{hit.finding_id}</a> {hit.headline}
          </li>
        ))}
      </ul>
      <h3>What took the time</h3>
      {KINDS.filter(([kind]) => costs.some((cost) => cost.kind === kind)).map(([kind, called]) => (
        <details open={kind === what}>
          <summary>{called}</summary>
          <List
            most={10}
            rows={costs.filter((cost) => cost.kind === kind)}
            head={[["Name", ""], ["Share", "number"]]}
            row={(cost) => (
              <Row to={{ what: kind, name: cost.culprit, filter }} here={false} label={cost.culprit}>
                <Share value={cost.share_percent} of={100} />
              </Row>
            )}
          />
        </details>
      ))}
      {costs.length === 0 ? <p class="about">Cannot be determined: it says nothing of who used the CPU.</p> : null}
    </Pane>
  );
}

/** Opens the trace itself, with its timeline and stacks, or says why it cannot. */
function Opening({ of }: { of: TraceDetail }) {
  const [fault, put] = useState("");
  if (!of.file) return <p class="about">The trace itself cannot be opened: {of.why_not}</p>;
  const open = () => {
    ask("open", { trace_id: of.trace.trace_id }).then(
      ({ trace }) => location.assign(`../#v2=${encodeURIComponent(JSON.stringify({ trace: { at: trace } }))}`),
      (error: Error) => put(error.message),
    );
  };
  return (
    <>
      <button type="button" class="primary" onClick={open}>
        Open the trace
      </button>
      {fault ? <Fault text={fault} /> : null}
    </>
  );
}
