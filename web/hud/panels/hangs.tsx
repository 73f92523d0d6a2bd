/** Delays of user interfaces: a click selects the time of the delay and looks at the thread that did not answer. */

import type { Panel } from "../app/panel.ts";
import type { Preset } from "../parts/pivot/model.ts";
import { Pivot, rangeOf } from "../parts/pivot/pivot.tsx";
import type { RowCell } from "../parts/pivot/rows_view.tsx";
import { say } from "../parts/live.tsx";
import { addFilter, look } from "../state/view.ts";

const COLUMNS = ["start_ns", "dur_ns", "upid", "utid", "kind", "unresponsive", "pending", "message", "window_class", "stack_id", "image_path"];

const PRESETS: Preset[] = [
  { name: "Delays, longest first", table: "ui_delay", group: ["upid", "kind"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { fn: "count" }], mode: "rows", columns: COLUMNS, order: [["dur_ns", true]] },
  { name: "By process and kind", table: "ui_delay", group: ["upid", "kind", "message"], values: [{ column: "dur_ns", fn: "sum" }, { column: "dur_ns", fn: "max" }, { fn: "count" }] },
  { name: "By caller", table: "ui_delay", group: ["upid", "stack_id"], values: [{ column: "dur_ns", fn: "sum" }, { fn: "count" }] },
];

function choose(cell: RowCell) {
  const range = rangeOf(cell);
  const utid = cell.rows.get(cell.row, "utid");
  if (range) look({ selection: range });
  if (typeof utid === "number") addFilter({ kind: "thread", value: utid, label: cell.rows.text(cell.row, "utid.label") || String(utid) });
  say("The time of the delay is selected, and all panels show its thread");
}

export const panel: Panel = {
  id: "hangs",
  title: "Hangs",
  group: "wait",
  order: 50,
  about: "Windows that did not answer: when, how long, which thread",
  tables: ["ui_delay"],
  View: () => (
    <>
      <p class="about">Enter or a double click on a delay selects its time and looks at its thread in all panels; Undo takes it back.</p>
      <Pivot id="hangs" title="Hangs" presets={PRESETS} onRow={choose} />
    </>
  ),
};
