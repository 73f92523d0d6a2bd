/** What stands left of the lanes: their names, what they come to, headings that fold. */

import { set } from "../../state/view.ts";
import type { Row, Settings } from "./layout.ts";
import { HEAD } from "./paint.ts";

/** Numbers of processors stand where they have room: at lines that are high enough, else at every few. */
function isNumbered(rows: Row[], at: number): boolean {
  const row = rows[at];
  if (!row?.lane) return false;
  const step = Math.ceil(11 / (row.height > 3 ? row.height + 1 : row.height));
  return (row.lane.cpu ?? 0) % step === 0;
}

export function Titles(props: { rows: Row[]; closed: string[] }) {
  const { rows, closed } = props;
  return (
    <div class="tl-titles">
      {rows.map((row, at) =>
        row.lane === null ? (
          <button
            key={row.id}
            type="button"
            class="tl-title tl-group"
            aria-expanded={!row.closed}
            style={{ top: `${HEAD + row.y}px`, height: `${row.height}px` }}
            onClick={() => set<Settings>("timeline", { closed: row.closed ? closed.filter((one) => one !== row.id) : [...closed, row.id] })}
          >
            <span aria-hidden="true">{row.closed ? "▸" : "▾"}</span> <span class="cut">{row.title}</span> <span class="sub">{row.sub}</span>
          </button>
        ) : (
          (row.lane.kind !== "cpu" || isNumbered(rows, at)) && (
            <span
              key={row.id}
              class={`tl-title ${row.inner ? "inner" : ""} ${row.lane.kind === "cpu" ? "cpu" : ""} ${row.height > 40 ? "tall" : ""}`}
              title={row.title}
              style={{ top: `${HEAD + row.y}px`, height: `${row.height}px` }}
            >
              <span class="cut">{row.title}</span>
              {row.sub && <span class="sub">{row.sub}</span>}
              {row.top && <span class="top-of">{row.top}</span>}
              {row.top && <span class="bottom-of">0</span>}
            </span>
          )
        ),
      )}
    </div>
  );
}
