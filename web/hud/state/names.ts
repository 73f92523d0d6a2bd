/** All that has a name in a trace, read when somebody first types. */

import { askRows } from "../wire/api.ts";

export interface Names {
  /** upid, name with process id. */
  processes: [number, string][];
  /** utid, thread id, its name, its process. */
  threads: [number, number, string, string][];
  modules: string[];
  functions: string[];
  providers: string[];
}

/** Of each kind at most. */
const MOST = 20_000;
const kept = new Map<number, Promise<Names>>();

export function namesOf(trace: number): Promise<Names> {
  let found = kept.get(trace);
  if (!found) {
    // A table that is not there has no names; the others still do.
    const list = async <T>(sql: string, of: (rows: Awaited<ReturnType<typeof askRows<"figures">>>, row: number) => T): Promise<T[]> => {
      try {
        const rows = await askRows("figures", { trace, sql, limit: MOST });
        return Array.from({ length: rows.count }, (_, row) => of(rows, row));
      } catch {
        return [];
      }
    };
    found = Promise.all([
      list("SELECT upid, name, pid FROM process", (rows, row): [number, string] => [rows.num(row, "upid"), `${rows.text(row, "name")} (${rows.text(row, "pid")})`]),
      list("SELECT t.utid AS utid, t.tid AS tid, t.name AS name, p.name AS process FROM thread AS t JOIN process AS p ON p.upid = t.upid", (rows, row): [number, number, string, string] => [rows.num(row, "utid"), rows.num(row, "tid"), rows.text(row, "name"), rows.text(row, "process")]),
      list("SELECT DISTINCT module FROM frame WHERE module IS NOT NULL", (rows, row) => rows.text(row, "module")),
      list("SELECT DISTINCT function FROM function_cost WHERE function IS NOT NULL", (rows, row) => rows.text(row, "function")),
      list("SELECT DISTINCT provider FROM event_type WHERE provider IS NOT NULL", (rows, row) => rows.text(row, "provider")),
    ]).then(([processes, threads, modules, functions, providers]) => ({ processes, threads, modules, functions, providers }));
    kept.set(trace, found);
  }
  return found;
}

/** What is called by a path. */
export interface Path {
  kind: "file" | "registry key";
  path: string;
}
const PATHS: [Path["kind"], string][] = [["file", "path FROM file"], ["registry key", "key AS path FROM registry_usage"]];

/** Files and keys can be millions: they are looked for, not listed. */
export async function pathsLike(trace: number, text: string, signal: AbortSignal): Promise<Path[]> {
  const wanted = text.toLowerCase().replaceAll("'", "''").replaceAll("%", "").replaceAll("\\", "\\\\").replaceAll("_", "\\_");
  const found = PATHS.map(async ([kind, from]): Promise<Path[]> => {
    const sql = `SELECT path FROM (SELECT DISTINCT ${from}) WHERE lower(path) LIKE '%${wanted}%' ESCAPE '\\' ORDER BY length(path) LIMIT 12`;
    const rows = await askRows("figures", { trace, sql, limit: 12 }, signal);
    return Array.from({ length: rows.count }, (_, row) => ({ kind, path: rows.text(row, "path") }));
  });
  // A table that is not there has no names; the other one still does.
  return (await Promise.all(found.map((one) => one.catch((): Path[] => [])))).flat();
}
