/** A header cell: all of it is the target. A click sorts; its menu has what else can be done with the column. */

import type { GridColumn } from "./column.ts";

export function Head(props: {
  column: GridColumn;
  at: number;
  sort: { id: string; down: boolean } | null | undefined;
  focused: boolean;
  onSort: (() => void) | null;
  onMenu: (x: number, y: number) => void;
  onFocus: () => void;
  onEdge: (event: PointerEvent) => void;
  onFit: () => void;
}) {
  const { column: one, sort } = props;
  const sorted = sort?.id === one.id;
  return (
    <div
      role="columnheader"
      aria-colindex={props.at + 1}
      class={`${one.number ? "cell number" : "cell"}${sorted ? " sorted" : ""}`}
      data-cell={`-1:${props.at}`}
      tabIndex={props.focused ? 0 : -1}
      aria-sort={sorted ? (sort?.down ? "descending" : "ascending") : undefined}
      aria-label={one.unit ? `${one.title}, ${one.unit}` : undefined}
      title={one.doc}
      onFocus={props.onFocus}
      onClick={(event) => {
        if ((event.target as Element).closest(".edge, .menu-of")) return;
        props.onSort?.();
      }}
      onContextMenu={(event) => {
        event.preventDefault();
        props.onMenu(event.clientX, event.clientY);
      }}
    >
      <span class="cut">{one.title || <span class="hidden-text">{one.id}</span>}</span>
      {one.unit && <span class="unit"> {one.unit}</span>}
      {sorted && <span aria-hidden="true">{sort?.down ? " ▾" : " ▴"}</span>}
      <span
        class="menu-of"
        aria-hidden="true"
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          props.onMenu(box.left, box.bottom + 4);
        }}
      >
        ⋮
      </span>
      <span class="edge" aria-hidden="true" onPointerDown={props.onEdge} onDblClick={props.onFit} />
    </div>
  );
}
