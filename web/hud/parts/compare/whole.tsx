/** Two traces as a whole, A before and B after: what changed, in all and per second, with the interval of the ratio. */

import { count, duration, number, percent } from "../../../src/lib/format.ts";
import { scaled, scaleOf } from "../../base/units.ts";
import { visible } from "../../base/value.ts";
import type { Card } from "../../state/inspect.ts";
import { addFilter, look, set, setting, view } from "../../state/view.ts";
import { useAnswer } from "../../wire/answer.ts";
import { ask } from "../../wire/api.ts";
import type { Diff, DiffEntity } from "../../wire/types.ts";
import { Badge } from "../badge.tsx";
import { Box, copy, Fault } from "../box.tsx";
import { Bones } from "../bones.tsx";
import { Grid } from "../grid.tsx";
import { Severity } from "../icons.tsx";
import { Swatch } from "../who.tsx";
import { DifferentialFlame } from "./flame.tsx";
import { Overlay } from "./overlay.tsx";
import { FALLBACK, type Settings } from "./ranges.tsx";
import { chance, perRun, ratio } from "./ratio.ts";
import { useRuns, type Run } from "./runs.ts";
import { typed } from "../typed.ts";

const CHANGED: Record<string, string> = { resolved: "resolved", new: "new", worse: "worse", better: "better", same: "same", absent: "absent", cannot_tell: "cannot tell" };
const KINDS: [string, string][] = [["function", "Functions"], ["driver", "Drivers"], ["module", "Modules"], ["process", "Processes"]];
/** Kinds of runs that a list offers. */
const MOST_RUNS = 100;
/** Runs whose lengths differ more are marked. */
const ALIKE = 1.2;

/** A and B of something, on the basis that is looked at: seconds of CPU, the same for each run, or processors on average. */
function sides(one: DiffEntity, data: Diff, basis: Settings["basis"], run: Run | null): [number, number] {
  const [a, b] = basis === "run" && run ? run.times : [1, 1];
  if (basis !== "second") return [(one.cpu_ns[0] ?? 0) / a, (one.cpu_ns[1] ?? 0) / b];
  const cores = (at: number) => (one.share[at] ?? 0) * Math.max(1, data.traces[at]?.cpus ?? 1);
  return [cores(0), cores(1)];
}

/** The largest change, in one sentence. */
function headline(data: Diff): string {
  const kinds = ["driver", "process"];
  const all = data.entities.filter((one) => kinds.includes(one.kind)).map((one) => ({ one, by: (one.cpu_ns[1] ?? 0) - (one.cpu_ns[0] ?? 0) }));
  all.sort((a, b) => Math.abs(b.by) - Math.abs(a.by));
  const first = all[0];
  const fresh = data.entities.filter((one) => one.kind === "driver" && one.changes[0]?.what === "new").map((one) => one.name);
  const gone = data.entities.filter((one) => one.kind === "driver" && one.changes[0]?.what === "gone").map((one) => one.name);
  const list = (names: string[]) => names.slice(0, 3).map(visible).join(", ");
  const parts = [first && first.by !== 0 ? `B spends ${duration(Math.abs(first.by))} ${first.by > 0 ? "more" : "less"} CPU in ${visible(first.one.name)}` : "A and B spend the same CPU time"];
  if (fresh.length > 0) parts.push(`${list(fresh)} ${fresh.length === 1 ? "is" : "are"} new`);
  if (gone.length > 0) parts.push(`${list(gone)} ${gone.length === 1 ? "is" : "are"} gone`);
  return parts.join("; ");
}

function Entities(props: { data: Diff }) {
  const { data } = props;
  const kept = setting<Settings>("compare", FALLBACK);
  const runs = useRuns();
  const run = runs?.chosen ?? null;
  const kind = kept.kind;
  // Where nothing was run in both, there is no such basis.
  const basis = kept.basis === "run" && !run ? "all" : kept.basis;
  const rows = data.entities.filter((one) => one.kind === kind);
  const delta = (one: DiffEntity) => {
    const [a, b] = sides(one, data, basis, run);
    return b - a;
  };
  rows.sort((a, b) => Math.abs(delta(b)) - Math.abs(delta(a)));
  const most = Math.max(1e-12, ...rows.map((one) => Math.abs(delta(one))));
  const largest = Math.max(0, ...rows.flatMap((one) => sides(one, data, basis, run)));
  const per = basis === "run" ? "/run" : "";
  const scale = basis !== "second" ? (scaleOf("ns", largest) ?? { factor: 1, unit: "ns", decimals: 0 }) : { factor: 1, unit: "cores", decimals: 2 };
  const change = (one: DiffEntity) => one.changes[0];
  const based = (one: DiffEntity) => (basis === "second" ? change(one) : perRun(change(one)?.per_run ?? change(one), basis === "run" ? run : null));
  /** New is new: no interval is asked. */
  const how = (one: DiffEntity) => {
    const what = change(one)?.what;
    const by = based(one);
    return what === "new" || what === "gone" ? what : by ? ratio(by) : "–";
  };
  const signed = (value: number) => `${value < 0 ? "−" : "+"}${scaled(Math.abs(value), scale)}`;
  const card = (row: number): Card | null => {
    const one = rows[row];
    if (!one) return null;
    const [a, b] = sides(one, data, "all", null);
    const [c, d] = sides(one, data, "second", null);
    const each = run && change(one)?.per_run ? ratio(perRun(change(one)?.per_run, run) ?? { ratio: null }) : null;
    const module = one.name.split("!")[0] ?? one.name;
    const filter = one.kind === "function" ? { kind: "frame" as const, value: one.name, label: one.name } : ["driver", "module"].includes(one.kind) ? { kind: "module" as const, value: one.name, label: one.name } : null;
    return {
      id: `compare ${one.kind} ${one.name}`,
      kind: `${one.kind}${change(one)?.what === "new" ? ", new in B" : change(one)?.what === "gone" ? ", gone in B" : ""}`,
      swatch: module,
      title: one.name,
      knows: module,
      facts: [["A, before", duration(a)], ["B, after", duration(b)], ["Cores in A", number(c)], ["Cores in B", number(d)], ["B / A, in all", change(one)?.per_run ? ratio(change(one)?.per_run ?? { ratio: null }) : how(one)], ["B / A, per second", change(one) ? ratio(change(one) ?? { ratio: null }) : "–"], ...(each ? [["B / A, per run", each] as [string, string]] : [])],
      parts: [{ title: "Is it chance?", body: <p>{change(one) ? chance(change(one)!) : "unknown"}</p> }],
      actions: [
        ...(filter ? [{ text: "Open stacks", primary: true, run: () => { addFilter(filter); look({ panel: "stacks" }); } }] : []),
        { text: "Differential flame", run: () => { set("stacks", { compare: true, tab: "flame" }); look({ panel: "stacks" }); } },
      ],
    };
  };
  return (
    <Box
      title="CPU time, by change"
      tools={
        <>
          <span class="segmented" role="group" aria-label="What is listed">
            {KINDS.map(([id, title]) => (
              <button type="button" key={id} aria-pressed={kind === id} onClick={() => set<Settings>("compare", { kind: id })}>
                {title}
              </button>
            ))}
          </span>
          <span class="grow" />
          <span class="segmented" role="group" aria-label="Basis">
            <button type="button" aria-pressed={basis === "all"} onClick={() => set<Settings>("compare", { basis: "all" })}>
              In all
            </button>
            <button type="button" aria-pressed={basis === "second"} onClick={() => set<Settings>("compare", { basis: "second" })}>
              Per second
            </button>
            <button
              type="button"
              aria-pressed={basis === "run"}
              disabled={!run}
              title={run ? "Divided by how often the same work ran" : "No program was started and no interval ended in both traces"}
              onClick={() => set<Settings>("compare", { basis: "run" })}
            >
              Per run
            </button>
          </span>
          {basis === "run" && run && (
            <select class="run" aria-label="What one run is" value={run.id} onChange={(event) => set<Settings>("compare", { run: event.currentTarget.value })}>
              {runs?.list.slice(0, MOST_RUNS).map((one) => (
                <option key={one.id} value={one.id}>
                  {one.title}
                </option>
              ))}
            </select>
          )}
        </>
      }
    >
      <Grid
        label="Programs, drivers, functions"
        most={12}
        columns={[
          { id: "name", title: KINDS.find(([id]) => id === kind)?.[1] ?? "Name", width: "minmax(120px, 3fr)" },
          { id: "a", title: "A", unit: scale.unit + per, number: true, width: "62px" },
          { id: "b", title: "B", unit: scale.unit + per, number: true, width: "62px" },
          { id: "d", title: "Δ", unit: scale.unit + per, number: true, width: "120px", doc: "B minus A" },
          { id: "r", title: "B / A (95 %)", number: true, width: "152px", doc: "B divided by A, with its interval: 95 of 100 times, all names of a kind are in theirs. Bursts make it wider" },
        ]}
        count={rows.length}
        card={card}
        text={(row, column) => {
          const one = rows[row];
          if (!one) return "";
          const [a, b] = sides(one, data, basis, run);
          return [visible(one.name), scaled(a, scale), scaled(b, scale), signed(b - a), how(one)][column] ?? "";
        }}
        raw={(row, column) => {
          const one = rows[row];
          if (!one) return null;
          const [a, b] = sides(one, data, basis, run);
          return [one.name, a / scale.factor, b / scale.factor, (b - a) / scale.factor, based(one)?.ratio ?? how(one)][column] ?? null;
        }}
        draw={(row, column) => {
          const one = rows[row];
          if (!one) return undefined;
          if (column === 0) {
            const [module, name] = one.name.includes("!") ? [one.name.split("!")[0] ?? "", one.name.slice(one.name.indexOf("!") + 1)] : [one.name, one.name];
            return (
              <span data-knows={one.name}>
                <Swatch name={module} />
                {visible(name)} {name !== module && <span class="muted">{visible(module)}</span>}
              </span>
            );
          }
          const by = delta(one);
          const sure = ["new", "gone"].includes(change(one)?.what ?? "") || based(one)?.significant;
          const tone = !sure ? "muted" : by > 0 ? "up" : "down";
          if (column === 3) {
            return (
              <span class="delta">
                <i class={tone} style={{ width: `${(Math.abs(by) / most) * 50}%` }} />
                <b class={tone}>{signed(by)}</b>
              </span>
            );
          }
          return column === 4 ? <span class={tone}>{["new", "gone"].includes(how(one)) ? <b>{how(one)}</b> : how(one)}</span> : undefined;
        }}
      />
      <p class="about">Gray: no more than chance explains. What was not there before is new.</p>
    </Box>
  );
}

function Interrupted(props: { data: Diff }) {
  const { interrupts } = props.data;
  if (interrupts.length === 0) return null;
  return (
    <Box title="DPCs and ISRs">
      <Grid
        label="DPCs and ISRs"
        most={10}
        columns={[
          { id: "class", title: "Class", width: "56px" },
          { id: "module", title: "Driver" },
          { id: "pa", title: "A", unit: "/s", number: true, width: "76px" },
          { id: "pb", title: "B", unit: "/s", number: true, width: "76px" },
          { id: "ma", title: "Mean A", unit: "µs", number: true, width: "84px" },
          { id: "mb", title: "Mean B", unit: "µs", number: true, width: "84px" },
          { id: "r", title: "B / A of means (95 %)", number: true, width: "170px" },
          { id: "ta", title: "Total A", unit: "s", number: true, width: "84px" },
          { id: "tb", title: "Total B", unit: "s", number: true, width: "84px" },
          { id: "tr", title: "B / A of time per second (95 %)", number: true, width: "200px", doc: "Counts and durations both vary" },
          { id: "oa", title: "Over limit A", number: true, width: "96px" },
          { id: "ob", title: "Over limit B", number: true, width: "96px" },
        ]}
        count={interrupts.length}
        text={(row, column) => {
          const one = interrupts[row];
          const [x, y] = one?.traces ?? [];
          if (!one || !x || !y) return "";
          const [mean, whole] = [one.mean_changes[0], one.changes[0]];
          const s = (ns: number) => number(ns / 1e9);
          return [one.class.toUpperCase(), visible(one.module), count(x.per_second), count(y.per_second), number(x.mean_ns / 1e3), number(y.mean_ns / 1e3), mean ? ratio(mean) : "–", s(x.total_ns), s(y.total_ns), whole ? (whole.what === "new" || whole.what === "gone" ? whole.what : ratio(whole)) : "–", count(x.over_limit), count(y.over_limit)][column] ?? "";
        }}
      />
    </Box>
  );
}

export function Whole() {
  const body = { trace: view.value.other?.trace ?? 0, other: view.value.trace };
  const answer = useAnswer(`diff ${JSON.stringify(body)}`, (signal) => ask("diff", body, signal));
  const data = answer.value;
  if (!data) return answer.error ? <Fault error={answer.error} /> : <Bones lines={8} />;
  const [a, b] = data.traces;
  const modules = data.modules[0];
  const lengths: [number, number] = [a?.duration_ns ?? 0, b?.duration_ns ?? 0];
  const apart = Math.max(...lengths) > ALIKE * Math.min(...lengths);
  const busy = (side: Diff["traces"][number] | undefined) => (side?.busy_share != null ? percent(side.busy_share) : "unknown");
  return (
    <>
      <Box title={headline(data)}>
        {(apart || modules?.together) && (
          <p class="warn-bar" role="note" data-part="lengths">
            <Severity name="warning" />
            <span>
              {apart && `A lasted ${duration(lengths[0])}, B ${duration(lengths[1])}: if both did the same work, compare in all; if they ran on and on, per second; if one did more of the same work, per run. `}
              {modules?.together && <strong>Several things changed at once: which of them helped cannot be determined from these two traces.</strong>}
            </span>
          </p>
        )}
        <p>
          Busy: {busy(a)} in A, {busy(b)} in B. {!apart && `Both lasted about ${duration(lengths[0])}: totals compare directly.`}
        </p>
        {/* How long both lasted stands above. */}
        {data.caveats.filter((caveat) => !apart || !/ lasts /.test(caveat)).map((caveat) => (
          <p class="caveat" key={caveat} data-part="caveat">
            <strong>But</strong> {visible(caveat)}.
          </p>
        ))}
        {modules && modules.added.length + modules.removed.length + modules.replaced.length > 0 && (
          <p data-part="modules">
            {modules.removed.length > 0 && <>Gone: <span class="name">{modules.removed.slice(0, 12).map(visible).join(", ")}</span>. </>}
            {modules.added.length > 0 && <>New: <span class="name">{modules.added.slice(0, 12).map(visible).join(", ")}</span>. </>}
            {modules.replaced.length > 0 && <>Other versions: {count(modules.replaced.length)}. </>}
          </p>
        )}
      </Box>
      <div class="compared">
        <Entities data={data} />
        <DifferentialFlame lengths={lengths} />
      </div>
      <Box title="Findings, A to B">
        <ul class="verdicts">
          {data.verdicts.map((one) => (
            <li key={`${one.id} ${one.culprit}`}>
              <span class={`changed ${one.changes[0]}`}>{CHANGED[one.changes[0] ?? ""] ?? one.changes[0]}</span> <Badge name={one.severity} />{" "}
              <span>
                {visible(one.headline)} <code class="muted">{one.id}</code>
              </span>
            </li>
          ))}
        </ul>
      </Box>
      <Overlay />
      <Interrupted data={data} />
      <p class="about">
        The same in a terminal:{" "}
        <button type="button" class="small" onClick={() => void copy(`etwhy diff ${typed(a?.label ?? "")} ${typed(b?.label ?? "")}`, "command")}>
          Copy command
        </button>
      </p>
    </>
  );
}
