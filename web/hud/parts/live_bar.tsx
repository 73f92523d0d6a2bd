/** A trace that is followed: where it is, since when findings last, and a look back. */

import { count, duration } from "../../src/lib/format.ts";
import { counted, visible } from "../base/value.ts";
import { foundIn, lookAt } from "../state/finding.ts";
import { inspect } from "../state/inspect.ts";
import { clock, followed, pause } from "../state/live.ts";
import { note } from "../state/notes.ts";
import { report, scope, trace, view, whole } from "../state/view.ts";
import { save } from "../wire/api.ts";
import type { Live, LiveEpisode } from "../wire/types.ts";
import { Severity } from "./icons.tsx";
import { typed } from "./typed.ts";

/** Saves what is selected, else what is shown, as a trace. */
export function savePart(): void {
  const range = scope.value ?? whole.value;
  const [from, to] = range.map((ns) => (ns / 1e9).toFixed(3));
  save("part_file", { trace: view.value.trace, range }).then(
    (file) => note(`${file}: saved: whole buffers, with those elsewhere that say who is who. Read it with etwhy why ${typed(file)} --from ${from}s --to ${to}s`),
    (error: unknown) => note(error instanceof Error ? error.message : String(error)),
  );
}

/** `the last 3.00 s`, `60 s until 4.10 s ago`. */
const rangeOf = (ns: number, age: number) => (age <= 0 ? `the last ${duration(ns)}` : `${duration(ns)} until ${duration(age)} ago`);

function began(one: LiveEpisode, live: Live): string {
  if (one.over_ms !== null) return `began ${clock(one.began_ms, live)}, over after ${duration(one.lasted_ns)}`;
  const quiet = one.quiet_ms === null ? "" : `, not since ${clock(one.quiet_ms, live)}`;
  return `began ${clock(one.began_ms, live)}, ${duration(Math.max(0, live.now_ms - one.began_ms) * 1e6)} ago${quiet}; in ${rangeOf(one.range_ns, one.age_ns)}`;
}

function Episode({ one, live }: { one: LiveEpisode; live: Live }) {
  const here = report.value && foundIn(report.value).find((each) => each.finding.id === one.id);
  return (
    <li class={one.over_ms === null ? "" : "over"} data-episode={one.id} data-range={one.range}>
      <Severity name={one.severity} />
      <span class="when">{began(one, live)}</span>
      {here ? (
        <button type="button" class="plain cut" title={visible(one.headline)} onClick={() => { inspect(null); lookAt(here.id); }}>
          {visible(one.headline)}
        </button>
      ) : (
        <span class="cut">{visible(one.headline)}</span>
      )}
    </li>
  );
}

/** Findings as they came and went; those before the window can be read in the file. */
export function Episodes() {
  const live = followed.value;
  if (!live) return null;
  const all = [...live.lasting, ...live.over];
  return (
    <section class="episodes" aria-label="Findings as they came and went">
      {all.length === 0 && "Nothing was found yet."}
      <ul>
        {all.map((one) => (
          <Episode key={`${one.id} ${one.began_ms}`} one={one} live={live} />
        ))}
      </ul>
    </section>
  );
}

export function LiveBar() {
  const live = followed.value;
  if (!live || !trace.value) return null;
  const state = live.ended ? "Ended" : live.paused ? "Paused" : "Live";
  const busy = (percent: number | null) => (percent === null ? "" : `${Math.round(percent)} % busy, `);
  const last = live.last_ns === null ? "" : `the last ${duration(live.last_ns)}: ${busy(live.last_busy_percent)}`;
  const late = live.late_buffers > 0 ? `, ${count(live.late_buffers)} buffers came late` : "";
  return (
    <section class="live-bar" aria-label="Following" data-live={state.toLowerCase()} data-window={live.number}>
      <strong class={live.paused || live.ended ? "" : "now"}>{state}</strong>
      <span>
        {clock(live.now_ms, live)}, {last}
        {rangeOf(live.window_ns, Math.max(0, live.now_ms - live.window_end_ms) * 1e6)}: {busy(live.busy_percent)}
        {counted(live.events, "event")}
        <span class="faint">
          {" "}
          ({duration(live.cost_ms * 1e6)} to read{late})
        </span>
      </span>
      {live.paused && !live.ended && <span class="about">Following goes on.</span>}
      {(!live.ended || live.paused) && (
        <button type="button" class="small" aria-pressed={live.paused} onClick={() => pause(!live.paused)}>
          {live.paused ? "Go on" : "Pause"}
        </button>
      )}
      <button type="button" class="small" onClick={savePart}>
        Save {scope.value ? "the selection" : "this window"} as a trace
      </button>
    </section>
  );
}
