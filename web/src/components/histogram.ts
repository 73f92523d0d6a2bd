/** Durations of DPCs or ISRs in classes, with the limit. */

import { scaleLinear, scaleLog } from "d3-scale";
import type { Bin, DurationHistogram } from "../charts.ts";
import { h, onWidth, s } from "../lib/dom.ts";
import { border, count, duration, percent, share } from "../lib/format.ts";
import { frame, picker, segmented } from "./frame.ts";
import { dataTable } from "./table.ts";

const HEIGHT = 250;
const MARGIN = { top: 28, right: 12, bottom: 44, left: 64 };
/** What one class is called in words. */
const span = (bin: Bin) =>
  bin.up_to_ns === null ? `above ${border(bin.above_ns)}` : `${border(bin.above_ns)} to ${border(bin.up_to_ns)}`;
const title = (one: DurationHistogram) =>
  `${one.class.toUpperCase()}: ${one.module ?? "all drivers"}${one.over_limit > 0 ? ` (${count(one.over_limit)} over the limit)` : ""}`;

/** The chart; the first histogram is shown, others can be chosen. */
export function histogram(all: DurationHistogram[]): HTMLElement {
  const graphic = h("div", { class: "graphic histogram" });
  const summary = h("span");
  let shown = all[0] as DurationHistogram;
  let measure: "count" | "time" = "count";
  let width = 0;

  function describe(): void {
    const longer = shown.over_limit > 0
      ? `${count(shown.over_limit)} (${percent(share(shown.over_limit, shown.count))}) took longer than ${border(shown.limit_ns)}, ${duration(shown.over_limit_ns)} of ${duration(shown.total_ns)}.`
      : `None took longer than ${border(shown.limit_ns)}.`;
    summary.replaceChildren(
      `${count(shown.count)} ${shown.class === "isr" ? "ISRs" : "DPCs"} of ${shown.module ?? "all drivers"}. ${longer} Limit: ${shown.limit_source}.`,
    );
  }

  function draw(): void {
    if (width === 0) return;
    // The classes are powers of two but for the limits, so borders stand on a logarithmic axis.
    const first = shown.bins[0]?.above_ns ?? 0;
    const low = first > 0 ? first : (shown.bins[0]?.up_to_ns ?? 1000) / 2;
    const last = shown.bins.at(-1);
    const high = Math.max(last?.up_to_ns ?? (last?.above_ns ?? low) * 2, shown.limit_ns * 1.4);
    const x = scaleLog([Math.min(low, shown.limit_ns / 1.4), high], [MARGIN.left, width - MARGIN.right]);
    const value = (bin: Bin) => (measure === "count" ? bin.count : bin.total_ns);
    const most = Math.max(1, ...shown.bins.map(value));
    const floor = HEIGHT - MARGIN.bottom;
    const y = measure === "count" ? scaleLog([0.6, most * 1.3], [floor, MARGIN.top]) : scaleLinear([0, most * 1.08], [floor, MARGIN.top]);
    const ticks = measure === "count"
      ? [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((tick) => tick <= most * 1.3)
      : y.ticks(4);
    const bars = shown.bins.filter((bin) => bin.count > 0).map((bin) => {
      const left = x(Math.max(bin.above_ns, low));
      const right = x(bin.up_to_ns ?? high);
      const top = y(Math.max(value(bin), measure === "count" ? 0.6 : 0));
      return s(
        "rect",
        { class: bin.over_limit ? "bar over" : "bar", x: left + 0.5, width: Math.max(1, right - left - 1), y: top, height: Math.max(0, floor - top) },
        s("title", {}, `${span(bin)}: ${count(bin.count)}, ${duration(bin.total_ns)}`),
      );
    });
    const axis = [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].filter((tick) => tick >= x.domain()[0]! && tick <= x.domain()[1]!);
    const limit = x(shown.limit_ns);
    const right = limit > width - 120;
    graphic.replaceChildren(
      s(
        "svg",
        { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Histogram of durations, ${title(shown)}; the same figures stand in the table` },
        ticks.map((tick) =>
          s("g", { class: "tick" },
            s("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
            s("text", { x: MARGIN.left - 6, y: y(tick), dy: "0.32em", "text-anchor": "end" }, measure === "count" ? count(tick) : tick === 0 ? "0" : duration(tick)),
          ),
        ),
        s("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: floor, y2: floor }),
        bars,
        axis.map((tick) =>
          s("g", { class: "tick" },
            s("line", { class: "mark", x1: x(tick), x2: x(tick), y1: floor, y2: floor + 5 }),
            s("text", { x: x(tick), y: floor + 18, "text-anchor": "middle" }, border(tick)),
          ),
        ),
        s("text", { class: "label", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, `duration of one ${shown.class.toUpperCase()} (logarithmic)`),
        s("text", { class: "label", x: MARGIN.left, y: 12 }, measure === "count" ? "how many (logarithmic)" : "their time"),
        s("line", { class: "limit", x1: limit, x2: limit, y1: MARGIN.top - 10, y2: floor }),
        s("text", { class: "limit-label", x: limit + (right ? -5 : 5), y: MARGIN.top - 3, "text-anchor": right ? "end" : "start" }, `limit ${border(shown.limit_ns)}`),
      ),
    );
  }

  onWidth(graphic, (now) => {
    width = now;
    draw();
  });
  describe();
  const update = () => {
    describe();
    draw();
  };
  return frame({
    title: "How long DPCs and ISRs take",
    summary,
    graphic,
    controls: [
      all.length > 1 &&
        picker("Driver", all.map((one) => ({ label: title(one), value: one })), (one) => {
          shown = one;
          update();
        }),
      segmented<"count" | "time">("What bars show", [{ label: "Count", value: "count" }, { label: "Time", value: "time" }], measure, (chosen) => {
        measure = chosen;
        update();
      }),
    ],
    table: () =>
      dataTable(
        all.flatMap((one) => one.bins.map((bin) => ({ one, bin }))),
        [
          { title: "class", cell: (row) => row.one.class.toUpperCase() },
          { title: "driver", cell: (row) => row.one.module ?? "all", key: (row) => row.one.module ?? "", name: true },
          { title: "duration", cell: (row) => span(row.bin), key: (row) => row.bin.above_ns, head: true },
          { title: "count", cell: (row) => count(row.bin.count), key: (row) => row.bin.count },
          { title: "time", cell: (row) => duration(row.bin.total_ns), key: (row) => row.bin.total_ns },
          { title: "limit", cell: (row) => (row.bin.over_limit ? "over" : "within") },
        ],
        { caption: "Durations of DPCs and ISRs" },
      ),
  });
}
