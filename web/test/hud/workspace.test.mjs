// The page as a workspace: search, tables, notes, tracks of each panel, narrow windows, forced colours.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hashOf, open, panelTitles, servers, settled, sql, stop, tooWide, viewOf, violations, visit } from "./harness.mjs";

after(stop);

const demo = servers.demo ? {} : { skip: "no server demo" };
const dpc = servers.dpc ? {} : { skip: "no server dpc" };
const grid = (page) => page.locator("main .grid").first();
const titles = (page) => page.locator("[data-part=timeline] .tl-title").allInnerTexts();

async function find(page, text) {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(text);
  await page.locator("#omnibox-list [role=option]").first().waitFor();
  // What is looked for on the server comes a moment later.
  await page.waitForTimeout(600);
  await settled(page);
}

test("the search puts the exact name first: a process is a process, a function opens its callers, a file its operations", demo, async () => {
  const { page, wrong, context } = await open("demo");
  await find(page, "build.exe");
  assert.match(await page.locator("#omnibox-list [role=option]").first().innerText(), /^process\s+build\.exe/);
  await page.keyboard.press("Enter");
  await settled(page);
  const { filters } = await viewOf(page);
  assert.deepEqual(filters.map((one) => [one.kind, one.label]), [["process", "build.exe (1008)"]]);
  await page.keyboard.press("Control+z");
  await find(page, "__kmp_wait_template");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await page.locator("main").getAttribute("data-panel"), "stacks");
  assert.match(await page.locator(".stack-sum").textContent(), /__kmp_wait_template/);
  await find(page, "unit100.obj");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await page.locator("main").getAttribute("data-panel"), "files");
  assert.match(await grid(page).innerText(), /unit100\.obj/);
  await page.keyboard.press("Control+k");
  await page.keyboard.type(">theme: dark");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("all of a header cell sorts; a double click selects no text; every column has one unit", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  for (const share of [0.12, 0.5, 0.7]) {
    const cell = page.getByRole("columnheader").nth(3);
    const before = await cell.getAttribute("aria-sort");
    const box = await cell.boundingBox();
    await page.mouse.click(box.x + box.width * share, box.y + box.height / 2);
    await settled(page);
    assert.notEqual(await page.getByRole("columnheader").nth(3).getAttribute("aria-sort"), before, `at ${share}`);
  }
  await page.getByRole("button", { name: "Open all" }).click();
  await settled(page);
  await page.waitForFunction(() => document.querySelectorAll('main .grid [aria-level="3"]').length > 0);
  const cells = await grid(page).locator('.row:not(.head) [aria-colindex="3"]').allTextContents();
  assert.ok(cells.length > 3);
  assert.ok(cells.every((text) => /^[\d.,]+$/.test(text)), cells.slice(0, 5).join());
  assert.match(await page.getByRole("columnheader").nth(2).innerText(), /Duration\s*(ns|µs|ms|s)/);
  await grid(page).locator('[data-cell="2:0"]').dblclick();
  assert.equal(await page.evaluate(() => String(getSelection())), "");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("selected rows have their sum, and are copied as numbers", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "threads" }) });
  await grid(page).locator('[data-cell="0:0"]').click();
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  const foot = page.locator(".grid-foot");
  assert.match(await foot.innerText(), /3 rows selected/);
  await foot.getByRole("button", { name: "Copy TSV" }).click();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split("\n").map((line) => line.split("\t"));
  assert.equal(lines.length, 4);
  const at = lines[0].findIndex((title) => /^CPU \(/.test(title));
  const factor = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[/\((.+)\)/.exec(lines[0][at])[1]];
  const sum = lines.slice(1).reduce((total, line) => total + Number(line[at]) * factor, 0);
  const rows = await sql("demo", "SELECT sum(cpu_ns) AS ns FROM thread_time WHERE upid NOT IN (SELECT upid FROM process WHERE pid = 0) GROUP BY upid ORDER BY ns DESC LIMIT 3");
  assert.equal(Math.round(sum), rows.reduce((total, row) => total + row.ns, 0));
  await foot.getByRole("button", { name: "JSON" }).click();
  assert.equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).length, 3);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a row that is selected stands in the inspector, with what can be done", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "threads" }) });
  await grid(page).locator('[data-cell="0:0"]').click();
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  assert.match(await inspector.innerText(), /solver\.exe \(1012\)/);
  await inspector.getByRole("button", { name: "Filter", exact: true }).click();
  await settled(page);
  assert.equal((await viewOf(page)).filters[0].label, "solver.exe (1012)");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a group of a table becomes a track, on every panel, with the same sum", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  await grid(page).locator('[data-cell="0:0"]').click();
  await page.getByRole("complementary", { name: "Inspector" }).getByRole("button", { name: "Add track" }).click();
  await settled(page);
  const name = (await grid(page).locator('[data-cell="0:0"] [data-knows]').innerText()).trim();
  await visit(page, "Ledger");
  await page.waitForFunction((name) => [...document.querySelectorAll(".tl-title")].some((one) => one.textContent.startsWith(name)), name);
  const said = (await titles(page)).find((title) => title.startsWith(name));
  const [row] = await sql("demo", "SELECT sum(dur_ns) AS n FROM file_io GROUP BY upid ORDER BY n DESC LIMIT 1");
  assert.equal(Number(/([\d.]+).ms/.exec(said)[1]), row.n / 1e6);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a frame that is selected stands in the inspector with its stack", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "stacks", settings: { stacks: { tab: "tree" } } }) });
  await page.locator("[data-part=tree]").getByText("solver.exe (1012)").first().click();
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  assert.match(await inspector.innerText(), /Inclusive[\s\S]*Calls[\s\S]*Stack/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("each panel brings the tracks that belong to it", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
  const files = (await titles(page)).join("\n");
  assert.match(files, /File time[\s\S]*File operations[\s\S]*Held by filters/);
  assert.doesNotMatch(files, /by processor/);
  await visit(page, ".NET");
  await page.waitForFunction(() => [...document.querySelectorAll(".tl-title")].some((one) => one.textContent.startsWith("GC pauses")));
  await visit(page, "Overview");
  await page.waitForFunction(() => [...document.querySelectorAll(".tl-title")].some((one) => one.textContent.includes("Busy by processor")));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("tracks add up to what their table holds", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  await page.waitForSelector('[data-part="timeline"][data-ready="true"]');
  const said = (await titles(page)).find((title) => title.startsWith("File operations"));
  const [row] = await sql("demo", "SELECT count(*) AS n FROM file_io");
  assert.equal(Number(/([\d,]+)$/.exec(said.trim())[1].replaceAll(",", "")), row.n);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a note stands on the time axis, in the link, and comes back with the trace", demo, async () => {
  const { page, wrong, context, url } = await open("demo");
  await page.keyboard.press("n");
  await page.getByRole("dialog", { name: "Notes on the time axis" }).getByRole("textbox").first().fill("here it begins");
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await settled(page);
  assert.equal((await viewOf(page)).settings.notes.list[0].text, "here it begins");
  assert.ok((await titles(page)).some((title) => title.startsWith("Notes")));
  await page.goto("about:blank");
  await page.goto(url);
  await page.waitForSelector("main[data-panel]");
  await settled(page);
  assert.equal((await viewOf(page)).settings.notes.list[0].text, "here it begins");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a view that was saved is found by its name", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "events", settings: { events: { group: ["name"] } } }) });
  await page.keyboard.press("Control+k");
  await page.keyboard.type(">save this view");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Saved views" }).getByRole("textbox").fill("by name alone");
  await page.keyboard.press("Enter");
  await visit(page, "Overview");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("by name alone");
  await page.keyboard.press("Enter");
  await settled(page);
  const now = await viewOf(page);
  assert.equal(now.panel, "events");
  assert.deepEqual(now.settings.events.group, ["name"]);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a class of DPC durations lists its DPCs; one of them leads to the time axis", dpc, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  await page.locator(".bins .bin").last().click();
  await settled(page);
  const list = page.getByRole("grid", { name: "Longest DPCs" });
  assert.ok((await list.getByRole("row").count()) > 1);
  await list.locator('[data-cell="0:2"]').click();
  await page.getByRole("complementary", { name: "Inspector" }).getByRole("button", { name: "Show on time axis" }).click();
  await settled(page);
  const { selection } = await viewOf(page);
  const [longest] = await sql("dpc", "SELECT start_ns, ts_ns FROM dpc WHERE module = 'ndis.sys' ORDER BY exclusive_ns DESC LIMIT 1");
  assert.deepEqual(selection, [longest.start_ns, longest.ts_ns]);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("compare: what was not there is new, both bases stand there, histograms lie over each other", dpc, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "compare", trace: 0, other: { trace: 1, range: null } }) });
  const table = page.getByRole("grid", { name: "Programs, drivers, functions" });
  const first = await table.locator('[data-cell^="0:"]').allTextContents();
  assert.match(first[0], /MatchRules/);
  assert.equal(first[4], "new");
  assert.doesNotMatch(await page.locator(".panel").innerText(), /may be chance/);
  // Beside it stand the stacks, coloured by the same difference: what cost the same in A is grey, however small its share became.
  const flame = page.getByRole("region", { name: "Differential flame", exact: true });
  const [left, right] = [await table.boundingBox(), await flame.boundingBox()];
  assert.ok(right.x > left.x + left.width && right.y < left.y, JSON.stringify([left, right]));
  await flame.locator("[data-part=boxes]").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const card = await page.getByRole("complementary", { name: "Inspector" }).innerText();
  const busy = (trace) => sql("dpc", "SELECT sum(weight_ns) AS busy, sum(CASE WHEN in_dpc THEN weight_ns ELSE 0 END) AS dpc FROM sample WHERE in_dpc OR in_isr OR coalesce(upid, -1) NOT IN (SELECT upid FROM process WHERE pid = 0)", trace);
  const [[now], [was]] = [await busy(0), await busy(1)];
  assert.match(card, /\[DPC\]/);
  assert.ok(card.includes(`▲ +${((100 * (now.dpc - was.dpc)) / now.busy).toFixed(2)}`), card);
  await page.getByRole("button", { name: "Per second" }).click();
  assert.match(await table.getByRole("columnheader").nth(1).innerText(), /cores/);
  assert.equal(await page.locator("svg.overlay path").count(), 2);
  // What A was lies over the tracks too: a line in the colour of text.
  const lined = () => page.locator("[data-part=timeline] canvas").evaluate((canvas) => {
    const title = [...document.querySelectorAll(".tl-title")].find((one) => one.textContent.startsWith("DPC time"));
    const scale = canvas.height / canvas.clientHeight;
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(20 * scale, title.offsetTop * scale, canvas.width / 2, title.offsetHeight * scale);
    let dark = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] < 90 && data[at + 1] < 90 && data[at + 2] < 90 && data[at + 3] > 0) dark += 1;
    return dark;
  });
  assert.ok((await lined()) > 100, `${await lined()} pixels of a line`);
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "compare", trace: 0 }));
  await settled(page);
  assert.ok((await lined()) < 20, "the line goes with the comparison");
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "compare", trace: 0, other: { trace: 1, range: null } }));
  await settled(page);
  assert.equal(await page.locator("svg.overlay .limit").count(), 1);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("findings say when they cost most, as SQL has it; energy is what the bill adds up to", demo, async () => {
  const { page, wrong, context } = await open("demo");
  const strip = page.locator(".finding-row[data-finding='clr.gc-pause'] svg.strip");
  const boxes = await strip.locator("rect").evaluateAll((all) => all.map((one) => [Number(one.getAttribute("x")), Number(one.getAttribute("width")), Number(one.getAttribute("fill").replace(/\D/g, ""))]));
  const parts = Number((await strip.getAttribute("viewBox")).split(" ")[2]);
  const [{ first, last }] = await sql("demo", "SELECT min(ts_ns) AS first, max(ts_ns) AS last FROM sample");
  const part = (last + 1 - first) / parts;
  const [{ most }] = await sql("demo", `SELECT (ts_ns - ${first}) / ${Math.round(part)} AS most FROM clr_gc GROUP BY 1 ORDER BY sum(pause_ns) DESC LIMIT 1`);
  const dark = boxes.filter(([, , step]) => step === 6);
  assert.ok(boxes.length > 5 && dark.length > 0, JSON.stringify(boxes));
  assert.ok(dark.some(([x, width]) => most >= x - 1 && most <= x + width), `${most} in ${JSON.stringify(dark)}`);
  const [{ joules }] = await sql("demo", "SELECT sum(energy_j) AS joules FROM bill WHERE kind = 'process' AND part = 'culprit'");
  const tile = await page.locator(".tile", { hasText: /^Energy/ }).locator(".value").innerText();
  assert.match(tile, /^≈\d+ J$/);
  assert.ok(Math.abs(Number(/\d+/.exec(tile)[0]) - joules) <= 5, `${tile}, ${joules}`);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a tap on a thread's name takes nothing off the lanes", demo, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "precise" }), viewport: { width: 390, height: 844 }, hasTouch: true });
  const names = page.locator(".lane-names li");
  await names.first().waitFor();
  const hit = await names.evaluateAll((all) => all.map((one) => {
    const button = one.querySelector("button:last-of-type");
    return getComputedStyle(button).opacity === "0" && getComputedStyle(button).pointerEvents !== "none";
  }));
  assert.ok(hit.length > 2 && !hit.includes(true), "what nobody sees takes no tap");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("colours: the heaviest of a trace do not share one", demo, async () => {
  const { page, wrong, context } = await open("demo");
  const colors = await page.locator(".finding-row .swatch").evaluateAll((all) => all.map((one) => [one.parentElement.textContent, one.style.backgroundColor]));
  const by = new Map(colors);
  assert.ok(by.size >= 3);
  assert.equal(new Set(by.values()).size, by.size, JSON.stringify([...by]));
  assert.ok((await page.locator(".finding-row .hatched").count()) > 0, "a security product is hatched");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("390 px: the rail is a drawer, the inspector a sheet, nothing is cut off", demo, async () => {
  const { page, wrong, context } = await open("demo", { viewport: { width: 390, height: 844 } });
  assert.equal(await page.locator("nav.rail").isVisible(), false);
  assert.equal((await page.locator("main").boundingBox()).width, 390);
  await page.locator(".finding-row.headline").first().click();
  const sheet = await page.getByRole("complementary", { name: "Inspector" }).boundingBox();
  assert.ok(sheet.width >= 388 && sheet.y > 200, JSON.stringify(sheet));
  await page.getByRole("button", { name: "Close the inspector" }).click();
  await page.getByRole("button", { name: "Panels" }).click();
  await page.locator(".flyout li button.go", { hasText: /^Files$/ }).click();
  await settled(page);
  assert.equal(await page.locator("main").getAttribute("data-panel"), "files");
  for (const panel of await page.evaluate(() => globalThis.etwhyPanels)) {
    await page.evaluate((hash) => (location.hash = hash), hashOf({ panel }));
    await page.waitForSelector(`main[data-panel=${panel}]`);
    await settled(page);
    assert.deepEqual(await tooWide(page), [], panel);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test("forced colours and twice the size: nobody is shut out", demo, async () => {
  for (const options of [{ forcedColors: "active" }, { viewport: { width: 640, height: 400 } }]) {
    const { page, wrong, context } = await open("demo", options);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(await tooWide(page), []);
    assert.deepEqual(wrong, []);
    await context.close();
  }
});

test("panels without data say which recording has it", demo, async () => {
  const { page, wrong, context } = await open("demo");
  assert.ok((await panelTitles(page)).length > 20);
  await page.locator(".rail .all").click();
  const rest = page.locator(".flyout details");
  assert.match(await rest.locator("summary").innerText(), /^Not recorded \(\d+\)$/);
  await rest.locator("summary").click();
  assert.match(await rest.innerText(), /etwhy record/);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("findings stand on one scale: the share of the machine's CPU time, and waits by their name", demo, async () => {
  const { page, wrong, context } = await open("demo");
  const [{ capacity }] = await sql("demo", "SELECT (max(last_ns) - min(first_ns)) * max(cpus) AS capacity FROM trace");
  const row = (id) => page.locator(`.finding-row[data-finding='${id}']`).first();
  const cost = Number((await row("cpu.spin-wait").locator(".number").first().innerText()).replaceAll(",", "")) * 1e9;
  const share = Number.parseFloat(await row("cpu.spin-wait").locator(".part").innerText());
  assert.ok(Math.abs(share - (100 * cost) / capacity) < 0.1, `${share} ${cost} ${capacity}`);
  assert.equal(await row("clr.gc-pause").locator(".part").innerText(), "wait");
  const widths = await page.locator(".finding-row .meter i").evaluateAll((all) => all.map((one) => Number.parseFloat(one.style.width)));
  assert.equal(Math.max(...widths), 100);
  await row("cpu.spin-wait").click();
  assert.match(await page.getByRole("complementary", { name: "Inspector" }).innerText(), new RegExp(`Share of machine\\s+${share.toFixed(1)}`));
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("every key figure has its line over time; what was not recorded says so", demo, async () => {
  const { page, wrong, context } = await open("demo");
  const tiles = await page.locator(".tile").evaluateAll((all) => all.map((one) => ({ title: one.querySelector(".label").textContent, line: one.querySelector("svg.mini path:last-child")?.getAttribute("d") ?? null })));
  assert.equal(tiles.length, 6);
  for (const { title, line } of tiles) assert.ok(line !== null && line.length > 100, title);
  // Energy is estimated from CPU time, and so is its line.
  assert.equal(tiles.find((one) => one.title === "Energy").line, tiles.find((one) => one.title === "CPU busy").line);
  await page.setViewportSize({ width: 1440, height: 900 });
  await settled(page);
  assert.deepEqual(await page.locator(".tile .said").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a figure that a trace lacks is not recorded, whatever part of it is shown", dpc, async () => {
  const { page, wrong, context } = await open("dpc");
  const [{ ready, switches }] = await sql("dpc", "SELECT count(ready_ns) AS ready, count(*) AS switches FROM cswitch");
  assert.equal(ready, 0, `of ${switches} switches`);
  const without = await page.locator(".tile", { has: page.locator(".value", { hasText: /^–/ }) }).evaluateAll((all) => all.map((one) => [one.querySelector(".label").textContent, one.querySelector(".said").textContent]));
  assert.ok(without.length > 0);
  for (const [title, said] of without) assert.equal(said, "not recorded", title);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the search lists what is found for those who come back to it at once", demo, async () => {
  const { page, wrong, context } = await open("demo");
  for (const name of ["build.exe", "solver.exe", "build.exe"]) {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(name);
    await page.waitForTimeout(300);
    assert.ok((await page.locator("[role=option]").count()) > 0, name);
    await page.keyboard.press("Escape");
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a row's menu has what the inspector can do with it, by mouse and by keys", dpc, async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  const cell = page.getByRole("grid", { name: "Longest DPCs" }).locator("[data-cell='0:2']");
  const items = () => page.locator("[role=menuitem]").allInnerTexts();
  await cell.click({ button: "right" });
  const shown = await items();
  assert.deepEqual(shown.slice(0, 2), ["Show on time axis", "Open stacks"]);
  await page.keyboard.press("Escape");
  await cell.click();
  await settled(page);
  assert.deepEqual(shown, await page.locator("aside .actions button").allInnerTexts());
  await page.keyboard.press("Shift+F10");
  assert.deepEqual(await items(), shown);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("menuitem", { name: "Open stacks" }).click();
  await page.waitForSelector("main[data-panel=stacks]");
  assert.deepEqual(wrong, []);
  await context.close();
});
