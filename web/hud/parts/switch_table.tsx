/** Context switches of the part, grouped as in WPA's CPU Usage (Precise). */

import { useMemo } from "preact/hooks";
import { part, set, setting } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";
import { Box, Fault, Nothing, Sql } from "./box.tsx";
import { RowsGrid } from "./rows_grid.tsx";

interface Settings {
  by: string[];
}

/** Groupings: what people read, the column of the result, its SQL. */
const KEYS: [string, string, string][] = [
  ["New process", "process", "p.name || ' (' || p.pid || ')'"],
  ["New thread", "tid", "t.tid"],
  ["New thread stack leaf", "stack_leaf", "s.leaf"],
  ["Readying process", "readying_process", "r.name || ' (' || r.pid || ')'"],
  ["Readying thread", "readying_tid", "rt.tid"],
  ["Wait reason", "wait_reason", "c.prev_wait_reason"],
];
const COLUMN: Record<string, string> = { process: "new_upid", thread: "new_utid", cpu: "cpu" };
const quoted = (text: string) => `'${text.replaceAll("'", "''").replaceAll("\0", "")}'`;

/** The query; rows are in the part if the thread was switched in then, as in every table with a time. */
function query(by: string[], of: typeof part.value): string {
  const keys = KEYS.filter(([, name]) => by.includes(name));
  const where = ["t.tid <> 0"];
  if (of.range) where.push(`c.ts_ns >= ${of.range[0]} AND c.ts_ns < ${of.range[1]}`);
  for (const filter of of.filters) {
    const column = COLUMN[filter.kind];
    const condition = column ? `c.${column} = ${Number(filter.value)}` : `stack_has(c.stack_id, ${quoted(String(filter.value))})`;
    where.push(filter.not ? `NOT coalesce(${condition}, 0)` : condition);
  }
  const sums = (column: string) => `sum(c.${column}_ns) AS ${column}_ns, CAST(avg(c.${column}_ns) AS INTEGER) AS ${column}_avg_ns, max(c.${column}_ns) AS ${column}_max_ns`;
  const joins = [
    "JOIN thread AS t ON t.utid = c.new_utid",
    by.includes("process") && "LEFT JOIN process AS p ON p.upid = c.new_upid",
    by.includes("stack_leaf") && "LEFT JOIN stack AS s ON s.stack_id = c.stack_id",
    by.includes("readying_process") && "LEFT JOIN process AS r ON r.upid = c.readying_upid",
    by.includes("readying_tid") && "LEFT JOIN thread AS rt ON rt.utid = c.readying_utid",
  ].filter(Boolean);
  const group = keys.map(([, name]) => name).join(", ");
  const select = keys.map(([, name, sql]) => `${sql} AS ${name}`).join(", ");
  return `SELECT ${select ? `${select}, ` : ""}count(*) AS count, sum(c.run_ns) AS cpu_usage_ns, ${sums("wait")}, ${sums("ready")}, ${sums("run")} FROM cswitch AS c ${joins.join(" ")} WHERE ${where.join(" AND ")}${group ? ` GROUP BY ${group}` : ""} ORDER BY cpu_usage_ns DESC`;
}

export function SwitchTable() {
  const { by } = setting<Settings>("switch_table", { by: ["process", "wait_reason"] });
  const sql = useMemo(() => query(by, part.value), [by.join(), JSON.stringify(part.value)]);
  const trace = part.value.trace;
  const answer = useAnswer(`sql ${trace} ${sql} 1000`, (signal) => askRows("sql", { trace, sql, limit: 1000 }, signal), 100);
  return (
    <Box title="Switches, grouped" tools={<Sql sql={sql} />}>
      <p class="about" role="group" aria-label="Group by">
        {KEYS.map(([title, name]) => (
          <button type="button" class="small" key={name} aria-pressed={by.includes(name)} onClick={() => set<Settings>("switch_table", { by: by.includes(name) ? by.filter((one) => one !== name) : [...by, name] })}>
            {title}
          </button>
        ))}
      </p>
      <Fault error={answer.error} />
      {answer.value && (answer.value.count > 0 ? <RowsGrid label="Switches, grouped" rows={answer.value} most={14} /> : <Nothing why="No thread was switched in in this part." />)}
      {answer.value?.facts["more"] === true && <p class="about">The first 1,000 groups; the query gives all.</p>}
      <p class="about">Rows count whole if the thread was switched in within the range, as WPA has it; the sums of threads above are cut at the ends of the range.</p>
    </Box>
  );
}
