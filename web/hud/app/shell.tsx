/** The frame: bar at the top, rail, the panel in the middle, inspector, status. */

import { useEffect } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { visible } from "../base/value.ts";
import { Guarded } from "../parts/guarded.tsx";
import { Hints } from "../parts/hint.tsx";
import { Live } from "../parts/live.tsx";
import { LiveBar } from "../parts/live_bar.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { redo, undo } from "../state/history.ts";
import { settling } from "../state/identity.ts";
import { dismiss, notes } from "../state/notes.ts";
import { failure } from "../state/session.ts";
import { inForce, look, schema, scope, trace, view, whole, zoomTo } from "../state/view.ts";
import { writing } from "../state/writing.ts";
import { Inspector } from "./inspector.tsx";
import { Loading, Offer } from "./loading.tsx";
import { Sending } from "./open.tsx";
import { onDemand } from "./on_demand.tsx";
import { DIGITS, ORDER } from "./order.ts";
import type { Panel } from "./panel.ts";
import { Panes } from "./panes.tsx";
import { Rail } from "./rail.tsx";
import { Status } from "./status.tsx";
import { Top } from "./top.tsx";
import { VerdictBar } from "./verdict_bar.tsx";
import { Within } from "./within.tsx";

const Writing = onDemand((more) => more.Writing);

const current = (): Panel | undefined => ORDER.find((panel) => panel.id === view.value.panel) ?? ORDER[0];

/** What must be known before the numbers are read. */
function Notes() {
  if (notes.value.length === 0) return null;
  return (
    <div class="notes" role="alert">
      <ul>
        {notes.value.map((text) => (
          <li key={text}>{visible(text)}</li>
        ))}
      </ul>
      <button type="button" class="small" onClick={dismiss}>
        Dismiss
      </button>
    </div>
  );
}

const Axis = (props: { panel: Panel }) => (
  <Guarded keeps="timeline" title="The time axis">
    <Timeline panel={props.panel} />
  </Guarded>
);

export function Shell() {
  const panel = current();
  useEffect(() => {
    const step = (by: number) => {
      const at = ORDER.findIndex((one) => one.id === current()?.id);
      const next = ORDER[(at + by + ORDER.length) % ORDER.length];
      if (next) look({ panel: next.id });
    };
    return bind("Everywhere", [
      { key: "]", about: "next panel", run: () => step(1) },
      { key: "[", about: "previous panel", run: () => step(-1) },
      { key: "Ctrl+z", about: "undo: zoom, selection, filters, panel, settings", run: undo },
      { key: "Ctrl+Shift+z", about: "redo", run: redo },
      { key: "Backspace", about: "undo", run: undo },
      { key: "n", about: "notes on the time axis", run: () => void (writing.value = "note") },
      { key: "\\", about: "close the second panel", run: () => look({ beside: null }) },
      { key: "0", about: "the whole trace", run: () => zoomTo(null) },
      { key: "z", about: "zoom to the selection", run: () => view.value.selection && zoomTo(view.value.selection) },
      ...DIGITS.map((id, at) => ({
        key: String(at + 1),
        about: ORDER.find((one) => one.id === id)?.title ?? id,
        run: () => look({ panel: id }),
      })),
    ]);
  }, []);
  if (failure.value) return <p class="fault" role="alert">{failure.value}</p>;
  const ready = trace.value?.stage === "ready" && schema.value && !settling.value;
  const own = panel?.id === "overview";
  return (
    <>
      <a class="skip" href="#panel" onClick={(event) => { event.preventDefault(); document.getElementById("panel")?.focus(); }}>
        To the panel
      </a>
      <Top />
      <Notes />
      <Offer />
      <Sending />
      <div class="body">
        <Rail />
        <main id="panel" tabIndex={-1} aria-label={panel?.title} data-panel={panel?.id} data-scope={JSON.stringify(scope.value ?? whole.value)}>
          {ready && <LiveBar />}
          {ready && panel && !own && <VerdictBar panel={panel} />}
          {ready && panel && !own && <Axis panel={panel} />}
          {ready && (own || inForce.value) && <Within />}
          {ready && panel && <Panes panel={panel} />}
          {!ready && <Loading />}
          {panel && trace.value?.stage === "verdict" && <Axis panel={panel} />}
          <Hints />
        </main>
        {ready && <Inspector />}
      </div>
      <Status />
      {writing.value && <Writing />}
      <Live />
    </>
  );
}
