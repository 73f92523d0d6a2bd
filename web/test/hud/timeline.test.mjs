// The timeline: its numbers are those of its SQL, a drag selects, Enter zooms, keys speak.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { tableFromIPC } from "@uwdata/flechette";
import { hashOf, kinds, open, servers, settled, shot, sql, stop, viewOf, violations } from "./harness.mjs";

after(stop);

async function lanes(name, body) {
  const response = await fetch(`${servers[name]}api/v1/lanes`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace: 0, ...body }) });
  assert.equal(response.status, 200);
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()), {});
  return { facts: JSON.parse(table.schema.metadata.get("etwhy.answer")), rows: table.numRows };
}

const near = (a, b, what) => assert.ok(Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b)), `${what}: the lane says ${a}, SQL ${b}`);

for (const name of kinds) {
  test(`${name}: lanes add up to what their SQL says`, async () => {
    const { facts: whole } = await lanes(name, { width: 700 });
    const [first, end] = [whole.start_ns, whole.start_ns + whole.bucket_ns * whole.count];
    const middle = (first + end) / 2;
    let compared = 0;
    for (const half of [(end - first) / 2, (end - first) / 7, 500_000]) {
      const { facts } = await lanes(name, { range: [Math.round(middle - half), Math.round(middle + half)], width: 900 });
      for (const lane of facts.lanes) {
        if (!lane.sql || lane.shape === "marks" || lane.shape === "level") continue;
        const rows = await sql(name, lane.sql);
        const cpu = lane.kind === "cpu" || lane.kind === "process";
        if (lane.kind === "process" && lane.source !== "cswitch") continue;
        const own = lane.series.filter((band) => !cpu || (lane.source === "sample" || !["dpc", "isr"].includes(band.band)) && band.name !== "not recorded" && !["kernel", "user"].includes(band.band));
        const column = ["ran_ns", "busy_ns", "request_ns", "bytes", "ready_ns", "faults", "idle_ns"].find((one) => rows[0] && one in rows[0]);
        const sum = rows.reduce((total, row) => total + (row[column] ?? 0), 0);
        // Processors without switches are drawn from samples, which the query over switches does not have.
        if (lane.kind !== "process") near(own.reduce((total, band) => total + band.total, 0), sum, `${name} ${lane.id} ${half}`);
        for (const band of own.filter((one) => one.band === "process" && lane.kind === "process")) {
          const row = rows.find((one) => `${one.name} (${one.pid})` === band.name);
          near(band.total, row?.ran_ns ?? 0, `${name} ${lane.id} ${band.name}`);
        }
        compared += 1;
      }
    }
    assert.ok(compared > 3);
  });

  test(`${name}: a drag selects, a double click zooms, Backspace undoes`, async () => {
    const { page, wrong, context } = await open(name);
    await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
    const box = await page.locator('[data-part="timeline"] canvas').boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 110);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 110, { steps: 4 });
    await page.mouse.move(box.x + box.width * 0.6, box.y + 110, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    const { selection } = await viewOf(page);
    assert.ok(selection && selection[0] < selection[1]);
    assert.equal(await page.locator("main").getAttribute("data-scope"), JSON.stringify(selection));
    await shot(page, `${name}-timeline-selected`);
    await page.mouse.dblclick(box.x + box.width * 0.5, box.y + 110);
    await settled(page);
    assert.deepEqual((await viewOf(page)).zoom, selection);
    await shot(page, `${name}-timeline-zoomed`);
    await page.keyboard.press("Backspace");
    await settled(page);
    assert.equal((await viewOf(page)).zoom ?? null, null);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("the keyboard alone moves, selects, zooms and speaks", async () => {
  const { page, wrong, context } = await open("demo");
  await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
  await page.locator('[data-part="timeline"] canvas').focus();
  for (let turn = 0; turn < 3; turn += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  assert.ok((await page.locator('[data-part="timeline-spoken"]').textContent()).length > 10);
  for (let turn = 0; turn < 8; turn += 1) await page.keyboard.press("Shift+ArrowRight");
  const { selection } = await viewOf(page);
  assert.ok(selection && selection[1] > selection[0]);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.deepEqual((await viewOf(page)).zoom, selection);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("back shows the selection as it was left, however quickly", async () => {
  const { page, wrong, context } = await open("demo");
  await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
  await page.locator('[data-part="timeline"] canvas').focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  for (let turn = 0; turn < 8; turn += 1) await page.keyboard.press("Shift+ArrowRight");
  await page.locator(".rail button", { hasText: /^SQL$/ }).click();
  await page.goBack();
  await page.waitForSelector("main:not([data-panel=sql])");
  const { selection } = await viewOf(page);
  assert.ok(selection && selection[1] > selection[0]);
  assert.deepEqual(JSON.parse(await page.locator("main").getAttribute("data-scope")), selection);
  // The panel that was gone to has what was selected when it was left, however late that was drawn.
  await page.goForward();
  await page.waitForSelector("main[data-panel=sql]");
  assert.deepEqual((await viewOf(page)).selection, selection);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the table holds what is drawn, and nothing of the timeline shuts anybody out", async () => {
  const { page, wrong, context } = await open("demo");
  await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Show as table" }).first().click();
  await settled(page);
  assert.ok(Number(await page.getByRole("grid", { name: "Lanes of the timeline" }).getAttribute("aria-rowcount")) > 20);
  await shot(page, "demo-timeline-table");
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a zoom that is still drawn belongs to the panel that is left, and a list that opens takes the next key", async () => {
  const { page, wrong, context } = await open("demo");
  await page.locator(".rail button", { hasText: "Files" }).click();
  await settled(page);
  await page.evaluate(() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }));
    [...document.querySelectorAll(".rail button")].find((one) => one.textContent.includes("Disk")).click();
  });
  const { zoom, panel } = await viewOf(page);
  assert.equal(panel, "disk");
  assert.ok(zoom);
  await page.goBack();
  const left = await viewOf(page);
  assert.deepEqual([left.panel, left.zoom], ["files", zoom]);
  const focused = await page.evaluate(async () => {
    document.querySelector(".rail .all").click();
    while (!document.querySelector(".flyout input")) await Promise.resolve();
    return document.activeElement === document.querySelector(".flyout input");
  });
  assert.ok(focused, "a key before the next frame would go to the page below");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".flyout").count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("no panel asks a question twice, and the strip of the whole trace is asked for once", { skip: !servers.demo }, async () => {
  const { page, context, url } = await open("demo");
  let asked = [];
  page.on("request", (request) => request.method() === "POST" && asked.push(`${request.url().slice(url.length)} ${request.postData()}`));
  for (const panel of await page.evaluate(() => window.etwhyPanels)) {
    asked = [];
    await page.evaluate((hash) => (location.hash = hash), hashOf({ panel }));
    await page.waitForSelector(`main[data-panel=${panel}]`);
    await settled(page);
    assert.deepEqual(asked.filter((one, at) => asked.indexOf(one) !== at || /"width":600|"findings":true/.test(one)), [], panel);
  }
  // Who comes back finds all of it, groups that stand open by themselves too.
  for (const panel of ["disk", "network", "memory", "files", "threads", "stacks", "precise", "interrupts", "overview"]) {
    asked = [];
    await page.evaluate((hash) => (location.hash = hash), hashOf({ panel }));
    await page.waitForSelector(`main[data-panel=${panel}]`);
    await settled(page);
    assert.deepEqual(asked, [], `back to ${panel}`);
  }
  await context.close();
});
