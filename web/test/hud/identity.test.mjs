// Who filters speak of, when the trace changes and when a link is opened on another server.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { hashOf, open, servers, settled, sql, stop, viewOf } from "./harness.mjs";

after(stop);

const two = "pair";
const crumbs = (page) => page.locator(".crumb.filter").allInnerTexts();
const notes = async (page) => (await page.locator(".notes li").allInnerTexts()).join("\n");
const labels = async (trace) => (await sql(two, "SELECT upid, name || ' (' || pid || ')' AS label FROM process ORDER BY upid", trace)).map((row) => [row.upid, row.label]);

/** Processes that only the first trace has, and those that both have under other numbers. */
async function sides() {
  const [first, second] = [await labels(0), await labels(1)];
  const there = new Map(second.map(([upid, label]) => [label, upid]));
  const alone = first.filter(([, label]) => !there.has(label));
  const moved = first.filter(([upid, label]) => there.has(label) && there.get(label) !== upid);
  return { first, second, there, alone, moved };
}

test("a process that the other trace lacks is not taken for another one", { skip: !servers[two] }, async () => {
  const { alone, second } = await sides();
  assert.ok(alone.length > 0);
  const [upid, label] = alone.find(([upid]) => second.some(([other]) => other === upid)) ?? alone[0];
  const { page, wrong, context } = await open(two, { hash: hashOf({ filters: [{ kind: "process", value: upid, label }] }) });
  assert.match((await crumbs(page)).join(), new RegExp(label.replace(/[().]/g, "\\$&")));
  const asked = [];
  page.on("request", (request) => asked.push(request.postData() ?? ""));
  await page.locator("header select").first().selectOption("1");
  await settled(page);
  assert.deepEqual(await crumbs(page), []);
  assert.match(await notes(page), /is not in .*: the filter was removed/);
  // The strips of findings ask about the culprits of the other trace, by its own numbers.
  const others = asked.filter((body) => /"trace":1/.test(body) && !/"spark":65,"limit":1}/.test(body));
  const wrongly = others.filter((body) => body.includes(`"value":${upid},"not"`));
  assert.deepEqual(wrongly, [], "the number of one trace was asked of the other");
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await notes(page), "");
  // Back leads to the trace with its filter.
  await page.goBack();
  await settled(page);
  assert.equal((await crumbs(page)).length, 1);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("links name traces and processes, and find them under other numbers", { skip: !servers[two] || !servers.swapped }, async () => {
  const { first } = await sides();
  const [upid, label] = first.find(([, one]) => one.includes(".exe"));
  const a = await open(two, { hash: hashOf({ panel: "threads", filters: [{ kind: "process", value: upid, label }] }) });
  const hash = await a.page.evaluate(() => location.hash);
  assert.match(hash, /^#v2=/);
  const link = JSON.parse(decodeURIComponent(hash.replace(/^#v2=/, "")));
  assert.equal(link.filters[0].value, undefined, "a number stands in the link");
  assert.equal(link.filters[0].who.name, label.replace(/ \(\d+\)$/, ""));
  assert.ok(link.trace.name);
  // The same traces in another order: the link shows the same one.
  const b = await open("swapped", { hash });
  assert.equal(await b.page.locator("header select").first().inputValue(), "1");
  assert.deepEqual(await crumbs(b.page), await crumbs(a.page));
  assert.equal(await notes(b.page), "");
  // A server without it says so.
  const c = await open("dpc", { hash });
  assert.match(await notes(c.page), /The link shows .*, which is not open here/);
  assert.deepEqual([...a.wrong, ...b.wrong, ...c.wrong], []);
  for (const one of [a, b, c]) await one.context.close();
});

test("old links are checked against what they say in words", { skip: !servers[two] }, async () => {
  const { first, moved, alone } = await sides();
  const [upid] = first[0];
  const open1 = async (filter, more = {}) => {
    const { page, wrong, context } = await open(two, { hash: hashOf({ filters: [filter], ...more }) });
    const seen = { crumbs: await crumbs(page), notes: await notes(page), filters: (await viewOf(page)).filters ?? [] };
    assert.deepEqual(wrong, []);
    await context.close();
    return seen;
  };
  const lying = await open1({ kind: "process", value: upid, label: "nobody.exe (77)" });
  assert.deepEqual(lying.crumbs, []);
  assert.match(lying.notes, /does not say for certain/);
  const thread = await open1({ kind: "thread", value: 3, label: "no number" });
  assert.deepEqual(thread.crumbs, []);
  for (const [number, label] of [...moved.slice(0, 1), ...alone.slice(0, 1)]) {
    const seen = await open1({ kind: "process", value: number + 1000, label });
    assert.equal(seen.crumbs.length, 1, `${label} is found by its words`);
    assert.equal(seen.filters[0].who.name, label.replace(/ \(\d+\)$/, ""));
  }
  const far = await open1({ kind: "module", value: "nothing.sys", label: "nothing.sys" }, { trace: 7 });
  assert.match(far.notes, /The link shows trace 8, which is not open here/);
  assert.match(far.notes, /module nothing.sys is not in/);
});
