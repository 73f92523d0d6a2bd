/** What a pivot table shows: a preset, and what the user changed of it. */

import { fieldColumn, fieldOf } from "../../state/event_fields.ts";
import { table } from "../../state/view.ts";
import type { Cell } from "../../wire/rows.ts";
import type { ColumnInfo, ConditionOp, PivotCondition, PivotFunction, TableInfo } from "../../wire/types.ts";

export const FUNCTIONS = ["count", "sum", "min", "max", "avg", "unique"] as const satisfies PivotFunction[];

export interface Value {
  column?: string;
  fn: PivotFunction;
}

export interface Condition extends Partial<Omit<PivotCondition, "column" | "op">> {
  column: string;
  op: ConditionOp;
  /** What people read. */
  label?: string;
}

export interface Preset {
  name: string;
  table: string;
  group: string[];
  values: Value[];
  where?: Condition[];
  /** Columns of the rows; all unless given. */
  columns?: string[];
  /** Order of the rows. */
  order?: [string, boolean][];
  mode?: "groups" | "rows";
}

/** What the view keeps of a panel. */
export interface Settings {
  preset: string;
  table: string | null;
  group: string[] | null;
  values: Value[] | null;
  where: Condition[] | null;
  search: string;
  sort: { id: string; down: boolean } | null;
  mode: "groups" | "rows" | null;
  columns: string[] | null;
  order: [string, boolean][] | null;
  spark: boolean;
  share: boolean;
  /** Units of columns that somebody chose. */
  units?: Record<string, string>;
}

export const FRESH: Settings = {
  preset: "", table: null, group: null, values: null, where: null, search: "", sort: null, mode: null, columns: null, order: null, spark: true, share: true,
};

export const valueName = (value: Value): string => (value.column ? `${value.fn}(${value.column})` : value.fn);

/** Table that an id refers to; as `target` of crates/answers/analysis/src/operators/pivot/reference.rs. */
export function target(column: ColumnInfo): string | null {
  const byRole: Record<string, string> = { process: "process", thread: "thread", stack: "stack", frame: "frame", image: "image" };
  const found = byRole[column.role];
  if (found) return found;
  if (column.type.includes("text")) return null;
  const ids: [string, string][] = [["upid", "process"], ["utid", "thread"], ["stack_id", "stack"], ["frame_id", "frame"], ["image_id", "image"], ["file_id", "file"], ["event_type_id", "event_type"]];
  return ids.find(([id]) => column.name === id || column.name.endsWith(`_${id}`))?.[1] ?? null;
}

/** The column that a key names, also through ids. */
export function resolve(tableName: string, key: string): ColumnInfo | null {
  const field = fieldOf(key);
  if (field !== null) return table(tableName)?.columns.some((one) => one.name === "fields") ? fieldColumn(field) : null;
  let at: TableInfo | undefined = table(tableName);
  let column: ColumnInfo | undefined;
  for (const part of key.split(".")) {
    if (column) at = table(target(column) ?? "");
    column = at?.columns.find((one) => one.name === part);
    if (!column) return null;
  }
  return column ?? null;
}

/** What stands for an id when texts are searched. */
const TEXT_OF: Record<string, string> = { process: "name", thread: "name", stack: "leaf", frame: "label", image: "name", file: "path", event_type: "name" };

/** The text behind a key: the name of what an id refers to. */
export function textKey(tableName: string, key: string): string | null {
  const column = resolve(tableName, key);
  if (!column) return null;
  const to = target(column);
  if (to) return table(to)?.columns.some((one) => one.name === TEXT_OF[to]) ? `${key}.${TEXT_OF[to]}` : null;
  return column.type === "f64" ? null : key;
}

/** Keys as texts, and other texts of the table: what the quick filter looks through. */
export function searched(tableName: string, group: string[]): string[] {
  const info = table(tableName);
  const asText = (key: string) => textKey(tableName, key);
  const others = (info?.columns ?? []).filter((column) => column.type.includes("text") || column.role === "process").map((column) => column.name);
  return [...new Set([...group, ...others].map(asText).filter((one): one is string => one !== null))].slice(0, 16);
}

const WORDS: Record<string, string> = { upid: "process", utid: "thread", stack_id: "stack", frame_id: "frame", image_id: "image", file_id: "file", event_type_id: "event type" };
/** Names of columns that are no words. */
const SPELLED: Record<string, string> = { dur: "duration", op: "operation", ts: "time", imposed_wait: "wait caused" };
/** Words of capitals, also with an s for many. */
const CAPITALS = /^(api|clr|cpu|dns|dpc|emi|epp|etw|gc|gpo|gpu|guid|id|il|ip|irp|isr|jit|kcb|mbb|mdl|mss|nic|npu|numa|os|pdb|pid|rpc|rss|rva|sid|soc|tcp|tid|udp|ui|utc)(s?)$/;
const UNITS = /_(ns|bytes|percent|mhz|j|wh)$/;

const spelled = (name: string) => SPELLED[name] ?? name.split("_").map((word) => (word === "io" ? "I/O" : word).replace(CAPITALS, (_, letters: string, many: string) => letters.toUpperCase() + many)).join(" ");

/** A column's name for people. */
export function title(key: string): string {
  const field = fieldOf(key);
  if (field !== null) return field;
  const parts = key.split(".").map((part) => {
    for (const [id, word] of Object.entries(WORDS)) {
      if (part === id) return word;
      if (part.endsWith(`_${id}`)) return `${spelled(part.slice(0, -id.length - 1))} ${word}`;
    }
    return spelled(part.replace(UNITS, ""));
  });
  return parts.join(" · ");
}

/** As the header of a column, or what stands alone. */
export const headed = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const valueTitle = (value: Value): string => {
  if (!value.column) return "count";
  const name = title(value.column);
  // The sum is what one expects; the largest `ready max` is a `ready max`.
  return value.fn === "sum" || name.endsWith(` ${value.fn}`) ? name : `${value.fn} ${name}`;
};

const COSTS = ["duration", "bytes", "weight"];

/** A table of which nothing is known: the first thing that tells rows apart, and sums of what they cost. */
export function generic(info: TableInfo): Preset {
  const pick = (roles: string[]) => info.columns.find((column) => roles.includes(column.role))?.name;
  const group = [pick(["process"]), pick(["kind"]) ?? pick(["name", "path"])].filter((one): one is string => one !== undefined);
  const sums = info.columns.filter((column) => COSTS.includes(column.role) && column.type.startsWith("i")).slice(0, 4);
  const timed = info.columns.some((column) => column.role === "time");
  return {
    name: info.name, table: info.name, group,
    values: [...sums.map((column): Value => ({ column: column.name, fn: "sum" })), { fn: "count" }],
    mode: timed && group.length > 0 && info.rows > 500 ? "groups" : "rows",
  };
}

/** What a preset may show of this trace: columns and tables that there are not are left out. */
export function effective(preset: Preset, kept: Settings) {
  const name = kept.table ?? preset.table;
  const base = name === preset.table ? preset : generic(table(name) ?? { name, title: name, doc: "", sorted_by: null, rows: 0, why_empty: null, recording: null, columns: [] });
  const known = (key: string) => resolve(name, key) !== null;
  return {
    table: name,
    group: (kept.group ?? base.group).filter(known),
    values: (kept.values ?? base.values).filter((value) => (value.column ? known(value.column) : value.fn === "count")),
    where: (kept.where ?? base.where ?? []).filter((one) => known(one.column)),
    mode: kept.mode ?? base.mode ?? "groups",
    columns: (kept.columns ?? base.columns ?? (table(name)?.columns ?? []).map((column) => column.name)).filter(known),
    order: (kept.order ?? base.order ?? []).filter(([column]) => known(column)),
  };
}
export type Shown = ReturnType<typeof effective>;

/** The condition that a cell's value is this one. */
export function is(column: string, value: Cell, label?: string): Condition {
  const with_ = label === undefined ? {} : { label };
  return value === null ? { column, op: "is_null", ...with_ } : { column, op: "eq", value, ...with_ };
}

export function conditionText(one: Condition): string {
  const value = one.label ?? String(one.value ?? "");
  const signs: Record<ConditionOp, string> = { eq: "=", ne: "≠", ge: "≥", le: "≤", gt: ">", lt: "<", contains: "contains", is_null: "is empty", not_null: "is not empty", in: "in", stack_has: "has" };
  // Chosen by an expression, or by its name.
  const sign = one.op !== "in" ? signs[one.op] : value.startsWith("/") ? "matches" : one.label !== undefined ? "=" : "in";
  return `${one.not ? "not " : ""}${title(one.column)} ${sign}${["is_null", "not_null"].includes(one.op) ? "" : ` ${value}`}`;
}

/** The conditions as the server reads them. */
export function questions(conditions: Condition[], search: string, tableName: string, group: string[]): Condition[] {
  const plain = conditions.map(({ label: _, ...rest }) => rest);
  const text = search.trim();
  const columns = text ? searched(tableName, group) : [];
  const [first, ...or] = columns;
  return first === undefined ? plain : [...plain, { column: first, or, op: "contains", value: text }];
}
