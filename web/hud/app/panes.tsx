/** The panel that is shown, and a second one to the right of it: both count the same part, and one selection holds for both. */

import { useState } from "preact/hooks";
import { Nothing, whyEmpty } from "../parts/box.tsx";
import { Guarded } from "../parts/guarded.tsx";
import { Measures } from "../parts/measures.tsx";
import { look, schema, view } from "../state/view.ts";
import { ORDER } from "./order.ts";
import type { Panel } from "./panel.ts";

function Pane({ panel, side }: { panel: Panel; side: string }) {
  const empty = schema.value ? whyEmpty(panel.tables) : null;
  const own = panel.id === "overview";
  return (
    <div class={own ? "panel first" : `panel ${side}`} key={panel.id} data-pane={panel.id}>
      {!empty && !own && <Measures panel={panel} />}
      {empty ? (
        <div class="box">
          <Nothing why={empty.why} record={empty.record} />
        </div>
      ) : (
        <Guarded keeps={panel.id} title={panel.title}>
          <panel.View />
        </Guarded>
      )}
    </div>
  );
}

/** The second panel, if there is one that can stand there. */
export const besideOf = (panel: Panel): Panel | null =>
  panel.id === "overview" ? null : (ORDER.find((one) => one.id === view.value.beside && one.id !== panel.id && one.id !== "overview") ?? null);

/** Panels with something in them that can stand beside this one. */
export const fitting = (panel: Panel): Panel[] => ORDER.filter((one) => one.id !== panel.id && one.id !== "overview" && schema.value && whyEmpty(one.tables) === null);

export function Panes({ panel }: { panel: Panel }) {
  // Where there is no room for both, one is in front.
  const [front, setFront] = useState(0);
  const beside = besideOf(panel);
  if (!beside) return <Pane panel={panel} side="" />;
  return (
    <>
      <div class="pane-tabs" role="group" aria-label="Panels side by side">
        {[panel, beside].map((one, at) => (
          <button type="button" key={one.id} class="pane-tab" aria-pressed={front === at} onClick={() => setFront(at)}>
            {one.title}
          </button>
        ))}
        <span class="grow" />
        <button type="button" class="small" onClick={() => look({ panel: beside.id, beside: panel.id })}>
          Swap sides
        </button>
        <button type="button" class="small" aria-label={`Close ${beside.title}`} onClick={() => look({ beside: null })}>
          ✕
        </button>
      </div>
      <div class={`side-by-side front-${front}`}>
        <Pane key={panel.id} panel={panel} side="left" />
        <Pane key={beside.id} panel={beside} side="right" />
      </div>
    </>
  );
}
