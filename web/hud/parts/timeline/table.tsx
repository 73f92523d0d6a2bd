/** The lanes as a table: each band in each of forty time ranges, as the server adds them up. */

import { useMemo } from "preact/hooks";
import { amount, moment, visible } from "../../base/value.ts";
import { useAnswer } from "../../wire/answer.ts";
import { part, shown } from "../../state/view.ts";
import { Fault } from "../box.tsx";
import { Grid } from "../grid.tsx";
import { askLanes, type Lane, type Lanes } from "./model.ts";
import { worded } from "./read.ts";

interface Line {
  lane: string;
  band: string;
  from: number;
  to: number;
  value: string;
}

function lines(data: Lanes, hidden: (lane: Lane) => boolean): Line[] {
  const out: Line[] = [];
  for (const lane of data.lanes) {
    if (hidden(lane)) continue;
    for (const mark of lane.marks) out.push({ lane: lane.title, band: visible(mark.text), from: mark.from, to: mark.to, value: mark.to > mark.from ? amount(mark.to - mark.from, "ns") : "" });
    for (const band of lane.series) {
      for (let at = band.from; at < band.to; at += 1) {
        const from = data.start_ns + (data.buckets[at] ?? 0) * data.bucket_ns;
        out.push({ lane: lane.title, band: visible(band.name), from, to: from + data.bucket_ns, value: worded(lane, data.values[at] ?? 0, data.bucket_ns) });
      }
    }
  }
  return out;
}

export function LanesTable(props: { hidden: (lane: Lane) => boolean }) {
  const { trace, filters } = part.value;
  const range = shown.value;
  const body = { trace, filters, range, width: 40 };
  const answer = useAnswer(`lanes table ${JSON.stringify(body)}`, (signal) => askLanes(body, "", signal), 200);
  const rows = useMemo(() => (answer.value ? lines(answer.value, props.hidden) : []), [answer.value, props.hidden]);
  const by = answer.value?.bucket_ns ?? 1;
  return (
    <>
      <Fault error={answer.error} />
      <Grid
        label="Lanes of the timeline"
        columns={[
          { id: "lane", title: "Lane" },
          { id: "band", title: "What", width: "minmax(160px, 2fr)" },
          { id: "from", title: "From", number: true },
          { id: "to", title: "To", number: true },
          { id: "value", title: "How much", number: true, width: "180px" },
        ]}
        count={rows.length}
        text={(row, column) => {
          const line = rows[row];
          if (!line) return "";
          return [line.lane, line.band, moment(line.from, by), moment(line.to, by), line.value][column] ?? "";
        }}
      />
    </>
  );
}
