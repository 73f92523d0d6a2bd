/** DPCs and ISRs by driver and routine, as a table: of one side, or of both. */

import { useMemo } from "preact/hooks";
import { count, duration, percent, share } from "../../src/lib/format.ts";
import { visible } from "../base/value.ts";
import { set, setting } from "../state/view.ts";
import type { InterruptDriver, InterruptRoutine, Interrupts, InterruptSums as Sums, KnownDriver } from "../wire/types.ts";
import type { Amounts } from "./grid/amounts.ts";
import { Grid, type GridColumn } from "./grid.tsx";
import { GuardMark } from "./guard_mark.tsx";
import { interruptCard, interruptTrack } from "./interrupt_card.ts";

/** A driver, or all of a class. */
export type Driver = InterruptDriver & Partial<KnownDriver>;

export interface Settings {
  /** `dpc ndis.sys`; `dpc` for all of a class; null: the costliest. */
  shown: string | null;
  measure: "count" | "time";
  tables: boolean;
  open: string[];
  sort: { id: string; down: boolean };
  log: boolean;
  /** The class of durations whose rows are listed: above, up to. */
  bin: [number, number | null] | null;
}

export const FALLBACK: Settings = { shown: null, measure: "count", tables: false, open: [], sort: { id: "exclusive_ns", down: true }, log: false, bin: null };

export const key = (driver: Driver) => (driver.module === null ? driver.class : `${driver.class} ${driver.module}`);
/** Numbers of processors as people say them. */
export const cpuList = (cpus: number[]) => (cpus.length > 12 ? `${cpus.length} processors` : `CPU ${cpus.join(", ")}`);

/** `36.8 s of CPU`. */
export const cpuTime = (ns: number) => `${duration(ns)} of CPU`;

export const hotShare = (driver: Driver, data: Interrupts) => share(driver.hot_ns, (data.range[1] - data.range[0]) * Math.max(1, driver.hot.length));

type Figure = keyof Sums;
const FIGURES: { id: Figure; title: string; doc: string; time: boolean }[] = [
  { id: "count", title: "Count", doc: "How many.", time: false },
  { id: "exclusive_ns", title: "Exclusive", doc: "Time without what interrupted them: CPU time.", time: true },
  { id: "total_ns", title: "Total", doc: "Time with what interrupted them.", time: true },
  { id: "mean_ns", title: "Mean", doc: "Mean duration.", time: true },
  { id: "p50_ns", title: "p50", doc: "Half took no longer.", time: true },
  { id: "p95_ns", title: "p95", doc: "95 % took no longer.", time: true },
  { id: "p99_ns", title: "p99", doc: "99 % took no longer.", time: true },
  { id: "max_ns", title: "Longest", doc: "The longest.", time: true },
  { id: "over_limit", title: "Over limit", doc: "How many took longer than Microsoft's limit: 100 µs for a DPC, 25 µs for an ISR.", time: false },
  { id: "over_limit_ns", title: "Over, time", doc: "Duration of those over the limit.", time: true },
];
/** In a comparison these stand side by side. */
const COMPARED: Figure[] = ["exclusive_ns", "count", "mean_ns", "p95_ns", "max_ns", "over_limit"];

interface Line {
  driver: Driver;
  routine: InterruptRoutine | null;
  /** The same of the other side. */
  was: Sums | null;
}

export function Drivers(props: { data: Interrupts; before: Interrupts | null; shown: string }) {
  const settings = setting<Settings>("interrupts", FALLBACK);
  const { data, before } = props;
  const figure = (line: Line, id: Figure) => (line.routine ?? line.driver)[id];
  const wasOf = (driver: Driver) => before?.drivers.find((one) => key(one) === key(driver)) ?? null;
  const lines = useMemo(() => {
    // A driver that is gone stands there with nothing.
    const empty = { count: 0, total_ns: 0, exclusive_ns: 0, mean_ns: 0, p50_ns: 0, p95_ns: 0, p99_ns: 0, max_ns: 0, over_limit: 0, over_limit_ns: 0 };
    const gone = (before?.drivers ?? []).filter((one) => !data.drivers.some((now) => key(now) === key(one))).map((one): Driver => ({ ...one, ...empty, cpus: {}, hot: [], hot_ns: 0, bins: [], routines: [] }));
    const list = [...data.drivers, ...gone];
    const [id, side] = settings.sort.id.split(" ") as [string, string | undefined];
    const sums = (of: Driver): number => {
      if (id === "hot") return hotShare(of, data);
      const now = of[id as Figure] ?? 0;
      const was = wasOf(of)?.[id as Figure] ?? 0;
      return side === "was" ? was : side === "diff" ? now - was : side === "ratio" ? now / Math.max(1e-9, was) : now;
    };
    const sign = settings.sort.down ? -1 : 1;
    if (id === "driver") list.sort((a, b) => sign * key(a).localeCompare(key(b)));
    else list.sort((a, b) => sign * (sums(a) - sums(b)));
    const out: Line[] = [];
    for (const driver of list) {
      const was = wasOf(driver);
      out.push({ driver, routine: null, was });
      if (!settings.open.includes(key(driver))) continue;
      for (const routine of driver.routines) out.push({ driver, routine, was: was?.routines.find((one) => one.routine === routine.routine) ?? null });
    }
    return out;
  }, [data, before, settings.open.join("\n"), settings.sort.id, settings.sort.down]);
  const columns: (GridColumn & { cell: (line: Line) => string })[] = [
    {
      id: "driver",
      title: "Driver, routine",
      doc: "Module of the routine that ran; a filter that it calls shows on stacks alone.",
      width: "minmax(220px, 2fr)",
      sortable: true,
      cell: (line) => visible(line.routine ? line.routine.routine : (line.driver.module ?? "")),
    },
    { id: "class", title: "Class", width: "56px", cell: (line) => line.driver.class.toUpperCase() },
  ];
  /** One unit per figure, in all of its columns. */
  const amounts = (id: Figure, of: (line: Line) => number | null, signed = false): Amounts => ({
    unit: FIGURES.find((one) => one.id === id)?.time ? "ns" : "count",
    with: id,
    signed,
    of: (row) => (lines[row] ? of(lines[row]) : undefined),
  });
  const figures = before ? FIGURES.filter((one) => COMPARED.includes(one.id)).sort((a, b) => COMPARED.indexOf(a.id) - COMPARED.indexOf(b.id)) : FIGURES;
  for (const one of figures) {
    const { id, doc } = one;
    const base = { doc, number: true, sortable: true, width: "92px", cell: () => "" };
    if (!before) {
      columns.push({ ...base, id, title: one.title, amounts: amounts(id, (line) => figure(line, id)) });
      continue;
    }
    columns.push({ ...base, id: `${id} was`, title: `${one.title} before`, width: "140px", amounts: amounts(id, (line) => line.was?.[id] ?? null) });
    columns.push({ ...base, id: `${id} now`, title: "now", amounts: amounts(id, (line) => figure(line, id)) });
    columns.push({ ...base, id: `${id} diff`, title: "difference", amounts: amounts(id, (line) => figure(line, id) - (line.was?.[id] ?? 0), true) });
    columns.push({ ...base, id: `${id} ratio`, title: "×", width: "60px", doc: "Now divided by before.", cell: (line) => (line.was && line.was[id] > 0 ? (figure(line, id) / line.was[id]).toFixed(2) : "–") });
  }
  if (!before) {
    columns.push({
      id: "cpus",
      title: "CPUs",
      doc: "Processors on which it ran; those with at least half as much time as the busiest.",
      width: "minmax(110px, 1fr)",
      cell: (line) => (line.routine ? count(line.routine.cpus) : line.driver.hot.length === Object.keys(line.driver.cpus).length ? cpuList(line.driver.hot) : `${Object.keys(line.driver.cpus).length}, mostly ${cpuList(line.driver.hot)}`),
    });
    columns.push({ id: "hot", title: "Of those", doc: "Share of the time of the processors that it mostly ran on.", number: true, sortable: true, width: "76px", cell: (line) => (line.routine ? "" : percent(hotShare(line.driver, data))) });
  }
  const show = (line: Line) => set<Settings>("interrupts", { shown: key(line.driver), bin: null });
  return (
    <Grid
      label="DPCs and ISRs by driver and routine"
      columns={columns}
      count={lines.length}
      most={14}
      text={(row, at) => {
        const line = lines[row];
        return line ? (columns[at]?.cell(line) ?? "") : "";
      }}
      draw={(row, at) => {
        const line = lines[row];
        if (!line || at !== 0) return undefined;
        const name = line.routine ? line.routine.routine : (line.driver.module ?? "");
        return (
          <>
            <span class="name" data-knows={name}>
              {visible(name)}
            </span>{" "}
            <GuardMark is={line.routine === null && (line.driver.security ?? false)} />
          </>
        );
      }}
      sort={settings.sort}
      onSort={(id) => set<Settings>("interrupts", { sort: { id, down: settings.sort.id === id ? !settings.sort.down : id !== "driver" } })}
      onActivate={(row) => {
        const line = lines[row];
        if (line) show(line);
      }}
      card={(row) => {
        const line = lines[row];
        const module = line?.driver.module;
        if (!line || !module) return null;
        const now = (id: Figure) => figure(line, id);
        const facts: [string, string][] = [["Count", count(now("count"))], ["CPU time", duration(now("exclusive_ns"))], ["p95", duration(now("p95_ns"))], ["Longest", duration(now("max_ns"))], ["Over the limit", count(now("over_limit"))]];
        const own = [{ text: "Show durations", primary: true, run: () => show(line) }, interruptTrack(line.driver.class, module)];
        return interruptCard(line.driver.class, module, line.routine?.routine ?? module, facts, own);
      }}
      selected={(row) => lines[row]?.routine === null && key((lines[row] as Line).driver) === props.shown}
      tree={{
        level: (row) => (lines[row]?.routine ? 2 : 1),
        open: (row) => {
          const line = lines[row];
          return !line || line.routine || line.driver.routines.length === 0 ? null : settings.open.includes(key(line.driver));
        },
        toggle: (row) => {
          const line = lines[row];
          if (!line) return;
          const id = key(line.driver);
          set<Settings>("interrupts", { open: settings.open.includes(id) ? settings.open.filter((one) => one !== id) : [...settings.open, id] });
        },
      }}
    />
  );
}
