/** A finding in full: cost, when, where its time goes, what to do, what would disprove it, the evidence. */

import { duration, label, number, percent } from "../../src/lib/format.ts";
import type { BillRow, Hit } from "../../src/model.ts";
import { visible } from "../base/value.ts";
import { alike } from "./grid/amounts.ts";
import { energy } from "../state/energy.ts";
import { figure, filled, inside, machineShare, phrase, type Found } from "../state/finding.ts";
import { deselect, selectHit, WHERE } from "../state/select.ts";
import { foundWhen } from "../state/session.ts";
import { inForce, look, report, set, table, view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask, askRows } from "../wire/api.ts";
import { Actions } from "./actions.tsx";
import { whyEmpty } from "./box.tsx";
import { Command } from "./command.tsx";
import { Severity } from "./icons.tsx";
import { Maker } from "./maker.tsx";
import { Mini } from "./mini.tsx";
import { nameOfPanel, tablesOfPanel } from "./names.ts";
import { parse } from "./pivot/spark.tsx";
import { Swatch } from "./who.tsx";
import { Words } from "./words.tsx";

const PARTS = 144;
/** Columns that stand elsewhere. */
const SHOWN = new Set(["culprit", "culprit_kind", "cost_ns", "share", "confidence", "severity", "headline", "explanation", "fix"]);
const SOURCES = { doc: "documented", derived: "derived", case: "a real case", heuristic: "rule of thumb" };

/** What the bill has on a culprit: the part of its energy that the finding's cost is of its time. */
function energyText({ hit }: Found, bill: BillRow[]): string | null {
  const name = hit.culprit.toLowerCase();
  const row = bill.find((one) => one.culprit.toLowerCase().replace(/ \(\d+\)$/, "") === name);
  if (!row || row.energy_low_j === null || row.energy_high_j === null || row.total_cpu_ns <= 0) return null;
  // Waiting needs no energy of its own.
  if (hit.cost_ns === null || hit.cost_ns > row.total_cpu_ns * 1.05) return null;
  const part = Math.min(1, hit.cost_ns / row.total_cpu_ns);
  return energy(row.energy_low_j * part, row.energy_high_j * part).join("\u00a0");
}

/**
 * What one can run: texts in backticks of more than a single word (names of the trace have no backticks), and variables that the query itself
 * says to set, before names are filled in.
 */
const commands = ({ fix, values }: Hit): string[] => [
  ...new Set([...fix.matchAll(/`([^`]+)`/g)].map((one) => one[1] ?? "").filter((one) => / /.test(one) && /^[a-z]/i.test(one))),
  ...[...String(values.fix ?? "").matchAll(/\b([A-Z][A-Z_]{3,}=\w+)/g)].filter((one) => fix.includes(one[0])).map((one) => `set ${one[1]}`),
];

function Evidence(props: { of: Found }) {
  const { finding, hit, at } = props.of;
  const trace = view.value.trace;
  const within = inForce.value?.found.range ?? null;
  const chosen = useAnswer(`select ${JSON.stringify([trace, finding.id, at, within])}`, (signal) => ask("select", { trace, finding: finding.id, hit: at, within, ...foundWhen(trace) }, signal));
  const filters = (chosen.value?.filters ?? []).map(({ kind, value }) => ({ kind, value, not: false }));
  const sampled = (table("sample")?.rows ?? 0) > 0 && filters.length > 0;
  const question = { trace, range: within, filters, table: "sample", values: [{ column: "weight_ns", fn: "sum" }], sort: [] };
  const time = useAnswer(sampled ? `evidence ${JSON.stringify([trace, filters, within])}` : null, (signal) => askRows("pivot", { ...question, group: [], spark: PARTS, limit: 1 }, signal));
  const leaves = useAnswer(sampled ? `leaves ${JSON.stringify([trace, filters, within])}` : null, (signal) => askRows("pivot", { ...question, group: ["stack_id.leaf"], limit: 5 }, signal));
  const line = time.value && time.value.count > 0 ? parse(time.value.text(0, "spark")).map((value) => value ?? 0) : null;
  const selves = Array.from({ length: Math.min(5, leaves.value?.count ?? 0) }, (_, row) => leaves.value?.num(row, "sum(weight_ns)") ?? 0);
  const { text } = alike("ns", selves);
  const extent = (table("sample")?.rows ?? 0) > 0 && line ? Math.max(...line) : 0;
  return (
    <>
      {line && extent > 0 && (
        <section class="part">
          <h3>
            CPU over time
            <span class="aside">{chosen.value?.filters.map((one) => visible(one.label)).join(", ")}</span>
          </h3>
          <Mini values={line} color="--c1" width={288} height={60} class="charted" />
          <p>{chosen.value?.why && !within ? `${chosen.value.why.charAt(0).toUpperCase()}${chosen.value.why.slice(1)}.` : ""}</p>
        </section>
      )}
      {leaves.value && leaves.value.count > 0 && (
        <section class="part">
          <h3>
            Where it runs<span class="aside">self</span>
          </h3>
          <ul class="frames">
            {selves.map((self, row) => {
              const name = leaves.value?.text(row, "stack_id.leaf") || "(no stack)";
              return (
                <li key={name}>
                  <Swatch name={name.split("!")[0] ?? name} />
                  <span class="cut" title={visible(name)} data-knows={name}>
                    {visible(name)}
                  </span>
                  <b>{text(self)}</b>
                </li>
              );
            })}
          </ul>
        </section>
      )}
      {!sampled && hit.explanation === "" && <p class="part">No samples: the figures below are all that is known.</p>}
    </>
  );
}

export function FindingInspector(props: { of: Found }) {
  const one = props.of;
  const { finding, hit, at, id } = one;
  const joule = energyText(one, report.value?.bill ?? []);
  const share = machineShare(one);
  const filtered = view.value.finding === id;
  const panels = (WHERE[finding.topic] ?? ["stacks"]).filter((panel) => whyEmpty(tablesOfPanel(panel)) === null);
  const facts: [string, string][] = [
    ...(hit.cost_ns !== null ? [["Cost", duration(hit.cost_ns)] as [string, string]] : []),
    ...(typeof share === "number" ? [["Share of machine", percent(share)] as [string, string]] : hit.share !== null ? [["Share", percent(hit.share)] as [string, string]] : []),
    ...(joule ? [["Energy, estimated", joule] as [string, string]] : []),
    ...(hit.confidence ? [["Confidence", hit.confidence] as [string, string]] : []),
  ];
  const figures = Object.entries(hit.values).filter(([name, cell]) => !SHOWN.has(name) && !(typeof cell === "string" && /\{[a-z_]+\}/.test(cell)));
  const run = commands(hit);
  return (
    <div data-finding={finding.id}>
      <div class="head">
        <div class="kind">
          <Severity name={hit.severity} />
          <strong class={hit.severity}>{hit.severity.charAt(0).toUpperCase() + hit.severity.slice(1)}</strong> <code>{finding.id}</code>
        </div>
        <h2>
          {visible(hit.culprit)}: {inside(finding.title)}
        </h2>
        <p>{visible(phrase(one))}</p>
        <Maker name={hit.culprit} />
      </div>
      <Actions
        list={[
          ...(panels[0] ? [{ text: `Open ${nameOfPanel(panels[0])}`, primary: true, run: () => void selectHit(finding.id, at, panels[0]) }] : []),
          { text: filtered ? "Filtered" : "Filter", on: filtered, run: () => void (filtered ? deselect() : selectHit(finding.id, at)) },
          ...panels.slice(1).map((panel) => ({ text: nameOfPanel(panel), run: () => void selectHit(finding.id, at, panel) })),
          {
            text: "SQL",
            run: () => {
              set("sql", { text: finding.sql });
              look({ panel: "sql" });
            },
          },
        ]}
      />
      {facts.length > 0 && (
        <dl class="part fact-grid">
          {facts.map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      <Evidence of={one} />
      {hit.fix && (
        <section class="part">
          <h3>Do this</h3>
          <p>
            <Words text={filled(hit.fix, one)} />
          </p>
          {run.map((text) => (
            <Command key={text} text={text} />
          ))}
        </section>
      )}
      {finding.disproof && (
        <section class="part">
          <h3>What would disprove it</h3>
          <p>
            <Words text={filled(finding.disproof, one)} />
          </p>
        </section>
      )}
      {hit.explanation && (
        <section class="part">
          <h3>Why</h3>
          <p>
            <Words text={filled(hit.explanation, one)} />
          </p>
        </section>
      )}
      {finding.caveats.length > 0 && (
        <section class="part">
          <h3>But</h3>
          {finding.caveats.map((text) => (
            <p key={text}>
              <Words text={filled(text, one)} />
            </p>
          ))}
        </section>
      )}
      <section class="part">
        <details>
          <summary>All figures</summary>
          <dl class="pairs">
            {figures.map(([name, cell]) => (
              <div key={name}>
                <dt title={name}>{label(name)}</dt>
                <dd>{visible(figure(name, cell))}</dd>
              </div>
            ))}
          </dl>
        </details>
        <details>
          <summary>Limits and their sources</summary>
          <ul>
            {Object.entries(finding.thresholds).map(([name, limit]) => (
              <li key={name}>
                {label(name)}: {number(limit.value)} {limit.unit} ({SOURCES[limit.source]}):{" "}
                {/^https:\/\/[\w.-]+(\/[\w./%?=&#+~-]*)?$/.test(limit.reference) ? (
                  <a href={limit.reference} rel="noreferrer noopener" target="_blank">
                    {limit.reference}
                  </a>
                ) : (
                  limit.reference
                )}
              </li>
            ))}
          </ul>
        </details>
      </section>
    </div>
  );
}
