/** The figures that say how a machine did, each with its line over time; what was not recorded says so. */

import type { Report } from "../../src/model.ts";
import { bytes, duration, number } from "../../src/lib/format.ts";
import { counted, lasting, visible } from "../base/value.ts";
import { energy, middle } from "../state/energy.ts";
import { inForce, look, table, view } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";
import { Mini } from "./mini.tsx";
import { parse } from "./pivot/spark.tsx";

const PARTS = 72;

interface Tile {
  title: string;
  value: string;
  unit: string;
  about: string;
  line: number[];
  color: string;
  panel: string;
  /** Why there is nothing, or what it rests on. */
  why?: string;
}

interface Sum {
  table: string;
  values: { column?: string; fn: string }[];
  where?: { column: string; op: string; value: unknown }[];
}

/** Sums over what the verdict is of, and the first of them over time. */
function useSum(sum: Sum | null) {
  const trace = view.value.trace;
  const there = sum !== null && (table(sum.table)?.rows ?? 0) > 0;
  const body = { trace, range: inForce.value?.found.range ?? null, filters: [], group: [], sort: [], limit: 1, spark: PARTS, ...sum, where: sum?.where ?? [] };
  const answer = useAnswer(there ? `tile ${JSON.stringify(body)}` : null, (signal) => askRows("pivot", body, signal)).value;
  if (!answer || answer.count === 0) return null;
  return { line: parse(answer.text(0, "spark")).map((value) => value ?? 0), value: (at: number) => Number(answer.facts.totals[at] ?? 0), known: answer.facts.totals[0] !== null };
}

/** `22.5 MiB` in two parts. */
const split = (text: string): [string, string] => {
  const at = text.lastIndexOf("\u00a0");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
};

const missing = (name: string) => table(name)?.why_empty?.replace(/; record: .*$/, "") ?? (table(name)?.rows ? "none in this range" : "not in this trace");

export function Tiles(props: { data: Report }) {
  const { cpu, bill, quality } = props.data;
  const busy = useSum({ table: "sample", values: [{ column: "weight_ns", fn: "sum" }], where: [{ column: "upid.pid", op: "ne", value: 0 }] });
  // Without samples the bill counts what context switches say.
  const ran = useSum(cpu.samples > 0 ? null : { table: "cswitch", values: [{ column: "run_ns", fn: "sum" }], where: [{ column: "new_upid.pid", op: "ne", value: 0 }] });
  const dpc = useSum({ table: "dpc", values: [{ column: "exclusive_ns", fn: "sum" }, { column: "exclusive_ns", fn: "max" }, { fn: "count" }] });
  const isr = useSum({ table: "isr", values: [{ column: "exclusive_ns", fn: "sum" }, { column: "exclusive_ns", fn: "max" }, { fn: "count" }] });
  const hang = useSum({ table: "ui_delay", values: [{ column: "dur_ns", fn: "max" }, { fn: "count" }] });
  const ready = useSum({ table: "cswitch", values: [{ column: "ready_ns", fn: "max" }, { fn: "count" }] });
  const disk = useSum({ table: "disk_io", values: [{ column: "size_bytes", fn: "sum" }, { column: "service_ns", fn: "max" }, { fn: "count" }] });
  const kept = useSum({ table: "virtual_alloc", values: [{ column: "committed_bytes", fn: "sum" }, { column: "freed_bytes", fn: "sum" }] });
  const tiles: Tile[] = [];
  // Rows without the value that is asked for: it was not recorded, whatever the range.
  const gone = (title: string, source: string, panel: string, without?: string) =>
    tiles.push({ title, value: "–", unit: "", about: table(source)?.rows && !without ? "not in this range" : "not recorded", why: without ?? missing(source), line: [], color: "--c1", panel });
  const all = cpu.busy_ns + cpu.idle_ns;
  if (cpu.samples > 0 && all > 0) {
    const cores = (cpu.busy_ns / all) * Math.max(1, quality.cpus);
    tiles.push({ title: "CPU busy", value: number((100 * cpu.busy_ns) / all), unit: "%", about: `${all < 200e9 ? `${number(cpu.busy_ns / 1e9)} of ${number(all / 1e9)} s` : `${lasting(cpu.busy_ns)} of ${lasting(all)}`}, ${number(cores)} ${cores >= 0.95 && cores < 1.05 ? "core" : "cores"}`, line: busy?.line ?? [], color: "--c1", panel: "stacks" });
  } else gone("CPU busy", "sample", "stacks");
  if (dpc || isr) {
    const sum = (dpc?.value(0) ?? 0) + (isr?.value(0) ?? 0);
    const range = inForce.value?.found.range;
    const capacity = (range ? range[1] - range[0] : quality.duration_ns) * Math.max(1, quality.cpus);
    const longest = Math.max(dpc?.value(1) ?? 0, isr?.value(1) ?? 0);
    const line = (dpc ?? isr)?.line.map((value, at) => value + (dpc ? (isr?.line[at] ?? 0) : 0)) ?? [];
    tiles.push({ title: "DPC + ISR", value: sum > 0 && sum / capacity < 5e-5 ? "<0.01" : number(Math.round((10_000 * sum) / capacity) / 100), unit: "%", about: `${duration(sum)}, longest ${duration(longest)}`, line, color: "--dpc", panel: "interrupts" });
  } else gone("DPC + ISR", "dpc", "interrupts");
  if (hang && hang.value(0) > 0) {
    const [value, unit] = split(duration(hang.value(0)));
    tiles.push({ title: "Longest hang", value, unit, about: `${counted(hang.value(1), "window", "times a window")} stopped responding`, line: hang.line, color: "--crit", panel: "hangs" });
  } else if (ready?.known) {
    const [value, unit] = split(duration(ready.value(0)));
    tiles.push({ title: "Longest ready", value, unit, about: ready.value(0) > 0 ? "waited for a processor" : "nobody waited for a processor", line: ready.value(0) > 0 ? ready.line : [], color: "--ready", panel: "precise" });
  } else gone("Longest ready", "cswitch", "precise", ready && ready.value(1) > 0 ? "Which threads were ready was not recorded" : undefined);
  if (disk) {
    const [value, unit] = split(bytes(disk.value(0)));
    tiles.push({ title: "Disk", value, unit, about: `${counted(disk.value(2), "I/O")}, max ${duration(disk.value(1))}`, line: disk.line, color: "--c8", panel: "disk" });
  } else gone("Disk", "disk_io", "disk");
  if (kept) {
    const net = kept.value(0) - kept.value(1);
    const [value, unit] = split(bytes(Math.abs(net)));
    tiles.push({ title: net < 0 ? "Memory given back" : "Memory kept", value, unit, about: kept.value(1) === 0 ? "nothing freed" : `${bytes(kept.value(0))} less ${bytes(kept.value(1))} freed`, line: kept.line, color: "--c4", panel: "memory" });
  } else gone("Memory", "virtual_alloc", "memory");
  const used = bill.filter((row) => row.kind === "process" && row.part === "culprit" && row.energy_j !== null);
  if (used.length > 0) {
    const sum = (of: (row: (typeof used)[number]) => number | null) => used.reduce((total, row) => total + (of(row) ?? 0), 0);
    const [low, high] = [sum((row) => row.energy_low_j), sum((row) => row.energy_high_j)];
    const [value, unit] = middle(sum((row) => row.energy_j));
    const most = used.reduce((best, row) => ((row.energy_j ?? 0) > (best.energy_j ?? 0) ? row : best));
    tiles.push({ title: "Energy", value: `≈${value}`, unit, about: `${energy(low, high).join("\u00a0")}, most ${visible(most.culprit.replace(/ \(\d+\)$/, ""))}`, line: (busy ?? ran)?.line ?? [], why: "Estimated from CPU time: the line is CPU time", color: "--c3", panel: "power" });
  } else gone("Energy", "sample", "power");
  return (
    <section class="tiles" aria-label="Key figures">
      {tiles.map((tile) => (
        <button type="button" class="tile" key={tile.title} onClick={() => look({ panel: tile.panel })} title={tile.why ?? tile.about}>
          <span class="label">{tile.title}</span>
          <span class="value">
            {tile.value} <small>{tile.unit}</small>
          </span>
          <span class="said">{tile.about}</span>
          {tile.line.length > 0 && <Mini values={tile.line} color={tile.color} />}
        </button>
      ))}
    </section>
  );
}
