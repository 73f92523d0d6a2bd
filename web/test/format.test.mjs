// Numbers on the page read as those in the terminal: formats.json holds what Rust writes.

import assert from "node:assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const built = await build({ entryPoints: [file("../src/lib/format.ts")], bundle: true, write: false, format: "esm" });
const format = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);

for (const [name, cases] of Object.entries(JSON.parse(readFileSync(file("formats.json"), "utf8")))) {
  test(name, () => {
    // Blanks within a quantity do not break on the page.
    const shown = cases.map(([value]) => [value, format[name](name === "count" ? Math.abs(value) : value).replaceAll("\u00a0", " ")]);
    assert.deepEqual(shown, cases);
  });
}

test("numbers of a list have one unit and one number of decimals, chosen by the largest", async () => {
  const { outputFiles } = await build({ entryPoints: [file("../hud/parts/grid/amounts.ts")], bundle: true, write: false, format: "esm" });
  const { alike, scalesOf, textsOf } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
  const list = (unit, values) => values.map((value) => alike(unit, values).text(value).replaceAll("\u00a0", " "));
  assert.deepEqual(list("ns", [98.3e9, 44.5e9, 646e6, 1e3]), ["98.30 s", "44.50 s", "0.65 s", "<0.01 s"]);
  assert.deepEqual(list("ns", [950, 12]), ["950 ns", "12 ns"]);
  assert.deepEqual(list("percent", [96, 0.0125, 0]), ["96.0 %", "<0.1 %", "0.0 %"]);
  assert.deepEqual(list("bytes", [3 * 1024 ** 2, 512 * 1024]), ["3.000 MiB", "0.500 MiB"]);
  assert.deepEqual(list("count", [191_789, 3]), ["191,789", "3"]);
  assert.deepEqual(list("none", [0.02, 0.00299]), ["0.02000", "0.00299"]);
  // Columns that are parts of each other share the unit; what is not known is no number.
  const column = (values, more = {}) => ({ amounts: { unit: "ns", of: (row) => values[row], ...more } });
  const columns = [column([30.45e9, 6.85e9], { with: "time" }), column([0, 5.88e6], { with: "time" }), column([null, 5.88e6]), column([-2e6, 1e6], { signed: true })];
  const scales = scalesOf(columns, 2);
  assert.deepEqual(scales.map((one) => one.unit), ["s", "s", "ms", "ms"]);
  const text = textsOf(columns, scales, () => "");
  assert.deepEqual([0, 1].map((row) => columns.map((_, at) => text(row, at))), [["30.45", "0.00", "–", "−2.000"], ["6.85", "0.01", "5.880", "+1.000"]]);
});
