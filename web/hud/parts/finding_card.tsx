/** A finding: who, what it cost, what to do, where to look; the evidence behind a click. */

import { useState } from "preact/hooks";
import type { BillRow, Hit, Outcome } from "../../src/model.ts";
import { bytes, count, duration, label, number, percent } from "../../src/lib/format.ts";
import { visible } from "../base/value.ts";
import { deselect, selectHit, WHERE } from "../state/select.ts";
import { view } from "../state/view.ts";
import { Sql, whyEmpty } from "./box.tsx";
import { Long, Words } from "./words.tsx";

const MARKS: Record<string, string> = { critical: "✖", warning: "▲", notice: "●", info: "i" };

/** The severity as a word with a mark: never by colour alone. */
export function Badge(props: { name: string }) {
  return (
    <span class={`badge ${props.name}`}>
      <span aria-hidden="true">{MARKS[props.name] ?? "i"}</span> {props.name}
    </span>
  );
}

/** A value in the unit that its column's name says. */
function value(column: string, cell: string | number | null): string {
  if (cell === null) return "unknown";
  if (typeof cell !== "number") return visible(String(cell));
  if (column.endsWith("_ns")) return duration(cell);
  if (column.endsWith("_percent")) return percent(cell / 100);
  if (column.endsWith("_bytes")) return bytes(cell);
  if (column.endsWith("share")) return percent(cell);
  return Number.isInteger(cell) ? count(cell) : number(cell);
}

const joules = (j: number) => (j >= 1 ? `${number(j)}\u00a0J` : `${number(j * 1000)}\u00a0mJ`);

/** What the bill has on a culprit. */
function energy(hit: Hit, bill: BillRow[]): string | null {
  const name = hit.culprit.toLowerCase();
  const row = bill.find((one) => one.culprit.toLowerCase() === name || one.culprit.toLowerCase().replace(/ \(\d+\)$/, "") === name);
  if (!row || row.energy_j === null || row.total_cpu_ns <= 0) return null;
  // The bill prices all CPU time of the culprit; the finding may speak of a part of it, or of waiting, which needs no energy of its own.
  if (hit.cost_ns === null || hit.cost_ns > row.total_cpu_ns * 1.05) return null;
  const part = Math.min(1, hit.cost_ns / row.total_cpu_ns);
  const range = row.energy_low_j !== null && row.energy_high_j !== null ? ` (${joules(row.energy_low_j * part)} to ${joules(row.energy_high_j * part)})` : "";
  return `about ${joules(row.energy_j * part)}${range}`;
}

/** Columns that stand elsewhere on the card. */
const SHOWN = new Set(["culprit", "culprit_kind", "cost_ns", "share", "confidence", "severity", "headline", "explanation", "fix"]);
const SOURCES = { doc: "documented", derived: "derived", case: "a real case", heuristic: "rule of thumb" };
const PANELS: Record<string, string> = {};

const TABLES: Record<string, string[]> = {};

/** Panels tell their titles and tables here, so that cards can name them. */
export function nameOfPanel(id: string, title?: string, tables?: string[]): string {
  if (title) PANELS[id] = title;
  if (tables) TABLES[id] = tables;
  return PANELS[id] ?? id;
}

/** Whether this trace has something to show there. */
const panelHas = (id: string) => whyEmpty(TABLES[id] ?? []) === null;

function Culprit(props: { finding: Outcome; hit: Hit; at: number; bill: BillRow[] }) {
  const { finding, hit, at, bill } = props;
  const chosen = view.value.finding === `${finding.id}#${at}`;
  const joule = energy(hit, bill);
  const figures = Object.entries(hit.values).filter(([name]) => !SHOWN.has(name));
  return (
    <div class={chosen ? "hit chosen" : "hit"}>
      <div class="hit-head">
        {at > 0 && <Badge name={hit.severity} />}
        <h3>
          <button type="button" class="headline" aria-pressed={chosen} onClick={() => void (chosen ? deselect() : selectHit(finding.id, at))} title="Select its time, rows and stacks in every panel">
            {visible(hit.headline || finding.title)}
          </button>
        </h3>
      </div>
      <dl class="facts">
        <div>
          <dt>{hit.culprit_kind || "culprit"}</dt>
          <dd class="name" data-knows={hit.culprit}>
            {visible(hit.culprit)}
          </dd>
        </div>
        {hit.cost_ns !== null && (
          <div>
            <dt>cost</dt>
            <dd>{duration(hit.cost_ns)}</dd>
          </div>
        )}
        {hit.share !== null && (
          <div>
            <dt>share</dt>
            <dd>{percent(hit.share)}</dd>
          </div>
        )}
        {joule && (
          <div>
            <dt data-hint="The part of the culprit's energy in the bill that this cost is of its CPU time; the bounds are those of the watt model.">energy</dt>
            <dd>{joule}</dd>
          </div>
        )}
        {hit.confidence && (
          <div>
            <dt>confidence</dt>
            <dd>{hit.confidence}</dd>
          </div>
        )}
      </dl>
      {hit.fix && (
        <p class="fix">
          <strong>What to do</strong> <Long text={hit.fix} />
        </p>
      )}
      <p class="where">
        Show in{" "}
        {(WHERE[finding.topic] ?? ["stacks"]).filter((panel) => panelHas(panel)).map((panel) => (
          <button type="button" class="small" key={panel} onClick={() => void selectHit(finding.id, at, panel)}>
            {nameOfPanel(panel)}
          </button>
        ))}
      </p>
      <details>
        <summary>Why, and all figures</summary>
        {hit.explanation && (
          <p>
            <Words text={hit.explanation} />
          </p>
        )}
        <dl class="figures">
          {figures.map(([name, cell]) => (
            <div key={name}>
              <dt title={name}>{label(name)}</dt>
              <dd class="name">{value(name, cell)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}

export function FindingCard(props: { finding: Outcome; bill: BillRow[] }) {
  const { finding, bill } = props;
  const [all, setAll] = useState(false);
  const shown = all ? finding.hits : finding.hits.slice(0, 1);
  return (
    <article class={`finding ${finding.severity ?? "info"}`} data-finding={finding.id} aria-label={finding.title}>
      <header>
        <Badge name={finding.severity ?? "info"} />
        <span class="muted">{finding.title}</span>
        <code class="id">{finding.id}</code>
      </header>
      {shown.map((hit, at) => (
        <Culprit key={at} finding={finding} hit={hit} at={at} bill={bill} />
      ))}
      {finding.caveats.map((caveat) => (
        <p class="caveat" key={caveat}>
          <strong>But</strong> <Words text={caveat} />
        </p>
      ))}
      {finding.hits.length > 1 && (
        <button type="button" class="small" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Only the first" : `${finding.hits.length - 1} more of this kind`}
        </button>
      )}
      <details>
        <summary>Evidence, limits, what would disprove it</summary>
        {finding.disproof && (
          <p>
            <strong>What would disprove it:</strong> <Words text={finding.disproof} />
          </p>
        )}
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
        <Sql sql={finding.sql} />
      </details>
    </article>
  );
}
