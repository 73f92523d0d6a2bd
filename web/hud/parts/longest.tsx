/** The longest DPCs or ISRs, one row each: where they stand on the time axis, what ran, how far over the limit. */

import { count, duration, number } from "../../src/lib/format.ts";
import { moment, visible } from "../base/value.ts";
import { inspect } from "../state/inspect.ts";
import { addFilter, look, ofInterrupts, part, set, zoomTo } from "../state/view.ts";
import { useAnswer } from "../wire/answer.ts";
import { askRows } from "../wire/api.ts";
import type { InterruptClass } from "../wire/types.ts";
import { Fault } from "./box.tsx";
import { Grid } from "./grid.tsx";

const MOST = 200;

/** Around one that is shown on the time axis: as much again on either side. */
const around = (from: number, to: number): [number, number] => [Math.floor(from - (to - from)), Math.ceil(to + (to - from))];

export function Longest(props: { of: InterruptClass; module: string | null; limit: number; bin: [number, number | null] | null; onClear: () => void }) {
  const { bin } = props;
  const where = [
    ...(props.module ? [{ column: "module", op: "eq", value: props.module }] : []),
    ...(bin ? [{ column: "exclusive_ns", op: "gt", value: bin[0] }, ...(bin[1] === null ? [] : [{ column: "exclusive_ns", op: "le", value: bin[1] }])] : []),
  ];
  const body = { ...part.value, filters: ofInterrupts(part.value.filters), rows: true, table: props.of, where, columns: ["start_ns", "ts_ns", "cpu", "routine", "exclusive_ns"], sort: [["exclusive_ns", true]], limit: MOST };
  const answer = useAnswer(`longest ${JSON.stringify(body)}`, (signal) => askRows("rows", body, signal));
  const rows = answer.value;
  const word = props.of === "dpc" ? "DPC" : "ISR";
  if (answer.error) return <Fault error={answer.error} />;
  if (!rows) return null;
  const range = (row: number): [number, number] => [rows.num(row, "start_ns"), Math.max(rows.num(row, "ts_ns"), rows.num(row, "start_ns") + 1)];
  const times = (row: number) => (rows.num(row, "exclusive_ns") / props.limit).toFixed(1);
  return (
    <>
      <p class="about">
        {bin ? `${count(rows.facts.rows)} ${word}s of ${bin[1] === null ? `more than ${duration(bin[0])}` : `${duration(bin[0])} to ${duration(bin[1])}`}` : `The longest of ${count(rows.facts.rows)}`}
        {rows.facts.rows > rows.count && `, ${count(rows.count)} listed`}{" "}
        {bin && (
          <button type="button" class="small" onClick={props.onClear}>
            All durations
          </button>
        )}
      </p>
      <Grid
        label={`Longest ${word}s`}
        most={9}
        columns={[
          { id: "at", title: "At", unit: "s", number: true, width: "84px" },
          { id: "cpu", title: "CPU", number: true, width: "48px" },
          { id: "routine", title: "Routine", width: "minmax(120px, 1fr)" },
          { id: "took", title: "Duration", unit: "µs", number: true, width: "92px" },
          { id: "limit", title: "Of limit", number: true, width: "72px", doc: `Duration divided by Microsoft's limit of ${duration(props.limit)}` },
        ]}
        count={rows.count}
        text={(row, column) => [(rows.num(row, "start_ns") / 1e9).toFixed(6), rows.text(row, "cpu"), visible(rows.text(row, "routine")), number(rows.num(row, "exclusive_ns") / 1e3), `${times(row)}×`][column] ?? ""}
        raw={(row, column) => [rows.num(row, "start_ns") / 1e9, rows.num(row, "cpu"), rows.text(row, "routine"), rows.num(row, "exclusive_ns") / 1e3, rows.num(row, "exclusive_ns") / props.limit][column] ?? null}
        draw={(row, column) => {
          const most = Math.max(1, rows.num(0, "exclusive_ns"));
          if (column === 3) {
            return (
              <span class="share">
                <span class={rows.num(row, "exclusive_ns") > props.limit ? "fill over" : "fill"} style={{ width: `${(100 * rows.num(row, "exclusive_ns")) / most}%` }} />
                <span>{number(rows.num(row, "exclusive_ns") / 1e3)}</span>
              </span>
            );
          }
          return column === 2 ? <span data-knows={rows.text(row, "routine")}>{visible(rows.text(row, "routine"))}</span> : undefined;
        }}
        card={(row) => ({
          id: `${props.of} ${rows.num(row, "start_ns")}`,
          kind: `${word} on CPU ${rows.text(row, "cpu")}`,
          title: rows.text(row, "routine"),
          knows: rows.text(row, "routine").split("!")[0] ?? "",
          facts: [
            ["Duration", duration(rows.num(row, "exclusive_ns"))],
            ["Of the limit", `${times(row)}×`],
            ["Began", moment(rows.num(row, "start_ns"))],
            ["With interruptions", duration(rows.num(row, "ts_ns") - rows.num(row, "start_ns"))],
          ],
          actions: [
            { text: "Show on time axis", primary: true, run: () => { zoomTo(around(...range(row))); look({ selection: range(row) }); } },
            { text: "Open stacks", run: () => { set("stacks", { metric: props.of }); look({ selection: range(row), panel: "stacks" }); } },
            { text: `Only CPU ${rows.text(row, "cpu")}`, run: () => addFilter({ kind: "cpu", value: rows.num(row, "cpu"), label: rows.text(row, "cpu") }) },
          ],
        })}
        onActivate={(row) => {
          inspect(null);
          zoomTo(around(...range(row)));
          look({ selection: range(row) });
        }}
      />
    </>
  );
}
