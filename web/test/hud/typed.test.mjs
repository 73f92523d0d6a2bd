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

test("names of columns are read as words, with letters that stand for words in capitals", async () => {
  const { title } = await of("../../hud/parts/pivot/model.ts");
  const words = {
    dpc_ns: "DPC", on_cpu_ns: "on CPU", cpus: "CPUs", in_isr: "in ISR", parent_pid: "parent PID", top_event_id: "top event ID", io_flags: "I/O flags", irp: "IRP",
    il_pdb_guid: "IL PDB GUID", dur_ns: "duration", upid: "process", "upid.pid": "process · PID", freed_by_upid: "freed by process", cpu_upid: "CPU process",
    dpcs_of_window: "DPCs of window", video: "video", ids: "IDs", "fields.cpu_id": "cpu_id",
  };
  for (const [name, wanted] of Object.entries(words)) assert.equal(title(name), wanted, name);
});
