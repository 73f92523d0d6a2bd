// A part of a trace has its own verdict, findings, bill and drivers on stacks: those of `etwhy why --from --to`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, test } from "node:test";
import { hashOf, open, servers, settled, stop, viewOf, violations, visit } from "./harness.mjs";

after(stop);

const dpc = servers.dpc && process.env.ETWHY_PROGRAM && process.env.ETWHY_TRACE ? {} : { skip: "no server dpc, or ETWHY_PROGRAM and ETWHY_TRACE name nothing" };

const why = ([from, to]) => {
  const run = spawnSync(process.env.ETWHY_PROGRAM, ["why", process.env.ETWHY_TRACE, "--from", `${from}ns`, "--to", `${to}ns`, "--top", "20", "--json", "--quiet"], { maxBuffer: 1 << 28 });
  return JSON.parse(run.stdout.toString());
};
const ask = async (name, body) => (await fetch(`${servers.dpc}api/v1/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace: 0, ...body }) })).json();

test("the verdict of a selection stands everywhere in the place of that of the trace, until it is taken back", dpc, async () => {
  const range = [200_000_000, 500_000_000];
  const want = why(range);
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "overview", selection: range }), viewport: { width: 1440, height: 900 } });
  const figures = () => page.locator(".tile .value").allInnerTexts();
  const whole = { title: await page.locator("h1.verdict").getAttribute("title"), costs: await page.locator(".finding-row.headline .number").allInnerTexts(), tiles: await figures() };
  await page.getByRole("button", { name: /^Find the cause within the selected/ }).click();
  await page.getByRole("button", { name: "Back to the whole trace" }).waitFor({ timeout: 60_000 });
  await settled(page);
  assert.equal(await page.locator("h1.verdict").getAttribute("title"), want.sentence);
  const found = want.findings.filter((one) => one.answer === "found");
  const hits = found.reduce((sum, one) => sum + one.hits.length, 0);
  assert.match(await page.locator(".finding-row.head").innerText(), new RegExp(`${hits} found`));
  assert.notDeepEqual(await page.locator(".finding-row.headline .number").allInnerTexts(), whole.costs);
  assert.notDeepEqual(await figures(), whole.tiles);
  // The bill: as many lines of each kind, and the same sums.
  const bill = page.getByRole("grid", { name: "The bill" }).or(page.locator("[aria-label='The bill'].grid")).first();
  const worst = want.bill.filter((row) => row.kind === "process" && row.part === "culprit").sort((a, b) => b.total_cpu_ns - a.total_cpu_ns)[0];
  assert.match(await bill.innerText(), new RegExp(worst.culprit.replace(/[.()]/g, "\\$&")));
  assert.deepEqual(await violations(page), []);
  // Other panels say the same, and that it is of the part.
  await visit(page, "DPC/ISR");
  assert.equal(await page.locator(".verdict-bar h1").getAttribute("title"), want.sentence);
  assert.match(await page.locator(".within").innerText(), /Verdict, findings and bill of the selected/);
  // What a finding of the part selects is that part.
  await page.evaluate((hash) => (location.hash = hash), hashOf({ panel: "overview", selection: range }));
  await settled(page);
  await page.locator(".inspector").getByRole("button", { name: "Filter", exact: true }).click();
  await settled(page);
  assert.deepEqual((await viewOf(page)).selection, range);
  assert.equal(await page.locator("h1.verdict").getAttribute("title"), want.sentence);
  await page.getByRole("button", { name: "Back to the whole trace" }).click();
  await settled(page);
  assert.equal(await page.locator("h1.verdict").getAttribute("title"), whole.title);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("who is on the stacks of a selection's DPCs is what the finding of that part says", dpc, async () => {
  for (const range of [[200_000_000, 500_000_000], [0, 250_000_000]]) {
    const report = why(range);
    const hits = report.findings.find((one) => one.id === "dpc.filter-in-path").hits;
    assert.ok(hits.length > 0);
    const { stacks, stacks_whole } = await ask("interrupts", { range, filters: [] });
    assert.equal(stacks_whole, false);
    for (const hit of hits) {
      const mine = stacks.filter((one) => one.driver.toLowerCase() === hit.culprit.toLowerCase());
      assert.ok(mine.length > 0, hit.culprit);
      assert.equal(mine.reduce((sum, one) => sum + one.cost_ns, 0), hit.cost_ns, `${hit.culprit} in ${range}`);
    }
  }
  // Halves are the whole.
  const sums = async (range) => {
    const out = {};
    for (const one of (await ask("interrupts", { range, filters: [] })).stacks) out[`${one.class} ${one.host} ${one.driver}`] = one.samples;
    return out;
  };
  const [all, first, second] = [await sums(null), await sums([0, 400_000_000]), await sums([400_000_000, 1e15])];
  assert.ok(Object.keys(all).length > 0);
  for (const [name, samples] of Object.entries(all)) assert.equal((first[name] ?? 0) + (second[name] ?? 0), samples, name);

  const range = [200_000_000, 500_000_000];
  const { page, wrong, context } = await open("dpc", { hash: hashOf({ panel: "interrupts", selection: range }) });
  assert.match(await page.locator("section[aria-label='Who is on the stacks of DPCs and ISRs']").innerText(), /of the selected 0\.2/);
  assert.deepEqual(wrong, []);
  await context.close();
});
