// What browser tests of `etwhy serve` share: a browser, pages that report everything that goes wrong, questions to the server.
//
//   ETWHY_BROWSER=/usr/bin/chromium ETWHY_HUD="name=URL;name=URL" [ETWHY_SHOTS=folder] [ETWHY_DIST=1] node --test test/hud/*.test.mjs
//
// With ETWHY_DIST the page is that of web/dist and not the one built into the servers.
// ETWHY_PROGRAM names the program, ETWHY_TRACE a written DPC flood, ETWHY_REPLAY all ten seconds of one, for tests that start servers of their own.
// `crates/faces/etwhy/tests/browser/hud.rs` starts the servers and names them: `demo` (the built-in demonstration), `dpc` (a DPC flood, and the same
// machine after the cure as second trace), `hook` (a hooked system-call path), `pair` and `swapped` (both machines), `real` (a real trace, if there is a corpus), `hostile` (names that attack).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { tableFromIPC } from "@uwdata/flechette";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Addresses of servers by name. */
export const servers = Object.fromEntries(
  (process.env.ETWHY_HUD ?? "").split(";").filter(Boolean).map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]),
);

/** Those that stand for a kind of trace; `pair` and `swapped` have traces of others, in another order. */
export const kinds = Object.keys(servers).filter((name) => !["pair", "swapped"].includes(name));

let browser;

/** Servers that tests started themselves. */
const own = [];

/** Starts a server of the program that ETWHY_PROGRAM names; it ends with `stop`. Its name for `open`. */
export async function startServer(args, configuration = mkdtempSync(join(tmpdir(), "etwhy-configuration-"))) {
  // What the user saved is none of the tests' business.
  const env = { ...process.env, XDG_CONFIG_HOME: configuration, APPDATA: configuration };
  const child = spawn(process.env.ETWHY_PROGRAM, args, { stdio: ["ignore", "pipe", "pipe"], env });
  own.push(child);
  const said = [];
  child.stderr.on("data", (data) => said.push(String(data)));
  const url = await new Promise((done, failed) => {
    child.stdout.on("data", (data) => /http:\S+/.test(String(data)) && done(/http:\S+/.exec(String(data))[0]));
    child.on("exit", () => failed(new Error(`${args.join(" ")}: ${said.join("")}`)));
  });
  const name = `own ${own.length}`;
  servers[name] = url;
  return name;
}

/** The browser of this file's tests; end it with `stop`. */
export async function start() {
  const executablePath = process.env.ETWHY_BROWSER;
  assert.ok(executablePath, "ETWHY_BROWSER names no browser");
  // The sandbox of Chromium needs rights that containers lack; the pages are our own.
  browser ??= await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  return browser;
}

export async function stop() {
  await browser?.close();
  browser = undefined;
  for (const child of own) child.kill("SIGINT");
}

const dist = (name) => readFileSync(new URL(`../../dist/${name}`, import.meta.url), "utf8");

/** Lets a page of a server have the script and style of web/dist, as they would be in the next build of the program. */
export async function fresh(page) {
  await page.route("**/assets/*/hud*", (route) => {
    const [, name, ending] = /(hud[a-z-]*)\.(\w+)$/.exec(route.request().url());
    return route.fulfill({ contentType: `text/${ending === "css" ? "css" : "javascript"}; charset=utf-8`, body: dist(`${name}.${ending}`) });
  });
}

/** A page of a server, and what went wrong on it. `hash` is a view. */
export async function open(name, options = {}) {
  await start();
  const { hash = "", ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"], acceptDownloads: true, reducedMotion: "reduce", ...rest });
  const page = await context.newPage();
  if (process.env.ETWHY_DIST) await fresh(page);
  const wrong = [];
  const url = servers[name];
  assert.ok(url, `ETWHY_HUD names no server ${name}`);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) wrong.push(`request: ${request.url().slice(0, 200)}`);
  });
  await page.goto(url + hash);
  await page.waitForSelector("main[data-panel]");
  await settled(page);
  return { context, page, wrong, url };
}

/** Titles of all panels, those without data too. */
export async function panelTitles(page) {
  await page.locator(".rail .all").click();
  await page.locator(".flyout details").evaluateAll((all) => all.forEach((one) => (one.open = true)));
  const titles = await page.locator(".flyout li button.go").allTextContents();
  await page.keyboard.press("Escape");
  return titles;
}

/** Goes to a panel as people do who look for it in the list. */
export async function visit(page, title) {
  await page.locator(".rail .all").click();
  await page.locator(".flyout input").fill(title);
  await page.locator(".flyout li button.go", { hasText: new RegExp(`^${title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`) }).click();
  await settled(page);
}

/** Waits until nothing is asked any more and everything is drawn. */
export async function settled(page) {
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  // An answer may lead to the next question.
  for (let quiet = 0; quiet < 2; ) {
    await frames();
    await page.waitForFunction(() => (document.documentElement.dataset.awaited ?? "0") === "0" && !document.querySelector("main > .about .bones, .about.loading"), null, { timeout: 60_000 });
    await frames();
    const again = await page.evaluate(() => document.documentElement.dataset.awaited ?? "0");
    quiet = again === "0" ? quiet + 1 : 0;
  }
}

/** An address part that shows a view, in the first version of links (`web/hud/state/link.ts`), with numbers of traces and processes. */
export const hashOf = (view) => `#v1=${encodeURIComponent(JSON.stringify(view))}`;

/** What the page looks at now; the first trace is left out, others are told by their number. */
export async function viewOf(page) {
  await settled(page);
  const hash = await page.evaluate(() => location.hash);
  const { trace, ...view } = hash ? JSON.parse(decodeURIComponent(hash.replace(/^#v\d+=/, ""))) : {};
  return trace?.at ? { ...view, trace: trace.at } : view;
}

/** Rows of a query, asked past the page. */
export async function sql(name, query, trace = 0) {
  const response = await fetch(`${servers[name]}api/v1/sql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ trace, sql: query, limit: 100_000 }) });
  assert.equal(response.status, 200, `${query}: ${response.status === 200 ? "" : await response.text()}`);
  const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()), { useBigInt: true });
  const plain = (cell) => (typeof cell === "bigint" ? Number(cell) : cell);
  return table.toArray().map((row) => Object.fromEntries(Object.entries(row).map(([key, cell]) => [key, plain(cell)])));
}

/** What axe finds, however small. */
export async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document));
  return result.violations
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
}

/** A picture for people to look at, if somebody wants one. */
export async function shot(page, name) {
  const folder = process.env.ETWHY_SHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** What is cut off at the right or overlaps the frame: elements wider than the window. */
export async function tooWide(page) {
  return page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > innerWidth;
    return wide ? [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((one) => one.outerHTML.slice(0, 120)) : [];
  });
}

/** What lies over what can be clicked, by what it hides: texts of controls whose middle is somebody else's. What is scrolled out of sight does not count. */
export async function covered(page) {
  return page.evaluate(() => {
    const seen = (one) => {
      const box = one.getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      if (box.width < 2 || box.height < 2 || x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return null;
      for (let up = one.parentElement; up; up = up.parentElement) {
        const style = getComputedStyle(up);
        if (style.overflowX === "visible" && style.overflowY === "visible") continue;
        const clip = up.getBoundingClientRect();
        if (x < clip.left || x > clip.right || y < clip.top || y > clip.bottom) return null;
      }
      return [x, y];
    };
    const named = (one) => `${one.tagName.toLowerCase()} ${(one.getAttribute("aria-label") ?? one.textContent ?? "").trim().slice(0, 40)}`;
    return [...document.querySelectorAll("main button, main select, main input, header button, header select, aside button")].flatMap((one) => {
      if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return [];
      const at = seen(one);
      const top = at && document.elementFromPoint(...at);
      const own = !top || one.contains(top) || top.contains(one) || top.closest("label")?.contains(one);
      return own ? [] : [`${named(one)} under ${named(top)}`];
    });
  });
}

/** Texts and controls of a panel that reach beyond the window where nothing of their own scrolls: a row of tools, a heading, a table of facts. */
export async function beyond(page) {
  return page.evaluate(() => {
    const scrolls = (one) => {
      for (let up = one.parentElement; up && !up.matches(".panel, main"); up = up.parentElement) if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX)) return true;
      return false;
    };
    const alone = (one) => one.children.length === 0 && (one.textContent.trim() !== "" || one.matches("button, select, input"));
    return [...document.querySelectorAll("main .panel *")].filter((one) => alone(one) && one.checkVisibility() && one.getBoundingClientRect().width > 1 && one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one)).map((one) => `${one.tagName.toLowerCase()} ${(one.textContent || one.getAttribute("aria-label") || "").trim().slice(0, 40)}`);
  });
}
