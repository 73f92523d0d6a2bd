/** Durations in classes, with a limit line, and those of another trace or range as an outline over them. */

import { useEffect, useRef, useState } from "preact/hooks";
import { border, count, duration, percent, share } from "../../src/lib/format.ts";
import type { InterruptBin as Bin } from "../wire/types.ts";
import { Grid, type GridColumn } from "./grid.tsx";
import { say } from "./live.tsx";

interface Props {
  label: string;
  bins: Bin[];
  /** Drawn as an outline. */
  before: Bin[] | null;
  limit: number;
  borders: number[];
  measure: "count" | "time";
  asTable: boolean;
  log: boolean;
  /** Where the class that is picked begins. */
  chosen: number | null;
  onPick: (above: number, upTo: number | null) => void;
}

const HEIGHT = 250;
const LEFT = 62;
const RIGHT = 12;
const TOP = 34;
const BOTTOM = 34;

/** A fourth of what is above all, in round numbers. */
function nice(most: number): number {
  const ten = 10 ** Math.floor(Math.log10(Math.max(1, most / 3)));
  return Math.max(1, [1, 2, 2.5, 5, 10].map((step) => step * ten).find((step) => step * 4 >= most) ?? ten * 10);
}

/** Whether a border has a label where classes have this width in px: 1, 2 and 5 of each decade, or 1 alone. */
export function labelled(border: number, step: number): boolean {
  if (border === 0) return step > 24;
  const first = border.toExponential().replace(/e.*/, "");
  return step >= 58 || (step >= 14 ? ["1", "2", "5"] : ["1"]).includes(first);
}

const words = (above: number, upTo: number | null) => (upTo === null ? `above ${border(above)}` : `${border(above)} to ${border(upTo)}`);

/** All classes from the first to the last that holds any, on either side. */
function classes(props: Props) {
  const edges = [0, ...props.borders];
  const all = edges.map((above, at) => {
    const find = (bins: Bin[] | null) => bins?.find((bin) => bin.above_ns === above) ?? null;
    return { above, upTo: edges[at + 1] ?? null, now: find(props.bins), before: find(props.before) };
  });
  const used = all.map((one, at) => (one.now || one.before || one.above === props.limit ? at : -1)).filter((at) => at >= 0);
  return all.slice(Math.min(...used), Math.max(...used) + 1);
}

export function Bins(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [props.asTable]);
  const list = classes(props);
  const value = (bin: Bin | null) => (bin ? (props.measure === "count" ? bin.count : bin.total_ns) : 0);
  const whole = (bins: Bin[] | null) => (bins ?? []).reduce((sum, bin) => sum + value(bin), 0);
  const all = whole(props.bins);
  const describe = (place: number) => {
    const one = list[place];
    if (!one) return "";
    const side = (bin: Bin | null) => `${count(bin?.count ?? 0)}, ${duration(bin?.total_ns ?? 0)}`;
    const over = one.above >= props.limit ? "; over the limit" : "";
    const before = props.before ? `; before: ${side(one.before)}` : "";
    return `${words(one.above, one.upTo)}: ${side(one.now)} (${percent(share(value(one.now), all))})${over}${before}`;
  };
  if (props.asTable) {
    const figures = (side: "now" | "before", behind: string): GridColumn[] => [
      { id: `count${side}`, title: `Count${behind}`, number: true, amounts: { unit: "count", of: (row) => list[row]?.[side]?.count ?? 0 } },
      { id: `time${side}`, title: `Time${behind}`, number: true, amounts: { unit: "ns", with: "time", of: (row) => list[row]?.[side]?.total_ns ?? 0 } },
    ];
    const columns: GridColumn[] = [{ id: "class", title: "Duration" }, ...figures("now", ""), { id: "over", title: "Over limit", width: "90px" }, ...(props.before ? figures("before", " before") : [])];
    return (
      <Grid
        label={props.label}
        columns={columns}
        count={list.length}
        most={12}
        text={(row, column) => {
          const one = list[row];
          if (!one) return "";
          return column === 0 ? words(one.above, one.upTo) : one.above >= props.limit ? "yes" : "";
        }}
      />
    );
  }
  const most = Math.max(1, ...list.map((one) => Math.max(value(one.now), value(one.before))));
  const room = HEIGHT - TOP - BOTTOM;
  const logged = props.log;
  const top = logged ? Math.log10(most * 1.25) + 0.3 : most * 1.05;
  const y = (of: number) => HEIGHT - BOTTOM - (of <= 0 ? 0 : (logged ? (Math.log10(of) + 0.3) / top : of / top) * room);
  const step = Math.max(1, width - LEFT - RIGHT) / Math.max(1, list.length);
  const x = (place: number) => LEFT + place * step;
  const ticks = logged
    ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((tick) => tick <= most * 1.25)
    : props.measure === "count"
      ? [0, 1, 2, 3, 4].map((at) => at * nice(most)).filter((tick) => tick <= most * 1.02)
      : [0, 0.25, 0.5, 0.75, 1].map((part) => part * most);
  const limitAt = list.findIndex((one) => one.above >= props.limit);
  const limitX = limitAt < 0 ? null : x(limitAt);
  const go = (place: number) => {
    const next = Math.max(0, Math.min(list.length - 1, place));
    setAt(next);
    say(describe(next));
  };
  return (
    <div
      class="bins"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={`${props.label}. Arrow keys go through the classes, Enter lists what is in one.`}
      onKeyDown={(event) => {
        const moves: Record<string, number> = { ArrowRight: (at ?? -1) + 1, ArrowLeft: (at ?? 1) - 1, Home: 0, End: list.length - 1 };
        const to = moves[event.key];
        const here = list[at ?? -1];
        if (event.key === "Enter" && here) props.onPick(here.above, here.upTo);
        else if (to === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        if (to !== undefined) go(to);
      }}
      onBlur={() => setAt(null)}
    >
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${props.label}; the table has the same figures`}>
          <defs>
            <pattern id="over-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="6" height="6" class="over-ground" />
              <line x1="0" y1="0" x2="0" y2="6" class="over-line" />
            </pattern>
          </defs>
          {ticks.map((tick) => (
            <g key={tick}>
              <line class="grid-line" x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
              <text class="tick" x={LEFT - 6} y={y(tick)} dy="0.32em" text-anchor="end">
                {props.measure === "count" ? count(tick) : tick === 0 ? "0" : duration(tick)}
              </text>
            </g>
          ))}
          {list.map((one, place) => (
            <g key={one.above} class={at === place || props.chosen === one.above ? "bin at" : "bin"} onPointerEnter={() => setAt(place)} onPointerLeave={() => setAt(null)} onClick={() => props.onPick(one.above, one.upTo)}>
              <rect class="hit" x={x(place)} y={TOP} width={step} height={room} />
              {value(one.now) > 0 && (
                <rect class={one.above >= props.limit ? "bar over" : "bar"} x={x(place) + 1} width={Math.max(1, step - 2)} y={y(value(one.now))} height={HEIGHT - BOTTOM - y(value(one.now))} />
              )}
              {value(one.before) > 0 && (
                <rect class="outline" x={x(place) + 2.5} width={Math.max(1, step - 5)} y={y(value(one.before))} height={HEIGHT - BOTTOM - y(value(one.before))} />
              )}
              {labelled(one.above, step) && (
                <text class="tick" x={x(place)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
                  {border(one.above)}
                </text>
              )}
            </g>
          ))}
          <line class="axis" x1={LEFT} x2={width - RIGHT} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
          {limitX !== null && (
            <g>
              <line class="limit" x1={limitX} x2={limitX} y1={TOP - 20} y2={HEIGHT - BOTTOM} />
              <text class="limit-text" x={limitX + (limitX > width - 140 ? -5 : 5)} y={TOP - 22} text-anchor={limitX > width - 140 ? "end" : "start"} dy="0.6em">
                limit {border(props.limit)}
              </text>
            </g>
          )}
        </svg>
      )}
      <p class="told" aria-hidden="true">
        {at === null ? `${props.measure === "count" ? "How many" : "Time"} by duration, ten classes per decade${logged ? ", the scale is logarithmic" : ""}. Hatched: over the limit. A click lists what is in a class.${props.before ? " Outline: before." : ""}` : describe(at)}
      </p>
    </div>
  );
}
