// What outlives a page: notes beside the trace and in the report, recent traces, views of a profile of WPA.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { after, test } from "node:test";
import { hashOf, open, servers, settled, startServer, stop, viewOf, violations, visit } from "./harness.mjs";

after(stop);

const trace = process.env.ETWHY_TRACE;
const skip = trace && process.env.ETWHY_PROGRAM ? false : "ETWHY_PROGRAM and ETWHY_TRACE name nothing";

/** A server with a trace of its own, in a folder of its own. */
async function own(...more) {
  const folder = mkdtempSync(join(tmpdir(), "etwhy-"));
  const path = join(folder, "a.etl");
  copyFileSync(trace, path);
  return { path, folder, name: await startServer(["serve", "--quiet", "--no-open", path, ...more]) };
}

async function ready(name) {
  const opened = await open(name);
  await opened.page.waitForSelector("h1.verdict", { timeout: 120_000 });
  await settled(opened.page);
  return opened;
}

async function note(page, text) {
  await page.keyboard.press("n");
  await page.getByLabel(/^New note at/).fill(text);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await settled(page);
}

test("notes lie beside the trace, come back, and go into the report", { skip }, async () => {
  const { path, name } = await own();
  const { page, wrong, context } = await ready(name);
  await note(page, "here it <b>began</b>");
  const file = `${path}.notes.json`;
  for (let i = 0; i < 100 && !existsSync(file); i += 1) await page.waitForTimeout(100);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).notes[0].text, "here it <b>began</b>");
  await page.getByRole("button", { name: "More", exact: true }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save report" }).click()]);
  const report = await context.newPage();
  const saved = `${await download.path()}.html`;
  await download.saveAs(saved);
  await report.goto(`file://${saved}`);
  assert.match(await report.locator("#notes").innerText(), /here it <b>began<\/b>/);
  await context.close();
  // Another browser, which has nothing of its own.
  const again = await ready(name);
  await again.page.keyboard.press("n");
  assert.equal(await again.page.getByLabel(/^Note at/).inputValue(), "here it <b>began</b>");
  assert.deepEqual([wrong, again.wrong], [[], []]);
  await again.context.close();
});

test("notes of two pages do not write over each other, and those of a read-only server are downloaded", { skip }, async () => {
  const { path, name } = await own();
  const [a, b] = [await ready(name), await ready(name)];
  await note(a.page, "of a");
  await a.page.waitForTimeout(500);
  await note(b.page, "of b");
  const kept = () => JSON.parse(readFileSync(`${path}.notes.json`, "utf8")).notes.map((one) => one.text).sort();
  for (let i = 0; i < 100 && kept().length < 2; i += 1) await b.page.waitForTimeout(100);
  assert.deepEqual(kept(), ["of a", "of b"]);
  await a.context.close();
  await b.context.close();
  const other = await own("--readonly");
  const c = await ready(other.name);
  await note(c.page, "mine");
  await c.page.keyboard.press("n");
  assert.match(await c.page.locator("[data-part=notes-place]").innerText(), /readonly[\s\S]*as a file/);
  assert.ok(!existsSync(`${other.path}.notes.json`));
  await c.context.close();
});

test("a trace that was looked at is offered again", { skip }, async () => {
  const { name, path, folder } = await own();
  const { page, context, wrong } = await ready(name);
  copyFileSync(path, join(folder, "b.etl"));
  const openDialog = async () => {
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("button", { name: "Open another trace" }).click();
  };
  await openDialog();
  assert.equal(await page.getByRole("region", { name: "Recent traces" }).count(), 0);
  await page.getByRole("region", { name: "Folders of the server" }).getByRole("button").first().click();
  await page.getByRole("button", { name: "b.etl" }).click();
  await page.waitForFunction(() => document.querySelector("select")?.selectedOptions[0]?.textContent === "b.etl");
  await page.waitForSelector("h1.verdict", { timeout: 120_000 });
  await settled(page);
  // It is closed, and offered.
  await fetch(`${servers[name]}api/v1/close`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace: 1 }) });
  await page.reload();
  await page.waitForSelector("main[data-panel]");
  await settled(page);
  await openDialog();
  await page.getByRole("region", { name: "Recent traces" }).getByRole("button", { name: "b.etl" }).waitFor();
  assert.deepEqual(wrong.filter((text) => !/409/.test(text)), []);
  await context.close();
});

/** The address part of a view of the trace that stands first. */
const linkOf = (of) => `#v2=${encodeURIComponent(JSON.stringify({ trace: { at: 0 }, ...of }))}`;

test("notes of a link stand beside those of the file, and nobody saves them unasked", { skip }, async () => {
  const { path, name } = await own();
  const file = `${path}.notes.json`;
  const kept = () => JSON.parse(readFileSync(file, "utf8")).notes.map((one) => one.text).sort();
  const first = await ready(name);
  await note(first.page, "mine");
  for (let i = 0; i < 100 && !existsSync(file); i += 1) await first.page.waitForTimeout(100);
  // A link that is followed on the open page.
  await first.page.evaluate((hash) => (location.hash = hash), linkOf({ settings: { notes: { list: [{ at: 5, text: "of a link" }] } } }));
  await settled(first.page);
  await first.page.waitForTimeout(500);
  assert.deepEqual(kept(), ["mine"]);
  await first.context.close();
  // One that opens the page: what somebody adds there leaves those of the file.
  const second = await open(name, { hash: linkOf({ settings: { notes: { list: [{ at: 7, text: "of another link" }, null, { at: "x", text: {} }] } } }) });
  await settled(second.page);
  await note(second.page, "added");
  for (let i = 0; i < 100 && !kept().includes("added"); i += 1) await second.page.waitForTimeout(100);
  assert.deepEqual(kept(), ["added", "mine", "of another link"]);
  assert.deepEqual([first.wrong, second.wrong], [[], []]);
  await second.context.close();
});

test("a link whose settings make no sense shows the page, and says where it cannot", { skip }, async () => {
  const { name } = await own();
  const nonsense = [
    { panel: "stacks", beside: "constructor", settings: { timeline: { order: 1, hidden: "x", heights: { process: 1e9 } }, tracks: { tracks: [null, 1, {}] }, notes: { list: 1 } } },
    { panel: "__proto__", finding: "constructor", settings: { shell: "x", inspect: 1 } },
    { panel: "stacks", settings: { stacks: { by: 1, steps: "x", root: {}, metric: 7 } } },
    { panel: "tables", settings: { tables: { table: "sample", group: 1, values: [null], where: "x" } } },
  ];
  for (const one of nonsense) {
    const { page, context, wrong } = await open(name, { hash: linkOf(one) });
    await settled(page);
    const again = page.getByRole("button", { name: "Without these settings" });
    if (await again.count()) {
      await again.click();
      await settled(page);
    }
    assert.equal(await page.getByRole("button", { name: "Without these settings" }).count(), 0, JSON.stringify(one));
    // Panels are fetched when they are needed.
    const shown = page.waitForFunction(() => document.querySelectorAll("main .panel *").length > 3, null, { timeout: 20_000 });
    await shown.catch(() => assert.fail(JSON.stringify(one)));
    assert.deepEqual(wrong.filter((text) => !/400|404/.test(text)), [], JSON.stringify(one));
    await context.close();
  }
});

/** What reads profiles of WPA; it knows no page. */
async function wpaReader() {
  const made = await build({ entryPoints: [new URL("../../hud/more/wpa.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`);
}

test("a hostile profile of WPA takes no time, and what it calls things is text", async () => {
  const { readProfile } = await wpaReader();
  const read = (inner) => readProfile(`<WpaProfileContainer/>${inner}`);
  const table = "b855361e-7be0-4bc8-a754-3e8507715ca5";
  const before = performance.now();
  for (const sign of ["<!", "<?", "<!--", "<", '<a b="']) assert.deepEqual(read(sign.repeat(300_000)).views, [], sign);
  for (const name of ["View", "Graph", "Preset"]) assert.throws(() => read(`<${name}>`.repeat(300_000)), /inside of each other/);
  assert.deepEqual(read(["View", "Graph", "Preset"].map((name) => `<${name}>`.repeat(30)).join("")).views, []);
  const many = read(`<View><Graph Guid="${table}">${'<Preset Name="a"><Column Name="Count"/></Preset>'.repeat(3000)}${'<Preset Name="b"><Column Name="?"/></Preset>'.repeat(10)}</Graph></View>`);
  assert.equal(many.views.length, 50);
  assert.ok(performance.now() - before < 30_000, `${performance.now() - before} ms`);
  const { views, left } = read(
    `<View Title="a&#x202e;b&#27;"><Graph Guid="constructor"><Preset/></Graph><Graph Guid="${table}"><Preset Name="${"n".repeat(5000)}" InitialFilterQuery="[constructor]:=1"><Column Name="constructor"/><Column Name="__proto__"/><Column Name="Weight" AggregationMode="constructor"/></Preset></Graph></View>`,
  );
  assert.equal(views.length, 1);
  assert.deepEqual(views[0].values, [{ column: "weight_ns", fn: "sum" }]);
  assert.ok(views[0].name.startsWith("a\\u202eb\\u001b: nnn") && views[0].name.length < 200, views[0].name);
  assert.equal(left.length, 4);
  assert.ok(left.every((one) => one.length < 400));
});

const profiles = process.env.ETWHY_WPA_PROFILES;

test("a profile of WPA becomes views, and what has nothing here is named", { skip }, async () => {
  const { name } = await own();
  const { page, context, wrong } = await ready(name);
  const load = async (path) => {
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("button", { name: "Saved views" }).click();
    await page.getByLabel(/Views of a profile of WPA/).setInputFiles(path);
    await page.getByRole("alert").filter({ hasText: /views?, kept under/ }).waitFor();
    await settled(page);
  };
  await load(new URL("own.wpaProfile", import.meta.url).pathname);
  const said = await page.getByRole("alert").innerText();
  assert.match(said, /2 views/);
  assert.match(said, /column Annotation[\s\S]*00000000-1111-2222-3333-444444444444[\s\S]*has no table here/);
  const { panel, settings } = await viewOf(page);
  assert.equal(panel, "tables");
  assert.deepEqual(settings.tables.group, ["upid", "stack_id"]);
  assert.deepEqual(settings.tables.values, [{ fn: "count" }, { column: "weight_ns", fn: "sum" }]);
  assert.deepEqual(settings.tables.where, [{ column: "upid.name", op: "ne", value: "Idle" }]);
  assert.deepEqual(settings.tables.sort, { id: "sum(weight_ns)", down: true });
  assert.deepEqual(wrong, []);
  await context.close();
});

test("public profiles of WPA are read, and every column of theirs is a column here or named", { skip: profiles ? skip : "ETWHY_WPA_PROFILES names no folder of them" }, async () => {
  const { readProfile } = await wpaReader();
  const { name } = await own();
  const { page, context, url } = await ready(name);
  const schema = await (await fetch(`${url}api/v1/schema`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).json();
  await context.close();
  assert.ok(page);
  const columns = new Map(schema.tables.map((one) => [one.name, one.columns.map((column) => column.name)]));
  let views = 0;
  for (const file of readdirSync(profiles).filter((one) => /\.wpaprofile$/i.test(one))) {
    let profile;
    try {
      profile = readProfile(readFileSync(join(profiles, file), "utf8"));
    } catch (error) {
      assert.match(error.message, /Windows 8.1 or earlier/, file);
      continue;
    }
    assert.ok(profile.views.length + profile.left.length > 0, file);
    views += profile.views.length;
    for (const view of profile.views) {
      const known = columns.get(view.table);
      assert.ok(known, `${file}: ${view.table}`);
      for (const key of [...view.group, ...view.values.flatMap((value) => value.column ?? []), ...view.where.map((one) => one.column)]) assert.ok(known.includes(key.split(".")[0]), `${file}: ${view.table}.${key}`);
    }
  }
  assert.ok(views >= 3, `${views}`);
});

test("pinned views stand in the saved report as they were, with what was written, and load nothing from elsewhere", { skip: !servers.demo }, async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "files" }) });
  const pin = async (text) => {
    await page.keyboard.press("R");
    await page.getByLabel("What it shows (optional)").fill(text);
    assert.deepEqual(await violations(page), []);
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    await settled(page);
  };
  await pin("Opens of <build>");
  await visit(page, "Stacks");
  await pin("");
  await page.keyboard.press("R");
  const saving = page.waitForEvent("download");
  await page.getByRole("dialog").getByRole("button", { name: "Save report" }).click();
  const download = await saving;
  const file = `${await download.path()}.html`;
  await download.saveAs(file);
  const report = await context.newPage();
  const said = [];
  report.on("console", (message) => said.push(message.text()));
  const asked = [];
  report.on("request", (request) => !/^(file|data):/.test(request.url()) && asked.push(request.url()));
  await report.goto(`file://${file}`);
  await report.locator("#pinned img").last().waitFor();
  assert.deepEqual(await report.locator("#pinned h3").allTextContents(), ["Files", "Stacks"]);
  assert.match(await report.locator("#pinned").textContent(), /Opens of <build>/);
  assert.ok((await report.locator("#pinned img").evaluateAll((all) => all.map((one) => one.naturalWidth))).every((width) => width > 600));
  await report.locator("#pinned summary").first().click();
  assert.match(await report.locator("#pinned table").first().innerText(), /build\.exe/);
  assert.deepEqual([...said, ...asked], []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("saved views are kept in the user's configuration, and come back in another browser", { skip }, async () => {
  const configuration = mkdtempSync(join(tmpdir(), "etwhy-configuration-"));
  const name = await startServer(["serve", "--quiet", "--no-open", trace], configuration);
  const list = (page) => page.getByRole("dialog", { name: "Saved views" });
  const show = async (page) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(">save this view");
    await page.keyboard.press("Enter");
  };
  const { page, wrong, context } = await ready(name);
  await show(page);
  await list(page).getByRole("textbox").fill("mine");
  await page.keyboard.press("Enter");
  const file = join(configuration, "etwhy", "views", "saved.json");
  for (let i = 0; i < 100 && !existsSync(file); i += 1) await page.waitForTimeout(100);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).views.map((one) => [one.name, one.panel]), [["mine", "overview"]]);
  await context.close();
  const again = await ready(name);
  await show(again.page);
  assert.match(await list(again.page).innerText(), /mine[\s\S]*saved\.json/);
  await list(again.page).getByRole("button", { name: "Remove mine" }).click();
  for (let i = 0; i < 100 && JSON.parse(readFileSync(file, "utf8")).views.length > 0; i += 1) await again.page.waitForTimeout(100);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).views, []);
  assert.deepEqual([wrong, again.wrong], [[], []]);
  await again.context.close();
});
