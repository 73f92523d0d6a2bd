/** The verdict of what is selected: the same rules over that part of the trace, as `etwhy why --from --to` asks them. */

import { useEffect, useRef, useState } from "preact/hooks";
import { span, visible } from "../base/value.ts";
import { Fault } from "../parts/box.tsx";
import { refresh, shownTrace } from "../state/opened.ts";
import { part, scope, view } from "../state/view.ts";
import { ask } from "../wire/api.ts";
import type { PartVerdict } from "../wire/types.ts";

interface State {
  key: string;
  found: PartVerdict | null;
  error: string | null;
  busy: boolean;
}

function Found({ found }: { found: PartVerdict }) {
  const hits = found.report.findings.filter((one) => one.hits.length > 0);
  const named = new Set(found.named.map((one) => one.finding));
  const wide = new Set(found.machine_wide);
  const shown = found.process ? hits.filter((one) => named.has(one.id) || wide.has(one.id)) : hits;
  return (
    <>
      <h2>{visible(found.report.sentence)}</h2>
      {found.process && (
        <p>
          {found.named.length === 0 ? "No finding names" : "Findings that name"} {visible(found.process.name)} ({found.process.pid}).
        </p>
      )}
      <ul>
        {shown.map((one) => (
          <li key={one.id}>
            {visible(one.hits[found.named.find((name) => name.finding === one.id)?.hits[0] ?? 0]?.headline ?? one.title)}
            {found.process && wide.has(one.id) && " (of the whole machine: the process filter does not apply)"}
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p>No pattern was found in this part.</p>}
      {found.unused.length > 0 && <p class="about">Filters by {found.unused.join(", ")} do not apply to a verdict.</p>}
      <p class="about">What ends in this part counts as a whole; losses and sessions are of the whole trace.</p>
    </>
  );
}

export function Within() {
  const { trace, range, filters } = part.value;
  const process = filters.filter((one) => one.kind === "process" && !one.not);
  const key = JSON.stringify([trace, range, process]);
  const [state, setState] = useState<State | null>(null);
  const abort = useRef<AbortController | null>(null);
  const stop = () => {
    abort.current?.abort();
    setState(null);
  };
  useEffect(() => stop, [key]);
  const busy = state?.busy === true;
  // The server tells how far it is only if it is asked.
  useEffect(() => {
    if (!busy) return;
    const timer = setInterval(() => void refresh(), 300);
    return () => clearInterval(timer);
  }, [busy]);
  if (!scope.value && process.length === 0) return null;
  const what = range ? `the selected ${span(range)}` : visible(view.value.filters.find((one) => one.kind === "process" && !one.not)?.label ?? "the process");
  const run = () => {
    const controller = new AbortController();
    abort.current = controller;
    setState({ key, found: null, error: null, busy: true });
    ask("verdict", part.value, controller.signal).then(
      (found) => !controller.signal.aborted && setState({ key, found, error: null, busy: false }),
      (error: unknown) => !controller.signal.aborted && setState({ key, found: null, error: error instanceof Error ? error.message : String(error), busy: false }),
    );
  };
  const one = shownTrace.value;
  const share = one && one.total > 0 ? Math.floor((100 * one.done) / one.total) : null;
  return (
    <section class="within" aria-label="Verdict of the selection" aria-live="polite">
      {!state && (
        <button type="button" onClick={run}>
          Find the cause within {what}
        </button>
      )}
      {state && (
        <p>
          {busy ? `Asking the same of ${what}${one?.doing === "reading" && share !== null ? `: reading ${share} %` : ""} … ` : `For ${what}: `}
          <button type="button" class="small" onClick={stop}>
            {busy ? "Stop" : "Back to the whole trace"}
          </button>
        </p>
      )}
      {state?.found && <Found found={state.found} />}
      <Fault error={state?.error ?? null} />
    </section>
  );
}
