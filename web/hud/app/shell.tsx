/** The frame: header, navigation, timeline, the panel. */

import { Measures } from "../parts/measures.tsx";
import { useEffect } from "preact/hooks";
import { bind } from "../base/keys.ts";
import { choose, chosen, THEMES } from "../base/theme.ts";
import { span } from "../base/value.ts";
import { Nothing, whyEmpty } from "../parts/box.tsx";
import { nameOfPanel } from "../parts/finding_card.tsx";
import { Hints } from "../parts/hint.tsx";
import { Live } from "../parts/live.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { ALL } from "../panels/index.ts";
import { settling, toTrace } from "../state/identity.ts";
import { dismiss, notes } from "../state/notes.ts";
import { failure, session } from "../state/session.ts";
import { back, look, removeFilter, schema, scope, trace, view, whole, zoomTo } from "../state/view.ts";
import { Loading, Offer } from "./loading.tsx";
import { Menu } from "./menu.tsx";
import { Sending } from "./open.tsx";
import { Omnibox } from "./omnibox.tsx";
import type { Panel } from "./panel.ts";
import { Within } from "./within.tsx";

const GROUPS: Record<Panel["group"], string> = { look: "", cpu: "CPU", wait: "Waiting", io: "Input and output", memory: "Memory", system: "System", tools: "Tools" };

const byGroup = Object.keys(GROUPS).map((group) => ({
  group: group as Panel["group"],
  panels: ALL.filter((panel) => panel.group === group).sort((a, b) => a.order - b.order || a.title.localeCompare(b.title)),
}));
/** All panels as the navigation has them. */
export const ORDER: Panel[] = byGroup.flatMap((one) => one.panels);
for (const panel of ORDER) nameOfPanel(panel.id, panel.title, panel.tables);

const current = (): Panel | undefined => ORDER.find((panel) => panel.id === view.value.panel) ?? ORDER[0];

function Navigation() {
  const known = schema.value;
  return (
    <nav aria-label="Panels">
      {byGroup
        .filter((one) => one.panels.length > 0)
        .map(({ group, panels }) => (
          <div key={group}>
            {GROUPS[group] && <h2>{GROUPS[group]}</h2>}
            <ul>
              {panels.map((panel) => {
                const empty = known ? whyEmpty(panel.tables) !== null : false;
                return (
                  <li key={panel.id}>
                    <button
                      type="button"
                      class={empty ? "empty" : ""}
                      aria-current={current()?.id === panel.id ? "page" : undefined}
                      title={empty ? `${panel.about}. Not in this trace.` : panel.about}
                      onClick={() => look({ panel: panel.id })}
                    >
                      {panel.title}
                    </button>
                  </li>
                );
              })}
            </ul>
          </div>
        ))}
    </nav>
  );
}

function Crumbs() {
  const { filters, past, selection, zoom } = view.value;
  return (
    <div class="crumbs" role="group" aria-label="Range and filters">
      <button type="button" class="small" disabled={past.length === 0 && !selection} onClick={back} title="Back to the range before (Backspace)">
        ↶ Undo
      </button>
      <button type="button" class="small" aria-pressed={zoom === null} onClick={() => zoomTo(null)} title="Show the whole trace (0)">
        Whole trace
      </button>
      {zoom && <span class="crumb">{span(zoom)}</span>}
      {selection && (
        <span class="crumb selected">
          selected {span(selection)}{" "}
          <button type="button" class="small" onClick={() => zoomTo(selection)} title="Zoom to the selection (z)">
            Zoom
          </button>
          <button type="button" class="small" aria-label="Drop the selection" onClick={() => look({ selection: null })}>
            ✕
          </button>
        </span>
      )}
      {filters.map((filter) => (
        <span class="crumb filter" key={`${filter.kind} ${filter.value ?? filter.label} ${filter.not}`}>
          {filter.not ? "not " : ""}
          {filter.kind} {filter.label}{" "}
          <button type="button" class="small" aria-label={`Drop the filter ${filter.kind} ${filter.label}`} onClick={() => removeFilter(filter)}>
            ✕
          </button>
        </span>
      ))}
    </div>
  );
}

function Header() {
  const all = session.value?.traces ?? [];
  return (
    <header class="top">
      <span class="brand">etwhy</span>
      <label>
        <span class="hidden-text">Trace</span>
        <select value={view.value.trace} onChange={(event) => void toTrace(Number(event.currentTarget.value))}>
          {all.map((one) => (
            <option key={one.trace} value={one.trace}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <Crumbs />
      <Omnibox panels={ORDER} />
      <div class="tools">
        <Menu />
        <label>
          <span class="hidden-text">Theme</span>
          <select value={chosen.value} onChange={(event) => choose(event.currentTarget.value as (typeof THEMES)[number])}>
            {THEMES.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
    </header>
  );
}

/** What must be known before the numbers are read. */
function Notes() {
  if (notes.value.length === 0) return null;
  return (
    <div class="notes" role="alert">
      <ul>
        {notes.value.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      <button type="button" class="small" onClick={dismiss}>
        Dismiss
      </button>
    </div>
  );
}

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
      { key: "Backspace", about: "undo zoom or selection", run: back },
      { key: "0", about: "the whole trace", run: () => zoomTo(null) },
      { key: "z", about: "zoom to the selection", run: () => view.value.selection && zoomTo(view.value.selection) },
    ]);
  }, []);
  if (failure.value) return <p class="fault" role="alert">{failure.value}</p>;
  const empty = panel && schema.value ? whyEmpty(panel.tables) : null;
  const ready = trace.value?.stage === "ready" && schema.value && !settling.value;
  return (
    <>
      <a class="skip" href="#panel" onClick={(event) => { event.preventDefault(); document.getElementById("panel")?.focus(); }}>
        To the panel
      </a>
      <Header />
      <Notes />
      <Offer />
      <Sending />
      <div class="body">
        <Navigation />
        <main id="panel" tabIndex={-1} aria-label={panel?.title} data-panel={panel?.id} data-scope={JSON.stringify(scope.value ?? whole.value)}>
          {ready && <Timeline />}
          {ready && panel?.id === "overview" && <Within />}
          {ready && panel && (
            <div class="panel" key={panel.id}>
              {!empty && <Measures panel={panel} />}
              {empty ? <Nothing why={empty.why} record={empty.record} /> : <panel.View />}
            </div>
          )}
          {!ready && <Loading />}
        </main>
      </div>
      <Hints />
      <Live />
    </>
  );
}
