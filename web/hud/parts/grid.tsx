/**
 * A table of any length: only the rows in sight are in the page. Keyboard as in
 * https://www.w3.org/WAI/ARIA/apg/patterns/grid/ and /treegrid/: arrows move (also into the header, where Enter sorts), Home/End,
 * PageUp/PageDown, Enter activates, Ctrl+C copies the cell or the selected rows, Shift with arrows selects rows, Right and Left open
 * and close rows of a tree, Alt+Right and Alt+Left change the width of the column, as dragging its edge does.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { rowHeight } from "../base/density.ts";
import { inspect, type Card } from "../state/inspect.ts";
import type { Cell } from "../wire/rows.ts";
import { copy } from "./box.tsx";
import { written, type Sheet } from "./grid/copy.ts";
import type { GridColumn } from "./grid/column.ts";
import { columnItems } from "./grid/column_menu.ts";
import { scalesOf, textsOf } from "./grid/amounts.ts";
import { leastOf } from "./grid/widths.ts";
import { Foot, type Deed } from "./grid/foot.tsx";
import { Head } from "./grid/head.tsx";
import { mounted, type Kept } from "./grid/mounted.ts";
import { Menu, type MenuAt } from "./pivot/menu.tsx";
import { counted } from "../base/value.ts";

export type { GridColumn };

export interface GridProps {
  /** Name of the table for screen readers. */
  label: string;
  columns: GridColumn[];
  count: number;
  /** What stands in a cell that is no amount; text for copying and reading. */
  text: (row: number, column: number) => string;
  /** What a cell is for other programs: a number in the unit of its column. */
  raw?: (row: number, column: number) => Cell;
  /** What the inspector tells about a row; its columns unless given. */
  card?: (row: number) => Card | null;
  /** What is drawn, if it is more than the text. */
  draw?: (row: number, column: number) => ComponentChildren;
  sort?: { id: string; down: boolean } | null;
  onSort?: (id: string) => void;
  onActivate?: (row: number, column: number) => void;
  /** The row that has the focus now. */
  onFocus?: (row: number) => void;
  selected?: (row: number) => boolean;
  rowClass?: (row: number) => string;
  /** Rows of a tree: level from 1, whether it is open (null: has no children). */
  tree?: { level: (row: number) => number; open: (row: number) => boolean | null; toggle: (row: number) => void };
  /** Keys of the panel; true if it was one. */
  onKey?: (event: KeyboardEvent, row: number, column: number) => boolean;
  /** Asks for a menu at a cell. */
  onMenu?: (row: number, column: number, x: number, y: number) => void;
  /** What can be done with selected rows, from the column that has the focus. */
  deeds?: (rows: number[], column: number) => Deed[];
  /** Rows that are in sight now. */
  onRange?: (first: number, last: number) => void;
  /** Rows that are shown without scrolling, if the grid does not fill its box. */
  most?: number;
}

/** Widths in px of columns that have none. */
const NUMBER = 112;
/** What a header of numbers needs: its letters, the arrow of the sorted one, its insets. */
const LETTER = 6.3;
const AROUND = 30;
const MOST_HEAD = 168;
/** In a narrow window the first column, which stays in sight, leaves room for another one. */
const [NARROW, FIRST] = [700, 150];
const TEXT = 150;
const LEAST = 40;
/** Rows that are copied at once. */
const MOST_COPIED = 100_000;
/** What moves the focus in a header stands at row -1. */
const HEAD = -1;

export function Grid(props: GridProps) {
  const { count, tree } = props;
  const ROW = rowHeight();
  const [hidden, setHidden] = useState<string[]>([]);
  const [picked, setPicked] = useState<[number, number] | null>(null);
  const [extra, setExtra] = useState<number[]>([]);
  const [menu, setMenu] = useState<MenuAt | null>(null);
  // Rows that the inspector can tell about have its actions as their menu.
  const { card } = props;
  const onMenu = props.onMenu ?? (card && ((row: number, _column: number, x: number, y: number) => {
    const items = (card(row)?.actions ?? []).map(({ text, run }) => ({ text, run }));
    if (items.length > 0) setMenu({ x, y, items });
  }));
  // Where a shown column stands among all: what draws cells counts all of them.
  const shown = props.columns.map((_, at) => at).filter((at) => !hidden.includes(props.columns[at]?.id ?? ""));
  const scales = useMemo(() => scalesOf(props.columns, count), [props.columns, count]);
  const all = props.columns.map((one, at): GridColumn => ({ ...one, unit: `${scales[at]?.unit ?? one.unit ?? ""}${one.amounts?.per ? `/${one.amounts.per}` : ""}` }));
  const columns = shown.flatMap((at) => all[at] ?? []);
  const text = textsOf(props.columns, scales, props.text);
  const of = (c: number) => shown[c] ?? c;
  const chosen = (r: number) => extra.includes(r) || (picked !== null && r >= Math.min(...picked) && r <= Math.max(...picked));
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(rowHeight() * Math.min(count, props.most ?? 20));
  const [at, setAt] = useState<[number, number]>([0, 0]);
  const [widths, setWidths] = useState<Record<string, number>>({});
  const moved = useRef(false);

  useEffect(() => {
    const element = body.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const row = at[0] === HEAD || count === 0 ? HEAD : Math.min(at[0], count - 1);
  const column = Math.min(at[1], columns.length - 1);

  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    const element = body.current;
    if (!element) return;
    const head = ROW;
    if (row === HEAD) element.scrollTop += 0;
    else if (row * ROW < element.scrollTop) element.scrollTop = row * ROW;
    else if ((row + 1) * ROW + head > element.scrollTop + element.clientHeight) element.scrollTop = (row + 1) * ROW + head - element.clientHeight;
    const cell = element.querySelector<HTMLElement>(`[data-cell="${row}:${column}"]`);
    cell?.focus({ preventScroll: true });
    if (cell && cell.offsetLeft < element.scrollLeft) element.scrollLeft = cell.offsetLeft;
    else if (cell && cell.offsetLeft + cell.offsetWidth > element.scrollLeft + element.clientWidth) element.scrollLeft = Math.min(cell.offsetLeft, cell.offsetLeft + cell.offsetWidth - element.clientWidth);
  });

  const go = (r: number, c: number) => {
    moved.current = true;
    const next: [number, number] = [Math.max(HEAD, Math.min(count - 1, r)), Math.max(0, Math.min(columns.length - 1, c))];
    setAt(next);
    if (next[0] >= 0) {
      props.onFocus?.(next[0]);
      tell(next[0]);
    }
  };
  const raw = (r: number, c: number): Cell => {
    const amounts = props.columns[c]?.amounts;
    const value = amounts?.of(r);
    return typeof value === "number" ? value / (scales[c]?.factor ?? 1) : props.raw ? props.raw(r, c) : text(r, c);
  };
  const sheet = (rows: number[]): Sheet => ({ titles: columns.map((one) => (one.unit ? `${one.title} (${one.unit})` : one.title)), rows: rows.map((r) => columns.map((_, c) => raw(r, of(c)))) });
  const selectedRows = () => {
    const rows = new Set(extra);
    if (picked) for (let r = Math.min(...picked); r <= Math.max(...picked) && r < count; r += 1) rows.add(r);
    return [...rows].sort((a, b) => a - b);
  };
  const clear = () => {
    setPicked(null);
    setExtra([]);
  };
  /** Tells the inspector. */
  const tell = (r: number) => {
    const own = props.card?.(r);
    if (own === null) return;
    const cells = all.map((one, c): [string, string] => [one.title || one.id, `${text(r, c)}${one.unit ? `\u00a0${one.unit}` : ""}`]);
    const first = cells[0]?.[1] ?? "";
    inspect(
      own ?? {
        id: `${props.label} ${r}`,
        kind: props.label,
        title: first,
        facts: cells.slice(1).filter(([, text]) => text !== "" && text !== "–"),
        actions: [
          ...(props.onActivate ? [{ text: "Open", primary: true, run: () => props.onActivate?.(r, 0) }] : []),
          { text: "Copy row", run: () => void copy(written(sheet([r]), "TSV"), "row") },
        ],
      },
    );
  };
  const columnMenu = (c: number, x: number, y: number) => {
    const one = columns[c];
    if (!one) return;
    const everything = Array.from({ length: Math.min(count, MOST_COPIED) }, (_, r) => r);
    setMenu({ x, y, items: columnItems({ column: one, sort: props.sort ?? null, onSort: props.onSort, alone: columns.length < 2, hidden, setHidden, sheet: () => sheet(everything), cells: () => everything.map((r) => [raw(r, of(c))]) }) });
  };

  const widthOf = (one: GridColumn, element?: Element | null) =>
    widths[one.id] ?? (element?.getBoundingClientRect().width || (one.width?.endsWith("px") ? Number.parseInt(one.width, 10) : one.number ? NUMBER : TEXT));
  const resize = (c: number, to: number) => {
    const one = columns[c];
    if (one) setWidths((before) => ({ ...before, [one.id]: Math.max(LEAST, Math.round(to)) }));
  };
  const kept = useRef<(most: number) => Kept>(() => ({ label: "", titles: [], rows: [], count: 0 }));
  kept.current = (most) => ({
    label: props.label,
    titles: columns.map((one) => (one.unit ? `${one.title} (${one.unit})` : one.title || one.id)),
    rows: Array.from({ length: Math.min(count, most) }, (_, r) => columns.map((_, c) => text(r, of(c)))).filter((cells) => cells.some((cell) => cell !== "…")),
    count,
  });
  useEffect(() => {
    mounted.add(kept);
    return () => void mounted.delete(kept);
  }, []);
  const head = (c: number) => body.current?.querySelector(`[data-cell="${HEAD}:${c}"]`);
  const dragEdge = (event: PointerEvent, c: number) => {
    const one = columns[c];
    const edge = event.currentTarget as HTMLElement;
    if (!one) return;
    const [x, width] = [event.clientX, widthOf(one, head(c))];
    edge.setPointerCapture(event.pointerId);
    edge.onpointermove = (move) => resize(c, width + move.clientX - x);
    edge.onpointerup = () => (edge.onpointermove = null);
    event.preventDefault();
    event.stopPropagation();
  };

  const onKey = (event: KeyboardEvent) => {
    const one = columns[column];
    if (event.altKey && one && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      resize(column, widthOf(one, head(column)) + (event.key === "ArrowRight" ? 16 : -16));
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row === HEAD && (event.key === "ContextMenu" || (event.shiftKey && event.key === "F10") || (event.altKey && event.key === "ArrowDown"))) {
      const box = head(column)?.getBoundingClientRect();
      columnMenu(column, box?.left ?? 0, box?.bottom ?? 0);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row === HEAD && event.key === "h" && one && columns.length > 1 && !event.ctrlKey) {
      setHidden([...hidden, one.id]);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row >= 0 && event.shiftKey && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const to = Math.max(0, Math.min(count - 1, row + (event.key === "ArrowDown" ? 1 : -1)));
      setPicked([picked?.[0] ?? row, to]);
      go(to, column);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Escape" && (picked || extra.length > 0)) {
      clear();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row === HEAD && (event.key === "Enter" || event.key === " ")) {
      if (one?.sortable) props.onSort?.(one.id);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row >= 0 && onMenu && (event.key === "ContextMenu" || (event.shiftKey && event.key === "F10"))) {
      const box = body.current?.querySelector(`[data-cell="${row}:${column}"]`)?.getBoundingClientRect();
      onMenu(row, of(column), box?.left ?? 0, box?.bottom ?? 0);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (row >= 0 && props.onKey?.(event, row, of(column))) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const open = row >= 0 ? (tree?.open(row) ?? null) : null;
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(row + 1, column),
      ArrowUp: () => go(row - 1, column),
      PageDown: () => go(row + page, column),
      PageUp: () => go(Math.max(0, row - page), column),
      Home: () => (event.ctrlKey ? go(0, column) : go(row, 0)),
      End: () => (event.ctrlKey ? go(count - 1, column) : go(row, columns.length - 1)),
      ArrowRight: () => {
        if (column === 0 && open === false) tree?.toggle(row);
        else if (column === 0 && open === true) go(row + 1, column);
        else go(row, column + 1);
      },
      ArrowLeft: () => {
        if (column > 0) go(row, column - 1);
        else if (open === true) tree?.toggle(row);
        else if (tree && row > 0) {
          let above = row - 1;
          while (above > 0 && tree.level(above) >= tree.level(row)) above -= 1;
          go(above, column);
        }
      },
      Enter: () => {
        if (row < 0) return;
        if (props.onActivate) props.onActivate(row, of(column));
        else if (open !== null) tree?.toggle(row);
      },
    };
    const move = moves[event.key];
    if (move && !event.altKey && !(event.ctrlKey && !["Home", "End"].includes(event.key))) {
      move();
      event.preventDefault();
      event.stopPropagation();
    } else if (row >= 0 && (event.ctrlKey || event.metaKey) && event.key === "c" && String(getSelection() ?? "") === "") {
      const rows = selectedRows();
      if (rows.length > 0) void copy(written(sheet(rows), "TSV"), counted(rows.length, "row"));
      else void copy(String(raw(row, of(column)) ?? ""), "cell");
      event.preventDefault();
    }
  };

  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const last = Math.min(count, Math.ceil((top + height) / ROW) + 4);
  useEffect(() => props.onRange?.(first, last), [first, last]);
  const own = (one: GridColumn) => {
    const wanted = one.width?.endsWith("px") ? Number.parseInt(one.width, 10) : undefined;
    // A number without its name says nothing.
    const needed = one.number ? Math.min(MOST_HEAD, AROUND + LETTER * (one.title.length + (one.unit ? one.unit.length + 1 : 0))) : 0;
    return widths[one.id] ?? (wanted === undefined ? (needed > NUMBER ? needed : undefined) : Math.max(wanted, Math.round(needed)));
  };
  const tracks = columns.map((one, at) => {
    const px = own(one);
    const track = px !== undefined ? `${px}px` : (one.width ?? (one.number ? `${NUMBER}px` : `minmax(${TEXT}px, 1fr)`));
    return at === 0 && columns.length > 1 && innerWidth < NARROW && (leastOf(track) ?? 0) > FIRST && widths[one.id] === undefined ? `minmax(${FIRST}px, 1fr)` : track;
  });
  const template = tracks.join(" ");
  // Rows are as wide as their columns need: beyond the box they scroll.
  const total = tracks.reduce((sum, track) => sum + (leastOf(track) ?? TEXT), 0);
  const wide = `max(100%, ${total}px)`;
  const rows = [];
  for (let r = first; r < last; r += 1) {
    const open = tree?.open(r) ?? null;
    rows.push(
      <div
        key={r}
        role="row"
        class={`row ${props.rowClass?.(r) ?? ""} ${r === row ? "at" : ""} ${chosen(r) ? "picked" : ""}`}
        aria-rowindex={r + 2}
        aria-selected={chosen(r) || (props.selected ? props.selected(r) : undefined)}
        aria-level={tree?.level(r)}
        aria-expanded={open === null ? undefined : open}
        style={{ top: `${(r + 1) * ROW}px`, height: `${ROW}px`, lineHeight: `${ROW}px`, gridTemplateColumns: template, width: wide }}
      >
        {columns.map((one, c) => (
          <div
            key={one.id}
            role={c === 0 ? "rowheader" : "gridcell"}
            aria-colindex={c + 1}
            class={one.number ? "cell number" : "cell"}
            data-cell={`${r}:${c}`}
            tabIndex={r === row && c === column ? 0 : -1}
            title={text(r, of(c))}
            style={c === 0 && tree ? { paddingLeft: `${4 + 14 * (tree.level(r) - 1)}px` } : undefined}
            onMouseDown={(event) => {
              // A double click opens, and selects no text; nor does one that selects rows.
              if (event.detail > 1 || event.shiftKey) event.preventDefault();
            }}
            onClick={(event) => {
              if (event.shiftKey) setPicked([picked?.[0] ?? Math.max(0, row), r]);
              else if (event.ctrlKey || event.metaKey) setExtra(extra.includes(r) ? extra.filter((each) => each !== r) : [...extra, r]);
              else if (picked || extra.length > 0) clear();
              go(r, c);
            }}
            onDblClick={() => (tree && open !== null ? tree.toggle(r) : props.onActivate?.(r, of(c)))}
            onContextMenu={(event) => {
              if (!onMenu) return;
              event.preventDefault();
              go(r, c);
              onMenu(r, of(c), event.clientX, event.clientY);
            }}
          >
            {c === 0 && tree && (
              <span
                class={open === null ? "twist none" : "twist"}
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  if (open !== null) tree.toggle(r);
                }}
              >
                {open === null ? "" : open ? "▾" : "▸"}
              </span>
            )}
            {props.draw ? (props.draw(r, of(c)) ?? text(r, of(c))) : text(r, of(c))}
          </div>
        ))}
      </div>,
    );
  }
  const rowsPicked = selectedRows();
  // What was done with them is done: the rows may not be there any more.
  const deedsOf = (list: number[]) => (props.deeds?.(list, of(column)) ?? []).map((one) => ({ ...one, run: () => { clear(); one.run(); } }));
  return (
    <>
    <div
      class="grid"
      ref={body}
      role={tree ? "treegrid" : "grid"}
      aria-label={props.label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      style={props.most ? { height: `${ROW * (Math.min(count, props.most) + 1) + 2}px` } : undefined}
      onScroll={() => setTop(body.current?.scrollTop ?? 0)}
      onKeyDown={onKey}
    >
      <div class="row head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, width: wide, height: `${ROW}px` }}>
        {columns.map((one, c) => (
          <Head
            key={one.id}
            column={one}
            at={c}
            sort={props.sort}
            focused={row === HEAD && c === column}
            onSort={one.sortable && props.onSort ? () => props.onSort?.(one.id) : null}
            onMenu={(x, y) => columnMenu(c, x, y)}
            onFocus={() => at[0] !== HEAD && setAt([HEAD, c])}
            onEdge={(event) => dragEdge(event, c)}
            onFit={() => setWidths(({ [one.id]: _, ...rest }) => rest)}
          />
        ))}
      </div>
      <div class="sheet" role="presentation" style={{ height: `${count * ROW}px`, width: wide }} />
      {rows}
    </div>
    {rowsPicked.length > 1 && <Foot sheet={sheet(rowsPicked)} numbers={columns.map((one) => one.number ?? false)} deeds={deedsOf(rowsPicked)} clear={clear} />}
    {menu && <Menu at={menu} label="What can be done here" onClose={() => setMenu(null)} />}
    </>
  );
}
