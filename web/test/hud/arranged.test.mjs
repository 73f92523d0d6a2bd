// What people arrange: the order and heights of tracks, two panels side by side; fields of events as keys and values.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { covered, hashOf, open, servers, settled, sql, stop, tooWide, viewOf, violations } from "./harness.mjs";

after(stop);

const demo = servers.demo ? {} : { skip: "no server demo" };
const names = async (page) => (await page.locator(".tl-title:not(.cpu) > .cut").allTextContents());
const title = (page, name) => page.locator("button.tl-title", { hasText: name }).first();

test("tracks are put in another order and made higher, with the mouse and with keys", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files", settings: { timeline: { hidden: ["findings", "marks"] } } }) });
  const usual = ["CPU by process", "File time", "File operations", "Held by filters"];
  assert.deepEqual(await names(page), usual);

  // Keys: up by one, down again, and where nothing is above it stays.
  await title(page, "File operations").focus();
  await page.keyboard.press("Alt+ArrowUp");
  await settled(page);
  assert.deepEqual(await names(page), ["CPU by process", "File operations", "File time", "Held by filters"]);
  assert.equal(await page.evaluate(() => document.activeElement.textContent.startsWith("File operations")), true);
  for (let step = 0; step < 4; step += 1) await page.keyboard.press("Alt+ArrowUp");
  assert.equal((await names(page))[0], "File operations");
  const before = (await title(page, "File operations").boundingBox()).height;
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await settled(page);
  assert.equal((await title(page, "File operations").boundingBox()).height, before + 16);
  // One name is reached with Tab, arrows go to the next.
  assert.equal(await page.locator("button.tl-title[tabindex='0']").count(), 1);
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.textContent.startsWith("CPU by process")), true);

  // The mouse: a drag moves, a drag of the lower edge makes higher; neither selects text.
  const [from, to] = [await title(page, "File time").boundingBox(), await title(page, "File operations").boundingBox()];
  await page.mouse.move(from.x + 30, from.y + 8);
  await page.mouse.down();
  await page.mouse.move(from.x + 30, to.y + 20, { steps: 5 });
  await page.mouse.move(from.x + 30, to.y + 1, { steps: 5 });
  assert.equal(await page.locator(".tl-drop").count(), 1);
  await page.mouse.up();
  await settled(page);
  assert.deepEqual(await names(page), ["File time", "File operations", "CPU by process", "Held by filters"]);
  const edge = await title(page, "File time").boundingBox();
  await page.mouse.move(edge.x + 30, edge.y + edge.height - 2);
  await page.mouse.down();
  await page.mouse.move(edge.x + 30, edge.y + edge.height + 28, { steps: 5 });
  await page.mouse.up();
  await settled(page);
  assert.equal(Math.round((await title(page, "File time").boundingBox()).height), Math.round(edge.height) + 30);
  assert.equal(await page.evaluate(() => String(getSelection())), "");
  assert.deepEqual(await violations(page), []);

  // It stands in the link, is one with undo, and goes back.
  const { settings } = await viewOf(page);
  assert.equal(settings.timeline.order.length, 4);
  await page.getByRole("button", { name: "Lanes" }).click();
  await page.getByRole("button", { name: "Usual order and heights" }).click();
  await settled(page);
  assert.deepEqual(await names(page), usual);
  await page.keyboard.press("Control+z");
  await settled(page);
  assert.equal((await names(page))[0], "File time");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("two panels stand side by side and count the same part", demo, async () => {
  const { page, wrong, context, url } = await open("demo", { hash: hashOf({ panel: "files" }), viewport: { width: 1440, height: 900 } });
  await page.getByLabel("Show a second panel beside this one").selectOption("disk");
  await settled(page);
  const panes = () => page.locator("[data-pane]:visible").evaluateAll((all) => all.map((one) => one.dataset.pane));
  assert.deepEqual(await panes(), ["files", "disk"]);
  const count = async (pane) => Number(/of ([\d,]+) rows/.exec((await page.locator(`[data-pane=${pane}] [data-part=totals]`).innerText()).replace(/\s+/g, " "))[1].replaceAll(",", ""));
  const range = [2e9, 3e9];
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "files", beside: "disk", selection: range }));
  await settled(page);
  for (const [pane, table] of [["files", "file_io"], ["disk", "disk_io"]]) {
    const [{ n }] = await sql("demo", `SELECT count(*) AS n FROM ${table} WHERE ts_ns >= ${range[0]} AND ts_ns < ${range[1]}`);
    assert.ok(n > 0);
    assert.equal(await count(pane), n, pane);
  }
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(await tooWide(page), []);
  // There is half the room for what each panel can do.
  for (const panel of ["files", "disk", "stacks", "threads", "events", "interrupts", "precise"]) {
    await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: panel === "files" ? "disk" : "files", beside: panel }));
    await settled(page);
    assert.deepEqual(await covered(page), [], panel);
  }
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "files", beside: "disk" }));
  await settled(page);
  await page.getByRole("button", { name: "Swap sides" }).click();
  await settled(page);
  assert.deepEqual(await panes(), ["disk", "files"]);
  // Where there is no room for both, they are tabs.
  await page.setViewportSize({ width: 1024, height: 768 });
  assert.deepEqual(await panes(), ["disk"]);
  await page.locator(".pane-tab", { hasText: "Files" }).click();
  assert.deepEqual(await panes(), ["files"]);
  await page.getByRole("button", { name: "Close Files" }).click();
  await settled(page);
  assert.deepEqual(await panes(), ["disk"]);
  await page.keyboard.press("Control+z");
  await settled(page);
  assert.equal((await viewOf(page)).beside, "files");
  assert.ok(url.length > 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("fields of events are keys, values and conditions, with the numbers of SQL", demo, async () => {
  const where = [{ column: "name", op: "eq", value: "DiskIo/Read" }];
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "events", settings: { events: { preset: "Events by provider and name", where } } }) });
  await page.getByLabel("+ group").or(page.getByLabel("group", { exact: true })).first().selectOption("fields.TransferSize");
  await page.getByRole("button", { name: "Remove provider from groups" }).click();
  await page.getByRole("button", { name: "Remove event from groups" }).or(page.getByRole("button", { name: "Remove name from groups" })).first().click();
  await page.getByRole("button", { name: "Remove process from groups" }).click();
  await page.getByLabel("value", { exact: true }).selectOption("fields.TransferSize");
  await settled(page);
  const want = await sql("demo", "SELECT json_extract(fields, '$.TransferSize') AS size, count(*) AS n, sum(json_extract(fields, '$.TransferSize')) AS bytes FROM event WHERE name = 'DiskIo/Read' GROUP BY 1 ORDER BY 2 DESC, 1");
  assert.ok(want.length > 0 && want[0].n > 0);
  const grid = page.locator("main .grid").first();
  const rows = await grid.locator("[role=row]").evaluateAll((all) => all.slice(1).map((row) => [...row.querySelectorAll("[role=gridcell], [role=rowheader]")].map((one) => one.textContent)));
  const plain = (text) => Number(text.replaceAll(",", "").replace(/[^\d.]/g, ""));
  for (const [at, one] of want.slice(0, 5).entries()) {
    assert.equal(plain(rows[at][0]), one.size);
    assert.ok(rows[at].some((cell) => plain(cell) === one.n), `${rows[at]}: ${one.n}`);
    assert.ok(rows[at].some((cell) => plain(cell) === one.bytes), `${rows[at]}: ${one.bytes}`);
  }
  // The query that says the same, asked as it stands.
  await page.locator("[data-part=totals]").getByRole("button", { name: "SQL" }).click();
  const query = await page.locator(".behind .sql code").first().textContent();
  const again = await sql("demo", query);
  assert.deepEqual(again.map((row) => Object.values(row).slice(0, 2)), want.map((row) => [row.size, row.n]));
  await page.keyboard.press("Escape");

  // From a cell of the rows to groups.
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "events", settings: { events: { preset: "Events with their fields", where, columns: ["ts_ns", "fields"] } } }));
  await settled(page);
  const header = page.getByRole("columnheader", { name: /TransferSize/ });
  await header.click();
  await settled(page);
  await header.click();
  await settled(page);
  const [{ most }] = await sql("demo", "SELECT max(json_extract(fields, '$.TransferSize')) AS most FROM event WHERE name = 'DiskIo/Read'");
  const heads = await page.getByRole("columnheader").allTextContents();
  const place = heads.findIndex((one) => one.includes("TransferSize"));
  assert.match(heads.at(-1), /^Fields/, "what fields hold stands before the text of all of them");
  const first = grid.locator("[role=row]").nth(1).locator("[role=gridcell], [role=rowheader]").nth(place);
  assert.equal(plain(await first.textContent()), most);
  await first.click({ button: "right" });
  await page.getByRole("menuitem", { name: "Group by TransferSize" }).click();
  await settled(page);
  assert.equal((await viewOf(page)).settings.events.group[0], "fields.TransferSize");
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("what was open under other keys is no condition for the groups of new keys", demo, async () => {
  const where = [{ column: "name", op: "eq", value: "DiskIo/Read" }];
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "events", settings: { events: { preset: "Events by provider and name", where } } }) });
  const asked = [];
  page.on("request", (request) => request.url().endsWith("/pivot") && asked.push(JSON.parse(request.postData())));
  // One row of each level: both levels are open, and their values are texts.
  await page.getByRole("button", { name: "Remove provider from groups" }).click();
  await settled(page);
  assert.ok(asked.length > 0);
  for (const { where: conditions } of asked) {
    for (const { column, op, value } of conditions) if (column === "upid") assert.equal(typeof value, "number", `${column} ${op} ${value}`);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});
