// DPCs and ISRs, and precise CPU usage: what is written there equals SQL, also with keys alone.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hashOf, open, servers, settled, shot, sql, stop, violations, viewOf } from "./harness.mjs";

after(stop);

const there = "dpc" in servers ? {} : { skip: "no server with a DPC flood" };
const firstRow = (page, role, name) => page.getByRole(role, { name }).locator('[data-cell^="0:"]').allTextContents();
const count = (text) => Number(text.replaceAll(",", ""));

test("the driver that floods processors stands in the first sentence", there, async () => {
  const { page, wrong, context } = await open("dpc");
  await page.getByRole("navigation").getByRole("button", { name: "DPC/ISR" }).click();
  await settled(page);
  const sentence = await page.locator("[data-part=flood]").innerText();
  assert.match(sentence, /^ndis\.sys: .*m?s of CPU in [\d,]+ DPCs, .* of CPU 0, 2, 4, 6; [\d,]+ over 100.µs/);
  assert.match(sentence, /on their stacks IDSvia64\.sys\s*S/);
  const [row] = await sql("dpc", "SELECT count(*) AS n FROM dpc WHERE module = 'ndis.sys'");
  assert.equal(count(/in ([\d,]+) DPCs/.exec(sentence)[1]), row.n);
  await shot(page, "dpc-flood");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a range is counted as SQL counts it, in the table too", there, async () => {
  const first = await open("dpc");
  const [from, to] = JSON.parse(await first.page.locator("main").getAttribute("data-scope"));
  await first.context.close();
  const range = [Math.round(from + (to - from) * 0.3), Math.round(from + (to - from) * 0.6)];
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts", selection: range }) });
  const [row] = await sql("dpc", `SELECT count(*) AS n, sum(dur_ns > 100000) AS over FROM dpc WHERE module = 'ndis.sys' AND ts_ns >= ${range[0]} AND ts_ns < ${range[1]}`);
  const texts = await firstRow(page, "treegrid", "DPCs and ISRs by driver and routine");
  assert.equal(texts[0].trim().endsWith("ndis.sys"), true, texts[0]);
  assert.deepEqual([count(texts[2]), count(texts[10])], [row.n, row.over]);
  await page.locator(".panel").getByRole("button", { name: "Show as table" }).first().click();
  const bins = page.getByRole("grid", { name: /^Durations, ndis\.sys/ });
  assert.ok((await bins.getByRole("row").count()) > 3);
  assert.deepEqual(await violations(page), []);
  await shot(page, "dpc-table");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("classes of durations hold what SQL counts, ten to a decade; what is over the limit is behind its line", there, async () => {
  const response = await fetch(`${servers.dpc}api/v1/interrupts`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace: 0, range: null, filters: [] }) });
  const { drivers } = await response.json();
  const { bins, over_limit: over } = drivers.find((one) => one.class === "dpc" && one.module === "ndis.sys");
  for (const bin of bins) {
    const [{ n }] = await sql("dpc", `SELECT count(*) AS n FROM dpc WHERE module = 'ndis.sys' AND exclusive_ns > ${bin.above_ns} AND exclusive_ns <= ${bin.up_to_ns}`);
    assert.equal(bin.count, n, `${bin.above_ns}`);
    assert.ok(bin.above_ns === 0 || bin.up_to_ns / bin.above_ns < 1.3, `${bin.above_ns} to ${bin.up_to_ns}`);
  }
  assert.equal(bins.filter((bin) => bin.over_limit).reduce((sum, bin) => sum + bin.count, 0), over);
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  const limit = Number(await page.locator(".bins line.limit").getAttribute("x1"));
  const bars = await page.locator(".bins rect.bar").evaluateAll((all) => all.map((one) => [one.classList.contains("over"), Number(one.getAttribute("x")), Number(one.getAttribute("width"))]));
  assert.equal(bars.length, bins.length);
  for (const [isOver, x, width] of bars) assert.ok(isOver ? x >= limit : x + width <= limit + 1, `${isOver} ${x} ${width} ${limit}`);
  // What a class lists is what it counts.
  await page.locator(".bins rect.bar.over").first().click();
  await settled(page);
  const first = bins.find((bin) => bin.over_limit);
  assert.match(await page.locator(".pair").innerText(), new RegExp(`${first.count.toLocaleString("en")} DPCs of`));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("before and after lie over each other", there, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  const other = await page.getByLabel("Compare with").locator("option").count();
  // The other trace, if there is one; else the trace itself.
  await page.getByLabel("Compare with").selectOption(other > 3 ? "1" : "0");
  await settled(page);
  await page.waitForSelector(".bins .outline");
  assert.match(await page.locator(".warned").innerText(), /do not credit one of them/);
  const head = await page.getByRole("treegrid", { name: "DPCs and ISRs by driver and routine" }).getByRole("columnheader").allTextContents();
  assert.ok(["Exclusive before", "now", "difference", "×"].every((title) => head.some((one) => one.startsWith(title))), head.join());
  assert.deepEqual(await violations(page), []);
  await shot(page, "dpc-compared");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("lanes, tables and paths of threads by keys", there, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "precise" }) });
  await page.waitForSelector("canvas[data-part=lanes]");
  await settled(page);
  const texts = await firstRow(page, "grid", "Threads by what they did");
  const tid = Number.parseInt(texts[2], 10);
  const [row] = await sql("dpc", `SELECT count(*) AS n FROM cswitch JOIN thread ON utid = new_utid WHERE tid = ${tid}`);
  assert.equal(count(texts[7]), row.n);
  await page.locator("canvas[data-part=lanes]").focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  await settled(page);
  const { selection } = await viewOf(page);
  assert.ok(selection && selection[0] < selection[1]);
  await page.keyboard.press("p");
  await settled(page);
  const causes = page.getByRole("grid", { name: "What took the time, by cause" });
  await causes.waitFor();
  assert.ok((await causes.getByRole("row").count()) > 1);
  await shot(page, "precise-path");
  await page.locator(".panel").getByRole("button", { name: "Show as table" }).first().click();
  assert.ok((await page.getByRole("grid", { name: "States of threads over time" }).getByRole("row").count()) > 3);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("rows of drivers have a menu: durations, stacks, filter, track", there, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  const menu = async (grid, row, item) => {
    const cell = page.getByRole(grid.role, { name: grid.name }).locator(`[data-cell="${row}:0"], [data-cell="0:${row}"]`).first();
    await cell.scrollIntoViewIfNeeded();
    await cell.click({ button: "right" });
    const items = await page.locator("[role=menu] [role=menuitem]").allInnerTexts();
    if (item) await page.locator("[role=menu] [role=menuitem]", { hasText: item }).click();
    else await page.keyboard.press("Escape");
    await settled(page);
    return items.map((text) => text.split("\n")[0]);
  };
  const drivers = { role: "treegrid", name: "DPCs and ISRs by driver and routine" };
  assert.deepEqual((await menu(drivers, 0, "Add track")).slice(0, 4), ["Show durations", "Add track", "Open stacks", "Filter"]);
  await page.locator(".tl-title", { hasText: "DPCs of ndis.sys" }).waitFor();
  assert.deepEqual((await menu({ role: "grid", name: "Drivers on the stacks of DPCs and ISRs" }, 0, "Open stacks")).slice(0, 2), ["Open stacks", "Filter"]);
  assert.match(await page.locator("[data-part=found]").innerText(), /match/);
  assert.deepEqual(wrong, []);
  await context.close();
});
