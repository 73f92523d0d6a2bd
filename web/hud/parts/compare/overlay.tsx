/** Durations of a driver's DPCs in up to four open traces, as lines over the same classes: before, after, and what came next. */

import { useState } from "preact/hooks";
import { border, count, duration, number } from "../../../src/lib/format.ts";
import { visible } from "../../base/value.ts";
import { session } from "../../state/session.ts";
import { view } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { ask } from "../../wire/api.ts";
import type { Interrupts, TraceInfo } from "../../wire/types.ts";
import { labelled } from "../bins.tsx";
import { Box } from "../box.tsx";
import { Grid } from "../grid.tsx";

const MOST = 4;
const COLORS = ["--t1", "--dpc", "--c2", "--c4"];
const DASHES = ["", "", "5 3", "2 2"];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [640, 210, 56, 26, 26];

interface Line {
  info: TraceInfo;
  data: Interrupts;
}

/** How many per second in each class. */
function rates(line: Line, module: string, edges: number[]): number[] {
  const driver = line.data.drivers.find((one) => one.class === "dpc" && one.module === module);
  const seconds = Math.max(1e-9, (line.data.range[1] - line.data.range[0]) / 1e9);
  return edges.map((edge) => (driver?.bins.find((bin) => bin.above_ns === edge)?.count ?? 0) / seconds);
}

export function Overlay() {
  const here = view.value.trace;
  const other = view.value.other?.trace;
  const rank = (info: TraceInfo) => (info.trace === other ? 0 : info.trace === here ? 1 : 2);
  const traces = [...(session.value?.traces ?? [])].sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
  const key = traces.map((info) => info.trace).join(" ");
  const answer = useAnswer(traces.length > 1 ? `overlay ${key}` : null, async (signal) => Promise.all(traces.map(async (info): Promise<Line> => ({ info, data: await ask("interrupts", { trace: info.trace, range: null, filters: [] }, signal) }))));
  const [chosen, setChosen] = useState<string | null>(null);
  const [asTable, setTable] = useState(false);
  const lines = answer.value;
  if (!lines) return null;
  const sums = new Map<string, number>();
  for (const line of lines) for (const one of line.data.drivers) if (one.class === "dpc" && one.module) sums.set(one.module, (sums.get(one.module) ?? 0) + one.exclusive_ns);
  const modules = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const module = modules.find((name) => name === chosen) ?? modules[0];
  if (!module || !lines[0]) return null;
  const all = [0, ...lines[0].data.borders];
  const of = lines.map((line) => rates(line, module, all));
  const used = all.map((_, at) => (of.some((one) => (one[at] ?? 0) > 0) ? at : -1)).filter((at) => at >= 0);
  const [first, last] = [Math.min(...used), Math.max(...used)];
  const edges = all.slice(first, last + 1);
  const most = Math.max(1e-9, ...of.flat());
  const limit = lines[0].data.limits.dpc;
  const step = (WIDTH - LEFT - 8) / Math.max(1, edges.length);
  const y = (value: number) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const path = (values: number[]) => edges.map((_, at) => `${at === 0 ? "M" : "L"}${LEFT + at * step} ${y(values[first + at] ?? 0)}h${step}`).join("");
  const limitAt = edges.findIndex((edge) => edge >= limit);
  const figures = (line: Line) => line.data.drivers.find((one) => one.class === "dpc" && one.module === module);
  return (
    <Box
      title="DPC durations, overlaid"
      tools={
        <>
          <select aria-label="Driver of the overlay" value={module} onChange={(event) => setChosen(event.currentTarget.value)}>
            {modules.slice(0, 20).map((name) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
          <button type="button" class="small" aria-pressed={asTable} onClick={() => setTable(!asTable)}>
            Show as table
          </button>
        </>
      }
    >
      {!asTable && (
        <svg class="overlay" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`DPC durations of ${module} in ${lines.length} traces; the table has the same figures`}>
          {[0, 0.5, 1].map((part) => (
            <g key={part}>
              <line class="grid-line" x1={LEFT} x2={WIDTH - 8} y1={y(part * most)} y2={y(part * most)} />
              <text class="tick" x={LEFT - 6} y={y(part * most)} dy="0.32em" text-anchor="end">
                {number(part * most)}/s
              </text>
            </g>
          ))}
          {edges.map((edge, at) => (
            labelled(edge, step) && (
              <text key={edge} class="tick" x={LEFT + at * step} y={HEIGHT - 8} text-anchor="middle">
                {border(edge)}
              </text>
            )
          ))}
          {limitAt >= 0 && (
            <>
              <line class="limit" x1={LEFT + limitAt * step} x2={LEFT + limitAt * step} y1={10} y2={HEIGHT - BOTTOM} />
              <text class="limit-text" x={LEFT + limitAt * step + 5} y={18}>
                limit {border(limit)}
              </text>
            </>
          )}
          {lines.map((line, at) => (
            <path key={line.info.trace} d={path(of[at] ?? [])} fill="none" stroke={`var(${COLORS[at] ?? "--os"})`} stroke-width="2" stroke-dasharray={DASHES[at] || undefined} />
          ))}
        </svg>
      )}
      <Grid
        label={`DPCs of ${module} in each trace`}
        most={4}
        columns={[
          { id: "trace", title: "Trace", width: "minmax(140px, 2fr)" },
          { id: "rate", title: "Count", unit: "/s", number: true, width: "80px" },
          { id: "mean", title: "Mean", unit: "µs", number: true, width: "80px" },
          { id: "p95", title: "p95", unit: "µs", number: true, width: "80px" },
          { id: "max", title: "Longest", unit: "µs", number: true, width: "80px" },
          { id: "over", title: `Over ${duration(limit)}`, unit: "%", number: true, width: "100px" },
        ]}
        count={lines.length}
        text={(row, column) => {
          const line = lines[row];
          const one = line ? figures(line) : undefined;
          if (!line) return "";
          if (column === 0) return visible(line.info.name);
          if (!one) return "–";
          const seconds = Math.max(1e-9, (line.data.range[1] - line.data.range[0]) / 1e9);
          return ["", count(one.count / seconds), number(one.mean_ns / 1e3), number(one.p95_ns / 1e3), number(one.max_ns / 1e3), number((100 * one.over_limit) / Math.max(1, one.count))][column] ?? "";
        }}
        draw={(row, column) =>
          column === 0 ? (
            <>
              <i class="swatch" style={{ backgroundColor: `var(${COLORS[row] ?? "--os"})` }} aria-hidden="true" />
              {visible(lines[row]?.info.name ?? "")}
            </>
          ) : undefined
        }
      />
      {asTable && (
        <Grid
          label="Classes of durations"
          most={14}
          columns={[{ id: "class", title: "Above" }, ...lines.map((line) => ({ id: String(line.info.trace), title: visible(line.info.name), unit: "/s", number: true }))]}
          count={edges.length}
          text={(row, column) => (column === 0 ? border(edges[row] ?? 0) : number(of[column - 1]?.[first + row] ?? 0))}
        />
      )}
    </Box>
  );
}
