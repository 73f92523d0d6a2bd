// The panel of stacks: flame graph, icicle, trees, butterfly; steps, search, links, export; keyboard alone.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { hashOf, kinds, open, servers, settled, shot, sql, stop, tooWide, viewOf, violations } from "./harness.mjs";

after(stop);

const stacks = (settings = {}, more = {}) => hashOf({ panel: "stacks", settings: { stacks: settings }, ...more });
const total = (page) => page.locator("[data-total]").getAttribute("data-total").then(Number);
const NOT_IDLE = "NOT in_dpc AND NOT in_isr AND coalesce(upid, -1) NOT IN (SELECT upid FROM process WHERE pid = 0)";

for (const name of kinds) {
  test(`${name}: every picture of stacks works, in every size`, async () => {
    const { page, wrong, context } = await open(name, { hash: stacks() });
    for (const tab of ["Flame", "Icicle (time order)", "Top-down", "Inverted", "Butterfly"]) {
      await page.getByRole("tab", { name: tab }).click();
      await settled(page);
      assert.equal(await page.locator(".fault").count(), 0, tab);
      assert.deepEqual(await violations(page), [], tab);
      for (const [width, height] of [[1024, 700], [3840, 2160], [1280, 800]]) {
        await page.setViewportSize({ width, height });
        await settled(page);
        assert.deepEqual(await tooWide(page), [], `${tab} at ${width}`);
      }
      await shot(page, `${name}-stacks-${tab.split(" ")[0].toLowerCase()}`);
    }
    assert.deepEqual(wrong, []);
    await context.close();
  });

  test(`${name}: totals follow the range and the filters, and are those of SQL`, async () => {
    const { page, context } = await open(name, { hash: stacks() });
    const [first, last] = JSON.parse(await page.locator("main").getAttribute("data-scope"));
    const [{ upid }] = await sql(name, `SELECT upid FROM sample WHERE ${NOT_IDLE} GROUP BY 1 ORDER BY sum(weight_ns) DESC LIMIT 1`).then((rows) => (rows.length > 0 ? rows : [{ upid: null }]));
    await context.close();
    if (upid === null) return;
    const [{ label }] = await sql(name, `SELECT name || ' (' || pid || ')' AS label FROM process WHERE upid = ${upid}`);
    const range = [first, Math.round(first + (last - first) / 3)];
    for (const [more, where] of [
      [{}, ""],
      [{ selection: range }, ` AND ts_ns >= ${range[0]} AND ts_ns < ${range[1]}`],
      [{ selection: range, filters: [{ kind: "process", value: upid, label }] }, ` AND ts_ns >= ${range[0]} AND ts_ns < ${range[1]} AND upid = ${upid}`],
      [{ filters: [{ kind: "cpu", value: 0, label: "0" }] }, " AND cpu = 0"],
    ]) {
      const view = await open(name, { hash: stacks({}, more) });
      const [{ n }] = await sql(name, `SELECT coalesce(sum(weight_ns), 0) AS n FROM sample WHERE ${NOT_IDLE}${where}`);
      assert.equal(await total(view.page), n ?? 0, where);
      await view.context.close();
    }
  });
}

test("the hooked system call is found with the keyboard alone", { skip: !servers.hook }, async () => {
  const { page, wrong, context } = await open("hook", { hash: stacks() });
  const before = await total(page);
  // Pictures need the height: what is chosen takes one row of it.
  assert.ok((await page.locator(".stack-tools").boundingBox()).height < 34);
  await page.keyboard.press("/");
  await page.keyboard.type("tedrdrv");
  await settled(page);
  assert.match(await page.locator("[data-part=found]").textContent(), /2 boxes match: \d\d\.\d\s%/);
  await page.keyboard.press("Escape");
  const boxes = page.locator("[data-part=boxes]");
  await boxes.focus();
  for (let at = 0; at < 6; at += 1) await page.keyboard.press("ArrowDown");
  assert.match(await page.locator("[data-part=details]").textContent(), /KernelBase\.dll!SleepEx/);
  // Focus on the function, then take the step back.
  await page.keyboard.press("f");
  await settled(page);
  assert.match(await page.locator("[data-part=steps]").textContent(), /1\. focus on KernelBase\.dll!SleepEx/);
  assert.ok((await total(page)) < before);
  assert.deepEqual((await viewOf(page)).settings.stacks.steps, [{ op: "focus", function: "KernelBase.dll!SleepEx" }]);
  await page.keyboard.press("X");
  await settled(page);
  assert.equal(await total(page), before);
  // Zoom in with Enter, out with Escape.
  await boxes.focus();
  for (let at = 0; at < 5; at += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.match(await page.locator("[data-part=trail]").textContent(), /SpinLock::Acquire/);
  await boxes.focus();
  await page.keyboard.press("Escape");
  await settled(page);
  assert.doesNotMatch(await page.locator("[data-part=trail]").textContent(), /SpinLock::Acquire/);
  // Security products are told in words, not by colour alone.
  await page.goto(page.url().split("#")[0] + stacks({ tab: "tree" }));
  await page.reload();
  await settled(page);
  assert.ok((await page.getByText("[S] tedrdrv.sys!?").count()) > 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("butterfly, menu and filters", { skip: !servers.hook }, async () => {
  const { page, wrong, context } = await open("hook", { hash: stacks({ tab: "butterfly", about: "KernelBase.dll!SleepEx" }) });
  assert.match(await page.locator(".stack-sum").textContent(), /KernelBase\.dll!SleepEx: .* with all that it called/);
  assert.ok((await page.getByRole("treegrid", { name: "Callers" }).getByText("SpinLock::Acquire").count()) > 0);
  assert.ok((await page.getByRole("treegrid", { name: "Callees" }).getByText("NtDelayExecution").count()) > 0);
  await page.getByRole("tab", { name: "Top-down" }).click();
  await settled(page);
  await page.locator("[data-part=tree]").getByText("ntdll.dll!NtDelayExecution").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Filter all panels by this function" }).click();
  await settled(page);
  assert.equal((await viewOf(page)).filters[0].value, "ntdll.dll!NtDelayExecution");
  assert.match(await page.locator(".crumbs").textContent(), /frame ntdll\.dll!NtDelayExecution/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a metric that was not recorded says which recording has it", { skip: !servers.hook }, async () => {
  const { page, context } = await open("hook", { hash: stacks({ metric: "wait" }) });
  assert.match(await page.locator(".nothing").textContent(), /etwhy record/);
  await context.close();
});

test("what is shown can be saved", { skip: !servers.hook }, async () => {
  const { page, context } = await open("hook", { hash: stacks() });
  const all = await total(page);
  const save = async (button) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
    return readFileSync(await download.path(), "utf8");
  };
  const folded = await save("Folded stacks");
  const sum = folded.trim().split("\n").reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  assert.equal(sum, all);
  assert.match(await save("CSV"), /^side,id,parent,depth,name,/);
  await page.locator("[data-part=as-table]").click();
  await settled(page);
  assert.ok((await page.getByRole("grid", { name: /as a table/ }).count()) === 1);
  await context.close();
});

test("two ranges are compared", { skip: !servers.hook }, async () => {
  const { page, wrong, context } = await open("hook", { hash: stacks({ compare: true }, { other: { trace: 0, range: null } }) });
  assert.match(await page.locator(".stack-legend").textContent(), /a larger share/);
  await page.getByRole("tab", { name: "Top-down" }).click();
  await settled(page);
  assert.ok((await page.getByRole("columnheader", { name: "Difference" }).count()) === 1);
  await shot(page, "hook-stacks-compare");
  assert.deepEqual(wrong, []);
  await context.close();
});
