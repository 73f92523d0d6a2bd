/**
 * Before and after: two traces as a whole (findings, processes, drivers, with the intervals of their ratios), or two ranges of any
 * table, divided by their length.
 */

import { useEffect } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { span, visible } from "../base/value.ts";
import { Box, Nothing } from "../parts/box.tsx";
import { FALLBACK, Ranges, type Settings } from "../parts/compare/ranges.tsx";
import { Whole } from "../parts/compare/whole.tsx";
import { swap } from "../state/identity.ts";
import { session } from "../state/session.ts";
import { look, scope, set, setting, trace, view, whole } from "../state/view.ts";

function Sides() {
  const traces = session.value?.traces ?? [];
  const other = view.value.other;
  const here = scope.value ?? whole.value;
  return (
    <div class="sides">
      <span>
        <b class="ab">A</b> before{" "}
        <select
          aria-label="Trace to compare with"
          value={other ? other.trace : ""}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            look({ other: chosen === "" ? null : { trace: Number(chosen), range: null } });
          }}
        >
          <option value="">choose …</option>
          {traces.map((one) => (
            <option key={one.trace} value={one.trace}>
              {visible(one.name)}
              {one.trace === view.value.trace ? " (this trace, another range)" : ""}
            </option>
          ))}
        </select>{" "}
        <span class="muted">{other && (other.range ? span(other.range) : "all of it")}</span>
      </span>
      <span>
        <b class="ab b">B</b> after <b>{visible(trace.value?.name ?? "")}</b> <span class="muted">{scope.value ? span(here) : "all of it"}</span>
      </span>
      {(scope.value || !other) && <button type="button" class="small" disabled={!scope.value} onClick={() => look({ other: { trace: other?.trace ?? view.value.trace, range: scope.value } })} title="Takes the present selection as A; then select another range for B">
        Take this range as A
      </button>}
      {other?.range && (
        <button type="button" class="small" onClick={() => look({ other: { ...other, range: null } })}>
          All of A
        </button>
      )}
      {other && (
        <button type="button" class="small" onClick={swap}>
          Swap <kbd>x</kbd>
        </button>
      )}
    </div>
  );
}

export function Compare() {
  const { way } = setting<Settings>("compare", FALLBACK);
  const other = view.value.other;
  const same = other?.trace === view.value.trace;
  const shown = same ? "ranges" : way;
  useEffect(() => bind("Compare", [{ key: "x", about: "swap A and B", run: swap }]), []);
  return (
    <>
      <Box
        title="Compare"
        tools={
          <>
            <Sides />
            <span class="grow" />
            {other && !same && (
              <span class="segmented" role="group" aria-label="What is compared">
                <button type="button" aria-pressed={shown === "whole"} onClick={() => set<Settings>("compare", { way: "whole" })}>
                  Whole traces
                </button>
                <button type="button" aria-pressed={shown === "ranges"} onClick={() => set<Settings>("compare", { way: "ranges" })}>
                  Ranges, any table
                </button>
              </span>
            )}
          </>
        }
      >
        {!other && (
          <Nothing why="Choose A: another trace, or a range of this one. For another trace, open it in the menu, or start with both: `etwhy serve BEFORE.etl AFTER.etl`. For a range, select it on the time axis, take it as A, then select the range to compare it with." />
        )}
      </Box>
      {other && (shown === "whole" ? <Whole /> : <Ranges />)}
    </>
  );
}
