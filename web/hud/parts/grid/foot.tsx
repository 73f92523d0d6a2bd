/** What selected rows come to, and what can be done with them. */

import { count, number } from "../../../src/lib/format.ts";
import type { Cell } from "../../wire/rows.ts";
import { copy } from "../box.tsx";
import { FORMATS, written, type Sheet } from "./copy.ts";
import { counted } from "../../base/value.ts";

/** Columns of which the sums stand there. */
const MOST = 4;

/** What the owner of a table can do with selected rows. */
export interface Deed {
  text: string;
  doc: string;
  run: () => void;
}

export function Foot(props: { sheet: Sheet; numbers: boolean[]; deeds: Deed[]; clear: () => void }) {
  const { titles, rows } = props.sheet;
  const sums = titles.flatMap((title, at) => {
    if (!props.numbers[at]) return [];
    const values = rows.map((row): Cell => row[at] ?? null).filter((cell): cell is number => typeof cell === "number");
    if (values.length === 0) return [];
    const sum = values.reduce((total, value) => total + value, 0);
    return [{ title, sum, mean: sum / values.length, max: Math.max(...values) }];
  });
  const text = (value: number) => (Number.isInteger(value) ? count(value) : number(value));
  return (
    <div class="grid-foot" role="status">
      <b>
        {counted(rows.length, "row")} selected
      </b>
      {sums.slice(0, MOST).map((one) => (
        <span key={one.title}>
          {one.title} <b>{text(one.sum)}</b> <span class="muted">mean {text(one.mean)}, max {text(one.max)}</span>
        </span>
      ))}
      <span class="grow" />
      <span class="deeds">
        {props.deeds.map((one) => (
          <button type="button" class="small" key={one.text} title={one.doc} onClick={one.run}>
            {one.text}
          </button>
        ))}
        {FORMATS.map((format) => (
          <button type="button" class="small" key={format} onClick={() => void copy(written(props.sheet, format), `${counted(rows.length, "row")} as ${format}`)}>
            {format === "TSV" ? "Copy TSV" : format}
          </button>
        ))}
        <button type="button" class="small" onClick={props.clear}>
          Clear
        </button>
      </span>
    </div>
  );
}
