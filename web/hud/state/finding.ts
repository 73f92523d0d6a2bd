/** Findings as the page tells them: who, what happened in few words, what it cost, when. */

import type { Hit, Outcome, Report } from "../../src/model.ts";
import { bytes, count, duration, number, percent } from "../../src/lib/format.ts";
import { inForce, report, schema, set, setting } from "./view.ts";

export interface Found {
  finding: Outcome;
  hit: Hit;
  at: number;
  /** `cpu.spin-wait#0`. */
  id: string;
}

/** What its cost is of the CPU time of all processors; `wait` for time that passed on none; null where neither is known. */
export function machineShare({ finding, hit }: Pick<Found, "finding" | "hit">): number | "wait" | null {
  const range = inForce.value?.found.range;
  const quality = report.value?.quality;
  const capacity = (range ? range[1] - range[0] : (quality?.duration_ns ?? 0)) * (quality?.cpus ?? 0);
  const of = finding.topic === "interrupts" ? "samples" : schema.value?.costs?.[finding.id];
  if (hit.cost_ns === null || of === undefined || capacity <= 0) return null;
  return of === "elapsed" ? "wait" : hit.cost_ns / capacity;
}

const RANK = ["critical", "warning", "notice", "info"];

/** All culprits, the worst first; of each kind of finding at most a few. */
export function foundIn(data: Report): Found[] {
  const out = data.findings
    .filter((one) => one.answer === "found")
    .flatMap((finding) => finding.hits.map((hit, at): Found => ({ finding, hit, at, id: `${finding.id}#${at}` })));
  return out.sort((a, b) => RANK.indexOf(a.hit.severity) - RANK.indexOf(b.hit.severity));
}

/** Letters of a headline, and of one that is worth standing alone. */
const [GLANCE, LEAST_CLAUSE] = [110, 30];

interface Looked {
  finding: string | null;
}

/** The finding that the inspector tells about; the worst unless another was chosen. */
export const lookedAt = () => setting<Looked>("inspect", { finding: null }).finding;
export const lookAt = (id: string | null) => set<Looked>("inspect", { finding: id });

/** A value in the unit that its column's name says. */
export function figure(column: string, cell: string | number | null): string {
  if (cell === null) return "unknown";
  if (typeof cell !== "number") return cell;
  if (column.endsWith("_ns")) return duration(cell);
  if (column.endsWith("_percent")) return percent(cell / 100);
  if (column.endsWith("_bytes")) return bytes(cell);
  if (column.endsWith("_us")) return duration(cell * 1e3);
  if (column.endsWith("share")) return percent(cell);
  return Number.isInteger(cell) ? count(cell) : number(cell);
}

/** Texts of rules name values in braces: those that were not filled in yet are, from the row and the limits. */
export function filled(text: string, { finding, hit }: Pick<Found, "finding" | "hit">): string {
  return text.replace(/\{([a-z_0-9]+)\}/g, (all, name: string) => {
    const value = hit.values[name];
    if (value !== undefined) return figure(name, value);
    const limit = finding.thresholds[name];
    return limit ? figure(name, limit.value) : name in hit ? String((hit as unknown as Record<string, unknown>)[name]) : all.slice(1, -1).replaceAll("_", " ");
  });
}

/** A text without the parentheses that it begins with, whatever these hold. */
function behind(text: string): string {
  if (!text.startsWith(" (")) return text;
  let depth = 0;
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")") depth -= 1;
    if (depth === 0) return text.slice(at + 1);
  }
  return text;
}

/** Numbers and their units stay on one line. */
export const glued = (text: string) => text.replace(/(\d) (?=(?:%|(?:min|h|d|s|ms|µs|ns|[KMGT]?i?B|m?J|kJ|Wh|W|GHz|MHz)(?![\w])))/g, "$1\u00a0").replace(/(\d\u00a0(?:min|h|d)) (?=\d)/g, "$1\u00a0");

/** What happened, without who: the culprit stands before it. */
export function phrase(one: Found): string {
  const whole = filled(one.hit.headline || one.finding.title, one).replace(/([\d.,]+) times as (long|much)/g, "$1× as $2");
  const { culprit } = one.hit;
  let rest = whole.toLowerCase().startsWith(culprit.toLowerCase()) ? whole.slice(culprit.length) : whole;
  rest = behind(rest).replace(/^[:,]?\s+/, "");
  return glued(rest.charAt(0).toUpperCase() + rest.slice(1));
}

/** The verdict without what the tiles and the inspector say: energy, core-minutes, who makes it. */
export function shortened(sentence: string): string {
  const at = /^[^ ]+\.(?:exe|sys|dll)(?= \()/i.exec(sentence)?.[0].length ?? 0;
  const text = at > 0 ? sentence.slice(0, at) + behind(sentence.slice(at)) : sentence;
  return glued(text.replace(/, [\d.,]+ of [\d.,]+ core-(?:minutes|hours|seconds|s|min|h)/, "").replace(/, about [\d.,]+\u00a0?\s?(?:m?J|Wh|kJ)(?: \([^)]*\))?/, ""));
}

/** What can be read at a glance, and what then follows of the same sentence. */
export function clauses(text: string): [string, string] {
  if (text.length <= GLANCE) return [text, ""];
  let at = -1;
  for (const found of text.matchAll(/[;.] /g)) if (found.index >= LEAST_CLAUSE && (at < 0 || found.index <= GLANCE)) at = found.index;
  if (at < 0) return [text, ""];
  const rest = text.slice(at + 2);
  // Names of programs stay as they are.
  return [`${text.slice(0, at)}.`, /^[a-z]+ /.test(rest) ? rest.charAt(0).toUpperCase() + rest.slice(1) : rest];
}

/** A title inside of a sentence: small unless it begins with an abbreviation. */
export const inside = (title: string) => (/^[A-Z][a-z ]/.test(title) ? title.charAt(0).toLowerCase() + title.slice(1) : title);

/** Further causes, in one line. */
export function also(data: Report): string[] {
  const worst = foundIn(data);
  const seen = new Set([worst[0]?.hit.culprit]);
  const out: string[] = [];
  for (const one of worst.slice(1)) {
    if (seen.has(one.hit.culprit) || one.hit.cost_ns === null || one.hit.severity === "info") continue;
    seen.add(one.hit.culprit);
    const cost = duration(one.hit.cost_ns);
    out.push(one.hit.effect ? `${one.hit.culprit} ${one.hit.effect}: ${cost}` : `${inside(one.finding.title)} (${one.hit.culprit}, ${cost})`);
    if (out.length === 2) break;
  }
  return out;
}

export const findFound = (id: string | null): Found | null => {
  const data = report.value;
  if (!data) return null;
  const all = foundIn(data);
  return all.find((one) => one.id === id) ?? all[0] ?? null;
};
