/** What the panel of stacks asks, and the answer as lists of numbers that pictures and trees read. */

import { signal } from "@preact/signals";
import { percent as shown, share } from "../../../src/lib/format.ts";
import { part, set, setting, view, type Part } from "../../state/view.ts";
import type { Rows } from "../../wire/rows.ts";
import type { StackQuestion, Step } from "../../wire/types.ts";

export const PANEL = "stacks";

export const TABS = [
  ["flame", "Flame"],
  ["chart", "Icicle (time order)"],
  ["tree", "Top-down"],
  ["inverted", "Inverted"],
  ["butterfly", "Butterfly"],
] as const;
export type Tab = (typeof TABS)[number][0];

export type ColorBy = "module" | "category" | "tag" | "kind";

export interface Settings {
  tab: Tab;
  metric: string;
  by: string[];
  steps: Step[];
  color: ColorBy;
  search: string;
  /** Labels of the node that is the top of the picture. */
  root: string[];
  /** Function of the butterfly; a module if it begins with `module:`. */
  about: string;
  compare: boolean;
  inverted: boolean;
  up: boolean;
  table: boolean;
  /** Lane of the icicle: thread or processor; null is the thread with most samples. */
  lane: { utid: number } | { cpu: number } | null;
}

export const DEFAULTS: Settings = {
  tab: "flame", metric: "cpu", by: ["process"], steps: [], color: "module", search: "", root: [], about: "", compare: false, inverted: false, up: false, table: false, lane: null,
};

export const settings = (): Settings => setting<Settings>(PANEL, DEFAULTS);
export const change = (some: Partial<Settings>): void => set<Settings>(PANEL, some);

const STEP_WORDS: Record<Step["op"], string> = {
  subtree: "focus on subtree",
  focus: "focus on",
  with: "only with",
  drop: "without stacks of",
  merge: "merge",
  trim_above: "begin at",
  trim_below: "end at",
  focus_module: "focus on module",
  drop_module: "without stacks of module",
  merge_module: "merge module",
  collapse: "collapse module",
  recursion: "collapse recursion",
  mine: "hide code of Windows",
};

export function stepText(step: Step): string {
  const of = "function" in step ? step.function : "module" in step ? step.module : "path" in step ? (step.path[step.path.length - 1] ?? "all") : "";
  return `${STEP_WORDS[step.op]} ${of}`.trim();
}

/** Takes a step. What was the top of the picture may no longer be there. */
export function takeStep(step: Step): void {
  const { steps } = settings();
  change({ steps: [...steps, step], root: [] });
}

/** Part, metric, levels, steps: what questions about stacks share. */
export function question(inverted: boolean): Part & StackQuestion {
  const { metric, by, steps } = settings();
  return { ...part.value, metric, by, steps, inverted, names_only: false };
}

export const compared = () => (settings().compare ? view.value.other : null);

/** What somebody points at, for keys and menus. */
export interface Pointed {
  label: string;
  kind: string;
  module: string;
  category: string;
  tag: string;
  security: boolean;
  total: number;
  own: number;
  count: number;
  /** Labels from the root (without it) down to it. */
  path: string[];
  inverted: boolean;
}
export const pointed = signal<Pointed | null>(null);

const CODE = new Set(["kernel", "user", "managed", "unknown"]);
export const isCode = (kind: string) => CODE.has(kind);

/** Nodes of a tree as lists: a parent stands before its children, a node before its siblings that are lighter. */
export class Nodes {
  readonly count: number;
  readonly rows: Rows;
  /** Row of each node. */
  readonly row: Int32Array;
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  readonly total: Float64Array;
  readonly own: Float64Array;
  readonly before: Float64Array;
  readonly label: string[];
  /** Place among all, 0 to 1. */
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  readonly levels: number;
  readonly children: number[][];
  /** Labels above the first node. */
  readonly above: string[];
  readonly inverted: boolean;

  constructor(rows: Rows, side: string, above: string[], inverted: boolean) {
    const list: number[] = [];
    for (let row = 0; row < rows.count; row += 1) if (rows.text(row, "side") === side) list.push(row);
    const n = list.length;
    this.rows = rows;
    this.count = n;
    this.above = above;
    this.inverted = inverted;
    this.row = Int32Array.from(list);
    const numbers = (name: string) => Float64Array.from(list, (row) => rows.num(row, name));
    this.parent = Int32Array.from(list, (row) => rows.num(row, "parent"));
    this.depth = Int32Array.from(list, (row) => rows.num(row, "depth"));
    this.total = numbers("total");
    this.own = numbers("own");
    this.before = numbers("before");
    this.label = list.map((row) => rows.text(row, "name"));
    this.x0 = new Float64Array(n);
    this.x1 = new Float64Array(n);
    this.children = Array.from({ length: n }, () => []);
    const next = new Float64Array(n);
    const whole = this.total[0] || 1;
    let levels = 0;
    for (let at = 0; at < n; at += 1) {
      const parent = this.parent[at] ?? -1;
      const width = (this.total[at] ?? 0) / whole;
      const x = parent < 0 ? 0 : (next[parent] ?? 0);
      this.x0[at] = x;
      this.x1[at] = x + width;
      next[at] = x;
      if (parent >= 0) {
        next[parent] = x + width;
        this.children[parent]?.push(at);
      }
      levels = Math.max(levels, (this.depth[at] ?? 0) + 1);
    }
    this.levels = levels;
  }

  text(at: number, name: string): string {
    return this.rows.text(this.row[at] ?? -1, name);
  }

  num(at: number, name: string): number {
    return this.rows.num(this.row[at] ?? -1, name);
  }

  security(at: number): boolean {
    return this.rows.get(this.row[at] ?? -1, "security") === true;
  }

  path(at: number): string[] {
    const own: string[] = [];
    for (let node = at; node > 0; node = this.parent[node] ?? -1) own.unshift(this.label[node] ?? "");
    return [...this.above, ...own];
  }

  pointed(at: number): Pointed {
    return {
      label: this.label[at] ?? "", kind: this.text(at, "kind"), module: this.text(at, "module"), category: this.text(at, "category"), tag: this.text(at, "tag"),
      security: this.security(at), total: this.total[at] ?? 0, own: this.own[at] ?? 0, count: this.num(at, "count"), path: this.path(at), inverted: this.inverted,
    };
  }
}

/** Nodes that a search means, and the share of the whole that they hold: of nested ones the outermost counts. */
export function searched(nodes: Nodes, text: string): { hit: Uint8Array; under: Uint8Array; weight: number; count: number } | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const hit = new Uint8Array(nodes.count);
  const inside = new Uint8Array(nodes.count);
  // A node with a match below it.
  const under = new Uint8Array(nodes.count);
  let weight = 0;
  let count = 0;
  for (let at = 0; at < nodes.count; at += 1) {
    const parent = nodes.parent[at] ?? -1;
    const above = parent >= 0 && inside[parent] === 1;
    const is = (nodes.label[at] ?? "").toLowerCase().includes(wanted);
    if (is) {
      hit[at] = 1;
      count += 1;
      if (!above) weight += nodes.total[at] ?? 0;
      for (let node = parent; node >= 0 && under[node] === 0; node = nodes.parent[node] ?? -1) under[node] = 1;
    }
    inside[at] = above || is ? 1 : 0;
  }
  return { hit, under, weight, count };
}

export const percent = (value: number, whole: number): string => shown(share(value, whole));
