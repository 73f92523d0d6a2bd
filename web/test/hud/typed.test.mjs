// What the page takes from a trace and lets somebody copy or read.

import assert from "node:assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const of = async (path) => {
  const built = await build({ entryPoints: [fileURLToPath(new URL(path, import.meta.url))], bundle: true, write: false, format: "esm", jsx: "automatic", jsxImportSource: "preact" });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);
};

test("a file's name behind a command is no command", async () => {
  const { typed } = await of("../../hud/parts/typed.ts");
  assert.equal(typed("C:\\traces\\a.etl"), "C:\\traces\\a.etl");
  assert.equal(typed("my trace (1).etl"), '"my trace (1).etl"');
  for (const name of ["a$(calc).etl", "a;b.etl", "a`b`.etl", "-x", 'a"b.etl', "a&calc.etl", "a\nb", "%PATH%.etl", ""]) assert.equal(typed(name), "FILE", name);
});
