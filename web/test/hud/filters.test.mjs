// Several filters: of those of one kind one is enough, of each kind one must hold, and what is left out is left out by each. In all views.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { tableFromIPC } from "@uwdata/flechette";
import { hashOf, open, servers, settled, shot, sql, stop, violations } from "./harness.mjs";

after(stop);

const demo = { skip: !servers.demo };

async function ask(name, body) {
  const response = await fetch(`${servers.demo}api/v1/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace: 0, ...body }) });
  const text = response.ok ? "" : await response.text();
  assert.equal(response.status, 200, `${name} ${JSON.stringify(body)}: ${text}`);
  if (/json/.test(response.headers.get("content-type"))) return response.json();
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()), { useBigInt: true });
  return { facts: JSON.parse(table.schema.metadata.get("etwhy.answer")), rows: table.toArray() };
}

const number = (value) => Number(value ?? 0);

/** The two processes with most CPU time, with their names. */
const heaviest = () => sql("demo", "SELECT upid, p.name || ' (' || p.pid || ')' AS label FROM sample JOIN process p USING (upid) WHERE p.pid <> 0 GROUP BY 1, 2 ORDER BY sum(weight_ns) DESC LIMIT 2");
const only = (kind, ...values) => values.map((value) => ({ kind, value, not: false }));
const without = (kind, ...values) => values.map((value) => ({ kind, value, not: true }));

test("two processes have the rows of both, in each table", demo, async () => {
  const [a, b] = (await heaviest()).map((one) => one.upid);
  const { tables } = await ask("schema", {});
  const of = tables.filter((one) => one.rows > 0 && one.columns.some((column) => column.role === "process"));
  assert.ok(of.length > 20, `${of.length} tables`);
  let both = 0;
  for (const { name } of of) {
    const rows = async (filters) => number((await ask("pivot", { table: name, group: [], values: [{ fn: "count" }], conditions: [], sort: [], filters, limit: 1 })).facts.rows);
    const [all, one, two, either, neither] = [await rows([]), await rows(only("process", a)), await rows(only("process", b)), await rows(only("process", a, b)), await rows(without("process", a, b))];
    assert.equal(either, one + two, name);
    assert.equal(neither, all - either, name);
    if (one > 0 && two > 0) both += 1;
  }
  assert.ok(both > 5, `${both} tables with rows of both`);
});

test("two processes, threads or processors have the weight of both, in each metric", demo, async () => {
  const [a, b] = (await heaviest()).map((one) => one.upid);
  const threads = (await sql("demo", "SELECT utid FROM sample WHERE utid IS NOT NULL AND NOT in_dpc AND NOT in_isr GROUP BY 1 ORDER BY sum(weight_ns) DESC LIMIT 2")).map((one) => one.utid);
  const { metrics } = await ask("schema", {});
  let both = 0;
  for (const { name } of metrics.filter((one) => one.there)) {
    const facts = async (filters) => (await ask("tree", { metric: name, by: [], steps: [], filters, most: 10 })).facts;
    for (const [kind, x, y] of [["process", a, b], ["thread", ...threads], ["cpu", 0, 1]]) {
      const [one, two, either] = [await facts(only(kind, x)), await facts(only(kind, y)), await facts(only(kind, x, y))];
      // A metric without such a column says so.
      if (either.unused.length > 0) continue;
      assert.equal(number(either.total), number(one.total) + number(two.total), `${name}: ${kind}`);
      if (either.sql && number(either.total) > 0) assert.equal(number((await sql("demo", either.sql))[0].total), number(either.total), either.sql);
      if (number(one.total) > 0 && number(two.total) > 0) both += 1;
    }
  }
  assert.ok(both > 5, `${both} metrics with weight of both`);
});

test("two modules are those that have one of both on the stack, and functions likewise; a process more is a condition more", demo, async () => {
  const [{ upid }] = await heaviest();
  const has = (name) => `stack_has(stack_id, '${name}')`;
  const busy = "upid IN (SELECT upid FROM process WHERE pid <> 0) AND NOT in_dpc AND NOT in_isr";
  for (const [kind, x, y] of [["module", "exflt.sys", "libiomp5md.dll"], ["frame", "build.exe!ReaderThread", "solver.exe!main"]]) {
    const sums = {};
    for (const [name, filters, where] of [
      ["one", only(kind, x), has(x)],
      ["two", only(kind, y), has(y)],
      ["either", only(kind, x, y), `(${has(x)} OR ${has(y)})`],
      ["neither", without(kind, x, y), `NOT (${has(x)} OR ${has(y)})`],
      ["either of one process", [...only(kind, x, y), ...only("process", upid)], `(${has(x)} OR ${has(y)}) AND upid = ${upid}`],
    ]) {
      const { facts } = await ask("tree", { metric: "cpu", by: [], steps: [], filters, most: 10 });
      const [{ n }] = await sql("demo", `SELECT coalesce(sum(weight_ns), 0) AS n FROM sample WHERE ${busy} AND ${where}`);
      sums[name] = number(facts.total);
      assert.equal(sums[name], n, `${kind} ${name}`);
      const rows = await ask("pivot", { table: "sample", group: [], values: [{ column: "weight_ns", fn: "sum" }], conditions: [], sort: [], filters, limit: 1 });
      assert.deepEqual(await sql("demo", rows.facts.sql).then((found) => number(Object.values(found[0])[0])), number(rows.facts.totals[0]), rows.facts.sql);
    }
    assert.ok(sums.one > 0 && sums.two > 0 && sums.either >= Math.max(sums.one, sums.two), JSON.stringify(sums));
  }
});

test("threads and lanes of two processes or processors are those of both", demo, async () => {
  const [a, b] = (await heaviest()).map((one) => one.upid);
  for (const [kind, x, y] of [["process", a, b], ["cpu", 0, 1]]) {
    const threads = async (filters) => (await ask("thread_states", { filters, sort: "run", search: "" })).sums.run_ns;
    const [one, two, either] = [await threads(only(kind, x)), await threads(only(kind, y)), await threads(only(kind, x, y))];
    assert.ok(one > 0 && two > 0);
    assert.equal(either, one + two, kind);
  }
  const [one, two, either] = await Promise.all([only("process", a), only("process", b), only("process", a, b)].map((filters) => ask("lanes", { filters, width: 64, lanes: ["ready", "disk", "network"] })));
  const total = (answer) => answer.facts.lanes.reduce((sum, lane) => sum + lane.series.reduce((all, series) => all + series.total, 0), 0);
  assert.ok(total(one) > 0 && total(two) > 0);
  assert.ok(Math.abs(total(either) - total(one) - total(two)) < 1);
  const cpus = (await ask("lanes", { filters: only("cpu", 0, 3), width: 64, lanes: ["cpu"] })).facts.lanes.map((lane) => lane.cpu).filter((cpu) => cpu !== null);
  assert.deepEqual(cpus.sort(), [0, 3]);
});

test("the verdict of two processes has what names one of both", demo, async () => {
  const named = async (filters) => (await ask("verdict", { range: null, filters })).named.map((one) => `${one.finding} ${one.hits}`);
  const people = await sql("demo", "SELECT upid, name FROM process WHERE name IN ('solver.exe', 'OrderService.exe') ORDER BY name");
  const [a, b] = people.map((one) => one.upid);
  const [one, two, either] = [await named(only("process", a)), await named(only("process", b)), await named(only("process", a, b))];
  assert.ok(one.length > 0 && two.length > 0);
  const ids = (list) => [...new Set(list.map((text) => text.split(" ")[0]))].sort();
  assert.deepEqual(ids(either), ids([...one, ...two]));
  const others = await ask("verdict", { range: null, filters: without("process", a, b) });
  for (const id of ids(either).filter((id) => others.report.findings.find((finding) => finding.id === id).hits.every((hit) => /solver|OrderService/.test(hit.culprit)))) {
    assert.ok(!others.named.some((found) => found.finding === id), id);
  }
  assert.deepEqual(others.excluded.map((person) => person.name).sort(), ["OrderService.exe", "solver.exe"]);
});

test("filters of a kind stand together, one of them is enough, and the verdict says for whom it is", demo, async () => {
  const [a, b] = await heaviest();
  const filter = (one, not = false) => ({ kind: "process", value: one.upid, label: one.label, ...(not ? { not } : {}) });
  const { page, wrong, context } = await open("demo", { viewport: { width: 1440, height: 900 }, hash: hashOf({ panel: "threads", filters: [filter(a), { kind: "cpu", value: 0, label: "0" }, filter(b)] }) });
  const crumbs = async () => (await page.locator(".crumbs .filter").allInnerTexts()).map((text) => text.replace("×", "").trim());
  assert.deepEqual(await crumbs(), [`process ${a.label}`, `or ${b.label}`, "cpu 0"]);
  await page.getByRole("button", { name: "Drop the filter cpu 0" }).click();
  await settled(page);
  const names = await page.locator("[role=treegrid] [role=row]").allInnerTexts();
  for (const { label } of [a, b]) assert.ok(names.some((text) => text.includes(label)), `${label} in ${names.join()}`);
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "overview", filters: [filter(a), filter(b)] }));
  await settled(page);
  await page.getByRole("button", { name: /^Find the cause within/ }).click();
  await page.getByRole("button", { name: "Back to the whole trace" }).waitFor({ timeout: 60_000 });
  await settled(page);
  const said = await page.locator(".within").innerText();
  assert.ok(said.includes(`${a.label} or ${b.label}`), said);
  assert.deepEqual(await violations(page), []);
  await shot(page, "two-processes");
  // A process that is left out.
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "overview", filters: [filter(a, true)] }));
  await settled(page);
  const others = await page.locator(".within").innerText();
  assert.ok(others.includes(`others than ${a.label}`), others);
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "threads", filters: [filter(a, true)] }));
  await settled(page);
  assert.ok(!(await page.locator("[role=treegrid] [role=row]").allInnerTexts()).some((text) => text.includes(a.label)));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("filters by process leave DPCs and ISRs alone in each part of their panel", demo, async () => {
  const [{ upid, label }] = await heaviest();
  const seen = async (filters) => {
    const { context, page } = await open("demo", { hash: hashOf({ panel: "interrupts", filters }) });
    const text = await page.locator("main .panel").innerText();
    const [, count] = /Count\s+([\d,]+)/.exec(text);
    const [, listed] = /The longest of ([\d,]+),/.exec(text);
    const [, total] = /^DPC\s*(.+)$/.exec(await page.locator(".tl-title", { hasText: /^DPC\s*\d/ }).innerText().then((text) => text.replaceAll("\n", " ")));
    await context.close();
    return { count, listed, total, ignored: /Filters by process do not apply/.test(text) };
  };
  const [all, one] = [await seen([]), await seen([{ kind: "process", value: upid, label }])];
  assert.equal(all.listed, all.count);
  assert.deepEqual(one, { ...all, ignored: true });
});

test("what is nobody's has no colour of a program; numbers of things agree with their names", demo, async () => {
  for (const name of Object.keys(servers)) {
    const { context, page } = await open(name, { hash: hashOf({ panel: "bill" }) });
    const colors = await page.$$eval("main .swatch", (all) => all.filter((one) => /^\[/.test(one.parentElement.textContent)).map((one) => one.style.backgroundColor));
    assert.deepEqual(colors.filter((color) => color !== "var(--os)"), [], name);
    for (const panel of ["memory", "bill", "overview", "processes"]) {
      await page.goto(`${servers[name]}${hashOf({ panel })}`);
      await page.waitForSelector(`main[data-panel=${panel}]`);
      await settled(page);
      const text = await page.evaluate(() => document.body.innerText);
      assert.deepEqual(text.match(/(?<![\d.,])1 (?:rows|groups|processes|events|buffers|threads|processors|types|values|kinds of|patterns were|questions)\b.*/g) ?? [], [], `${name}, ${panel}`);
    }
    await context.close();
  }
});
