/** DPCs and ISRs: which driver floods which processors, how long its routines run, and what another trace or range says. */

import { useMemo, useState } from "preact/hooks";
import { count, duration, number, percent, share } from "../../src/lib/format.ts";
import type { Panel } from "../app/panel.ts";
import { span, visible } from "../base/value.ts";
import { Bins } from "../parts/bins.tsx";
import { Box, Fault, Nothing, Sql } from "../parts/box.tsx";
import { Charged } from "../parts/charged.tsx";
import { CpuLoads } from "../parts/cpu_loads.tsx";
import { Grid, type GridColumn } from "../parts/grid.tsx";
import { GuardMark } from "../parts/guard_mark.tsx";
import { Longest } from "../parts/longest.tsx";
import { toTrace } from "../state/identity.ts";
import { session } from "../state/session.ts";
import { look, part, scope, set, setting, view, whole, type Other } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask } from "../wire/api.ts";
import type { InterruptDriver, InterruptRoutine, Interrupts, InterruptSums as Sums, KnownDriver, OnStack } from "../wire/types.ts";

/** A driver, or all of a class. */
type Driver = InterruptDriver & Partial<KnownDriver>;

interface Settings {
  /** `dpc ndis.sys`; `dpc` for all of a class; null: the dearest. */
  shown: string | null;
  measure: "count" | "time";
  tables: boolean;
  open: string[];
  sort: { id: string; down: boolean };
  log: boolean;
  /** The class of durations whose rows are listed: above, up to. */
  bin: [number, number | null] | null;
}

const FALLBACK: Settings = { shown: null, measure: "count", tables: false, open: [], sort: { id: "exclusive_ns", down: true }, log: false, bin: null };

const key = (driver: Driver) => (driver.module === null ? driver.class : `${driver.class} ${driver.module}`);
const plural = (driver: Driver) => (driver.class === "dpc" ? "DPCs" : "ISRs");
const title = (driver: Driver) => `${driver.module === null ? "All drivers" : visible(driver.module)}: ${plural(driver)}`;

/** Numbers of processors as people say them. */
const cpuList = (cpus: number[]) => (cpus.length > 12 ? `${cpus.length} processors` : `CPU ${cpus.join(", ")}`);

/** `36.8 s of CPU`. */
const cpuTime = (ns: number) => `${duration(ns)} of CPU`;

const hotShare = (driver: Driver, data: Interrupts) => share(driver.hot_ns, (data.range[1] - data.range[0]) * Math.max(1, driver.hot.length));

/** Other drivers inside of a driver's DPCs, dearest first. */
function guests(driver: Driver, data: Interrupts): OnStack[] {
  const same = (a: string, b: string | null) => a.toLowerCase() === (b ?? "").toLowerCase();
  return data.stacks.filter((one) => one.class === driver.class && same(one.host, driver.module) && !same(one.driver, driver.module));
}

function Sentence(props: { driver: Driver; data: Interrupts; first: boolean }) {
  const { driver, data } = props;
  const inside = guests(driver, data).slice(0, 3);
  const limit = driver.class === "dpc" ? data.limits.dpc : data.limits.isr;
  return (
    <li class={props.first ? "verdict" : ""} data-part={props.first ? "flood" : undefined}>
      <strong class="name" data-knows={driver.module ?? ""} tabIndex={0}>
        {visible(driver.module ?? "")}
      </strong>
      <GuardMark is={driver.security ?? false} />: {cpuTime(driver.exclusive_ns)} in {count(driver.count)} {plural(driver)}
      {driver.hot.length > 0 && `, ${percent(hotShare(driver, data))} of ${cpuList(driver.hot)}`}
      {driver.over_limit > 0 && `; ${count(driver.over_limit)} over ${duration(limit)}, the longest ${duration(driver.max_ns)}`}
      {inside.length > 0 && (
        <>
          ; on their stacks{" "}
          {inside.map((one, at) => (
            <span key={one.driver}>
              {at > 0 ? ", " : ""}
              <strong class="name" data-knows={one.driver}>
                {visible(one.driver)}
              </strong>
              <GuardMark is={one.security} /> ({number(one.percent)}&nbsp;% of their sampled time)
            </span>
          ))}
        </>
      )}
      .
    </li>
  );
}

/** The question to the other side of a comparison: filters by ids mean nothing in another trace. */
function otherPart(other: Other) {
  const mine = part.value;
  const same = other.trace === view.value.trace;
  const filters = mine.filters.filter((filter) => same || !["process", "thread"].includes(filter.kind));
  return { trace: other.trace, range: other.range, filters };
}

function Compare() {
  const traces = session.value?.traces ?? [];
  const { other } = view.value;
  const name = (at: number) => traces.find((one) => one.trace === at)?.name ?? "";
  const chosen = other === null ? "" : other.range === null ? String(other.trace) : "range";
  return (
    <>
      <label>
        Before:{" "}
        <select
          value={chosen}
          aria-label="Compare with"
          onChange={(event) => {
            const to = event.currentTarget.value;
            if (to === "") look({ other: null });
            else if (to === "this") look({ other: { trace: view.value.trace, range: scope.value ?? whole.value } });
            else if (to !== "range") look({ other: { trace: Number(to), range: null } });
          }}
        >
          <option value="">nothing (no comparison)</option>
          {other?.range && <option value="range">{`${name(other.trace)}, ${span(other.range)}`}</option>}
          <option value="this">the range as it is now: keep it, then select another</option>
          {traces.map((one) => (
            <option key={one.trace} value={one.trace}>
              {`${visible(one.name)}, whole${one.trace === view.value.trace ? " (this trace)" : ""}`}
            </option>
          ))}
        </select>
      </label>
      {other && (
        <button type="button" class="small" onClick={() => void toTrace(other.trace, { zoom: null, selection: other.range, past: [], other: { trace: view.value.trace, range: scope.value } })} title="Show the other side">
          ⇄ Swap
        </button>
      )}
    </>
  );
}

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

function Drivers(props: { data: Interrupts; before: Interrupts | null; shown: string }) {
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
  const shown = (id: Figure, value: number) => (FIGURES.find((one) => one.id === id)?.time ? duration(value) : count(value));
  const figures = before ? FIGURES.filter((one) => COMPARED.includes(one.id)).sort((a, b) => COMPARED.indexOf(a.id) - COMPARED.indexOf(b.id)) : FIGURES;
  for (const one of figures) {
    const { id, doc } = one;
    const base = { doc, number: true, sortable: true, width: "88px" };
    if (!before) {
      columns.push({ ...base, id, title: one.title, cell: (line) => shown(id, figure(line, id)) });
      continue;
    }
    columns.push({ ...base, id: `${id} was`, title: `${one.title} before`, width: "140px", cell: (line) => (line.was ? shown(id, line.was[id]) : "–") });
    columns.push({ ...base, id: `${id} now`, title: "now", cell: (line) => shown(id, figure(line, id)) });
    columns.push({ ...base, id: `${id} diff`, title: "difference", width: "92px", cell: (line) => `${figure(line, id) > (line.was?.[id] ?? 0) ? "+" : ""}${shown(id, figure(line, id) - (line.was?.[id] ?? 0)).replace("-", "−")}` });
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
        if (line) set<Settings>("interrupts", { shown: key(line.driver) });
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

function Stacks(props: { list: OnStack[]; of: Driver | null }) {
  const [all, setAll] = useState(false);
  const same = (one: OnStack) => !props.of?.module || (one.class === props.of.class && one.host.toLowerCase() === props.of.module.toLowerCase());
  const list = props.list.filter((one) => all || same(one));
  const columns: GridColumn[] = [
    { id: "driver", title: "Driver on the stack", doc: "Innermost driver that is not Windows itself: the one charged.", width: "minmax(140px, 1.4fr)" },
    { id: "host", title: "in routines of", doc: "Module whose routine was called.", width: "minmax(100px, 1fr)" },
    { id: "class", title: "Class", width: "56px" },
    { id: "time", title: "Sampled", number: true, width: "90px" },
    { id: "percent", title: "Share", doc: "Share of all sampled time in the host's DPCs or ISRs.", number: true, width: "80px" },
    { id: "samples", title: "Samples", number: true, width: "80px" },
    { id: "who", title: "Who makes it, what for", width: "minmax(140px, 1.4fr)" },
  ];
  return (
    <Box
      title="Who is on the stacks of DPCs and ISRs"
      tools={
        <label>
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> of all drivers
        </label>
      }
    >
      <p class="about">From CPU samples of the whole trace (table interrupt_path): it ignores the selected range and filters.</p>
      {list.length === 0 ? (
        <Nothing why={props.list.length === 0 ? "No stacks of samples in DPCs or ISRs were recorded." : "No other driver than Windows' own was seen on these stacks."} />
      ) : (
        <Grid
          label="Drivers on the stacks of DPCs and ISRs"
          columns={columns}
          count={list.length}
          most={8}
          text={(row, at) => {
            const one = list[row];
            if (!one) return "";
            const who = [one.vendor, one.product, one.category].filter(Boolean).join(" · ");
            return [visible(one.driver), visible(one.host), one.class.toUpperCase(), duration(one.cost_ns), `${number(one.percent)}\u00a0%`, count(one.samples), visible(who)][at] ?? "";
          }}
          draw={(row, at) => {
            const one = list[row];
            const name = at === 0 ? one?.driver : at === 1 ? one?.host : undefined;
            if (!one || name === undefined) return undefined;
            return (
              <>
                <span class="name" data-knows={name}>
                  {visible(name)}
                </span>{" "}
                <GuardMark is={at === 0 && one.security} />
              </>
            );
          }}
        />
      )}
      <Sql sql="SELECT class, host, driver, vendor, product, category, sum(cost_ns) AS cost_ns, sum(samples) AS samples FROM interrupt_path WHERE host IS NOT NULL GROUP BY class, host, driver ORDER BY cost_ns DESC" />
    </Box>
  );
}

function View() {
  const settings = setting<Settings>("interrupts", FALLBACK);
  const { other } = view.value;
  const answer = useAnswer(`interrupts ${JSON.stringify(part.value)}`, (signal) => ask("interrupts", part.value, signal));
  const asked = other ? otherPart(other) : null;
  const second = useAnswer(asked ? `interrupts ${JSON.stringify(asked)}` : null, (signal) => ask("interrupts", asked, signal));
  const data = answer.value;
  if (!data) return answer.error ? <Fault error={answer.error} /> : <p class="about">Adding up …</p>;
  const before = other ? second.value : null;
  const choices = [...data.all, ...data.drivers];
  const shown = choices.find((one) => key(one) === settings.shown) ?? data.drivers[0] ?? null;
  const old = before && shown ? ([...before.all, ...before.drivers].find((one) => key(one) === key(shown)) ?? null) : null;
  const toggle = (
    <button type="button" class="small" aria-pressed={settings.tables} onClick={() => set<Settings>("interrupts", { tables: !settings.tables })}>
      Show as table
    </button>
  );
  const length = data.range[1] - data.range[0];
  return (
    <div class="interrupts" data-part="interrupts">
      <Box title="DPC and ISR load by driver and processor" tools={<Compare />}>
        <Fault error={second.error} />
        {data.drivers.length === 0 ? <Nothing why="No DPC and no ISR ended in this part." /> : (
          <ol class="floods">
            {data.drivers.slice(0, 3).map((driver, at) => (
              <Sentence key={key(driver)} driver={driver} data={data} first={at === 0} />
            ))}
          </ol>
        )}
        {data.unused.length > 0 && <p class="about">Filters by {data.unused.join(", ")} do not apply to DPCs and ISRs.</p>}
        {before && (
          <p class="warned" role="note">
            Before ({span(before.range)}) and now ({span(data.range)}){before.range[1] - before.range[0] === length ? "" : ", of different length: counts and times are not comparable as they are, durations and shares are"}. If several things changed between the two, do not credit one of them: only a trace for each change tells.
          </p>
        )}
      </Box>
      {shown && (
        <div class="pair">
          <Box
            title={`How long: ${title(shown)}`}
            tools={
              <>
                <select value={key(shown)} aria-label="Driver in the histogram" onChange={(event) => set<Settings>("interrupts", { shown: event.currentTarget.value })}>
                  {choices.map((one) => (
                    <option key={key(one)} value={key(one)}>
                      {title(one)}
                    </option>
                  ))}
                </select>
                <button type="button" class="small" aria-pressed={settings.measure === "time"} onClick={() => set<Settings>("interrupts", { measure: settings.measure === "time" ? "count" : "time" })}>
                  By time
                </button>
                <button type="button" class="small" aria-pressed={settings.log} onClick={() => set<Settings>("interrupts", { log: !settings.log })}>
                  Log scale
                </button>
                {toggle}
              </>
            }
          >
            <Bins
              label={`Durations, ${title(shown)}`}
              bins={shown.bins}
              before={before ? (old?.bins ?? []) : null}
              limit={data.limits[shown.class]}
              borders={data.borders}
              measure={settings.measure}
              asTable={settings.tables}
              log={settings.log}
              chosen={settings.bin?.[0] ?? null}
              onPick={(above, upTo) => set<Settings>("interrupts", { bin: settings.bin?.[0] === above ? null : [above, upTo] })}
            />
            <dl class="stats">
              {[
                ["Count", count(shown.count)],
                ["Median", duration(shown.p50_ns)],
                ["p95", duration(shown.p95_ns)],
                ["Longest", duration(shown.max_ns)],
                ["Total", duration(shown.exclusive_ns)],
                [`Over ${duration(data.limits[shown.class])}`, count(shown.over_limit)],
              ].map(([name, text]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
            <p class="about">
              A DPC should take no longer than {duration(data.limits.dpc)}, an ISR no longer than {duration(data.limits.isr)} ({data.limits.source}).
            </p>
          </Box>
          <Box title={shown.module === null ? `Longest ${plural(shown)}` : `Who spends ${visible(shown.module)}’s ${duration(shown.exclusive_ns)}`}>
            <Charged host={shown.module ?? ""} list={guests(shown, data)} />
            <Longest of={shown.class} module={shown.module} limit={data.limits[shown.class]} bin={settings.bin} onClear={() => set<Settings>("interrupts", { bin: null })} />
          </Box>
        </div>
      )}
      {shown && (
        <Box title="Load of each processor" tools={toggle}>
          <CpuLoads cpus={data.cpus} processors={data.processors} length={length} before={before ? { cpus: before.cpus, length: before.range[1] - before.range[0] } : null} asTable={settings.tables} />
        </Box>
      )}
      <Box title="Drivers" tools={<Sql sql={data.sql} />}>
        <Drivers data={data} before={before} shown={shown ? key(shown) : ""} />
      </Box>
      <Stacks list={data.stacks} of={shown} />
    </div>
  );
}

export const panel: Panel = {
  id: "interrupts",
  title: "DPC/ISR",
  group: "cpu",
  order: 30,
  about: "Deferred procedure calls and interrupts: which driver, how long, on which processors",
  tables: ["dpc", "isr"],
  View,
};
