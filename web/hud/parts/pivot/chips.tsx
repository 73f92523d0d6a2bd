/** What is grouped, the bar, and what is computed: drag chips, or move them with Left and Right and remove them with Delete. */

import { useEffect, useState } from "preact/hooks";
import { say } from "../live.tsx";
import { fieldKey, fieldsQuery, worded } from "../../state/event_fields.ts";
import { scope, table, view } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import type { PivotFunction } from "../../wire/types.ts";
import { FUNCTIONS, headed, resolve, target, title, type Shown, type Value } from "./model.ts";

function moved<T>(list: T[], from: number, to: number): T[] {
  const out = [...list];
  const [one] = out.splice(from, 1);
  if (one !== undefined) out.splice(Math.max(0, Math.min(out.length, to)), 0, one);
  return out;
}

/** Columns of a table, and those behind its ids. */
function choices(tableName: string): { direct: string[]; behind: string[] } {
  const info = table(tableName);
  const direct = (info?.columns ?? []).map((column) => column.name);
  const behind = (info?.columns ?? []).flatMap((column) => {
    const to = target(column);
    if (!to || to === tableName) return [];
    return (table(to)?.columns ?? []).filter((one) => !["id", "address", "guid"].includes(one.role) && one.role !== column.role).map((one) => `${column.name}.${one.name}`);
  });
  return { direct, behind };
}

/** Names of the fields that the events which are shown have. */
function useFields(shown: Shown): string[] {
  const has = table(shown.table)?.columns.some((column) => column.name === "fields") === true;
  const texts = shown.where.flatMap((one): [string, string][] => (one.op === "eq" && !one.not && ["provider", "name"].includes(one.column) ? [[one.column, String(one.value)]] : []));
  const sql = fieldsQuery(scope.value, texts);
  const trace = view.value.trace;
  const found = useAnswer(has ? `fields ${trace} ${sql}` : null, (signal) => askRows("figures", { trace, sql, limit: 200 }, signal)).value;
  useEffect(() => {
    if (!found) return;
    const words = Array.from({ length: found.count }, (_, row) => (found.num(row, "worded") ? [found.text(row, "name")] : [])).flat();
    if (words.some((name) => !worded.peek().has(name))) worded.value = new Set([...worded.peek(), ...words]);
  }, [found]);
  return found ? Array.from({ length: found.count }, (_, row) => fieldKey(found.text(row, "name"))) : [];
}

function Add(props: { label: string; tableName: string; fields: string[]; without: string[]; onAdd: (name: string) => void; numbers?: boolean }) {
  const { direct, behind } = choices(props.tableName);
  const left = (names: string[]) => names.filter((name) => !props.without.includes(name));
  return (
    <select class="add" aria-label={props.label} value="" onChange={(event) => { const name = event.currentTarget.value; event.currentTarget.value = ""; if (name) props.onAdd(name); }}>
      <option value="">+ {props.label}</option>
      {props.numbers && <option value="*">count of rows</option>}
      <optgroup label="Columns">{left(direct).map((name) => <option key={name} value={name}>{title(name)}</option>)}</optgroup>
      {props.fields.length > 0 && <optgroup label="Fields of the events">{left(props.fields).map((name) => <option key={name} value={name}>{title(name)}</option>)}</optgroup>}
      {behind.length > 0 && <optgroup label="Of what ids name">{left(behind).map((name) => <option key={name} value={name}>{title(name)}</option>)}</optgroup>}
    </select>
  );
}

export function Chips(props: { shown: Shown; onGroup: (group: string[]) => void; onValues: (values: Value[]) => void }) {
  const { group, values, table: name } = props.shown;
  const [drag, setDrag] = useState<{ kind: "group" | "value"; at: number } | null>(null);
  const fields = useFields(props.shown);
  const doc = (key: string) => resolve(name, key)?.doc;
  const drop = (kind: "group" | "value", at: number) => {
    if (!drag) return;
    if (drag.kind === kind) {
      if (kind === "group") props.onGroup(moved(group, drag.at, at));
      else props.onValues(moved(values, drag.at, at));
    } else if (kind === "value") {
      // Over the bar: what was grouped is counted.
      const column = group[drag.at];
      if (column) {
        props.onGroup(group.filter((_, i) => i !== drag.at));
        props.onValues([...values.slice(0, at), { column, fn: "unique" }, ...values.slice(at)]);
      }
    } else {
      const column = values[drag.at]?.column;
      if (column) {
        props.onValues(values.filter((_, i) => i !== drag.at));
        props.onGroup([...group.slice(0, at), column, ...group.slice(at)]);
      }
    }
    setDrag(null);
  };
  const over = (event: DragEvent) => drag && event.preventDefault();
  const keys = (event: KeyboardEvent, at: number, count: number, move: (to: number) => void, remove: () => void) => {
    if (event.key === "ArrowLeft" && at > 0) move(at - 1);
    else if (event.key === "ArrowRight" && at < count - 1) move(at + 1);
    else if (event.key === "Delete" || event.key === "Backspace") remove();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const dropGroup = (at: number) => {
    props.onGroup(group.filter((_, i) => i !== at));
    say("Removed");
  };
  const dropValue = (at: number) => {
    props.onValues(values.filter((_, i) => i !== at));
    say("Removed");
  };
  return (
    <div class="chips" data-part="chips">
      <div class="side" role="group" aria-label="Grouped by" onDragOver={over} onDrop={() => drop("group", group.length)}>
        {group.map((key, at) => (
          <span key={key} class="chip" draggable onDragStart={() => setDrag({ kind: "group", at })} onDragEnd={() => setDrag(null)} onDragOver={over} onDrop={(event) => { event.stopPropagation(); drop("group", at); }}>
            <button type="button" data-hint={doc(key)} title={`${doc(key) ?? key}\nLeft and Right move it, Delete removes it.`} aria-label={`Grouped by ${title(key)}, ${at + 1} of ${group.length}`}
              onKeyDown={(event) => keys(event, at, group.length, (to) => props.onGroup(moved(group, at, to)), () => dropGroup(at))}>
              {headed(title(key))}
            </button>
            <button type="button" class="drop" aria-label={`Remove ${title(key)} from groups`} onClick={() => dropGroup(at)}>✕</button>
          </span>
        ))}
        <Add label="group" tableName={name} fields={fields} without={group} onAdd={(key) => props.onGroup([...group, key])} />
      </div>
      <span class="bar" role="separator" aria-orientation="vertical" aria-label="Groups before, values behind" title="Left: groups. Right: values. Drag chips over it." />
      <div class="side" role="group" aria-label="Values" onDragOver={over} onDrop={() => drop("value", values.length)}>
        {values.map((value, at) => (
          <span key={`${value.fn} ${value.column ?? ""} ${at}`} class="chip value" draggable onDragStart={() => setDrag({ kind: "value", at })} onDragEnd={() => setDrag(null)} onDragOver={over} onDrop={(event) => { event.stopPropagation(); drop("value", at); }}>
            {value.column && (
              <select aria-label={`Function of ${title(value.column)}`} value={value.fn} onChange={(event) => props.onValues(values.map((one, i) => (i === at ? { ...one, fn: event.currentTarget.value as PivotFunction } : one)))}>
                {FUNCTIONS.filter((fn) => !(resolve(name, value.column ?? "")?.type.includes("text") && (fn === "sum" || fn === "avg"))).map((fn) => <option key={fn}>{fn}</option>)}
              </select>
            )}
            <button type="button" data-hint={value.column ? doc(value.column) : "Rows."} title={`${(value.column && doc(value.column)) || "Rows"}\nLeft and Right move it, Delete removes it.`} aria-label={`Value ${value.column ? title(value.column) : "count"}, ${at + 1} of ${values.length}`}
              onKeyDown={(event) => keys(event, at, values.length, (to) => props.onValues(moved(values, at, to)), () => dropValue(at))}>
              {headed(value.column ? title(value.column) : "count")}
            </button>
            <button type="button" class="drop" aria-label={`Remove value ${value.column ? title(value.column) : "count"}`} onClick={() => dropValue(at)}>✕</button>
          </span>
        ))}
        <Add label="value" tableName={name} fields={fields} without={[]} numbers onAdd={(key) => {
          const text = resolve(name, key)?.type.includes("text");
          const id = resolve(name, key);
          const fn: PivotFunction = text || (id && target(id)) || id?.role === "time" ? "unique" : "sum";
          props.onValues([...values, key === "*" ? { fn: "count" } : { column: key, fn }]);
        }} />
      </div>
    </div>
  );
}
