/**
 * A table of any length: only the rows in sight are in the page. Keyboard as in
 * https://www.w3.org/WAI/ARIA/apg/patterns/grid/ and /treegrid/: arrows move, Home/End, PageUp/PageDown, Enter activates, Ctrl+C copies
 * the cell, Right and Left open and close rows of a tree.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { copy } from "./box.tsx";

export interface GridColumn {
  id: string;
  title: string;
  /** What it means: a hint. */
  doc?: string;
  number?: boolean;
  /** Width in px, or a share of what is left (`1fr`). */
  width?: string;
  sortable?: boolean;
}

export interface GridProps {
  /** Name of the table for screen readers. */
  label: string;
  columns: GridColumn[];
  count: number;
  /** What stands in a cell; text for copying and reading. */
  text: (row: number, column: number) => string;
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
  /** Rows that are shown without scrolling, if the grid does not fill its box. */
  most?: number;
}

const ROW = 24;

export function Grid(props: GridProps) {
  const { columns, count, tree } = props;
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(ROW * Math.min(count, props.most ?? 20));
  const [at, setAt] = useState<[number, number]>([0, 0]);
  const moved = useRef(false);

  useEffect(() => {
    const element = body.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const row = Math.min(at[0], Math.max(0, count - 1));
  const column = Math.min(at[1], columns.length - 1);

  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    const element = body.current;
    if (!element) return;
    const head = ROW;
    if (row * ROW < element.scrollTop) element.scrollTop = row * ROW;
    else if ((row + 1) * ROW + head > element.scrollTop + element.clientHeight) element.scrollTop = (row + 1) * ROW + head - element.clientHeight;
    const cell = element.querySelector<HTMLElement>(`[data-cell="${row}:${column}"]`);
    cell?.focus({ preventScroll: true });
  });

  const go = (r: number, c: number) => {
    moved.current = true;
    const next: [number, number] = [Math.max(0, Math.min(count - 1, r)), Math.max(0, Math.min(columns.length - 1, c))];
    setAt(next);
    props.onFocus?.(next[0]);
  };

  const onKey = (event: KeyboardEvent) => {
    if (props.onKey?.(event, row, column)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const open = tree?.open(row) ?? null;
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(row + 1, column),
      ArrowUp: () => go(row - 1, column),
      PageDown: () => go(row + page, column),
      PageUp: () => go(row - page, column),
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
        else if (tree) {
          let above = row - 1;
          while (above > 0 && tree.level(above) >= tree.level(row)) above -= 1;
          go(above, column);
        }
      },
      Enter: () => props.onActivate?.(row, column),
    };
    const move = moves[event.key];
    if (move && !event.altKey && !(event.ctrlKey && !["Home", "End"].includes(event.key))) {
      move();
      event.preventDefault();
      event.stopPropagation();
    } else if ((event.ctrlKey || event.metaKey) && event.key === "c" && String(getSelection() ?? "") === "") {
      void copy(props.text(row, column), "cell");
      event.preventDefault();
    }
  };

  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const last = Math.min(count, Math.ceil((top + height) / ROW) + 4);
  const template = columns.map((one) => one.width ?? (one.number ? "110px" : "minmax(120px, 1fr)")).join(" ");
  const rows = [];
  for (let r = first; r < last; r += 1) {
    const open = tree?.open(r) ?? null;
    rows.push(
      <div
        key={r}
        role="row"
        class={`row ${props.rowClass?.(r) ?? ""} ${r === row ? "at" : ""}`}
        aria-rowindex={r + 2}
        aria-selected={props.selected ? props.selected(r) : undefined}
        aria-level={tree?.level(r)}
        aria-expanded={open === null ? undefined : open}
        style={{ top: `${(r + 1) * ROW}px`, gridTemplateColumns: template }}
      >
        {columns.map((one, c) => (
          <div
            key={one.id}
            role={c === 0 ? "rowheader" : "gridcell"}
            class={one.number ? "cell number" : "cell"}
            data-cell={`${r}:${c}`}
            tabIndex={r === row && c === column ? 0 : -1}
            title={props.text(r, c)}
            style={c === 0 && tree ? { paddingLeft: `${4 + 14 * (tree.level(r) - 1)}px` } : undefined}
            onClick={() => {
              go(r, c);
            }}
            onDblClick={() => props.onActivate?.(r, c)}
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
            {props.draw ? (props.draw(r, c) ?? props.text(r, c)) : props.text(r, c)}
          </div>
        ))}
      </div>,
    );
  }
  return (
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
      <div class="row head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
        {columns.map((one) => {
          const sorted = props.sort?.id === one.id;
          return (
            <div key={one.id} role="columnheader" class={one.number ? "cell number" : "cell"} aria-sort={sorted ? (props.sort?.down ? "descending" : "ascending") : undefined} title={one.doc}>
              {one.sortable && props.onSort ? (
                <button type="button" tabIndex={0} data-hint={one.doc} onClick={() => props.onSort?.(one.id)}>
                  {one.title}
                  <span aria-hidden="true">{sorted ? (props.sort?.down ? " ▾" : " ▴") : ""}</span>
                </button>
              ) : (
                <span data-hint={one.doc}>{one.title}</span>
              )}
            </div>
          );
        })}
      </div>
      <div class="sheet" role="presentation" style={{ height: `${count * ROW}px` }} />
      {rows}
    </div>
  );
}
