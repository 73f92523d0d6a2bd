// What an investigator does from the first page on: find the driver, follow a finding, compare, check a number with SQL.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hashOf, open, panelTitles, servers, settled, shot, sql, stop, viewOf, visit } from "./harness.mjs";

after(stop);

const has = (name) => ({ skip: name in servers ? false : `no server ${name}` });
const count = (text) => Number(text.replaceAll(",", ""));

test("the driver behind the DPC flood is found by what is written, in at most three clicks", has("dpc"), async () => {
  const { page, wrong, context } = await open("dpc");
  // The page says that DPCs are the matter: that word is followed, whatever stands there.
  let clicks = 0;
  const row = page.locator(".finding-row", { hasText: /DPC/ }).first();
  assert.match(await row.innerText(), /IDSvia64\.sys[\s\S]*DPC time/);
  // Who that is, and what to do, stands there without a click.
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  assert.match(await inspector.innerText(), /IDSvia64\.sys[\s\S]*Do this[\s\S]*Uninstall/);
  await inspector.getByRole("button", { name: /^Open / }).click();
  clicks += 1;
  await settled(page);
  const driver = await page.locator("[data-part=flood] [data-knows]").allTextContents();
  assert.ok(clicks <= 3);
  assert.ok(driver.some((name) => name.startsWith("IDSvia64.sys")), driver.join(", "));
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a finding is followed into stacks: the hook is on them", has("hook"), async () => {
  const { page, wrong, context } = await open("hook");
  await page.locator(".finding-row", { hasText: /tedrdrv\.sys/ }).first().click();
  await page.getByRole("complementary", { name: "Inspector" }).getByRole("button", { name: /Stacks/ }).first().click();
  await settled(page);
  assert.equal(await page.locator("main").getAttribute("data-panel"), "stacks");
  // Everything is there, and what is to blame is marked with its share.
  const { settings } = await viewOf(page);
  assert.equal(settings.stacks.search, "tedrdrv.sys");
  assert.match(await page.locator("[data-part=found]").textContent(), /box(es)? match(es)?: \d/);
  const [all] = await sql("hook", "SELECT sum(weight_ns) AS ns FROM sample WHERE stack_has(stack_id, 'tedrdrv.sys')");
  assert.ok(all.ns > 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

for (const name of ["demo", "real"]) {
  test(`${name}: with a range, every pivot table counts what its SQL counts`, has(name), async () => {
    const first = await open(name);
    const [from, to] = JSON.parse(await first.page.locator("main").getAttribute("data-scope"));
    await first.context.close();
    const range = [Math.round(from + (to - from) * 0.25), Math.round(from + (to - from) * 0.6)];
    const { page, wrong, context } = await open(name, { hash: hashOf({ selection: range }) });
    let compared = 0;
    for (const title of await panelTitles(page)) {
      await visit(page, title);
      const totals = page.locator("[data-part=totals]").first();
      if ((await totals.count()) === 0) continue;
      const text = (await totals.innerText()).replaceAll("\u00a0", " ");
      const found = /([\d,]+)\s+groups? of\s+([\d,]+)\s+rows?/.exec(text);
      if (!found) continue;
      await page.locator("main").getByRole("button", { name: "SQL", exact: true }).last().click();
      const query = await page.locator("main .behind pre").first().innerText();
      await page.locator("main").getByRole("button", { name: "SQL", exact: true }).last().click();
      const rows = await sql(name, query.replace(/\s+LIMIT\s+\d+(\s+OFFSET\s+\d+)?\s*;?\s*$/i, ""));
      assert.equal(rows.length, count(found[1]), `${title}: ${query}`);
      if (/_ns"? >= /.test(query)) assert.ok(query.includes(String(range[0])) && query.includes(String(range[1])), query);
      compared += 1;
    }
    assert.ok(compared >= 5, `only ${compared} tables were compared`);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("names that attack are shown and do nothing", has("hostile"), async () => {
  const { page, wrong, context } = await open("hostile");
  for (const title of await panelTitles(page)) {
    await visit(page, title);
    assert.equal(await page.locator("img, svg[onload], script:not([src])").count(), 0);
  }
  // They are there, as text.
  const rows = await sql("hostile", "SELECT name FROM process WHERE name LIKE '%onerror%'");
  assert.equal(rows.length > 0, true);
  await visit(page, "Processes");
  const text = await page.locator(".panel").innerText();
  assert.ok(text.includes("<img src=x onerror=alert(1)>"), text.slice(0, 300));
  assert.ok(!/[\u001b\u202e\u0007]/.test(text), "control characters and direction marks are visible escapes");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("two traces: what is gone, what is better, and that several things changed", has("dpc"), async () => {
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "compare", trace: 1 }) });
  await page.getByLabel("Trace to compare with").selectOption("0");
  await settled(page);
  const text = await page.locator(".panel").innerText();
  assert.match(text, /resolved[\s\S]*IDSvia64\.sys/);
  assert.match(text, /Several things changed at once/);
  await page.getByRole("button", { name: "Ranges, any table" }).click();
  await page.getByLabel("What is compared").last().selectOption({ label: "DPC time by driver" });
  await settled(page);
  const cells = await page.getByRole("grid", { name: "DPC time by driver" }).locator('[data-cell^="0:"]').allTextContents();
  const of = async (trace) => (await sql("dpc", "SELECT sum(exclusive_ns) AS ns FROM dpc WHERE module = 'ndis.sys'", trace))[0].ns;
  assert.equal(cells[0], "ndis.sys");
  assert.deepEqual(cells.slice(1, 3).map((one) => Number.parseFloat(one)), [(await of(0)) / 1e9, (await of(1)) / 1e9].map((one) => Number(one.toFixed(2))));
  await shot(page, "dpc-compare-ranges");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a query with a word of the completion, run and saved", has("demo"), async () => {
  const { page, wrong, context } = await open("demo", { hash: hashOf({ panel: "sql" }) });
  const editor = page.getByLabel("Query", { exact: true });
  await editor.fill("SELECT count(*) AS n FROM samp");
  await editor.press("End");
  await editor.press("Control+ ");
  await page.getByRole("option", { name: /^sample / }).first().waitFor();
  await editor.press("Tab");
  assert.equal(await editor.inputValue(), "SELECT count(*) AS n FROM sample");
  await editor.press("Control+Enter");
  await settled(page);
  const [row] = await sql("demo", "SELECT count(*) AS n FROM sample");
  assert.equal(count((await page.getByRole("grid", { name: "Result" }).locator('[data-cell="0:0"]').textContent()) ?? ""), row.n);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "query.csv");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("several windows and traces at a time do not disturb each other", has("dpc"), async () => {
  const a = await open("dpc", { hash: hashOf({ panel: "interrupts" }) });
  const b = await a.context.newPage();
  await b.goto(a.url + hashOf({ panel: "interrupts", trace: 1 }));
  await b.waitForSelector("main[data-panel]");
  await settled(b);
  const [x, y] = [await a.page.locator("[data-part=flood]").innerText(), await b.locator("[data-part=flood]").innerText()];
  assert.match(x, /IDSvia64/);
  assert.doesNotMatch(y, /IDSvia64/);
  assert.deepEqual(a.wrong, []);
  await a.context.close();
});
