/** The answer above every panel but the first. */

import { count } from "../../src/lib/format.ts";
import { visible } from "../base/value.ts";
import { Severity } from "../parts/icons.tsx";
import { foundIn, shortened } from "../state/finding.ts";
import { look, report } from "../state/view.ts";
import type { Panel } from "./panel.ts";
import { fitting } from "./panes.tsx";

const WORDS: [string, string, string][] = [["critical", "critical", "critical"], ["warning", "warning", "warnings"], ["notice", "notice", "notices"]];

export function VerdictBar(props: { panel: Panel }) {
  const data = report.value;
  if (!data) return <div class="verdict-bar" />;
  const found = foundIn(data);
  const worst = found[0];
  const untold = data.findings.filter((one) => one.answer === "cannot_tell").length;
  return (
    <div class="verdict-bar">
      {worst && <Severity name={worst.hit.severity} />}
      <h1 title={visible(data.sentence)}>
        <span class="hidden-text">{props.panel.title}: </span>
        {visible(shortened(data.sentence))}
      </h1>
      <select class="add beside" aria-label="Show a second panel beside this one" value="" onChange={(event) => look({ beside: event.currentTarget.value || null })}>
        <option value="">+ Beside</option>
        {fitting(props.panel).map((one) => (
          <option key={one.id} value={one.id}>
            {one.title}
          </option>
        ))}
      </select>
      <button type="button" class="counts small" title="To the findings" onClick={() => look({ panel: "overview" })}>
        {WORDS.map(([name, one, many]) => {
          const size = found.filter((each) => each.hit.severity === name).length;
          return (
            size > 0 && (
              <span key={name}>
                <b class={name}>{count(size)}</b> {size === 1 ? one : many}
              </span>
            )
          );
        })}
        {found.length === 0 && (untold > 0 ? `nothing found; ${count(untold)} cannot be determined` : "nothing found")}
      </button>
    </div>
  );
}
