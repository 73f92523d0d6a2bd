/** Cost of a call against the number of earlier calls, with the law that fits it best. */

import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import type { GrowthCurve } from "../charts.ts";
import { h, onWidth, s } from "../lib/dom.ts";
import { bytes, count, duration, number, percent } from "../lib/format.ts";
import { frame } from "./frame.ts";
import { dataTable } from "./table.ts";

const HEIGHT = 240;
const MARGIN = { top: 14, right: 16, bottom: 42, left: 64 };

/** f(n) of the model. */
const LAWS: Record<string, (n: number) => number> = {
  "1": () => 1,
  "log n": (n) => Math.log(Math.max(1, n)),
  "n^0.5": (n) => Math.sqrt(n),
  n: (n) => n,
  "n log n": (n) => n * Math.log(Math.max(1, n)),
  "n^1.5": (n) => n ** 1.5,
  "n^2": (n) => n ** 2,
  "n^3": (n) => n ** 3,
};

/** The chart of one operation. */
export function growth(data: GrowthCurve): HTMLElement {
  const graphic = h("div", { class: "graphic growth" });
  const law = LAWS[data.model];
  const { a, b } = data;
  const sizes = data.predictor === "size_bytes";
  const amount = sizes ? bytes : count;
  const most = Math.max(1, ...data.points.map((point) => point.n_mid));
  const fitted: [number, number][] =
    law && a !== null && b !== null
      ? Array.from({ length: 60 }, (_, at) => (most * at) / 59).map((n) => [n, a + b * law(n)])
      : data.points.flatMap((point) => (point.fit_ns === null ? [] : [[point.n_mid, point.fit_ns] as [number, number]]));
  const top = Math.max(1, ...data.points.map((point) => point.cost_ns), ...fitted.map((point) => point[1]));
  onWidth(graphic, (width) => {
    const x = scaleLinear([0, most], [MARGIN.left, width - MARGIN.right]);
    const y = scaleLinear([0, top * 1.05], [HEIGHT - MARGIN.bottom, MARGIN.top]);
    const floor = HEIGHT - MARGIN.bottom;
    graphic.replaceChildren(
      s(
        "svg",
        { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Cost per call of ${data.operation} against earlier calls; the same figures stand in the table` },
        y.ticks(4).map((tick) =>
          s("g", { class: "tick" },
            s("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
            s("text", { x: MARGIN.left - 6, y: y(tick), dy: "0.32em", "text-anchor": "end" }, tick === 0 ? "0" : duration(tick)),
          ),
        ),
        x.ticks(Math.max(2, Math.floor(width / 130))).map((tick) =>
          s("g", { class: "tick" }, s("text", { x: x(tick), y: floor + 18, "text-anchor": "middle" }, amount(tick))),
        ),
        s("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: floor, y2: floor }),
        s("path", { class: "fit", d: line()(fitted.map(([n, ns]) => [x(n), y(ns)])) ?? "" }),
        data.points.map((point) =>
          s("circle", { class: "point", cx: x(point.n_mid), cy: y(point.cost_ns), r: 3 },
            s("title", {}, `${sizes ? bytes(point.n_mid) : `after ${count(point.n_mid)} calls`}: ${duration(point.cost_ns)} each, ${count(point.calls)} calls`)),
        ),
        s("text", { class: "label", x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, sizes ? "size of a call" : "earlier calls"),
      ),
    );
  });
  const exponent = data.exponent === null
    ? ""
    : ` Exponent ${number(data.exponent)}${data.exponent_low !== null && data.exponent_high !== null ? `, between ${number(data.exponent_low)} and ${number(data.exponent_high)} with 95 % confidence` : ""}.`;
  return frame({
    title: `${data.operation}, ${data.name}`,
    summary: [
      `${data.why.charAt(0).toUpperCase()}${data.why.slice(1).replace(/\.$/, "")}. Law of one call: `,
      h("strong", {}, data.model),
      ".",
      exponent,
      data.weight === null ? "" : ` Weight of the model ${percent(data.weight)}.`,
      data.cost_10x_ns === null ? "" : ` At ten times ${sizes ? "the size" : "as many calls"}, one will take about ${duration(data.cost_10x_ns)}.`,
      ` All of them took ${duration(data.total_ns)}${data.excess_ns ? `, of it ${duration(data.excess_ns)} because of growth` : ""}.`,
      data.function ? [" It grows in ", h("code", {}, data.function), data.caller ? [", called by ", h("code", {}, data.caller)] : "", "."] : "",
    ],
    graphic,
    legend: h(
      "ul",
      { class: "legend" },
      h("li", {}, h("i", { class: "swatch dot" }), "measured"),
      fitted.length > 0 && h("li", {}, h("i", { class: "swatch stroke" }), `fit: a + b · ${data.model}`),
    ),
    table: () =>
      dataTable(
        data.points,
        [
          { title: sizes ? "size" : "earlier calls", cell: (point) => amount(point.n_mid), key: (point) => point.n_mid, head: true },
          { title: "calls", cell: (point) => count(point.calls), key: (point) => point.calls },
          { title: "cost of a call", cell: (point) => duration(point.cost_ns), key: (point) => point.cost_ns },
          { title: "fit", cell: (point) => (point.fit_ns === null ? "–" : duration(point.fit_ns)), key: (point) => point.fit_ns ?? 0 },
        ],
        { caption: `Cost per call of ${data.operation}` },
      ),
  });
}
