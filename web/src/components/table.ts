/** A table that can be sorted by its heads. */

import { h, type Child } from "../lib/dom.ts";

export interface Column<Row> {
  /** Its head. */
  title: string;
  /** What a cell shows. */
  cell: (row: Row) => Child;
  /** What it is sorted by; numbers stand right. */
  key?: (row: Row) => number | string;
  /** The cell is the head of its row. */
  head?: boolean;
  /** Long names: wraps anywhere, in the font of code. */
  name?: boolean;
}

export interface TableOptions {
  /** What the table shows, for those who hear it. */
  caption: string;
  /** Show the caption. */
  visible?: boolean;
}

/** Rows in the order given, until a head is pressed. */
export function dataTable<Row>(rows: Row[], columns: Column<Row>[], options: TableOptions): HTMLElement {
  const body = h("tbody");
  const numeric = (column: Column<Row>) => rows.length > 0 && typeof column.key?.(rows[0] as Row) === "number";
  const show = (list: Row[]) =>
    body.replaceChildren(
      ...list.map((row) =>
        h(
          "tr",
          {},
          columns.map((column) => {
            const attributes = { class: [numeric(column) && "number", column.name && "name"].filter(Boolean).join(" ") };
            return column.head
              ? h("th", { ...attributes, scope: "row" }, column.cell(row))
              : h("td", attributes, column.cell(row));
          }),
        ),
      ),
    );
  const heads = columns.map((column) => {
    const key = column.key;
    const className = numeric(column) ? "number" : column.name ? "name" : "";
    if (!key) return h("th", { scope: "col", class: className }, column.title);
    const head = h("th", { scope: "col", class: className });
    head.append(
      h("button", { class: "sort", type: "button", onclick: () => sort(head, key) }, column.title, h("span", { class: "arrow", "aria-hidden": "true" })),
    );
    return head;
  });
  const sort = (head: HTMLElement, key: (row: Row) => number | string) => {
    // Numbers are wanted largest first, names in their order.
    const first = typeof key(rows[0] as Row) === "number" ? "descending" : "ascending";
    const other = first === "descending" ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    show(
      [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      }),
    );
  };
  show(rows);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": options.caption },
    h(
      "table",
      {},
      h("caption", { class: options.visible ? "" : "hidden-text" }, options.caption),
      h("thead", {}, h("tr", {}, heads)),
      body,
    ),
  );
}
