/** The bar at the top: which trace, what part of it, search, undo, compare, share. */

import { lasting, span, visible } from "../base/value.ts";
import { Icon, Logo } from "../parts/icons.tsx";
import { toTrace } from "../state/identity.ts";
import { canRedo, canUndo, redo, undo } from "../state/history.ts";
import { session } from "../state/session.ts";
import { look, removeFilter, trace, view, worded, zoomTo } from "../state/view.ts";
import { Menu } from "./menu.tsx";
import { Omnibox } from "./omnibox.tsx";
import { ORDER } from "./order.ts";
import { listed } from "./rail.tsx";

function Drop(props: { label: string; run: () => void }) {
  return (
    <button type="button" aria-label={props.label} title={props.label} onClick={props.run}>
      ×
    </button>
  );
}

function Crumbs() {
  const { filters, selection, zoom } = view.value;
  return (
    <div class="crumbs" role="group" aria-label="Range and filters">
      <button type="button" class="whole" aria-pressed={zoom === null} onClick={() => zoomTo(null)} title="Show the whole trace (0)">
        Whole trace
      </button>
      {zoom && (
        <span class="crumb">
          {span(zoom)}
          <Drop label="Show the whole trace" run={() => zoomTo(null)} />
        </span>
      )}
      {selection && (
        <span class="crumb selected">
          {span(selection)}
          <button type="button" onClick={() => zoomTo(selection)} title="Zoom to the selection (z)">
            Zoom
          </button>
          <Drop label="Drop the selection" run={() => look({ selection: null })} />
        </span>
      )}
      {worded(filters).map(({ filter, text }) => (
        <span class="crumb filter" key={`${filter.kind} ${filter.value ?? filter.label} ${filter.not}`}>
          {text}
          <Drop label={`Drop the filter ${filter.kind} ${filter.label}`} run={() => removeFilter(filter)} />
        </span>
      ))}
    </div>
  );
}

export function Top() {
  const all = session.value?.traces ?? [];
  const length = trace.value ? trace.value.last_ns - trace.value.first_ns : 0;
  return (
    <header class="top">
      <button type="button" class="icon-button menu-button" aria-label="Panels" aria-expanded={listed.value} onClick={() => (listed.value = !listed.value)}>
        <Icon name="panels" />
      </button>
      <span class="logo">
        <Logo />
      </span>
      <span class="trace-pick">
        <label>
          <span class="hidden-text">Trace</span>
          <select value={view.value.trace} onChange={(event) => void toTrace(Number(event.currentTarget.value))}>
            {all.map((one) => (
              <option key={one.trace} value={one.trace}>
                {visible(one.name)}
              </option>
            ))}
          </select>
        </label>
        {length > 0 && <span class="faint">{lasting(length)}</span>}
      </span>
      <Crumbs />
      <Omnibox panels={ORDER} />
      <div class="tools">
        <button type="button" class="icon-button wide-only" aria-label="Undo" title="Undo (Ctrl+Z)" disabled={!canUndo()} onClick={undo}>
          <Icon name="undo" size={16} />
        </button>
        <button type="button" class="icon-button wide-only" aria-label="Redo" title="Redo (Ctrl+Shift+Z)" disabled={!canRedo()} onClick={redo}>
          <Icon name="redo" size={16} />
        </button>
        <button type="button" class="compare wide-only" aria-label="Compare" title="Compare with another trace or range" aria-pressed={view.value.panel === "compare"} onClick={() => look({ panel: "compare" })}>
          <Icon name="compare" size={14} />
          <span class="label">Compare</span>
        </button>
        <Menu />
      </div>
    </header>
  );
}
