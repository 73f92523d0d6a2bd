// What outlives a page: notes beside the trace and in the report, recent traces, views of a profile of WPA.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { after, test } from "node:test";
import { open, servers, settled, startServer, stop, viewOf, visit } from "./harness.mjs";

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
  // What reads them knows no page: it runs here as well.
  const made = await build({ entryPoints: [new URL("../../hud/more/wpa.ts", import.meta.url).pathname], bundle: true, write: false, format: "esm" });
  const { readProfile } = await import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`);
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
