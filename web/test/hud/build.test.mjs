// Two builds, the second twice as long: what one run of the same work costs, keys of the registry, and rows that are selected together.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { hashOf, open, settled, sql, startServer, stop, viewOf, violations } from "./harness.mjs";

after(stop);

const program = process.env.ETWHY_PROGRAM;
const skip = program ? {} : { skip: "ETWHY_PROGRAM names nothing" };

let started;
/** The server of both. */
const builds = () => {
  started ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), "etwhy-builds-"));
    const traces = [["short", 0.05], ["long", 0.1]].map(([name, scale]) => {
      const trace = join(folder, `${name}.etl`);
      execFileSync(program, ["synth", fileURLToPath(new URL("../../../scenarios/clean_build.toml", import.meta.url)), "-o", trace, "--scale", String(scale)], { stdio: "ignore" });
      return trace;
    });
    return startServer(["serve", "--quiet", "--no-open", ...traces]);
  })();
  return started;
};
const plain = (text) => Number(text.replaceAll(",", "").replace(/[^\d.]/g, ""));

test("the search finds keys of the registry", skip, async () => {
  const name = await builds();
  const { page, wrong, context } = await open(name);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("nls\\codep");
  const found = page.locator("#omnibox-list [role=option]", { hasText: "registry key" });
  await found.first().waitFor();
  assert.match(await found.first().innerText(), /HKLM\\SYSTEM\\CurrentControlSet\\Control\\Nls\\CodePage/);
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal((await viewOf(page)).panel, "registry");
  const [{ n }] = await sql(name, "SELECT count(*) AS n FROM registry WHERE key = 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\Nls\\CodePage'");
  assert.ok(n > 0);
  assert.equal(plain(/of ([\d,]+) rows/.exec((await page.locator("[data-part=totals]").innerText()).replace(/\s+/g, " "))[1]), n);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("selected groups are filtered to, and become tracks", skip, async () => {
  const name = await builds();
  const { page, wrong, context } = await open(name, { hash: hashOf({ panel: "registry", settings: { registry: { preset: "By key" } } }) });
  const cells = page.locator("main .grid").first().locator("[data-cell$=':0'][role=rowheader]");
  const keys = await cells.evaluateAll((all) => all.map((one) => one.textContent.replace(/^[▸▾]/, "")));
  assert.ok(keys.length > 2, keys.join());
  await cells.nth(0).click();
  await cells.nth(0).click({ modifiers: ["Control"] });
  await cells.nth(2).click({ modifiers: ["Control"] });
  const foot = page.locator(".grid-foot");
  assert.match(await foot.innerText(), /2 rows selected/);
  await foot.getByRole("button", { name: "Add tracks" }).click();
  await settled(page);
  const titles = await page.locator(".tl-title").allTextContents();
  for (const key of [keys[0], keys[2]]) assert.ok(titles.some((one) => one.startsWith(key)), `${key}: ${titles}`);
  await cells.nth(0).click({ modifiers: ["Control"] });
  await cells.nth(2).click({ modifiers: ["Control"] });
  await foot.getByRole("button", { name: "Filter to these" }).click();
  await settled(page);
  assert.deepEqual(await cells.evaluateAll((all) => all.map((one) => one.textContent.replace(/^[▸▾]/, ""))), [keys[0], keys[2]]);
  const literal = [keys[0], keys[2]].map((key) => `'${key.replaceAll("'", "''")}'`).join();
  const [{ n }] = await sql(name, `SELECT count(*) AS n FROM registry WHERE key IN (${literal})`);
  assert.match((await page.locator("[data-part=totals]").innerText()).replace(/\s+/g, " "), new RegExp(`2 groups of ${n} rows`));
  assert.equal(await foot.count(), 0, "what was done with them is done");
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press("Control+z");
  await settled(page);
  assert.equal(await cells.count(), keys.length);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a build that ran twice as long costs twice as much in all, and the same per run", skip, async () => {
  const name = await builds();
  const { page, wrong, context } = await open(name, { hash: hashOf({ panel: "compare", trace: 1, other: { trace: 0, range: null }, settings: { compare: { kind: "process" } } }) });
  const table = page.getByRole("grid", { name: "Programs, drivers, functions" });
  const row = async () => {
    const cells = table.locator("[role=row]", { hasText: "cl.exe" }).first().locator("[role=rowheader], [role=gridcell]");
    const unit = await table.getByRole("columnheader").nth(1).innerText();
    return { cells: await cells.allTextContents(), unit };
  };
  const starts = async (trace) => (await sql(name, "SELECT count(*) AS n FROM process WHERE name = 'cl.exe' AND start_ns IS NOT NULL", trace))[0].n;
  const cost = async (trace) => (await sql(name, "SELECT sum(s.weight_ns) AS ns FROM sample s JOIN process p ON p.upid = s.upid WHERE p.name = 'cl.exe'", trace))[0].ns;
  const [runs, ns] = [[await starts(0), await starts(1)], [await cost(0), await cost(1)]];
  assert.ok(runs[1] > runs[0] && runs[0] > 1);
  const all = await row();
  assert.ok(Math.abs(Number.parseFloat(all.cells[4]) - ns[1] / ns[0]) < 0.02, all.cells.join(" | "));
  await page.getByRole("button", { name: "Per run" }).click();
  assert.equal(await page.getByLabel("What one run is").locator("option:checked").innerText(), `starts of cl.exe (${runs[0]} in A, ${runs[1]} in B)`);
  const each = await row();
  assert.match(each.unit, /\/run/);
  const factor = /ms/.test(each.unit) ? 1e6 : /µs/.test(each.unit) ? 1e3 : 1e9;
  for (const side of [0, 1]) assert.ok(Math.abs(plain(each.cells[side + 1]) * factor - ns[side] / runs[side]) < 0.01 * ns[side], `${each.cells} ${each.unit}`);
  assert.ok(Math.abs(Number.parseFloat(each.cells[4]) - ns[1] / runs[1] / (ns[0] / runs[0])) < 0.02, each.cells.join(" | "));
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("digits go to panels; lanes of threads stand under the time axis", skip, async () => {
  const { page, wrong, context } = await open(await builds());
  for (const [digit, panel] of [["2", "stacks"], ["6", "files"], ["9", "memory"], ["1", "overview"], ["3", "precise"]]) {
    await page.keyboard.press(digit);
    await settled(page);
    assert.equal((await viewOf(page)).panel ?? "overview", panel);
  }
  const place = async (selector) => {
    const { x, width } = await page.locator(selector).first().boundingBox();
    return [Math.round(x), Math.round(x + width)];
  };
  assert.deepEqual(await place("canvas[data-part=lanes]"), await place("[data-part=timeline] .tl-plot canvas, [data-part=timeline] canvas"));
  assert.deepEqual(wrong, []);
  await context.close();
});
