/** What share of each processor went to DPCs and ISRs. */

import { useEffect, useRef, useState } from "preact/hooks";
import { duration, number } from "../../src/lib/format.ts";
import { visible } from "../base/value.ts";
import { addFilter } from "../state/view.ts";
import type { CpuLoad } from "../wire/types.ts";
import { Grid, type GridColumn } from "./grid.tsx";
import { say } from "./live.tsx";

/** From this share on a processor hardly runs threads. */
export const PEGGED = 0.8;

const HEIGHT = 250;
const TOP = 22;
const BOTTOM = 18;
const LEFT = 44;

export function CpuLoads(props: { cpus: CpuLoad[]; processors: number; length: number; before: { cpus: CpuLoad[]; length: number } | null; asTable: boolean }) {
  const [at, setAt] = useState<number | null>(null);
  const [wide, setWide] = useState(600);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWide(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [props.asTable]);
  const seen = Math.max(props.processors, ...props.cpus.map((one) => one.cpu + 1));
  const by = new Map(props.cpus.map((one) => [one.cpu, one]));
  const was = new Map(props.before?.cpus.map((one) => [one.cpu, one]) ?? []);
  const none: CpuLoad = { cpu: 0, dpc_ns: 0, isr_ns: 0, count: 0, top: null };
  const list = Array.from({ length: Math.min(seen, 2048) }, (_, cpu) => ({ ...(by.get(cpu) ?? none), cpu }));
  const part = (one: CpuLoad, length: number) => (one.dpc_ns + one.isr_ns) / Math.max(1, length);
  const beforeOf = (cpu: number) => (props.before ? part(was.get(cpu) ?? none, props.before.length) : null);
  const shown = (of: number) => `${number(100 * of)}\u00a0%`;
  const describe = (one: CpuLoad) => {
    const load = part(one, props.length);
    const before = beforeOf(one.cpu);
    return `CPU ${one.cpu}: ${shown(load)} in DPCs and ISRs${load >= PEGGED ? ", pegged" : ""} (DPC ${duration(one.dpc_ns)}, ISR ${duration(one.isr_ns)})${one.top ? `; most: ${visible(one.top[0])}` : ""}${before === null ? "" : `; before ${shown(before)}`}`;
  };
  const only = (cpu: number) => addFilter({ kind: "cpu", value: cpu, label: String(cpu) });
  if (props.asTable) {
    const columns: GridColumn[] = [
      { id: "cpu", title: "CPU", width: "60px" },
      { id: "share", title: "Share", number: true, width: "110px" },
      { id: "dpc", title: "DPC", number: true, width: "76px", amounts: { unit: "ns", with: "time", of: (row) => list[row]?.dpc_ns } },
      { id: "isr", title: "ISR", number: true, width: "76px", amounts: { unit: "ns", with: "time", of: (row) => list[row]?.isr_ns } },
      { id: "count", title: "Count", number: true, width: "70px", amounts: { unit: "count", of: (row) => list[row]?.count } },
      { id: "top", title: "Most of it" },
      ...(props.before ? [{ id: "before", title: "Share before", number: true, width: "104px" }] : []),
    ];
    return (
      <Grid
        label="DPC and ISR load by processor"
        columns={columns}
        count={list.length}
        most={10}
        onActivate={(row) => only(row)}
        text={(row, column) => {
          const one = list[row] ?? none;
          const load = part(one, props.length);
          return [`${one.cpu}`, `${shown(load)}${load >= PEGGED ? " pegged" : ""}`, "", "", "", visible(one.top?.[0] ?? "–"), shown(beforeOf(one.cpu) ?? 0)][column] ?? "";
        }}
      />
    );
  }
  const step = Math.max(14, Math.min(46, (wide - LEFT - 6) / Math.max(1, list.length)));
  const room = HEIGHT - BOTTOM - TOP;
  const y = (of: number) => TOP + room * (1 - Math.min(1, of));
  return (
    <div class="loads">
      <div
        class="scroll"
        ref={box}
        role="group"
        tabIndex={0}
        aria-label="Share of each processor in DPCs and ISRs. Arrow keys go from processor to processor, Enter shows only that one."
        onKeyDown={(event) => {
          const to: Record<string, number> = { ArrowRight: (at ?? -1) + 1, ArrowLeft: (at ?? 1) - 1, Home: 0, End: list.length - 1 };
          const next = to[event.key];
          if (event.key === "Enter" && at !== null) only(at);
          else if (next === undefined) return;
          else {
            const place = Math.max(0, Math.min(list.length - 1, next));
            setAt(place);
            say(describe(list[place] ?? none));
          }
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        <svg width={LEFT + list.length * step + 4} height={HEIGHT} role="img" aria-label="Share of each processor in DPCs and ISRs; the table has the same figures">
          <defs>
            <pattern id="isr-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              <rect width="5" height="5" class="isr-ground" />
              <line x1="0" y1="0" x2="0" y2="5" class="isr-line" />
            </pattern>
          </defs>
          {[0, 0.5, 1].map((tick) => (
            <g key={tick}>
              <line class="grid-line" x1={LEFT} x2={LEFT + list.length * step} y1={y(tick)} y2={y(tick)} />
              <text class="tick" x={LEFT - 6} y={y(tick)} dy="0.32em" text-anchor="end">{`${tick * 100} %`}</text>
            </g>
          ))}
          {list.map((one) => {
            const dpc = Math.min(1, one.dpc_ns / Math.max(1, props.length));
            const isr = Math.min(1 - dpc, one.isr_ns / Math.max(1, props.length));
            const left = LEFT + one.cpu * step;
            const before = beforeOf(one.cpu);
            return (
              <g key={one.cpu} class={at === one.cpu ? "bin at" : "bin"} onPointerEnter={() => setAt(one.cpu)} onPointerLeave={() => setAt(null)} onClick={() => only(one.cpu)}>
                <rect class="hit" x={left} y={TOP} width={step} height={room} />
                <rect class={part(one, props.length) >= PEGGED ? "bar over" : "bar"} x={left + 1} width={step - 2} y={y(dpc)} height={room + TOP - y(dpc)} />
                {isr > 0 && <rect class="isr" x={left + 1} width={step - 2} y={y(dpc + isr)} height={y(dpc) - y(dpc + isr)} />}
                {before !== null && before > 0 && <rect class="outline" x={left + 2.5} width={step - 5} y={y(before)} height={room + TOP - y(before)} />}
                {part(one, props.length) >= 0.1 && step >= 13 && (
                  <text class={part(one, props.length) >= PEGGED ? "tick pegged" : "tick"} x={left + step / 2} y={y(dpc + isr) - 4} text-anchor="middle">
                    {Math.round(100 * part(one, props.length))}
                  </text>
                )}
                <text class="tick" x={left + step / 2} y={HEIGHT - 4} text-anchor="middle">
                  {one.cpu % 2 === 1 && step < 20 ? "" : one.cpu}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
      <p class="told" aria-hidden="true">
        {at === null ? "Share of the time of each processor; ISRs are drawn on top of DPCs. Red with a bold number: 80 % and more. A click shows that processor alone." : describe(list[at] ?? none)}
      </p>
    </div>
  );
}
