/** A table that came as Arrow: columns of numbers and texts. Times are nanoseconds in doubles, exact for 104 days. */

import { tableFromIPC } from "@uwdata/flechette";

export type Cell = number | string | boolean | null;

export interface Column {
  name: string;
  /** As in docs/reference/tables.md: ns, bytes, count, … */
  unit: string;
  /** As in docs/reference/tables.md: time, process, stack, … */
  role: string;
  doc: string;
  isNumber: boolean;
  values: Cell[];
}

/** Roles whose 64 bits are no number: they are shown in hexadecimal. */
const BITS = new Set(["address", "status"]);

/** `F`: what the server says of the whole. */
export class Rows<F = unknown> {
  readonly columns: Column[];
  readonly count: number;
  readonly facts: F;
  private readonly byName: Map<string, Column>;

  constructor(columns: Column[], count: number, facts: F) {
    this.columns = columns;
    this.count = count;
    this.facts = facts;
    this.byName = new Map(columns.map((column) => [column.name, column]));
  }

  static of<F>(bytes: Uint8Array): Rows<F> {
    const table = tableFromIPC(bytes, { useBigInt: true });
    const columns = table.schema.fields.map((field, at): Column => {
      const get = (key: string) => field.metadata?.get(`etwhy.${key}`) ?? "";
      const role = get("role");
      const column = table.getChildAt(at);
      const values: Cell[] = new Array(table.numRows);
      let isNumber = false;
      for (let row = 0; row < table.numRows; row += 1) {
        const cell = column.at(row) as Cell | bigint | undefined;
        if (typeof cell === "bigint") {
          values[row] = BITS.has(role) && (cell < 0n || cell > 0xffffffffn) ? `0x${BigInt.asUintN(64, cell).toString(16)}` : Number(cell);
          isNumber = true;
        } else {
          values[row] = cell ?? null;
          if (typeof cell === "number") isNumber = true;
        }
      }
      return { name: field.name, unit: get("unit"), role, doc: get("doc"), isNumber, values };
    });
    const facts = table.schema.metadata?.get("etwhy.answer");
    return new Rows(columns, table.numRows, JSON.parse(facts ?? "{}") as F);
  }

  column(name: string): Column | undefined {
    return this.byName.get(name);
  }

  get(row: number, name: string): Cell {
    return this.byName.get(name)?.values[row] ?? null;
  }

  /** A number; 0 where there is none. */
  num(row: number, name: string): number {
    const cell = this.get(row, name);
    return typeof cell === "number" ? cell : 0;
  }

  text(row: number, name: string): string {
    const cell = this.get(row, name);
    return cell === null ? "" : String(cell);
  }
}
