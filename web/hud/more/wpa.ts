/** Profiles of WPA (`.wpaProfile`): their graphs as tables here, as far as these have what they show; what they do not have is named. */

import { visible } from "../base/value.ts";
import { GRAPHS, type Column } from "./wpa_tables.ts";

export interface Value {
  column?: string;
  fn: string;
}
export interface Condition {
  column: string;
  op: string;
  value: unknown;
  not?: boolean;
}
/** A preset of a graph, as settings of a table. */
export interface Imported {
  name: string;
  table: string;
  group: string[];
  values: Value[];
  where: Condition[];
  sort: { id: string; down: boolean } | null;
}
export interface Profile {
  views: Imported[];
  /** What has nothing here, by graph: in words. */
  left: string[];
}

interface Element {
  name: string;
  of: Record<string, string>;
  inner: Element[];
}

/** Bytes of a profile: real ones have less than one MB. */
export const MOST = 8e6;
/** Elements inside of elements: real profiles have some fifteen. */
const DEEPEST = 100;
/** Views, and things that have nothing here: as many as a list has room for. */
const MOST_NAMED = 50;
/** Characters of a name, and of a filter that is read. */
const [LONGEST, LONGEST_FILTER] = [120, 4000];

/** The entry of that name. A file may call something `constructor`, which every object has. */
const own = <T>(of: Record<string, T>, name: string): T | undefined => (Object.hasOwn(of, name) ? of[name] : undefined);
/** Text of a file as people may see it. */
const named = (text: string) => visible(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };
const plain = (text: string) => text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|\w{2,4});/gi, (all, name: string) => {
  const code = name[0] !== "#" ? null : name[1]?.toLowerCase() === "x" ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code === null ? (own(ENTITIES, name) ?? all) : code <= 0x10ffff ? String.fromCodePoint(code) : all;
});

/** Without comments, declarations and instructions. One that does not end takes all that follows, so that nothing is looked for twice. */
function withoutAsides(xml: string): string {
  const parts: string[] = [];
  const begin = /<(?:!--|[?!])/g;
  let from = 0;
  for (let found = begin.exec(xml); found; found = begin.exec(xml)) {
    parts.push(xml.slice(from, found.index));
    const last = found[0] === "<!--" ? "-->" : ">";
    const end = xml.indexOf(last, begin.lastIndex);
    if (end < 0) return parts.join("");
    from = end + last.length;
    begin.lastIndex = from;
  }
  return [...parts, xml.slice(from)].join("");
}

/** Elements and attributes of a text in XML; texts between them, which profiles do not use, are left out. */
export function elements(xml: string): Element {
  const root: Element = { name: "", of: {}, inner: [] };
  const open = [root];
  const tags = /<(\/?)([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>/g;
  for (const [, close, name, attributes, empty] of withoutAsides(xml).matchAll(tags)) {
    if (!name) continue;
    const short = name.replace(/^.*:/, "");
    if (close) {
      if (open[open.length - 1]?.name === short && open.length > 1) open.pop();
      continue;
    }
    const of: Record<string, string> = {};
    for (const [, key, , double, single] of (attributes ?? "").matchAll(/([\w:.-]+)\s*=\s*("([^"]*)"|'([^']*)')/g)) of[(key ?? "").replace(/^.*:/, "")] = plain(double ?? single ?? "");
    const element: Element = { name: short, of, inner: [] };
    open[open.length - 1]?.inner.push(element);
    if (!empty) open.push(element);
    if (open.length > DEEPEST) throw new Error("This profile has too many elements inside of each other.");
  }
  return root;
}

/** All of that name, but not those inside of one: a view has no views, and each element is looked at once for each name. */
function* below(of: Element, name: string): Generator<Element> {
  for (const one of of.inner) {
    if (one.name === name) yield one;
    else yield* below(one, name);
  }
}

const FUNCTIONS: Record<string, string> = { Sum: "sum", Min: "min", Max: "max", Average: "avg", Count: "count", UniqueCount: "unique" };
/** Signs of comparisons, longest first; `contains` is what comes nearest to *begins with* and is said to be so. */
const SIGNS: [string, string, boolean][] = [[":~!", "contains", true], [":~=", "contains", false], [":~>", "contains", false], [":~<", "contains", false], [":<>", "ne", false], [":=", "eq", false]];

/** Conditions of a filter, or null where it says more than that all of some comparisons hold. */
function conditions(query: string, keys: Record<string, Column>): Condition[] | null {
  const one = /^\s*(?:AND\s+)?\[([^\]]+)\](:~!|:~=|:~>|:~<|:<>|:=)("[^"]*"|[^\s"]+)/;
  const out: Condition[] = [];
  if (query.length > LONGEST_FILTER) return null;
  let rest = query;
  while (rest.trim() !== "") {
    const found = one.exec(rest);
    const key = own(keys, found?.[1] ?? "")?.key;
    const sign = SIGNS.find(([text]) => text === found?.[2]);
    if (!found || !key || !sign) return null;
    // Comparisons with a process or thread mean its name.
    const column = /upid$/.test(key) ? `${key}.name` : key;
    out.push({ column, op: sign[1], value: (found[3] ?? "").replace(/^"|"$/g, "").replace(/ \(\d+\)$/, ""), ...(sign[2] ? { not: true } : {}) });
    rest = rest.slice(found[0].length);
  }
  return out;
}

function preset(graph: Element, of: Element, title: string, left: Set<string>): Imported | null {
  const known = own(GRAPHS, (graph.of["Guid"] ?? "").toLowerCase());
  const name = named(of.of["Name"] ?? "");
  if (!known) {
    left.add(`${title}: the graph ${named(graph.of["Guid"] ?? "")} (${name || "without a name"}) has no table here`);
    return null;
  }
  const lack = (what: string) => left.add(`${title}, ${name}: ${what}`);
  const keys = Number(of.of["KeyColumnCount"] ?? 0);
  const [group, values, where]: [string[], Value[], Condition[]] = [[], [], []];
  let first: { at: number; id: string; down: boolean } | null = null;
  let at = -1;
  for (const column of below(of, "Column")) {
    at += 1;
    if (column.of["IsVisible"] === "false") continue;
    const found = own(known.columns, column.of["Name"] ?? "");
    const called = named(column.of["Name"] ?? "");
    if (!found) {
      lack(`column ${called}`);
      continue;
    }
    let id: string;
    // Left of the gold bar stands what is grouped by.
    const by = at < keys ? (found.key ?? found.value) : undefined;
    if (at < keys && !by) lack(`column ${called} left of the gold bar: it is right of it here`);
    if (by) {
      if (!group.includes(by)) group.push(by);
      id = by;
      if ([...below(column, "StackOptionsParameter")].some((one) => one.of["Mode"] === "StackTag")) lack(`column ${called}: stacks by frames, not by tags`);
    } else {
      const said = own(FUNCTIONS, column.of["AggregationMode"] ?? "");
      const value: Value = found.fn === "count" && !found.value ? { fn: "count" } : found.value ? { column: found.value, fn: said ?? found.fn ?? "sum" } : { column: found.key ?? "", fn: "unique" };
      id = value.column ? `${value.fn}(${value.column})` : value.fn;
      if (!values.some((each) => each.fn === value.fn && each.column === value.column)) values.push(value);
    }
    const order = column.of["SortOrder"];
    const priority = Number(column.of["SortPriority"] ?? Number.POSITIVE_INFINITY);
    if (order && order !== "None" && (!first || priority < first.at)) first = { at: priority, id, down: order === "Descending" };
  }
  const query = of.of["InitialFilterQuery"] ?? "";
  if (query.trim() !== "") {
    const found = conditions(query, known.columns);
    const keeps = of.of["InitialFilterShouldKeep"] !== "false";
    if (found && keeps) where.push(...found);
    else if (found?.[0] && found.length === 1) where.push({ ...found[0], not: !found[0].not });
    else lack(`filter ${named(query)}`);
    if (found && /:~[<>]/.test(query)) lack(`filter ${named(query)}: begins with is read as contains`);
  }
  if ([...below(of, "HighlightEntry")].length > 0) lack("highlighted rows");
  if (group.length + values.length === 0) return null;
  return { name: `${title}: ${name || known.title}`, table: known.table, group, values, where, sort: first && { id: first.id, down: first.down } };
}

/** Reads a profile. */
export function readProfile(xml: string): Profile {
  const root = elements(xml);
  if (root.inner.some((one) => one.name === "WpaProfile")) throw new Error("This profile is of the WPA of Windows 8.1 or earlier; open and save it with a newer one first.");
  if (!root.inner.some((one) => one.name === "WpaProfileContainer")) throw new Error("This is no profile of WPA (.wpaProfile).");
  const left = new Set<string>();
  const views: Imported[] = [];
  for (const file of below(root, "FileReference")) {
    const name = named(file.of["FileName"] ?? "");
    left.add(/\.stacktags$/i.test(name) ? `the file ${name} (stack tags: --tags of the command)` : `the file ${name}`);
  }
  for (const view of below(root, "View")) {
    for (const graph of below(view, "Graph")) {
      for (const one of below(graph, "Preset")) {
        const found = preset(graph, one, named(view.of["Title"] ?? "View"), left);
        if (found) views.push(found);
      }
    }
  }
  const rest = left.size - MOST_NAMED;
  return { views: views.slice(0, MOST_NAMED), left: [...[...left].slice(0, MOST_NAMED), ...(rest > 0 ? [`and ${rest} more`] : [])] };
}
