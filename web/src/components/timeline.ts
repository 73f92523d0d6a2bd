/** CPU time by process over time, as bands that add up to the machine. */

import { scaleLinear } from "d3-scale";
import { area, curveStepAfter } from "d3-shape";
import type { Series, Timeline } from "../charts.ts";
import { h, onWidth, s, type Child } from "../lib/dom.ts";
import { border, duration, percent, share } from "../lib/format.ts";
import { frame } from "./frame.ts";
import { dataTable } from "./table.ts";

const HEIGHT = 240;
const MARGIN = { top: 8, right: 12, bottom: 28, left: 40 };

const NOTHING = "nothing was recorded";

/** Class of a band: its colour. Processes take those of the palette in turn. */
function band(series: Series, at: number): string {
  return series.kind === "process" ? `series-${at % 8}` : `series-${series.kind}`;
}

/** The chart. */
export function timeline(data: Timeline): HTMLElement {
  const slices = data.series[0]?.values_ns.length ?? 0;
  const begin = (at: number) => data.start_ns + at * data.slice_ns;
  const length = (at: number) => Math.max(1, Math.min(data.slice_ns, data.end_ns - begin(at)));
  // Processors that a band takes in a slice.
  const busy = (series: Series, at: number) => (series.values_ns[at] ?? 0) / length(at);
  const capacity = (data.end_ns - data.start_ns) * data.cpus;
  const idle = data.series.filter((one) => one.kind === "idle").reduce((sum, one) => sum + one.total_ns, 0);
  const used = data.series.reduce((sum, one) => sum + one.total_ns, 0) - idle;
  const most = [...data.series].filter((one) => one.kind !== "idle").sort((a, b) => b.total_ns - a.total_ns)[0];
  const graphic = h("div", { class: "graphic timeline" });
  const hint = "Point at a moment, or focus the chart and use the arrow keys, to read its figures.";
  const readout = h("div", { class: "readout", "aria-hidden": "true" }, hint);
  const leave = () => {
    graphic.classList.remove("reading");
    readout.replaceChildren(hint);
  };
  const handle = h("div", {
    class: "crosshair",
    role: "slider",
    tabindex: "0",
    "aria-label": "Moment in the timeline",
    "aria-valuemin": "0",
    "aria-valuenow": "0",
    "aria-valuetext": "not read yet",
    "aria-valuemax": String(Math.max(0, slices - 1)),
    onkeydown: (event) => key(event as KeyboardEvent),
    onfocus: () => move(current),
  });
  let current = 0;
  let position = (_at: number) => 0;
  const at = (slice: number) => `${duration(begin(slice))} to ${duration(begin(slice) + length(slice))}`;

  function move(slice: number): void {
    current = Math.max(0, Math.min(slices - 1, slice));
    const parts = data.series
      .map((series) => ({ series, cpus: busy(series, current) }))
      .filter((part) => part.cpus > 0)
      .sort((a, b) => b.cpus - a.cpus);
    const texts = parts.map((part) => `${part.series.name} ${part.cpus.toFixed(2)}`);
    handle.setAttribute("aria-valuenow", String(current));
    handle.setAttribute("aria-valuetext", `${at(current)}, ${texts.length > 0 ? `processors: ${texts.join(", ")}` : NOTHING}`);
    handle.style.left = `${position(current)}px`;
    readout.replaceChildren(
      h("strong", {}, at(current)),
      parts.length === 0 ? h("span", {}, NOTHING) : "",
      ...parts.map((part) =>
        h(
          "span",
          {},
          h("i", { class: `swatch ${band(part.series, data.series.indexOf(part.series))}` }),
          h("b", {}, part.cpus.toFixed(2)),
          ` ${part.series.name}`,
        ),
      ),
    );
    graphic.classList.add("reading");
  }

  function key(event: KeyboardEvent): void {
    const steps: Record<string, number> = {
      ArrowRight: current + 1,
      ArrowUp: current + 1,
      ArrowLeft: current - 1,
      ArrowDown: current - 1,
      PageUp: current + 10,
      PageDown: current - 10,
      Home: 0,
      End: slices - 1,
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    move(next);
  }

  onWidth(graphic, (width) => {
    const x = scaleLinear([data.start_ns, data.end_ns], [MARGIN.left, width - MARGIN.right]);
    const y = scaleLinear([0, data.cpus], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    position = (slice) => x(begin(slice) + length(slice) / 2);
    const base = new Array<number>(slices).fill(0);
    const paths: Child[] = data.series.map((series, number) => {
      const points = base.map((low, slice) => {
        const high = low + busy(series, slice);
        base[slice] = high;
        return { at: begin(slice), low, high };
      });
      const end = points.at(-1);
      if (end) points.push({ ...end, at: data.end_ns });
      const shape = area<(typeof points)[number]>()
        .x((point) => x(point.at))
        .y0((point) => y(Math.min(point.low, data.cpus)))
        .y1((point) => y(Math.min(point.high, data.cpus)))
        .curve(curveStepAfter);
      return s("path", { class: `band ${band(series, number)}`, d: shape(points) ?? "" });
    });
    const drawing = s(
      "svg",
      {
        viewBox: `0 0 ${width} ${HEIGHT}`,
        role: "img",
        "aria-label": "CPU time by process over time; the same figures stand in the table",
        onpointermove: (event) => {
          const box = drawing.getBoundingClientRect();
          const moved = ((event as PointerEvent).clientX - box.left) * (width / box.width);
          move(Math.floor((x.invert(moved) - data.start_ns) / data.slice_ns));
        },
      },
      y.ticks(Math.min(5, data.cpus)).map((tick) =>
        s("g", { class: "tick" },
          s("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
          s("text", { x: MARGIN.left - 6, y: y(tick), dy: "0.32em", "text-anchor": "end" }, tick),
        ),
      ),
      paths,
      x.ticks(Math.max(2, Math.floor(width / 110))).map((tick) =>
        s("g", { class: "tick" }, s("text", { x: x(tick), y: HEIGHT - 10, "text-anchor": tick === 0 ? "start" : "middle" }, border(tick))),
      ),
    );
    handle.style.top = `${MARGIN.top}px`;
    handle.style.height = `${HEIGHT - MARGIN.top - MARGIN.bottom}px`;
    handle.style.left = `${position(current)}px`;
    graphic.replaceChildren(drawing, handle, readout);
  });
  graphic.addEventListener("pointerleave", leave);
  handle.addEventListener("blur", leave);

  return frame({
    title: "CPU over time",
    summary: [
      `Processors in use, of ${data.cpus}. Busy ${percent(share(used, used + idle))} of the observed time, idle ${percent(share(idle, used + idle))}`,
      used + idle < capacity * 0.98 ? `; ${percent(1 - share(used + idle, capacity))} was not recorded` : "",
      data.source === "cswitch" ? "; by context switches, which do not tell processes apart here" : "",
      most && data.source === "sample" ? `. Most by ${most.name}: ${duration(most.total_ns)}.` : ".",
    ],
    graphic,
    legend: h(
      "ul",
      { class: "legend" },
      data.series.map((series, number) =>
        h(
          "li",
          {
            onpointerenter: () => graphic.querySelectorAll(".band").forEach((path, at) => path.classList.toggle("dim", at !== number)),
            onpointerleave: () => graphic.querySelectorAll(".band").forEach((path) => path.classList.remove("dim")),
          },
          h("i", { class: `swatch ${band(series, number)}` }),
          h("span", { class: "name" }, series.name),
          ` ${duration(series.total_ns)}`,
        ),
      ),
    ),
    table: () =>
      dataTable(
        Array.from({ length: slices }, (_, slice) => slice),
        [
          { title: "from", cell: (slice) => duration(begin(slice)), key: (slice) => slice, head: true },
          ...data.series.map((series) => ({
            title: series.name,
            cell: (slice: number) => busy(series, slice).toFixed(2),
            key: (slice: number) => busy(series, slice),
          })),
        ],
        { caption: `Processors in use, in slices of ${duration(data.slice_ns)}` },
      ),
  });
}
