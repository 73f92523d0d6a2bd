/** Groups of a pivot table as lines of a tree: opening one asks for its children alone. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { part } from "../../state/view.ts";
import { pending } from "../../base/awaited.ts";
import { tick } from "../../state/live.ts";
import { recalled, useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import type { Cell, Rows } from "../../wire/rows.ts";
import { is, questions, valueName, type Condition, type Settings, type Shown } from "./model.ts";

export interface Line {
  /** From 0. */
  depth: number;
  rows: Rows;
  row: number;
  /** Keys from the outermost to its own. */
  path: Cell[];
  /** The same as people read them. */
  names: string[];
  open: boolean | null;
  /** It is the only one of its level, and so are those above it: it opens by itself. */
  alone: boolean;
}

const SOME = 1000;
export const PARTS = 60;
/** Groups that "Open all" opens, and those that open together and are kept for who comes back. */
const [OPENED, KEPT] = [400, 8];
const NONE: Map<string, Cell[]> = new Map();
/** What nobody is charged with: last, as long as nobody sorts. */
const NOBODY = /^(?:\[(?:idle|unattributed|not observed)\]|Idle(?: \(0\))?)$/i;

/** The body of the question for the children of a group. */
export function body(shown: Shown, kept: Settings, path: Cell[], limit = SOME) {
  const key = shown.group[path.length];
  const parents = path.map((value, at): Condition => is(shown.group[at] ?? "", value));
  const sortBy = shown.values.findIndex((value) => valueName(value) === kept.sort?.id);
  const sort = kept.sort === null ? [] : kept.sort.id === "key" ? [{ key: 0, down: kept.sort.down }] : sortBy >= 0 ? [{ value: sortBy, down: kept.sort.down }] : [];
  return {
    ...part.value,
    table: shown.table,
    where: [...questions(shown.where, kept.search, shown.table, shown.group), ...parents],
    group: key === undefined ? [] : [key],
    values: shown.values.map(({ column, fn }) => ({ column: column ?? null, fn })),
    sort: key === undefined ? [] : sort,
    limit,
    spark: kept.spark ? PARTS : 0,
  };
}

export function useLines(shown: Shown, kept: Settings, limit: number) {
  const question = body(shown, kept, [], limit);
  const key = JSON.stringify(question);
  const stamp = `${tick.value} ${key}`;
  const grouping = JSON.stringify([shown.table, shown.group]);
  // The answer before this one may be of other groups.
  const answer = useAnswer(`groups ${key}`, async (signal) => ({ rows: await askRows("pivot", question, signal), grouping }), 30);
  const root = { ...answer, value: answer.value?.rows ?? null };
  // Groups that are open are groups of these keys: with others, their values are no conditions, and the server refuses them.
  const [unfolded, setUnfolded] = useState<{ of: string; paths: Map<string, Cell[]> }>({ of: grouping, paths: NONE });
  const open = unfolded.of === grouping ? unfolded.paths : NONE;
  const setOpen = (paths: Map<string, Cell[]>) => setUnfolded({ of: grouping, paths });
  const [children, setChildren] = useState<Map<string, Rows>>(new Map());
  const [error, setError] = useState<string | null>(null);
  const [expand, setExpand] = useState(false);
  const asked = useRef("");
  /** Those that somebody closed; null: all of them. */
  const shut = useRef<Set<string> | null>(new Set());
  useEffect(() => {
    shut.current = new Set();
    setExpand(false);
  }, [grouping]);
  const id = (path: Cell[]) => JSON.stringify(path);

  useEffect(() => {
    const fresh = asked.current !== stamp;
    asked.current = stamp;
    const have = fresh ? new Map<string, Rows>() : children;
    const missing = [...open].filter(([name]) => !have.has(name));
    if (fresh && open.size === 0 && children.size > 0) setChildren(new Map());
    if (missing.length === 0) return;
    const abort = new AbortController();
    let done = false;
    const close = pending();
    const end = () => {
      close();
      done = true;
    };
    const below = (path: Cell[]) => {
      const inner = body(shown, kept, path);
      const run = () => askRows("pivot", inner, abort.signal);
      return missing.length > KEPT ? run() : recalled(`below ${JSON.stringify(inner)}`, run);
    };
    Promise.all(missing.map(async ([name, path]) => [name, await below(path)] as const)).then(
      (found) => {
        if (!abort.signal.aborted) setChildren((before) => new Map([...(fresh ? [] : before), ...found]));
        setError(null);
        end();
      },
      (reason: unknown) => {
        end();
        if (!abort.signal.aborted) setError(reason instanceof Error ? reason.message : String(reason));
      },
    );
    return () => {
      abort.abort();
      if (fresh && !done) asked.current = "";
      end();
    };
  }, [stamp, open]);

  const lines = useMemo(() => {
    const out: Line[] = [];
    const walk = (rows: Rows, path: Cell[], names: string[], alone: boolean) => {
      const name = shown.group[path.length];
      const calledAt = (row: number): string => {
        const label = name === undefined ? null : rows.get(row, `${name}.label`);
        return String(label !== null && label !== "" ? label : ((name === undefined ? null : rows.get(row, name)) ?? "(none)"));
      };
      const order = Array.from({ length: rows.count }, (_, row) => row);
      const last = kept.sort === null ? order.filter((row) => NOBODY.test(calledAt(row))) : [];
      for (const row of last.length > 0 ? [...order.filter((row) => !last.includes(row)), ...last] : order) {
        const own = [...path, name === undefined ? null : rows.get(row, name)];
        const called = [...names, calledAt(row)];
        const inner = path.length + 1 < shown.group.length;
        const opened = inner && open.has(id(own));
        out.push({ depth: path.length, rows, row, path: own, names: called, open: inner ? opened : null, alone: alone && rows.count === 1 });
        const below = opened ? children.get(id(own)) : undefined;
        if (below) walk(below, own, called, alone && rows.count === 1);
      }
    };
    if (root.value) walk(root.value, [], [], true);
    return out;
  }, [root.value, children, open, kept.sort === null]);

  // A table of one row says nothing: what is below it does. At once: nobody is to see it closed.
  useLayoutEffect(() => {
    if (answer.value?.grouping !== grouping) return;
    const line = lines.find((one) => one.alone && one.open === false && shut.current !== null && !shut.current.has(id(one.path)));
    if (line) setOpen(new Map(open).set(id(line.path), line.path));
  }, [lines]);

  // All levels open one after the other: what is open decides what is asked for next.
  useEffect(() => {
    if (!expand) return;
    const closed = lines.filter((one) => one.open === false).slice(0, OPENED - open.size);
    if (closed.length === 0 || open.size >= OPENED) return;
    const next = new Map(open);
    for (const line of closed) next.set(id(line.path), line.path);
    setOpen(next);
  }, [expand, lines]);

  const toggle = (line: Line) => {
    const name = id(line.path);
    const next = new Map(open);
    if (next.delete(name)) shut.current?.add(name);
    else next.set(name, line.path);
    setExpand(false);
    setOpen(next);
  };
  const all = (on: boolean) => {
    if (!on) shut.current = null;
    setExpand(on);
    if (!on) setOpen(new Map());
  };
  return { root, lines, toggle, all, error: root.error ?? error };
}
