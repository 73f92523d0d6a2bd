// The frame of the page: overview, findings, links, search, keys, themes, sizes.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { beyond, covered, hashOf, kinds, open, panelTitles, settled, shot, stop, tooWide, viewOf, violations, visit } from "./harness.mjs";

after(stop);

for (const name of kinds) {
  test(`${name}: every panel works, in every size and theme`, async () => {
    const { page, wrong, context } = await open(name);
    assert.ok((await page.locator("h1.verdict").textContent()).length > 20);
    const panels = await panelTitles(page);
    assert.ok(panels.length >= 3);
    for (const title of panels) {
      await visit(page, title);
      const id = await page.locator("main").getAttribute("data-panel");
      assert.equal(await page.locator(".fault").count(), 0, `${title}: ${await page.locator(".fault").allTextContents()}`);
      const text = await page.locator(".panel").innerText();
      assert.ok(text.trim().length > 20, `${title} is empty`);
      await shot(page, `${name}-${id}`);
      // Layout, roles and contrast do not depend on the trace: two of them are enough.
      if (!["dpc", "real"].includes(name)) continue;
      assert.deepEqual(await violations(page), [], title);
      for (const [width, height] of [[1024, 700], [3840, 2160], [1280, 800]]) {
        await page.setViewportSize({ width, height });
        await settled(page);
        assert.deepEqual(await tooWide(page), [], `${title} at ${width}`);
        assert.deepEqual(await covered(page), [], `${title} at ${width}`);
      }
    }
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

for (const name of kinds.filter((one) => ["dpc", "real"].includes(one))) {
  test(`${name}: on a phone no panel reaches beyond the window, and nothing is covered`, async () => {
    const { page, wrong, context } = await open(name, { viewport: { width: 390, height: 844 } });
    const views = (await page.evaluate(() => window.etwhyPanels)).map((panel) => ({ panel }));
    if (name === "dpc") views.push({ panel: "compare", other: { trace: 1, range: null } });
    for (const view of views) {
      await page.evaluate((hash) => (location.hash = hash), hashOf(view));
      await settled(page);
      assert.deepEqual([await beyond(page), await covered(page)], [[], []], view.panel);
    }
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("a click on a finding tells about it; filtering by it is a second act, which another click takes back", async () => {
  const { page, wrong, context } = await open("dpc");
  await page.locator("button.headline").nth(1).click();
  await settled(page);
  const looked = await viewOf(page);
  assert.equal(looked.finding, undefined);
  assert.deepEqual(looked.filters ?? [], []);
  const inspector = page.getByRole("complementary", { name: "Inspector" });
  assert.match(await inspector.innerText(), /Do this[\s\S]*What would disprove it/);
  assert.doesNotMatch(await inspector.innerText(), /\{[a-z_]+\}/, "a name in braces was not filled in");
  await inspector.getByRole("button", { name: "Filter", exact: true }).click();
  await settled(page);
  const chosen = await viewOf(page);
  assert.ok(chosen.finding?.includes("#"));
  assert.ok(chosen.filters?.length > 0);
  assert.ok((await page.locator(".crumb.filter").count()) > 0);
  await inspector.getByRole("button", { name: "Filtered" }).click();
  await settled(page);
  assert.equal((await viewOf(page)).finding, undefined);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("undo takes filters, panels and settings back, redo brings them again", async () => {
  const { page, wrong, context } = await open("demo");
  await page.getByRole("complementary", { name: "Inspector" }).getByRole("button", { name: "Filter", exact: true }).click();
  await settled(page);
  assert.equal(await page.locator(".crumb.filter").count(), 1);
  await visit(page, "Ledger");
  await page.keyboard.press("Control+z");
  await page.waitForSelector("main[data-panel=overview]");
  await page.keyboard.press("Control+z");
  await settled(page);
  assert.equal(await page.locator(".crumb.filter").count(), 0);
  await page.keyboard.press("Control+Shift+z");
  await settled(page);
  assert.equal(await page.locator(".crumb.filter").count(), 1);
  await page.getByRole("button", { name: "Redo" }).click();
  await page.waitForSelector("main[data-panel=ledger]");
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a link shows others the same view; a damaged one shows what makes sense of it", async () => {
  const first = await open("dpc");
  const [from, to] = JSON.parse(await first.page.locator("main").getAttribute("data-scope"));
  const view = { panel: "ledger", zoom: [from, Math.round((from + to) / 2)], filters: [{ kind: "module", value: "ndis.sys", label: "ndis.sys" }] };
  await first.context.close();
  const { page, wrong, context } = await open("dpc", { hash: hashOf(view) });
  assert.equal(await page.locator("main").getAttribute("data-panel"), "ledger");
  assert.deepEqual(JSON.parse(await page.locator("main").getAttribute("data-scope")), view.zoom);
  await page.getByRole("button", { name: "Share" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const { trace, ...shared } = JSON.parse(decodeURIComponent(link.split("#v2=")[1]));
  assert.deepEqual(shared, view);
  assert.deepEqual([trace.at, typeof trace.trace_id], [0, "string"]);
  // A second window of the same link.
  const other = await context.newPage();
  await other.goto(link);
  await other.waitForSelector("main[data-panel=ledger]");
  assert.deepEqual(await viewOf(other), view);
  // Back takes one step back.
  await other.locator(".rail button", { hasText: /^SQL$/ }).click();
  // Pressed at once, as on a slow machine: the step is in the history already, and nothing comes after it.
  await other.goBack();
  await other.waitForSelector("main[data-panel=ledger]");
  assert.deepEqual(await viewOf(other), view);
  await other.goForward();
  await other.waitForSelector("main[data-panel=sql]");
  await context.close();
  assert.deepEqual(wrong, []);
  const broken = await open("dpc", { hash: hashOf({ panel: 7, zoom: ["a", 2], trace: 99, filters: "x", settings: { sql: 5 } }) });
  assert.equal(await broken.page.locator("main").getAttribute("data-panel"), "overview");
  assert.deepEqual(broken.wrong, []);
  // What its address asked for is not there: back does not lead to it again.
  assert.equal((await viewOf(broken.page)).trace, undefined);
  await broken.context.close();
});

test("back from the first step shows the page as it was opened", async () => {
  const { page, wrong, context } = await open("dpc");
  assert.deepEqual(await viewOf(page), {});
  const length = () => page.evaluate(() => history.length);
  const before = await length();
  await page.locator(".rail button", { hasText: /^SQL$/ }).click();
  assert.equal(await length(), before + 1);
  await page.goBack();
  await page.waitForSelector("main[data-panel=overview]");
  assert.deepEqual(await viewOf(page), {});
  assert.deepEqual(wrong, []);
  await context.close();
});

test("keys alone: search, go to a panel, read the list of keys, change the theme", async () => {
  const { page, wrong, context } = await open("demo");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("ledger");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal(await page.locator("main").getAttribute("data-panel"), "ledger");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await page.keyboard.press("[");
  await settled(page);
  assert.notEqual(await page.locator("main").getAttribute("data-panel"), "ledger");
  // A moment, typed.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("1s-2s");
  await page.keyboard.press("Enter");
  assert.deepEqual((await viewOf(page)).zoom, [1e9, 2e9]);
  await page.keyboard.press("Backspace");
  assert.equal((await viewOf(page)).zoom, undefined);
  assert.deepEqual(wrong, []);
  await context.close();
});

for (const theme of ["light", "dark", "contrast"]) {
  test(`theme ${theme}: readable`, async () => {
    const { page, wrong, context } = await open("dpc");
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByLabel("Theme").selectOption(theme);
    await page.keyboard.press("Escape");
    await settled(page);
    await shot(page, `theme-${theme}`);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test("a hint says what a driver is", async () => {
  const { page, wrong, context } = await open("dpc");
  await page.locator("[data-knows]").first().hover();
  await page.waitForSelector(".hint");
  assert.match(await page.locator(".hint").innerText(), /driver|vendor|Symantec|confidence/i);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("the report is saved as one file", async () => {
  const { page, wrong, context } = await open("demo");
  await page.getByRole("button", { name: "More", exact: true }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save report" }).click()]);
  assert.match(download.suggestedFilename(), /\.why\.html$/);
  assert.deepEqual(wrong, []);
  await context.close();
});
