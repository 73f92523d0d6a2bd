/** A thread or processor over time: width is time, waits stand between. */

import { useMemo, useState } from "preact/hooks";
import { amount, moment, span, visible } from "../../base/value.ts";
import { part, trace, zoomTo, back } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { askRows } from "../../wire/api.ts";
import { alike } from "../grid/amounts.ts";
import { copy, Fault, Nothing, Sql } from "../box.tsx";
import { RowsGrid } from "../rows_grid.tsx";
import { step } from "../timeline/paint.ts";
import { BoxCanvas, type Boxes } from "./boxes.tsx";
import { colorKey } from "./colors.ts";
import { Menu } from "./menu.tsx";
import { change, isCode, pointed, settings, type Pointed } from "./model.ts";
import { Legend } from "./legend.tsx";

/** So wide is the axis about: how many times stand on it. */
const AXIS_WIDTH = 800;

export function ChartTab() {
  const { lane, color, search, table } = settings();
  const [selected, setSelected] = useState(-1);
  const [menu, setMenu] = useState<{ at: number; x: number; y: number } | null>(null);
  const body = { ...part.value, ...(lane ?? {}), width: Math.max(400, Math.min(4000, innerWidth - 220)) };
  const answer = useAnswer(`stack_chart ${JSON.stringify(body)}`, (signal) => askRows("stack_chart", body, signal), 60);
  const rows = answer.value;
  const facts = rows?.facts;
  const [from, to] = [facts?.from ?? 0, facts?.to ?? 1];
  const wanted = search.trim().toLowerCase();
  const keys = useMemo(
    () => (rows ? Array.from({ length: rows.count }, (_, at) => colorKey({ label: rows.text(at, "name"), kind: rows.text(at, "kind"), module: rows.text(at, "module"), category: rows.text(at, "category"), tag: rows.text(at, "tag") }, color)) : []),
    [rows, color],
  );
  const boxes = useMemo((): Boxes | null => {
    if (!rows) return null;
    const place = (name: string) => Float64Array.from({ length: rows.count }, (_, at) => (rows.num(at, name) - from) / (to - from));
    return {
      count: rows.count,
      levels: rows.facts.levels,
      x0: place("from_ns"),
      x1: place("to_ns"),
      depth: Int32Array.from({ length: rows.count }, (_, at) => rows.num(at, "depth")),
      label: (at) => rows.text(at, "name"),
      color: (at, paint) => paint.fill(keys[at] ?? ""),
      security: (at) => rows.get(at, "security") === true,
      hit: wanted ? (at) => rows.text(at, "name").toLowerCase().includes(wanted) : null,
      striped: (at) => rows.text(at, "kind") === "group",
    };
  }, [rows, keys, wanted, from, to]);
  const times = (at: number): [number, number] => [rows?.num(at, "from_ns") ?? 0, rows?.num(at, "to_ns") ?? 0];
  const stack = (at: number): string[] => {
    if (!rows) return [];
    const middle = (times(at)[0] + times(at)[1]) / 2;
    const depth = rows.num(at, "depth");
    const out: string[] = [];
    for (let one = 0; one < rows.count; one += 1) {
      const [a, b] = times(one);
      if (rows.num(one, "depth") < depth && a <= middle && middle < b) out[rows.num(one, "depth")] = rows.text(one, "name");
    }
    return [...out.map((label) => label ?? "?"), rows.text(at, "name")];
  };
  const point = (at: number): Pointed => ({
    label: rows?.text(at, "name") ?? "", kind: rows?.text(at, "kind") ?? "", module: rows?.text(at, "module") ?? "", category: rows?.text(at, "category") ?? "", tag: rows?.text(at, "tag") ?? "",
    security: rows?.get(at, "security") === true, total: rows?.num(at, "weight") ?? 0, own: 0, count: rows?.num(at, "samples") ?? 0, path: [], inverted: false,
  });
  const select = (at: number) => {
    setSelected(at);
    pointed.value = point(at);
  };
  const say = (at: number) => {
    const [a, b] = times(at);
    const samples = rows?.num(at, "samples") ?? 0;
    return `${visible(rows?.text(at, "name") ?? "")}: ${amount(b - a, "ns")} from ${moment(a, (to - from) / 1000)}${samples > 0 ? `, ${samples} samples, ${amount(rows?.num(at, "weight") ?? 0, "ns")} CPU` : ""}`;
  };
  const threads = facts?.threads ?? [];
  const weights = alike("ns", threads.map((one) => one.weight));
  const value = typeof facts?.cpu === "number" ? `cpu ${facts.cpu}` : `utid ${facts?.utid ?? ""}`;
  const known = value.startsWith("cpu") || threads.some((one) => `utid ${one.utid}` === value);
  const by = step(to - from, AXIS_WIDTH);
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / by) * by; tick < to - by / 4; tick += by) ticks.push(tick);
  return (
    <div class="stack-chart" data-part="chart">
      <div class="stack-row">
        <label>
          Of{" "}
          <select
            aria-label="Thread or processor"
            value={value}
            onChange={(event) => {
              const [kind, number] = event.currentTarget.value.split(" ");
              change({ lane: kind === "cpu" ? { cpu: Number(number) } : { utid: Number(number) } });
            }}
          >
            {!known && <option value={value}>thread {facts?.utid ?? "–"} (no samples here)</option>}
            <optgroup label="Threads by CPU time here">
              {threads.map((one) => (
                <option key={one.utid} value={`utid ${one.utid}`}>
                  {visible(one.name)}: {weights.text(one.weight)}
                </option>
              ))}
            </optgroup>
            <optgroup label="Processors">
              {Array.from({ length: Math.min(256, trace.value?.cpus ?? 0) }, (_, cpu) => (
                <option key={cpu} value={`cpu ${cpu}`}>
                  processor {cpu}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        {facts && (
          <span class="muted">
            {amount(facts.samples, "count")} samples, {amount(facts.weight, "ns")} CPU in {span([from, to])}
            {facts.hidden > 0 && `; ${amount(facts.hidden, "count")} of them are under heavier stacks of the same pixel: zoom in to see them`}
            {facts.left_out > 0 && `; ${amount(facts.left_out, "count")} boxes were too many`}
            {!facts.switches && "; no waits: context switches were not recorded"}
          </span>
        )}
        <Sql sql={facts?.sql ?? null} />
      </div>
      <Fault error={answer.error} />
      {rows && rows.count === 0 && <Nothing why={rows.facts.why ?? "No samples of this thread or processor in this range."} record={rows.facts.record} />}
      {boxes && rows && rows.count > 0 && (
        <>
          {table ? (
            <RowsGrid label="Icicle as a table" rows={rows} onActivate={(row) => zoomTo(times(row))} />
          ) : (
            <>
              <div class="stack-axis" aria-hidden="true">
                {ticks.map((tick) => (
                  <span key={tick} style={{ left: `${(100 * (tick - from)) / (to - from)}%` }}>{moment(tick, by)}</span>
                ))}
              </div>
              <BoxCanvas
                label="Stacks in the order of time"
                boxes={boxes}
                id={`${from} ${to} ${value}`}
                say={say}
                tip={(at) => (
                  <>
                    <p class="name">{visible(rows.text(at, "name"))}</p>
                    {rows.get(at, "security") === true && <p class="security">[S] security product</p>}
                    <p>{say(at).slice(visible(rows.text(at, "name")).length + 2)}</p>
                    <p class="muted">{visible([rows.text(at, "module"), rows.text(at, "category"), rows.text(at, "tag")].filter(Boolean).join(" · "))}</p>
                  </>
                )}
                knows={(at) => (isCode(rows.text(at, "kind")) ? rows.text(at, "name") : "")}
                selected={selected}
                onSelect={select}
                onOpen={(at) => zoomTo(times(at))}
                onOut={back}
                onMenu={(at, x, y) => setMenu({ at, x, y })}
              />
              <p class="stack-details" data-part="details">{selected >= 0 && selected < rows.count ? say(selected) : "Enter or a double click on a box zooms the whole page to its time."}</p>
              <Legend keys={keys} weight={(at) => (rows.num(at, "depth") > 0 ? rows.num(at, "weight") : 0)} security={keys.some((_, at) => rows.get(at, "security") === true)} />
            </>
          )}
          {menu && menu.at < rows.count && (
            <Menu
              at={{ ...point(menu.at), path: [] }}
              x={menu.x}
              y={menu.y}
              more={[
                { key: "z", title: "Zoom to this time", run: () => zoomTo(times(menu.at)) },
                { key: "", title: "Copy the stack to here", run: () => void copy(stack(menu.at).join("\n"), "stack") },
              ]}
              onClose={() => setMenu(null)}
            />
          )}
        </>
      )}
    </div>
  );
}
