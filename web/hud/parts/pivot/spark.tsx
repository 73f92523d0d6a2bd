/** A line over time that is as high as a row of text; its numbers are a table of their own. */

import { amount, moment } from "../../base/value.ts";
import { Dialog } from "../dialog.tsx";
import { Grid } from "../grid.tsx";
import type { Range } from "../../state/view.ts";

export const parse = (text: string): (number | null)[] => text.split(" ").map((one) => (one === "-" ? null : Number(one)));

export function Spark(props: { text: string; top: number }) {
  const values = parse(props.text);
  const top = Math.max(props.top, ...values.map((value) => value ?? 0)) || 1;
  const width = 120 / values.length;
  const path = values
    .map((value, at) => (value && value > 0 ? `M${(at * width).toFixed(1)} 18h${Math.max(1, width).toFixed(1)}v${(-Math.max(1, (value / top) * 16)).toFixed(1)}h${(-Math.max(1, width)).toFixed(1)}z` : ""))
    .join("");
  return (
    <svg class="spark" viewBox="0 0 120 18" preserveAspectRatio="none" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

/** What is said instead of the line. */
export function sparkText(text: string, range: Range, unit: string): string {
  const values = parse(text);
  let at = -1;
  values.forEach((value, i) => {
    if (value !== null && (at < 0 || value > (values[at] ?? 0))) at = i;
  });
  const width = (range[1] - range[0]) / values.length;
  return at < 0 ? "nothing" : `most at ${moment(range[0] + at * width, width)}: ${amount(values[at] ?? 0, unit)}`;
}

export function SparkTable(props: { title: string; text: string; range: Range; unit: string; onClose: () => void }) {
  const values = parse(props.text);
  const width = (props.range[1] - props.range[0]) / values.length;
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <Grid
        label={props.title}
        columns={[
          { id: "from", title: "from", number: true, width: "140px", amounts: { unit: "moment", of: (row) => props.range[0] + row * width } },
          { id: "value", title: "value", number: true, width: "160px", amounts: { unit: props.unit, of: (row) => values[row] ?? null } },
        ]}
        count={values.length}
        text={() => ""}
        most={16}
      />
    </Dialog>
  );
}
