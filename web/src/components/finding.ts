/** What a finding found: who, what it cost, why it matters, what to do, and how to check it. */

import type { Hit, Outcome, Threshold } from "../model.ts";
import { h, type Child } from "../lib/dom.ts";
import { bytes, count, duration, label, number, percent } from "../lib/format.ts";

const RANK = ["critical", "warning", "notice", "info"];
const MARKS: Record<string, string> = { critical: "✖", warning: "▲", notice: "●", info: "i" };

/** The severity as a word with a mark: never by colour alone. */
export function badge(name: string): HTMLElement {
  const known = RANK.includes(name) ? name : "info";
  return h("span", { class: `badge ${known}` }, h("span", { "aria-hidden": "true" }, MARKS[known]), ` ${name}`);
}

/** A value in the unit that its column's name says. */
function value(column: string, cell: string | number | null): string {
  if (cell === null) return "unknown";
  if (typeof cell !== "number") return String(cell);
  if (column.endsWith("_ns")) return duration(cell);
  if (column.endsWith("_percent")) return percent(cell / 100);
  if (column.endsWith("_bytes")) return bytes(cell);
  if (column.endsWith("share")) return percent(cell);
  return Number.isInteger(cell) ? count(cell) : number(cell);
}

const SOURCES = { doc: "documented", derived: "derived", case: "a real case", heuristic: "rule of thumb" };

/** Sources open in a new window, but only addresses that cannot run anything. */
function source(limit: Threshold): Child {
  const link = /^https:\/\/[\w.-]+(\/[\w./%?=&#+~-]*)?$/.test(limit.reference)
    ? h("a", { href: limit.reference, rel: "noreferrer noopener", target: "_blank" }, limit.reference)
    : limit.reference;
  return [` (${SOURCES[limit.source]}): `, link];
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

/** Columns that stand above the figures already, and texts that the others were put into. */
const SHOWN = ["culprit", "culprit_kind", "cost_ns", "share", "confidence", "severity", "headline", "explanation", "fix"];
/** More figures than this are closed at first. */
const FEW = 9;

/** A text whose parts between backticks are commands. */
function words(text: string): Child {
  const parts = text.split("`");
  // An odd number of backticks: they are not ours.
  if (parts.length % 2 === 0) return text;
  return parts.map((part, at) => (at % 2 === 0 ? part : h("code", {}, part)));
}

function hitBody(hit: Hit): Child {
  const facts: [string, Child][] = [[hit.culprit_kind || "culprit", h("span", { class: "name" }, hit.culprit)]];
  if (hit.cost_ns !== null) facts.push(["cost", duration(hit.cost_ns)]);
  if (hit.share !== null) facts.push(["share", percent(hit.share)]);
  if (hit.confidence !== null) facts.push(["confidence", hit.confidence]);
  const figures = Object.entries(hit.values).filter(([name]) => !SHOWN.includes(name));
  const list = h("dl", { class: "values" }, figures.map(([name, cell]) => h("div", {}, h("dt", { title: name }, label(name)), h("dd", { class: "name" }, value(name, cell)))));
  return h(
    "div",
    { class: "hit-body" },
    h(
      "div",
      {},
      h("dl", { class: "numbers" }, facts.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)))),
      hit.explanation && h("p", {}, words(hit.explanation)),
      hit.fix && h("p", { class: "fix" }, h("strong", {}, "What to do "), words(hit.fix)),
      figures.length > FEW && h("details", {}, h("summary", {}, `${figures.length} figures`), list),
    ),
    figures.length > 0 && figures.length <= FEW && list,
  );
}

/** Culprits that are shown; behind them only their number. */
const MORE = 30;

/** A card. */
export function finding(data: Outcome): HTMLElement {
  const [first, ...others] = data.hits;
  const severity = data.severity ?? "info";
  const more = others.slice(0, MORE);
  return h(
    "article",
    { class: `finding ${severity}`, id: `finding-${data.id.replace(/[^\w.-]/g, "")}` },
    h("header", {}, badge(severity), h("h3", {}, first?.headline || data.title)),
    first && hitBody(first),
    data.caveats.map((caveat) => h("p", { class: "caveat" }, h("strong", {}, "But "), words(caveat))),
    more.length > 0 &&
      h(
        "details",
        { class: "more" },
        h("summary", {}, `${count(others.length)} more of this kind`),
        more.map((hit) => h("section", { class: "hit" }, h("h4", {}, badge(hit.severity), " ", hit.headline), hitBody(hit))),
        others.length > more.length && h("p", {}, `And ${count(others.length - more.length)} more; the query names them all.`),
      ),
    h(
      "details",
      { class: "evidence" },
      h("summary", {}, "Evidence, limits, what would disprove it"),
      h("p", {}, h("strong", {}, data.title), " (", h("code", {}, data.id), "). ", h("code", {}, `etwhy rules show ${data.id}`), " explains it."),
      data.disproof && h("p", {}, h("strong", {}, "What would disprove it: "), words(data.disproof)),
      Object.keys(data.thresholds).length > 0 &&
        h(
          "ul",
          {},
          Object.entries(data.thresholds).map(([name, limit]) => h("li", {}, `${label(name)}: ${number(limit.value)} ${limit.unit}`, source(limit))),
        ),
      data.sql && query(data.sql),
    ),
  );
}
