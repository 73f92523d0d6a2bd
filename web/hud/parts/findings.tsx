/** Findings as rows: how bad, who, what happened, when, what it cost on one scale. Detail stands in the inspector. */

import { useEffect } from "preact/hooks";
import type { Outcome, Report } from "../../src/model.ts";
import { count, percent } from "../../src/lib/format.ts";
import { isGuard, markOf } from "../base/colors.ts";
import { bind } from "../base/keys.ts";
import { counted, visible } from "../base/value.ts";
import { openInspector } from "../app/inspector.tsx";
import { foundIn, lookAt, lookedAt, machineShare, phrase, type Found } from "../state/finding.ts";
import { inspect } from "../state/inspect.ts";
import { tick } from "../state/live.ts";
import { inForce, set, setting, table, view, whole, type Range } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask, askRows } from "../wire/api.ts";
import { painted } from "../state/palette.ts";
import { alike } from "./grid/amounts.ts";
import { Severity } from "./icons.tsx";
import { Strip } from "./mini.tsx";
import { parse } from "./pivot/spark.tsx";
import { findings as marks } from "./timeline/feed.ts";
import { Who } from "./who.tsx";
import { Words } from "./words.tsx";

interface Settings {
  all: boolean;
}

const MOST = 7;

/** A finding without culprits: what it would need. */
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
                <Words text={reason.text} />
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

export const show = (id: string) => {
  inspect(null);
  lookAt(id);
  openInspector();
};

/** Parts of the strips. */
const PARTS = 65;
/** What a finding's cost is made of, by topic, if that is not time of processors. */
const MADE_OF: Record<string, [string, string]> = {
  dotnet: ["clr_gc", "pause_ns"],
  memory: ["virtual_alloc", "committed_bytes"],
  network: ["network", "size_bytes"],
  registry: ["registry", "dur_ns"],
};

/** When it happened, and how much of it. What the filters of a finding cannot count has its range alone. */
function When(props: { of: Found; range: Range | null }) {
  const { finding, at } = props.of;
  const trace = view.value.trace;
  // The windows of a trace that is followed pass too quickly.
  const wanted = inForce.value === null && tick.value === 0;
  const key = wanted ? `chosen ${JSON.stringify([trace, finding.id, at])}` : null;
  const chosen = useAnswer(key, async (signal) => ({ key, filters: (await ask("select", { trace, finding: finding.id, hit: at, within: null }, signal)).filters })).value;
  // The answer before may be of another trace, whose processes have other numbers.
  const filters = (chosen?.key === key ? chosen.filters : []).map(({ kind, value }) => ({ kind, value, not: false }));
  const own = finding.topic === "interrupts" && filters[0]?.kind === "module" ? (["dpc", "exclusive_ns"] as const) : MADE_OF[finding.topic];
  const [source, column] = own && table(own[0])?.rows ? own : (["sample", "weight_ns"] as const);
  const body = { trace, range: null, filters, table: source, values: [{ column, fn: "sum" }], group: [], sort: [], spark: PARTS, limit: 1 };
  const time = useAnswer(filters.length > 0 && table(source)?.rows ? `when ${JSON.stringify(body)}` : null, (signal) => askRows("pivot", body, signal)).value;
  const line = time && time.count > 0 && time.facts.unused.length === 0 ? parse(time.text(0, "spark")).map((value) => value ?? 0) : null;
  return <Strip range={props.range} whole={whole.value} line={line} />;
}

export function Findings(props: { data: Report }) {
  void painted.value;
  const { all } = setting<Settings>("overview", { all: false });
  const found = foundIn(props.data);
  const open = props.data.findings.filter((one) => one.answer === "cannot_tell");
  const without = props.data.findings.filter((one) => one.answer === "not_found");
  const shown = all ? found : found.slice(0, MOST);
  const most = Math.max(1, ...shown.map((one) => one.hit.cost_ns ?? 0));
  const costs = alike("ns", shown.map((one) => one.hit.cost_ns));
  const chosen = lookedAt() ?? found[0]?.id ?? null;
  const when = (one: Found): Range | null => inForce.value ? inForce.value.found.range : marks.value?.find((mark) => mark.finding === one.finding.id && mark.hit === one.at)?.range ?? null;
  useEffect(() => {
    const step = (by: number) => {
      const at = found.findIndex((one) => one.id === (lookedAt() ?? found[0]?.id));
      const next = found[Math.max(0, Math.min(found.length - 1, at + by))];
      if (next) show(next.id);
    };
    return bind("Findings", [
      { key: "j", about: "next finding", run: () => step(1) },
      { key: "k", about: "previous finding", run: () => step(-1) },
    ]);
  }, [props.data]);
  return (
    <section class="findings" id="findings" aria-label="Findings">
      <div class="finding-row head" aria-hidden="true">
        <span />
        <span>Culprit</span>
        <span>
          What happened <span class="faint">{count(found.length)} found; {count(without.length + found.length)} patterns checked, {count(open.length)} can’t be determined</span>
        </span>
        <span class="when">When</span>
        <span class="scale">Cost, common scale</span>
        <span class="number">
          Cost<span class="faint">{costs.unit && `\u00a0${costs.unit}`}</span>
        </span>
        <span class="number part" title="Of the CPU time of all processors">
          Share
        </span>
      </div>
      {found.length === 0 && (
        <p class="about">
          None of the {count(without.length)} patterns that can be checked in this trace was found; {count(open.length)} cannot be checked.
        </p>
      )}
      {shown.map((one) => {
        const cost = one.hit.cost_ns;
        const share = machineShare(one);
        return (
          <button
            type="button"
            class={`finding-row headline ${view.value.finding === one.id ? "filtered" : ""}`}
            key={one.id}
            aria-pressed={chosen === one.id}
            data-finding={one.finding.id}
            title={visible(phrase(one))}
            onClick={() => show(one.id)}
          >
            <Severity name={one.hit.severity} />
            <strong class="cut">
              <Who name={one.hit.culprit} />
            </strong>
            <span class="what cut">{visible(phrase(one))}</span>
            <span class="when">
              <When of={one} range={when(one)} />
            </span>
            <span class="scale">
              {cost !== null && (
                <span class="meter">
                  <i class={isGuard(one.hit.culprit) ? "hatched" : ""} style={{ width: `${Math.max(0.8, (100 * cost) / most)}%`, backgroundColor: `var(${markOf(one.hit.culprit)})` }} />
                </span>
              )}
            </span>
            <span class="number">
              {cost === null ? "–" : costs.bare(cost)}
              {cost !== null && <span class="narrow-only">{costs.unit && `\u00a0${costs.unit}`}</span>}
            </span>
            <span class="number part muted">{typeof share === "number" ? percent(share) : (share ?? "–")}</span>
          </button>
        );
      })}
      <div class="finding-foot">
        {found.length > MOST && (
          <button type="button" class="small" aria-expanded={all} onClick={() => set<Settings>("overview", { all: !all })}>
            {all ? "Only the worst" : `${count(found.length - MOST)} more`}
          </button>
        )}
        <Rest title={`${counted(open.length, "question")} cannot be answered from this trace`} list={open} />
        <Rest title={`${counted(without.length, "pattern was", "patterns were")} checked and not found`} list={without} />
      </div>
    </section>
  );
}
