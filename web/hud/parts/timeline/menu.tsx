/** Which lanes are shown and in which order. */

import { set } from "../../state/view.ts";
import { isShown, type Settings } from "./layout.ts";
import type { Lane, Lanes } from "./model.ts";

export function LaneMenu(props: { lanes: Lane[]; empty: Lanes["empty"]; settings: Settings; panel: string }) {
  const { settings } = props;
  const ids = new Map<string, string>();
  const on = new Map<string, boolean>();
  for (const lane of props.lanes) on.set(lane.kind === "cpu" ? "cpu" : lane.id, isShown(lane, settings, props.panel));
  const without = (list: string[], id: string) => list.filter((one) => one !== id);
  for (const lane of props.lanes) ids.set(lane.kind === "cpu" ? "cpu" : lane.id, lane.kind === "cpu" ? "Processors" : lane.title);
  const toggle = (list: string[], id: string) => (list.includes(id) ? list.filter((one) => one !== id) : [...list, id]);
  return (
    <div class="tl-menu" role="group" aria-label="Lanes">
      {[...ids].map(([id, title]) => (
        <div key={id}>
          <label>
            <input
              type="checkbox"
              checked={on.get(id) ?? false}
              onChange={() => set<Settings>("timeline", on.get(id) ? { hidden: [...without(settings.hidden, id), id], shown: without(settings.shown, id) } : { hidden: without(settings.hidden, id), shown: [...without(settings.shown, id), id] })}
            />{" "}
            {title}
          </label>
          {id !== "cpu" && (
            <button
              type="button"
              class="small"
              aria-pressed={settings.pinned.includes(id)}
              aria-label={`Pin ${title} to the top`}
              title="Pin to the top; the one pinned first is highest"
              onClick={() => set<Settings>("timeline", { pinned: toggle(settings.pinned, id) })}
            >
              ↑
            </button>
          )}
        </div>
      ))}
      {(settings.order.length > 0 || Object.keys(settings.heights).length > 0) && (
        <button type="button" class="small" onClick={() => set<Settings>("timeline", { order: [], heights: {} })}>
          Usual order and heights
        </button>
      )}
      {props.empty.map((one) => (
        <p key={one.kind} class="muted">
          No lane for {one.about}: {one.why ?? "not in this trace."} {!one.why?.includes(one.recording) && <code>{one.recording}</code>}
        </p>
      ))}
    </div>
  );
}
