/** What a finding found: who, what it cost, why it matters, what to do, and how to check it. */

import type { Finding, Hit, Threshold } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { count, duration, number, percent } from "../lib/format.ts";

const RANK = ["critical", "warning", "notice", "info"];
const MARKS: Record<string, string> = { critical: "✖", warning: "▲", notice: "●", info: "i" };

/** The worst severity of its hits, else its own. */
export function severity(finding: Finding): string {
  const rank = (name: string) => (RANK.indexOf(name) + RANK.length + 1) % (RANK.length + 1);
  return finding.hits.map((hit) => hit.severity).sort((a, b) => rank(a) - rank(b))[0] ?? finding.severity;
}

/** The severity as a word with a mark: never by colour alone. */
export function badge(name: string): HTMLElement {
  const known = RANK.includes(name) ? name : "info";
  return h("span", { class: `badge ${known}` }, h("span", { "aria-hidden": "true" }, MARKS[known]), ` ${name}`);
}

/** A value in the unit that its column's name says. */
function value(column: string, cell: string | number | boolean | null): string {
  if (cell === null) return "unknown";
  if (typeof cell !== "number") return String(cell);
  if (column.endsWith("_ns")) return duration(cell);
  if (column.endsWith("share")) return percent(cell);
  return Number.isInteger(cell) ? count(cell) : number(cell);
}

/** Sources open in a new window, but only addresses that cannot run anything. */
function source(limit: Threshold): Child {
  const link = /^https:\/\/[\w.-]+(\/[\w./%?=&#+~-]*)?$/.test(limit.reference)
    ? h("a", { href: limit.reference, rel: "noreferrer noopener", target: "_blank" }, limit.reference)
    : limit.reference;
  return [limit.source, limit.source && limit.reference ? ", " : "", link];
}

function query(sql: string): Child {
  const said = h("span", { role: "status", class: "found" });
  const code = h("code", {}, sql);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(sql);
      said.textContent = "copied";
    } catch {
      // Without a clipboard the text is selected, ready for the keys.
      getSelection()?.selectAllChildren(code);
      said.textContent = "selected: press Ctrl+C";
    }
  };
  return h(
    "div",
    { class: "sql" },
    h("div", { class: "sql-head" }, h("span", {}, "etwhy sql"), said, h("button", { type: "button", class: "quiet", onclick: () => void copy() }, "Copy query")),
    h("pre", { tabindex: "0" }, code),
  );
}

function hitBody(hit: Hit): Child {
  const facts: [string, Child][] = [[hit.culprit_kind || "culprit", h("span", { class: "name" }, hit.culprit)]];
  if (hit.cost_ns !== null) facts.push(["cost", duration(hit.cost_ns)]);
  if (hit.share !== null) facts.push(["of the machine", percent(hit.share)]);
  if (hit.confidence !== null) facts.push(["confidence", hit.confidence]);
  const figures = Object.entries(hit.values);
  return h(
    "div",
    { class: "hit-body" },
    h(
      "div",
      {},
      h("dl", { class: "numbers" }, facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)))),
      hit.explanation && h("p", {}, hit.explanation),
      hit.fix && h("p", { class: "fix" }, h("strong", {}, "What to do "), hit.fix),
    ),
    figures.length > 0 &&
      h("dl", { class: "values" }, figures.map(([name, cell]) => h("div", {}, h("dt", {}, name), h("dd", { class: "name" }, value(name, cell))))),
  );
}

/** A card. */
export function finding(data: Finding): HTMLElement {
  const worst = severity(data);
  const [first, ...others] = data.hits;
  return h(
    "article",
    { class: `finding ${RANK.includes(worst) ? worst : "info"}`, id: `finding-${data.id.replace(/[^\w.-]/g, "")}` },
    h("header", {}, badge(worst), h("h3", {}, first?.headline || data.title)),
    first ? hitBody(first) : h("p", {}, data.explanation),
    others.length > 0 &&
      h(
        "details",
        { class: "more" },
        h("summary", {}, `${count(others.length)} more of this kind`),
        others.map((hit) => h("section", { class: "hit" }, h("h4", {}, badge(hit.severity), " ", hit.headline), hitBody(hit))),
      ),
    h(
      "details",
      { class: "evidence" },
      h("summary", {}, "Evidence, limits, what would disprove it"),
      h("p", {}, h("strong", {}, data.title), " (", h("code", {}, data.id), "). ", data.explanation),
      data.disproof && h("p", {}, h("strong", {}, "What would disprove it: "), data.disproof),
      data.thresholds.length > 0 &&
        h(
          "ul",
          {},
          data.thresholds.map((limit) =>
            h("li", {}, h("code", {}, limit.name), ` = ${limit.unit === "ns" ? duration(limit.value) : `${number(limit.value)} ${limit.unit}`}: `, source(limit)),
          ),
        ),
      data.sql && query(data.sql),
      data.manual && h("details", {}, h("summary", {}, "Manual page"), h("pre", { class: "manual", tabindex: "0" }, data.manual)),
    ),
  );
}
