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
