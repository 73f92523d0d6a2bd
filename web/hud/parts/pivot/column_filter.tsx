/** What a column may hold: numbers from one to another, texts that are, contain or match something. It becomes a condition on the rows of the table. */

import { useState } from "preact/hooks";
import { MOMENTS, scaleOf, unitsOf } from "../../base/units.ts";
import { counted, show, visible } from "../../base/value.ts";
import { part } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import type { Cell, Rows } from "../../wire/rows.ts";
import type { ColumnInfo, PivotFunction } from "../../wire/types.ts";
import { Fault } from "../box.tsx";
import { Dialog } from "../dialog.tsx";
import { questions, resolve, target, textKey, title, type Condition, type Settings, type Shown } from "./model.ts";

interface Props {
  shown: Shown;
  kept: Settings;
  column: string;
  onClose: () => void;
  onTake: (conditions: Condition[]) => void;
}

/** Values that a list of conditions may have. */
const MOST = 5000;
/** Values that are named below what is typed. */
const NAMED = 8;

const WAYS = ["contains", "does not contain", "is", "is not", "matches", "does not match"] as const;
type Way = (typeof WAYS)[number];

const isNumber = (info: ColumnInfo) => !target(info) && !info.type.includes("text") && !/bool/.test(info.type);

/** Whether a column can be filtered here. */
export const canFilter = (tableName: string, key: string): boolean => {
  const info = resolve(tableName, key);
  return info !== null && (isNumber(info) || textKey(tableName, key) !== null) && !/bool/.test(info.type);
};

function useAsked(props: Props, group: string[], values: { column: string | null; fn: PivotFunction }[], more: Condition[], wanted = true) {
  const { shown, kept } = props;
  const body = { ...part.value, table: shown.table, where: [...questions(shown.where, kept.search, shown.table, shown.group), ...more], group, values, sort: [], limit: 100_000, spark: 0 };
  return useAnswer(wanted ? `filter ${JSON.stringify(body)}` : null, (signal) => askRows("pivot", body, signal), 60);
}

/** `Keep`, with what it leaves. */
function Take(props: { left: number | null; of: number | null; can: boolean }) {
  return (
    <p>
      <button type="submit" class="primary" disabled={!props.can}>
        Keep these rows
      </button>{" "}
      <span class="muted" role="status">
        {props.of !== null && `${props.left === null ? "" : `${props.left.toLocaleString("en")} of `}${counted(props.of, "row")}`}
      </span>
    </p>
  );
}

const total = (facts: { totals: unknown[] } | undefined, at: number): number | null => {
  const value = facts?.totals[at];
  return typeof value === "number" ? value : null;
};

function Numbers(props: Props & { info: ColumnInfo }) {
  const { column, info } = props;
  const moment = info.role === "time";
  const base = /_(j|wh)$/.exec(column)?.[1] ?? info.unit;
  const ends = useAsked(props, [], [{ column, fn: "min" }, { column, fn: "max" }, { column: null, fn: "count" }], []);
  const facts = ends.value?.facts;
  const [least, most, rows] = [total(facts, 0), total(facts, 1), total(facts, 2)];
  const units = moment ? [MOMENTS.unit] : unitsOf(base);
  const [chosen, choose] = useState<string | null>(null);
  const scale = moment ? MOMENTS : scaleOf(base, Math.max(Math.abs(least ?? 0), Math.abs(most ?? 0)), chosen);
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const read = (text: string) => {
    const value = text.trim() === "" ? Number.NaN : Number(text.replaceAll(",", "").replace("−", "-"));
    return Number.isFinite(value) ? value * (scale?.factor ?? 1) : null;
  };
  const whole = info.type.startsWith("i") || info.type.startsWith("u");
  const conditions = ([["ge", from], ["le", to]] as const).flatMap(([op, text]): Condition[] => {
    const value = read(text);
    if (value === null) return [];
    return [{ column, op, value: whole ? (op === "ge" ? Math.ceil(value) : Math.floor(value)) : value, label: `${text.trim()}${scale?.unit ? `\u00a0${scale.unit}` : ""}` }];
  });
  const kept = useAsked(props, [], [{ column: null, fn: "count" }], conditions.map(({ label: _, ...rest }) => rest), conditions.length > 0);
  const wrong = [from, to].some((text) => text.trim() !== "" && read(text) === null);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong && conditions.length > 0) props.onTake(conditions);
      }}
    >
      {ends.error && <Fault error={ends.error} />}
      <p class="ask-line">
        <label>
          At least <input inputMode="decimal" value={from} size={10} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label>
          At most <input inputMode="decimal" value={to} size={10} onInput={(event) => setTo(event.currentTarget.value)} />
        </label>
        {units.length > 1 ? (
          <select aria-label="Unit" value={scale?.unit ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
            {units.map((unit) => (
              <option key={unit}>{unit}</option>
            ))}
          </select>
        ) : (
          <span>{scale?.unit}</span>
        )}
      </p>
      <p class="about">{wrong ? "Not a number." : least !== null && most !== null ? `Rows hold ${show(least, { ...info, unit: base })} to ${show(most, { ...info, unit: base })}.` : "\u00a0"}</p>
      <Take left={conditions.length > 0 ? total(kept.value?.facts, 0) : null} of={rows} can={!wrong && conditions.length > 0} />
    </form>
  );
}

interface Known {
  value: Cell;
  name: string;
  rows: number;
}

function knownOf(rows: Rows | null, key: string): Known[] {
  if (!rows?.column(key)) return [];
  return Array.from({ length: rows.count }, (_, row): Known => {
    const [value, label] = [rows.get(row, key), rows.get(row, `${key}.label`)];
    return { value, name: String(label !== null && label !== "" ? label : (value ?? "")), rows: rows.num(row, "count") };
  });
}

/** What a text means in a way, or why it means nothing. */
function matcher(way: Way, text: string): ((name: string) => boolean) | string {
  if (way.startsWith("is")) return (name) => name === text;
  if (way.includes("contain")) return (name) => name.toLowerCase().includes(text.toLowerCase());
  try {
    const expression = new RegExp(text, "iu");
    return (name) => expression.test(name);
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^.*?: /, "") : String(error);
  }
}

function Texts(props: Props) {
  const { column, shown } = props;
  const [way, setWay] = useState<Way>("contains");
  const [text, setText] = useState("");
  const found = useAsked(props, [column], [{ column: null, fn: "count" }], []);
  const known = knownOf(found.value, column);
  const not = / not /.test(` ${way} `);
  const fits = matcher(way, text);
  const matched = text === "" || typeof fits === "string" ? [] : known.filter((one) => fits(one.name));
  const count = (list: Known[]) => list.reduce((sum, one) => sum + one.rows, 0);
  const many = way.includes("match") && matched.length > MOST;
  const [all, some] = [count(known), count(matched)];
  const conditions = (): Condition[] => {
    const more = { label: way.includes("match") ? `/${text}/` : text, ...(not ? { not } : {}) };
    if (way.includes("contain")) return [{ column: textKey(shown.table, column) ?? column, op: "contains", value: text, ...more }];
    // Names of processes hold their ids: only the list knows which ones are meant.
    return [{ column, op: "in", value: matched.flatMap((one) => (one.value === null ? [] : [one.value])), ...more }];
  };
  const can = text !== "" && typeof fits !== "string" && !many && found.value !== null && (matched.length > 0 || not);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (can) props.onTake(conditions());
      }}
    >
      {found.error && <Fault error={found.error} />}
      <p class="ask-line">
        <select aria-label="How" value={way} onChange={(event) => setWay(event.currentTarget.value as Way)}>
          {WAYS.map((one) => (
            <option key={one} value={one}>
              {one.includes("match") ? `${one} (regular expression)` : one}
            </option>
          ))}
        </select>
        <input class="wide grow" aria-label="Text" value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      </p>
      <p class="about">
        {typeof fits === "string" ? `Invalid regular expression: ${fits}` : many ? `More than ${MOST.toLocaleString("en")} values match: narrow it down.` : text === "" ? `${known.length.toLocaleString("en")} different ${known.length === 1 ? "value" : "values"}` : matched.length === 0 ? "Nothing matches." : `${matched.slice(0, NAMED).map((one) => visible(one.name)).join(", ")}${matched.length > NAMED ? ` and ${(matched.length - NAMED).toLocaleString("en")} more` : ""}`}
      </p>
      <Take left={can ? (not ? all - some : some) : null} of={found.value ? all : null} can={can} />
    </form>
  );
}

export function ColumnFilter(props: Props) {
  const info = resolve(props.shown.table, props.column);
  return (
    <Dialog title={`Filter by ${title(props.column)}`} onClose={props.onClose}>
      {info && isNumber(info) ? <Numbers {...props} info={info} /> : <Texts {...props} />}
    </Dialog>
  );
}
