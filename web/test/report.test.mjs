// Opens reports in Chromium and does what readers do.
//
//   ETWHY_BROWSER=/usr/bin/chromium ETWHY_REPORTS="a.html:b.html" npm test
//
// Every report must draw its charts, ask nothing of the network, log no error, and show names as text.

import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { after, before, test } from "node:test";
import { launch, opened, violations } from "./opened.mjs";
import "./format.test.mjs";

const reports = (process.env.ETWHY_REPORTS ?? "").split(delimiter).filter(Boolean);
let browser;

before(async () => {
  assert.ok(reports.length > 0, "ETWHY_REPORTS names no report");
  browser = await launch();
});
after(() => browser?.close());

/** A page with a report whose charts are drawn, its data, and what went wrong on it. */
async function open(report, options = {}) {
  const { context, page, wrong } = await opened(browser, report, options);
  await page.waitForFunction(() => [...document.querySelectorAll(".graphic")].every((one) => one.childElementCount > 0));
  const data = await page.evaluate(() => JSON.parse(document.getElementById("etwhy-report").textContent));
  return { context, page, wrong, data };
}

for (const report of reports) {
  test(`${report}: charts, figures, no errors, nothing from the network`, async () => {
    const { context, page, wrong, data } = await open(report);
    assert.equal(await page.locator("h1 .verdict").textContent(), data.sentence);
    const found = data.findings.filter((one) => one.answer === "found");
    assert.equal(await page.locator("article.finding").count(), found.length);
    const { timeline, flame, histograms, growth } = data.charts;
    const bands = await page.locator(".timeline path.band").count();
    assert.equal(bands, timeline ? timeline.series.length : 0);
    const bars = (histograms[0]?.bins ?? []).filter((bin) => bin.count > 0).length;
    assert.equal(await page.locator(".histogram rect.bar").count(), bars);
    assert.equal(await page.locator(".histogram line.limit").count(), histograms.length > 0 ? 1 : 0);
    assert.equal(await page.locator(".growth").count(), growth.length);
    assert.equal(await page.locator(".growth circle").count(), growth.reduce((sum, one) => sum + one.points.length, 0));
    // What was not observed is in no share: a sentence below the tables, no row of them.
    const unobserved = data.bill.filter((row) => row.unobserved_ns !== null);
    assert.equal(await page.locator("#bill tbody tr").count(), data.bill.length - unobserved.length);
    const sentences = page.locator("#bill").getByText("were not observed and are in no share");
    assert.equal(await sentences.count(), unobserved.length > 0 ? 1 : 0);
    if (flame) assert.ok((await page.locator(".flame .node").count()) > 1);
    // No name became an element, no script ran but ours.
    assert.equal(await page.locator("script").count(), 2);
    assert.equal(await page.locator("main img, main iframe, main script, main [onerror], main style").count(), 0);
    assert.deepEqual(wrong, []);
    await context.close();
  });

  // Charts are looked at in the dark, tables in the light.
  for (const colorScheme of ["light", "dark"]) {
    test(`${report}: readable by all, ${colorScheme}`, async () => {
      const { context, page, wrong } = await open(report, { colorScheme, reducedMotion: "reduce" });
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      if (colorScheme === "dark") assert.deepEqual(await violations(page), []);
      assert.equal(await page.locator("h1").count(), 1);
      // Every drawing has a name and the same figures as a table.
      for (const drawing of await page.locator(".graphic svg").all()) {
        assert.equal(await drawing.getAttribute("role"), "img");
        assert.ok(((await drawing.getAttribute("aria-label")) ?? "").length > 10);
      }
      const charts = page.locator("figure.chart");
      for (let at = 0; at < (await charts.count()); at += 1) {
        const chart = charts.nth(at);
        await chart.getByRole("button", { name: "Show as table" }).click();
        assert.ok((await chart.locator(".as-table tbody tr").count()) > 0);
        assert.equal(await chart.locator(".graphic").isVisible(), false);
      }
      if (colorScheme === "light") assert.deepEqual(await violations(page), []);
      assert.deepEqual(wrong, []);
      await context.close();
    });
  }

  test(`${report}: by keyboard`, async () => {
    const { context, page, wrong, data } = await open(report);
    if (data.charts.timeline) {
      const slider = page.getByRole("slider", { name: "Moment in the timeline" });
      await slider.focus();
      await page.keyboard.press("End");
      await page.keyboard.press("ArrowLeft");
      const slices = data.charts.timeline.series[0].values_ns.length;
      assert.equal(await slider.getAttribute("aria-valuenow"), String(slices - 2));
      assert.match((await slider.getAttribute("aria-valuetext")) ?? "", /(processors: .+|nothing was recorded)$/);
    }
    if (data.charts.flame) {
      const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
      await page.locator(".flame [tabindex='0']").focus();
      assert.match(await focused(), /^all processes: 100\.0/);
      await page.keyboard.press("ArrowDown");
      const first = await focused();
      await page.keyboard.press("Enter");
      assert.equal(await page.locator(".crumbs [aria-current]").textContent(), first.split(": ")[0]);
      await page.keyboard.press("Escape");
      assert.equal(await page.locator(".crumbs").isVisible(), false);
      assert.equal(await focused(), first);
      const name = data.charts.flame.names[data.charts.flame.name[2]].name;
      await page.getByRole("searchbox").fill(name.slice(0, 40));
      assert.ok((await page.locator(".flame .match").count()) > 0);
      assert.match((await page.locator("figure .found").textContent()) ?? "", /% of CPU time/);
    }
    const theme = page.getByRole("button", { name: /^Theme/ });
    await theme.click();
    await theme.click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    assert.deepEqual(wrong, []);
    await context.close();
  });

  test(`${report}: narrow and on paper`, async () => {
    const { context, page, wrong } = await open(report, { viewport: { width: 360, height: 700 } });
    const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= width, `${wide} pixels wide on ${width}`);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav.contents").isVisible(), false);
    assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
    assert.deepEqual(wrong, []);
    await context.close();
  });
}
