/** What counts as one run of the same work in two traces: a program that was started, or an interval between two events. */

import { count } from "../../../src/lib/format.ts";
import { visible } from "../../base/value.ts";
import { setting, view } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import { FALLBACK, type Settings } from "./ranges.tsx";

export interface Run {
  id: string;
  title: string;
  /** How many in A and B. */
  times: [number, number];
}

const KINDS: [string, string][] = [
  ["starts of", "SELECT name, count(*) AS n FROM process WHERE start_ns IS NOT NULL GROUP BY name"],
  ["interval", "SELECT name, count(*) AS n FROM interval WHERE state = 'complete' GROUP BY name"],
];
const MOST = 5000;

async function counted(trace: number, signal: AbortSignal): Promise<Map<string, number>> {
  const all = new Map<string, number>();
  for (const [kind, sql] of KINDS) {
    try {
      const rows = await askRows("figures", { trace, sql, limit: MOST }, signal);
      for (let row = 0; row < rows.count; row += 1) all.set(`${kind} ${rows.text(row, "name")}`, rows.num(row, "n"));
    } catch (error) {
      // A table that is not there counts nothing; the other one still does.
      if (signal.aborted) throw error;
    }
  }
  return all;
}

/** What was run in both traces, most often first, and which of it is looked at; null as long as nobody knows. */
export function useRuns(): { list: Run[]; chosen: Run | null } | null {
  const { run } = setting<Settings>("compare", FALLBACK);
  const [a, b] = [view.value.other?.trace ?? 0, view.value.trace];
  const { value } = useAnswer(`runs ${a} ${b}`, async (signal) => Promise.all([counted(a, signal), counted(b, signal)]));
  if (!value) return null;
  const [before, after] = value;
  const list = [...before].flatMap(([id, n]): Run[] => {
    const m = after.get(id) ?? 0;
    return n > 0 && m > 0 ? [{ id, title: `${visible(id)} (${count(n)} in A, ${count(m)} in B)`, times: [n, m] }] : [];
  });
  list.sort((x, y) => Math.min(...y.times) - Math.min(...x.times));
  return { list, chosen: list.find((one) => one.id === run) ?? list[0] ?? null };
}
