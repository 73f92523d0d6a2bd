// Pivot tables: numbers equal SQL, groups open, chips move, filters narrow, rows scroll, files are saved.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { hashOf, open, servers, settled, sql, stop, violations, viewOf } from "./harness.mjs";

after(stop);

const server = servers.real ? "real" : (Object.keys(servers)[0] ?? "demo");
const grid = (page) => page.locator(".grid").first();
const behind = async (page) => {
  const button = page.locator("[data-part=totals] .behind button, .box > header .behind button").first();
  if ((await button.getAttribute("aria-expanded")) === "false") await button.click();
  const text = await page.locator(".behind .sql code").first().textContent();
  await button.click();
  return text;
};

test("every preset shows what its SQL says, for a range and a filter too", async () => {
  const first = await open(server);
  const [from, to] = JSON.parse(await first.page.locator("main").getAttribute("data-scope"));
  const selection = [Math.round(from + (to - from) / 4), Math.round(from + (to - from) / 2)];
  await first.context.close();
  let compared = 0;
  for (const selected of [null, selection]) {
    for (const panel of ["threads", "images", "disk", "files", "memory", "clr", "events", "power", "bill"]) {
      const { page, wrong, context } = await open(server, { hash: hashOf({ panel, selection: selected }) });
      const preset = page.locator("[data-part=preset]");
      const names = (await preset.count()) ? await preset.locator("option").evaluateAll((all) => all.map((one) => one.value)) : [];
      for (const name of names) {
        await preset.selectOption(name);
        await settled(page);
        if (!(await page.locator("[data-part=totals]").count())) continue;
        const groups = Number((await page.locator("[data-part=totals] strong").first().textContent()).replaceAll(",", ""));
        const query = (await behind(page)).replace(/\nLIMIT \d+/, "");
        const rows = await sql(server, query);
        assert.equal(groups, rows.length, `${panel}: ${name}`);
        if (rows.length === 0) continue;
        // One that stands alone is open.
        if (groups > 1) assert.equal(Number(await grid(page).getAttribute("aria-rowcount")), Math.min(groups, 1000) + 1);
        else assert.equal(await grid(page).locator("[role=row][aria-level='1'], [role=row]:not([aria-level]):not(.head)").count(), 1);
        compared += rows.length;
      }
      assert.deepEqual(wrong, []);
      await context.close();
    }
  }
  assert.ok(compared > 100, `${compared} groups`);
});

test("callbacks of filters show their time with and without those inside them", { skip: !servers.demo }, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "minifilter" }) });
  for (const preset of ["By filter, operation, process", "Cost of filters"]) {
    await page.locator("[data-part=preset]").selectOption(preset);
    await settled(page);
    const heads = await grid(page).getByRole("columnheader").allInnerTexts();
    const at = heads.findIndex((one) => one.startsWith("Exclusive"));
    const [{ ns }] = await sql("demo", "SELECT sum(exclusive_ns) AS ns FROM minifilter GROUP BY module ORDER BY 1 DESC LIMIT 1");
    assert.equal(Number(await grid(page).locator(`[data-cell='0:${at}']`).textContent()), Number((ns / 1e9).toFixed(3)), heads.join());
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test("groups open with the keyboard, and their sums are those of their parent", async () => {
  const { page, wrong, context } = await open(server, { hash: hashOf({ panel: "events", settings: { events: { preset: "Kinds by provider and task" } } }) });
  const before = Number(await grid(page).getAttribute("aria-rowcount"));
  await grid(page).locator("[data-cell='0:0']").click();
  const count = async (row) => Number((await grid(page).locator(`[data-cell='${row}:2']`).textContent()).replaceAll(",", ""));
  const parent = await count(0);
  await page.keyboard.press("ArrowRight");
  await settled(page);
  await page.waitForFunction((n) => Number(document.querySelector(".grid").getAttribute("aria-rowcount")) > n, before);
  const opened = Number(await grid(page).getAttribute("aria-rowcount")) - before;
  let sum = 0;
  for (let row = 1; row <= Math.min(opened, 15); row += 1) sum += await count(row);
  assert.equal(await grid(page).locator("[role=row][aria-level='2']").first().getAttribute("aria-level"), "2");
  if (opened <= 15) assert.equal(sum, parent);
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal(Number(await grid(page).getAttribute("aria-rowcount")), before);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("chips move, change and go by keys alone; the address keeps them; reset brings the preset back", async () => {
  const { page, wrong, context } = await open(server, { hash: hashOf({ panel: "events" }) });
  await page.getByRole("button", { name: /^Grouped by provider/ }).focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.deepEqual((await viewOf(page)).settings.events.group, ["task", "provider", "name"]);
  await page.getByRole("button", { name: /^Grouped by task/ }).focus();
  await page.keyboard.press("Delete");
  await settled(page);
  assert.deepEqual((await viewOf(page)).settings.events.group, ["provider", "name"]);
  await page.getByLabel("value", { exact: true }).selectOption("id");
  await settled(page);
  assert.ok((await viewOf(page)).settings.events.values.some((value) => value.column === "id"));
  await page.getByRole("button", { name: "Reset" }).click();
  await settled(page);
  assert.equal((await viewOf(page)).settings.events.group ?? null, null);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a cell filters its table and all panels, from the menu and by keys", async () => {
  const { page, wrong, context } = await open(server, { hash: hashOf({ panel: "threads" }) });
  await grid(page).locator("[data-cell='0:0']").click();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: /^Filter all panels by/ }).click();
  await settled(page);
  assert.equal((await viewOf(page)).filters.length, 1);
  await grid(page).locator("[data-cell='0:0']").click();
  await page.keyboard.press("f");
  await settled(page);
  assert.equal(await page.locator(".conditions .filter").count(), 1);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("rows scroll to their end and are saved as they are shown", async () => {
  const { page, wrong, context } = await open(server, { hash: hashOf({ panel: "events", settings: { events: { mode: "rows" } } }) });
  const count = Number(await grid(page).getAttribute("aria-rowcount")) - 1;
  await grid(page).evaluate((element) => (element.scrollTop = element.scrollHeight));
  await settled(page);
  await page.waitForFunction((row) => (document.querySelector(`[data-cell='${row}:0']`)?.textContent ?? "…") !== "…", count - 1);
  const saving = page.waitForEvent("download");
  await page.locator("[data-part=file]").selectOption("csv");
  const text = readFileSync(await (await saving).path(), "utf8");
  assert.equal(text.trimEnd().split("\n").length - 1, count);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the tree of processes filters all panels by keys alone", async () => {
  const { page, wrong, context } = await open(server, { hash: hashOf({ panel: "processes" }) });
  await grid(page).locator("[data-cell='1:0']").click();
  await page.keyboard.press("p");
  await settled(page);
  assert.equal((await viewOf(page)).filters[0].kind, "process");
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a column is filtered by numbers, by texts and by an expression, with the numbers of SQL", { skip: !servers.demo }, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "disk", settings: { disk: { preset: "By process and file" } } }) });
  const rows = async () => Number((await page.locator("[data-part=totals] strong").nth(1).textContent()).replaceAll(",", ""));
  const menu = async (column, item) => {
    await grid(page).getByRole("columnheader").nth(column).click({ button: "right" });
    await page.getByRole("menuitem", { name: item }).click();
    await settled(page);
  };
  await grid(page).locator("[data-cell='0:0']").waitFor();
  const heads = await grid(page).getByRole("columnheader").allInnerTexts();
  await menu(heads.findIndex((one) => one.startsWith("Max duration")), "Filter …");
  await page.getByLabel("Unit", { exact: true }).selectOption("ms");
  await page.getByLabel("At least").fill("2");
  await page.getByLabel("At most").fill("5");
  await settled(page);
  const [{ n }] = await sql("demo", "SELECT count(*) AS n FROM disk_io WHERE dur_ns >= 2000000 AND dur_ns <= 5000000");
  assert.ok(n > 0);
  assert.match(await page.getByRole("dialog").innerText(), new RegExp(`${n.toLocaleString("en")} of 400 rows`));
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await rows(), n);
  await menu(0, /^Filter by .*path/);
  await page.getByLabel("How", { exact: true }).selectOption("does not match");
  await page.getByLabel("Text", { exact: true }).fill("(");
  await settled(page);
  assert.match(await page.getByRole("dialog").innerText(), /Invalid regular expression/);
  await page.getByLabel("Text", { exact: true }).fill("unit\\d*[02468]\\.");
  await settled(page);
  await page.keyboard.press("Enter");
  await settled(page);
  const paths = await sql("demo", "SELECT path, count(*) AS n FROM disk_io LEFT JOIN file USING (file_id) WHERE dur_ns >= 2000000 AND dur_ns <= 5000000 GROUP BY path");
  assert.equal(await rows(), paths.filter(({ path }) => !/unit\d*[02468]\./i.test(path ?? "")).reduce((sum, one) => sum + one.n, 0));
  assert.match(await page.locator(".conditions").innerText(), /not .*path matches \//);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a group that stands alone is open; one that somebody closed stays closed; nobody's time comes last", { skip: !servers.demo }, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  const [{ n }] = await sql("demo", "SELECT count(DISTINCT op) AS n FROM file_io");
  const shown = async () => Number(await grid(page).getAttribute("aria-rowcount")) - 1;
  await page.waitForFunction((rows) => Number(document.querySelector(".grid")?.getAttribute("aria-rowcount")) === rows, 2 + n);
  await grid(page).locator("[data-cell='0:0']").click();
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal(await shown(), 1);
  await page.goto(page.url().replace(/#.*/, hashOf({ panel: "bill" })));
  await page.waitForSelector("main[data-panel=bill]");
  await settled(page);
  await page.waitForFunction(() => document.querySelectorAll("[data-pane=bill] .grid [role=rowheader]").length > 3);
  const names = await grid(page).locator("[role=rowheader]").allInnerTexts();
  assert.ok(names.length > 3 && names.slice(-2).every((name) => /\[(idle|not observed|unattributed)\]/.test(name)), names.join());
  assert.deepEqual(wrong, []);
  await context.close();
});
