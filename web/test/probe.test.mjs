// Opens pages of probes in Chromium and compares them with the tables that the program gives as JSON.
//
//   ETWHY_BROWSER=/usr/bin/chromium ETWHY_PROBE_PAGES=folder node --test test/probe.test.mjs
//
// The folder holds report.html, report.json, compared.html, compared.json, and name.txt: the name of a process that would be
// markup if it were not shown as text. With ETWHY_SHOTS=folder pictures are left there.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, opened, violations } from "./opened.mjs";

const folder = process.env.ETWHY_PROBE_PAGES ?? "";
const text = (name) => readFileSync(join(folder, name), "utf8");
const tables = (name) => JSON.parse(text(`${name}.json`));
let browser;

before(async () => {
  assert.ok(folder, "ETWHY_PROBE_PAGES names no folder");
  browser = await launch();
});
after(() => browser?.close());

const UNITS = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, d: 86_400e9 };

/** `3.71 µs`, `8 min 09 s` and `1,234` as parts: number and unit. */
function parts(shown) {
  assert.match(shown.trim(), /^[\d.,]+(?: [^\s\d]+(?: \d+ [^\s\d]+)?)?$/, `no number: ${shown}`);
  return [...shown.matchAll(/([\d.,]+)(?: ([^\s\d]+))?/g)].map(([, digits, unit]) => {
    assert.ok(unit === undefined || UNITS[unit], `unknown unit: ${shown}`);
    return { digits, size: Number(digits.replaceAll(",", "")), unit: UNITS[unit] };
  });
}

/** As a number; times in nanoseconds. */
const number = (shown) => parts(shown).reduce((sum, { size, unit = 1 }) => sum + size * unit, 0);

/** What is shown is the value, rounded to the digits that are shown; of times these are three, of which zeros at the end are left out. */
function same(shown, value, what) {
  const all = parts(shown);
  const { digits, size, unit } = all[all.length - 1];
  const decimals = unit === undefined ? (digits.split(".")[1] ?? "").length : all.length > 1 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size || 1)));
  const half = 0.5001 * 10 ** -decimals * (unit ?? 1) + (unit === undefined ? 0 : 0.5);
  assert.ok(Math.abs(number(shown) - value) <= half, `${what}: ${shown} is shown, ${value} was computed`);
}

/** `value (low–high)` or `low–high`. */
function interval(shown, values, what) {
  const ends = shown.split(/[(–)]/).map((part) => part.trim()).filter(Boolean);
  assert.equal(ends.length, values.length, `${what}: ${shown}`);
  ends.forEach((part, at) => same(part, values[at], what));
}

/** Rows of all tables that have a column of this name, as objects by column. */
async function rows(page, column) {
  const all = await page.locator("table").evaluateAll((found) =>
    found.map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))),
  );
  const wanted = all.filter(([head]) => head.includes(column));
  return wanted.flatMap(([head, ...body]) => body.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]]))));
}

function title(row) {
  const words = [row.measure, row.variant].filter(Boolean).join(", ");
  return row.n === null ? words : `${words} (${row.n})`;
}

async function shows(name, check) {
  for (const colorScheme of ["light", "dark"]) {
    const { context, page, wrong } = await opened(browser, join(folder, `${name}.html`), { colorScheme });
    const data = tables(name);
    await check(page, data);
    // The name of a process is text: no element came of it, and nothing ran.
    const hostile = text("name.txt");
    assert.ok((await page.locator("main").innerText()).includes(hostile), "the name is not shown");
    assert.equal(await page.locator("img, script, iframe, [onerror], [onload]").count(), 0);
    assert.match(await page.title(), /^(results|comparison)/);
    for (const drawing of await page.locator("svg").all()) {
      assert.equal(await drawing.getAttribute("role"), "img");
      assert.ok(((await drawing.getAttribute("aria-label")) ?? "").length > 10);
    }
    assert.equal(await page.locator("h1").count(), 1);
    assert.deepEqual(await violations(page), []);
    if (process.env.ETWHY_SHOTS) {
      await page.screenshot({ path: join(process.env.ETWHY_SHOTS, `probe-${name}-${colorScheme}.png`), fullPage: true });
    }
    await page.setViewportSize({ width: 380, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${wide} pixels do not fit a narrow window`);
    assert.deepEqual(wrong, []);
    await context.close();
  }
}

test("results: every series with its figures", () =>
  shows("report", async (page, data) => {
    const shown = await rows(page, "typical");
    const series = data.probe_series.filter((one) => one.n === null);
    assert.ok(series.length >= 3);
    for (const one of series) {
      const row = shown.find((found) => found.operation === title(one));
      assert.ok(row, `${title(one)} is missing`);
      same(row.typical, one.typical, title(one));
      interval(row["95 % interval"], [one.typical_low, one.typical_high], title(one));
      same(row.CPU, one.cpu_ns, title(one));
      same(row.blocked, one.blocked_ns, title(one));
      same(row.mean, one.mean, title(one));
      assert.equal(Number(row.rounds), one.rounds);
      assert.equal(number(row.operations), one.operations);
    }
    const words = await page.locator("main").innerText();
    assert.equal(data.probe_law.length, 1);
    assert.ok(words.includes(`${data.probe_law[0].measure}: each costs like n^2`), words);
    // A bar for each series of a probe without sizes, a point for each sample of the curve.
    assert.ok((await page.locator("svg").count()) >= 2);
    assert.ok((await page.locator("svg circle").count()) >= 10);
    for (const suspect of data.probe_suspect) assert.ok(words.includes(suspect.confidence), suspect.confidence);
  }));

test("comparison: every difference with its ratio, interval and verdict", () =>
  shows("compared", async (page, data) => {
    const shown = await rows(page, "verdict");
    assert.equal(shown.length, data.probe_difference.length);
    const several = new Set(data.probe_difference.map((one) => one.probe)).size > 1;
    const verdicts = { slower: "slower", faster: "faster", small: "small", not_shown: "no difference shown" };
    for (const one of data.probe_difference) {
      const name = several ? `${one.probe}: ${title(one)}` : title(one);
      const row = shown.find((found) => found.operation === name);
      assert.ok(row, `${name} is missing`);
      const [before, after] = Object.values(row).slice(1, 3);
      same(before, one.before, name);
      same(after, one.after, name);
      interval(row["ratio (95 %)"], [one.ratio, one.ratio_low, one.ratio_high], name);
      assert.equal(row.verdict, verdicts[one.verdict]);
      assert.equal(row.rounds, `${one.rounds_before}/${one.rounds_after}`);
    }
    const slower = data.probe_difference.filter((one) => one.verdict === "slower").length;
    assert.ok(slower > 0 && slower < data.probe_difference.length);
    assert.equal(await page.locator("td .bad", { hasText: "slower" }).count(), slower);
    assert.equal(await page.locator("svg").count(), 1);
  }));
