/** A column of a grid. */

import type { Item } from "../pivot/menu.tsx";
import type { Amounts } from "./amounts.ts";

export interface GridColumn {
  id: string;
  title: string;
  /** What it means: a hint. */
  doc?: string;
  number?: boolean;
  /** Width in px, or a share of what is left (`1fr`). */
  width?: string;
  sortable?: boolean;
  /** Its numbers, if the grid is to write them: it chooses the unit. */
  amounts?: Amounts;
  /** Of all its numbers; they stand without it. */
  unit?: string;
  /** What its menu has besides. */
  items?: Item[];
}
