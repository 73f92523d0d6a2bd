// The page of a store in a browser.
//
//   ETWHY_BROWSER=/usr/bin/chromium ETWHY_STORE=URL [ETWHY_SHOTS=folder] [ETWHY_DIST=1] node --test test/store.test.mjs
//
// With ETWHY_DIST the page is that of web/dist and not the one built into the server. `crates/faces/etwhy/tests/browser/store.rs` writes the store:
// traces of several machines, the files of some of them gone.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, violations } from "./opened.mjs";

const url = process.env.ETWHY_STORE;
let browser;
before(async () => {
  assert.ok(url, "ETWHY_STORE names no page");
  browser = await launch();
});
after(() => browser?.close());

/** The page, and everything that goes wrong on it. */
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 }, ...options });
  const page = await context.newPage();
  if (process.env.ETWHY_DIST)
    await page.route("**/assets/*/store*", (route) => {
      const style = route.request().url().endsWith(".css");
      return route.fulfill({ contentType: style ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8", body: readFileSync(new URL(`../dist/store.${style ? "css" : "js"}`, import.meta.url)) });
    });
  const wrong = [];
  const own = new URL("..", url).href;
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => (wrong.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
  page.on("request", (request) => !request.url().startsWith(own) && !/^(data|blob):/.test(request.url()) && wrong.push(`request: ${request.url().slice(0, 200)}`));
  await page.goto(url);
  await settled(page);
  return { page, context, wrong };
}

async function settled(page) {
  for (let quiet = 0; quiet < 2; quiet += 1) {
    await page.waitForFunction(() => document.documentElement.dataset.awaited === "0" && !document.querySelector(".bones"), null, { timeout: 60_000 });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }
}

async function shot(page, name) {
  const folder = process.env.ETWHY_SHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `store-${name}.png`) });
}

const pane = (page, title) => page.getByRole("region", { name: title });
const links = (of) => of.locator("tbody a");

test("three clicks from the rank to a trace, and one more into it", async () => {
  const { page, wrong, context } = await open();
  await shot(page, "rank");
  assert.match(await page.locator("h1").textContent(), /^[\d,]+ traces of [\d,]+ machines$/);
  const ranking = pane(page, "Drivers that cost most");
  const worst = await links(ranking).first().textContent();
  await links(ranking).first().click();
  await settled(page);
  await links(pane(page, `Machines with ${worst}`)).first().click();
  await settled(page);
  await links(pane(page, /^Traces of/)).first().click();
  await settled(page);
  await shot(page, "trace");
  const trace = pane(page, /^Trace of/);
  assert.match(await trace.locator(".verdict").textContent(), /\w{3,}/);
  assert.deepEqual(await violations(page), []);
  // Back leads to the machine's traces: every step is an address.
  await page.goBack();
  await settled(page);
  assert.equal(await pane(page, /^Trace of/).count(), 0);
  await page.goForward();
  await settled(page);
  const button = trace.getByRole("button", { name: "Open the trace" });
  if ((await button.count()) === 0) {
    assert.match(await trace.innerText(), /cannot be opened: .{20,}/);
  } else {
    await button.click();
    await page.waitForSelector("h1.verdict", { timeout: 60_000 });
    assert.ok(!page.url().includes("/store/"));
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test("every kind is ranked or says why not, by keyboard alone", async () => {
  const { page, wrong, context } = await open();
  for (const name of ["Processes", "Products", "Categories", "Findings", "Drivers"]) {
    const link = page.getByRole("navigation", { name: "What is ranked" }).getByRole("link", { name });
    await link.focus();
    await page.keyboard.press("Enter");
    await settled(page);
    const region = page.locator("main section").first();
    assert.ok((await links(region).count()) > 0 || /Cannot be determined|Nothing was found/.test(await region.innerText()), name);
    assert.deepEqual(await violations(page), [], name);
    await links(region).first().focus();
    await page.keyboard.press("Enter");
    await settled(page);
    assert.ok((await links(page.locator("main section").nth(1)).count()) > 0, name);
    await shot(page, name.toLowerCase());
  }
  assert.equal(await page.locator(".fault").count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("filters leave some of the traces, stand in the address, and are taken back", async () => {
  const { page, wrong, context } = await open();
  const about = page.locator("main section .about").first();
  const all = await about.textContent();
  const system = page.getByRole("combobox", { name: "Windows" });
  if ((await system.count()) > 0) {
    await system.selectOption({ index: 1 });
    await settled(page);
    assert.notEqual(await about.textContent(), all);
    assert.match(page.url(), /filter/);
    await page.reload();
    await settled(page);
    assert.notEqual(await about.textContent(), all);
    await page.getByRole("link", { name: "All traces" }).click();
    await settled(page);
  }
  assert.equal(await about.textContent(), all);
  await links(page.locator("main section").first()).first().click();
  await settled(page);
  const version = page.getByRole("combobox", { name: "Version" });
  if ((await version.count()) > 0) {
    await version.selectOption({ index: 1 });
    await settled(page);
    assert.ok((await links(page.locator("main section").nth(1)).count()) > 0);
    await page.locator("form.filters button").click();
    await settled(page);
    assert.equal(await about.textContent(), all);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

for (const [name, options] of [["narrow", { viewport: { width: 390, height: 844 } }], ["dark", { colorScheme: "dark" }]])
  test(`nothing is cut off or hard to read: ${name}`, async () => {
    const { page, wrong, context } = await open(options);
    await links(page.locator("main section").first()).first().click();
    await settled(page);
    await links(page.locator("main section").nth(1)).first().click();
    await settled(page);
    await shot(page, name);
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
    assert.deepEqual(wrong, []);
    await context.close();
  });
