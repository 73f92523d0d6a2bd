/** What is selected can be asked for its own verdict, which then stands in the place of that of the trace: this says so, and takes it back. */

import { useEffect } from "preact/hooks";
import { span, visible } from "../base/value.ts";
import { copy, Fault } from "../parts/box.tsx";
import { refresh, shownTrace } from "../state/opened.ts";
import { inForce, scope, trace, view, type Filter } from "../state/view.ts";
import { forgetPart, seek, seekError, seeking, stopSeeking } from "../state/within.ts";
import type { KnownProcess, PartVerdict } from "../wire/types.ts";
import { typed } from "../parts/typed.ts";

/** What of it must be known. */
function Notes({ found }: { found: PartVerdict }) {
  const wide = found.report.findings.filter((one) => found.machine_wide.includes(one.id));
  const list = (all: KnownProcess[]) => all.map((one) => `${visible(one.name)} (${one.pid})`).join(" or ");
  const [wanted, excluded] = [list(found.processes), list(found.excluded)];
  const whom = excluded ? (wanted ? `${wanted}, not ${excluded}` : `others than ${excluded}`) : wanted;
  return (
    <>
      {whom && (
        <p>
          {found.named.length === 0 ? "No finding names" : "Findings that name"} {whom}
          {wide.length > 0 && `. Findings about the whole machine stay: ${wide.map((one) => one.title).join(", ")}`}.
        </p>
      )}
      {found.unused.length > 0 && <p>Filters by {found.unused.join(", ")} do not apply to a verdict.</p>}
      {found.range && <p>What ends in this part counts as a whole; losses and sessions are of the whole trace.</p>}
    </>
  );
}

const seconds = (ns: number) => `${(ns / 1e9).toFixed(9).replace(/0+$/, "").replace(/\.$/, "")}s`;

/** Processes that filters name, in words. */
function named(filters: Filter[]): string {
  const list = (not: boolean) => filters.filter((one) => (one.not ?? false) === not).map((one) => visible(one.label)).join(" or ");
  const [wanted, excluded] = [list(false), list(true)];
  return wanted || `the trace without ${excluded}`;
}

export function Within() {
  const busy = seeking.value;
  // The server reports progress only when it is asked.
  useEffect(() => {
    if (!busy) return;
    const timer = setInterval(() => void refresh(), 300);
    return () => clearInterval(timer);
  }, [busy]);
  const processes = view.value.filters.filter((one) => one.kind === "process");
  const range = scope.value;
  if (!range && processes.length === 0) return null;
  const what = range ? `the selected ${span(range)}` : named(processes);
  const one = shownTrace.value;
  const share = one && one.total > 0 ? Math.floor((100 * one.done) / one.total) : null;
  const now = inForce.value;
  const command = range && `etwhy why ${typed(trace.value?.name ?? "")} --from ${seconds(range[0])} --to ${seconds(range[1])}`;
  return (
    <section class="within" aria-label="Verdict of the selection" aria-live="polite">
      {!busy && !now && (
        <>
          <button type="button" onClick={() => void seek()}>
            Find the cause within {what}
          </button>
          <span class="about">The verdict below is of the whole trace.</span>
        </>
      )}
      {busy && (
        <>
          <span>Finding the cause within {what}{one?.doing === "reading" && share !== null ? `: reading ${share} %` : ""} …</span>
          <button type="button" class="small" onClick={stopSeeking}>
            Stop
          </button>
        </>
      )}
      {!busy && now && (
        <>
          <b>Verdict, findings and bill of {what}</b>
          <button type="button" class="small" onClick={forgetPart}>
            Back to the whole trace
          </button>
          {command && (
            <button type="button" class="small" title={command} onClick={() => void copy(command, "command")}>
              Copy as command
            </button>
          )}
          <Notes found={now.found} />
        </>
      )}
      <Fault error={seekError.value} />
    </section>
  );
}
