/**
 * What stands left of the lanes: their names, what they come to, headings that fold. Dragging one moves it, dragging its lower edge makes it
 * higher; Alt with arrows, plus and minus do the same.
 */

import { useRef, useState } from "preact/hooks";
import { set } from "../../state/view.ts";
import { blocks, landing, moveBy, moveTo, setHeight } from "./arrange.ts";
import type { Row, Settings } from "./layout.ts";
import { HEAD } from "./paint.ts";

/** Pixels from the lower edge of a name that make its lane higher. */
const EDGE = 5;

/** Numbers of processors stand where they have room: at lines that are high enough, else at every few. */
function isNumbered(rows: Row[], at: number): boolean {
  const row = rows[at];
  if (!row?.lane) return false;
  const room = row.height > 3 ? row.height + 1 : row.height;
  let step = 1;
  while (step * room < 11) step *= 2;
  return (row.lane.cpu ?? 0) % step === 0;
}

const HOW = "Alt with up and down moves it";

export function Titles(props: { rows: Row[]; settings: Settings }) {
  const { rows, settings } = props;
  const [drop, setDrop] = useState<number | null>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const dragged = useRef(false);
  const now = useRef(props);
  now.current = props;
  const named = rows.filter((row, at) => row.lane === null || row.lane.kind !== "cpu" || isNumbered(rows, at));
  const reached = named.filter((row) => row.lane?.kind !== "cpu");
  const first = reached.some((row) => row.id === focused) ? focused : reached[0]?.id;
  const fold = (row: Row) => {
    const { closed } = settings;
    set<Settings>("timeline", { closed: row.closed ? closed.filter((one) => one !== row.id) : [...closed, row.id] });
  };
  const resizable = (row: Row) => row.lane !== null && row.lane.shape !== "marks";
  const down = (event: PointerEvent, row: Row) => {
    dragged.current = false;
    // A finger scrolls.
    if (event.button !== 0 || event.pointerType === "touch") return;
    const element = event.currentTarget as HTMLElement;
    const [start, box] = [event.clientY, element.getBoundingClientRect()];
    const edge = resizable(row) && box.bottom - start <= EDGE;
    const place = (to: PointerEvent) => landing(now.current.rows, row.block, row.y + to.clientY - box.top);
    element.setPointerCapture(event.pointerId);
    element.onpointermove = (moved) => {
      if (!dragged.current && Math.abs(moved.clientY - start) < 4) return;
      dragged.current = true;
      if (edge) setHeight(now.current.settings, row.id, row.height + moved.clientY - start);
      else {
        const others = blocks(now.current.rows).filter((one) => one.id !== row.block);
        const at = place(moved);
        setDrop(at < others.length ? (others[at]?.top ?? 0) - 2 : (others[others.length - 1]?.bottom ?? 0) + 1);
      }
    };
    element.onpointerup = (let_go) => {
      element.onpointermove = element.onpointerup = null;
      setDrop(null);
      if (dragged.current && !edge) moveTo(now.current.rows, now.current.settings, row.block, place(let_go));
    };
  };
  const key = (event: KeyboardEvent, row: Row) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const element = event.currentTarget as HTMLElement;
    if (by && event.altKey) moveBy(rows, settings, row.block, by);
    else if (by) {
      const next = reached[reached.findIndex((one) => one.id === row.id) + by];
      if (next) {
        setFocused(next.id);
        element.parentElement?.querySelector<HTMLElement>(`[data-row="${CSS.escape(next.id)}"]`)?.focus();
      }
    } else if (["+", "=", "-"].includes(event.key) && resizable(row)) setHeight(settings, row.id, row.height + (event.key === "-" ? -8 : 8));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tl-titles">
      {named.map((row) =>
        row.lane?.kind === "cpu" ? (
          <span key={row.id} class={`tl-title cpu ${row.height > 40 ? "tall" : ""}`} title={row.title} style={{ top: `${HEAD + row.y}px`, height: `${row.height}px` }}>
            <span class="cut">{row.title}</span>
          </span>
        ) : (
          <button
            key={row.id}
            type="button"
            class={`tl-title ${row.lane === null ? "tl-group" : "tl-lane"} ${row.inner ? "inner" : ""} ${row.lane && row.lane.shape !== "marks" && row.height > 40 ? "tall" : ""} ${resizable(row) ? "resizable" : ""}`}
            data-row={row.id}
            tabIndex={row.id === first ? 0 : -1}
            aria-expanded={row.lane === null ? !row.closed : undefined}
            aria-keyshortcuts="Alt+ArrowUp Alt+ArrowDown"
            title={`${row.title}\n${HOW}${resizable(row) ? ", + and − change its height" : ""}; or drag it.`}
            style={{ top: `${HEAD + row.y}px`, height: `${row.height}px` }}
            onFocus={() => setFocused(row.id)}
            onPointerDown={(event) => down(event, row)}
            onKeyDown={(event) => key(event, row)}
            onClick={() => row.lane === null && !dragged.current && fold(row)}
          >
            {row.lane === null && <span aria-hidden="true">{row.closed ? "▸" : "▾"}</span>}
            <span class="cut">{row.title}</span>
            {row.sub && <span class="sub">{row.sub}</span>}
            {row.top && <span class="top-of">{row.top}</span>}
            {row.top && <span class="bottom-of">0</span>}
          </button>
        ),
      )}
      {drop !== null && <i class="tl-drop" style={{ top: `${HEAD + drop}px` }} />}
    </div>
  );
}
