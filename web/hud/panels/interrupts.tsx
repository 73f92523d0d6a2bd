/** DPCs and ISRs: which driver floods which processors, how long its routines run, and what another trace or range says. */

import { useState } from "preact/hooks";
import { count, duration, number, percent } from "../../src/lib/format.ts";
import type { Panel } from "../app/panel.ts";
import { span, visible } from "../base/value.ts";
import { Bins } from "../parts/bins.tsx";
import { Bones } from "../parts/bones.tsx";
import { Box, Fault, Nothing, Sql } from "../parts/box.tsx";
import { Charged } from "../parts/charged.tsx";
import { CpuLoads } from "../parts/cpu_loads.tsx";
import { Grid, type GridColumn } from "../parts/grid.tsx";
import { GuardMark } from "../parts/guard_mark.tsx";
import { cpuList, cpuTime, Drivers, FALLBACK, hotShare, key, type Driver, type Settings } from "../parts/interrupt_drivers.tsx";
import { interruptCard } from "../parts/interrupt_card.ts";
import { Longest } from "../parts/longest.tsx";
import { toTrace } from "../state/identity.ts";
import { session } from "../state/session.ts";
import { look, part, scope, set, setting, view, whole, type Other } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { ask } from "../wire/api.ts";
import type { InterruptClass, Interrupts, OnStack } from "../wire/types.ts";

const plural = (driver: Driver) => (driver.class === "dpc" ? "DPCs" : "ISRs");
const title = (driver: Driver) => `${driver.module === null ? "All drivers" : visible(driver.module)}: ${plural(driver)}`;

/** Other drivers inside of a driver's DPCs, costliest first. */
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

function Stacks(props: { data: Interrupts; of: Driver | null }) {
  const { stacks, stacks_whole: ignores } = props.data;
  const part = scope.value !== null || view.value.filters.some((one) => one.kind === "cpu");
  const [all, setAll] = useState(false);
  const same = (one: OnStack) => !props.of?.module || (one.class === props.of.class && one.host.toLowerCase() === props.of.module.toLowerCase());
  const list = stacks.filter((one) => all || same(one));
  const columns: GridColumn[] = [
    { id: "driver", title: "Driver on the stack", doc: "Innermost driver that is not Windows itself: the one charged.", width: "minmax(140px, 1.4fr)" },
    { id: "host", title: "in routines of", doc: "Module whose routine was called.", width: "minmax(100px, 1fr)" },
    { id: "class", title: "Class", width: "56px" },
    { id: "time", title: "Sampled", number: true, width: "90px", amounts: { unit: "ns", of: (row) => list[row]?.cost_ns } },
    { id: "percent", title: "Share", doc: "Share of all sampled time in the host's DPCs or ISRs.", number: true, width: "80px", amounts: { unit: "percent", of: (row) => list[row]?.percent } },
    { id: "samples", title: "Samples", number: true, width: "80px", amounts: { unit: "count", of: (row) => list[row]?.samples } },
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
      <p class="about">
        From CPU samples in DPCs and ISRs{ignores ? " of the whole trace: table sample is not here, so the selected range does not apply" : scope.value ? ` of the selected ${span(scope.value)}` : ""}.
      </p>
      {list.length === 0 ? (
        <Nothing why={stacks.length === 0 ? "No stacks of samples in DPCs or ISRs were recorded." : "No other driver than Windows' own was seen on these stacks."} />
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
            return [visible(one.driver), visible(one.host), one.class.toUpperCase(), "", "", "", visible(who)][at] ?? "";
          }}
          card={(row) => {
            const one = list[row];
            return one ? interruptCard(one.class as InterruptClass, one.driver, one.driver, [["Sampled", duration(one.cost_ns)], ["Share", percent(one.percent / 100)], ["In routines of", visible(one.host)]]) : null;
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
      {(ignores || !part) && <Sql sql="SELECT class, host, driver, vendor, product, category, sum(cost_ns) AS cost_ns, sum(samples) AS samples FROM interrupt_path WHERE host IS NOT NULL GROUP BY class, host, driver ORDER BY cost_ns DESC" />}
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
  if (!data) return answer.error ? <Fault error={answer.error} /> : <Bones lines={8} />;
  const before = other ? second.value : null;
  const choices = [...data.all, ...data.drivers];
  const shown = choices.find((one) => key(one) === settings.shown) ?? data.drivers[0] ?? null;
  const old = before && shown ? ([...before.all, ...before.drivers].find((one) => key(one) === key(shown)) ?? null) : null;
  const charged = shown?.module ? guests(shown, data) : [];
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
            Before ({span(before.range)}) and now ({span(data.range)}){before.range[1] - before.range[0] === length ? "" : ", of different length: counts and times are not comparable as they are, durations and shares are"}. If several things changed between the two, do not credit one of them: record a trace after each change.
          </p>
        )}
      </Box>
      {shown && (
        <div class="pair">
          <Box
            title="How long"
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
            <p class="about">
              A DPC should take no longer than {duration(data.limits.dpc)}, an ISR no longer than {duration(data.limits.isr)} ({data.limits.source}).
            </p>
          </Box>
          <Box title={charged.length === 0 ? `Longest ${plural(shown)}${shown.module === null ? "" : ` of ${visible(shown.module)}`}` : `Who spends ${visible(shown.module ?? "")}’s ${duration(shown.exclusive_ns)}`}>
            <Charged host={shown.module ?? ""} list={charged} />
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
      <Stacks data={data} of={shown} />
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
