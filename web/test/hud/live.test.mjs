// A trace that is followed: the culprit is on the page before a replay ends, a look back, a part saved as a trace.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fresh, servers, shot, start, startServer, stop, violations } from "./harness.mjs";

after(stop);

const trace = process.env.ETWHY_REPLAY;
const skip = trace && process.env.ETWHY_PROGRAM ? false : "ETWHY_PROGRAM and ETWHY_REPLAY name nothing";
const LONG = 120_000;

/** Opens the page of a replay without waiting for it to rest, which it does not before its end. */
async function follow(speed, played = trace, window = "6s") {
  const name = await startServer(["live", "--replay", played, "--speed", String(speed), "--window", window, "--port", "0"]);
  const browser = await start();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  if (process.env.ETWHY_DIST) await fresh(page);
  const wrong = [];
  // A question about a finding or row of a window that passes while it is asked is answered with 410: what it named is gone. The browser
  // writes that to its console, and the page asks the next window. Every other refusal is a fault.
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && !message.text().startsWith("Failed to load resource") && wrong.push(message.text()));
  page.on("response", (answer) => answer.status() >= 400 && answer.status() !== 410 && wrong.push(`${answer.status()} ${new URL(answer.url()).pathname.split("/").slice(2).join("/")}`));
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.goto(servers[name]);
  await page.waitForSelector("[data-live]", { timeout: LONG });
  return { page, context, wrong };
}

const windowOf = (page) => page.locator("[data-live]").evaluate((one) => Number(one.dataset.window));
const stateOf = (page) => page.locator("[data-live]").getAttribute("data-live");

test("the culprit of a DPC flood is on the page before its replay ends", { skip, timeout: 4 * LONG }, async () => {
  const { page, context, wrong } = await follow(0.25);
  const episode = page.locator("[data-episode^='dpc.']").first();
  await episode.waitFor({ timeout: LONG });
  assert.equal(await stateOf(page), "live");
  assert.match(await episode.textContent(), /began \d\d:\d\d:\d\d/);
  await page.locator(".finding-row", { hasText: "IDSvia64.sys" }).first().waitFor({ timeout: LONG });
  assert.notEqual(await stateOf(page), "ended");
  await shot(page, "live");

  // Tracks scroll: the axis is that of the newest window.
  const axis = () => page.locator("main").evaluate((one) => JSON.parse(one.dataset.scope));
  const [first, number] = [await axis(), await windowOf(page)];
  await page.waitForFunction((n) => Number(document.querySelector("[data-live]").dataset.window) > n + 1, number, { timeout: LONG });
  assert.ok((await axis())[1] > first[1]);

  // A look back: what is shown stays, what is found goes on being told.
  await page.getByRole("button", { name: "Pause" }).click();
  await page.waitForSelector("[data-live=paused]", { timeout: LONG });
  const [held, time] = [await windowOf(page), await page.locator("[data-live]").textContent()];
  await page.waitForFunction((text) => document.querySelector("[data-live]").textContent !== text, time, { timeout: LONG });
  assert.equal(await windowOf(page), held);
  assert.deepEqual(await violations(page), []);

  // The part that is shown, as a trace that the program reads and blames the same one.
  const range = await axis();
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: LONG }), page.getByRole("button", { name: /as a trace/ }).click()]);
  const path = `${await download.path()}.etl`;
  await download.saveAs(path);
  const part = [path, "--from", `${range[0]}ns`, "--to", `${range[1]}ns`, "--json", "--quiet"];
  // Exit code 1: buffers that were left out are missing in it.
  const told = (of) => JSON.parse(spawnSync(process.env.ETWHY_PROGRAM, ["why", ...of], { maxBuffer: 1 << 28 }).stdout.toString());
  const [saved, whole] = [told(part), told([trace, ...part.slice(1)])];
  assert.equal(saved.sentence, whole.sentence);
  const hits = (report) => report.findings.filter((one) => one.answer === "found").map((one) => `${one.id} ${one.hits[0]?.culprit} ${one.hits[0]?.cost_ns}`);
  assert.deepEqual(hits(saved).filter((one) => one.startsWith("dpc.")), hits(whole).filter((one) => one.startsWith("dpc.")));

  await page.getByRole("button", { name: "Go on" }).click();
  await page.waitForFunction((n) => Number(document.querySelector("[data-live]").dataset.window) > n, held, { timeout: LONG });
  await page.waitForSelector("[data-live=ended]", { timeout: LONG });
  assert.deepEqual(wrong, []);
  await context.close();
});

test("windows that pass leave nothing behind on the page", { skip, timeout: 4 * LONG }, async () => {
  const { page, context, wrong } = await follow(0.5);
  const client = await context.newCDPSession(page);
  const used = async () => {
    await client.send("HeapProfiler.collectGarbage");
    return (await client.send("Runtime.getHeapUsage")).usedSize;
  };
  await page.waitForFunction(() => Number(document.querySelector("[data-live]").dataset.window) >= 5, null, { timeout: LONG });
  const before = await used();
  await page.waitForSelector("[data-live=ended]", { timeout: LONG });
  const windows = await windowOf(page);
  const grown = (await used()) - before;
  assert.ok(windows >= 8 && grown < 6e6, `${grown} bytes more after ${windows} windows`);
  assert.deepEqual(wrong, []);
  await context.close();
});

test("a finding says which range it is of, and opens as the window shows it", { skip, timeout: 4 * LONG }, async () => {
  // A flood of three seconds in twelve. That its last seconds show it within two is tested where time is the trace's (crates/faces/live);
  // a machine with other work may see it in the whole window first.
  const flood = join(mkdtempSync(join(tmpdir(), "etwhy-flood-")), "flood.etl");
  const scenario = new URL("../../../crates/faces/live/tests/data/flood.toml", import.meta.url).pathname;
  assert.equal(spawnSync(process.env.ETWHY_PROGRAM, ["synth", scenario, "-o", flood, "--quiet"]).status, 0);
  const { page, context, wrong } = await follow(0.25, flood, "60s");
  // What each look at the page finds: its range in the mark, in words, and how long the window is.
  const seen = () =>
    page.evaluate(() => {
      const length = (text) => {
        const found = /(?:in|(?:%|s|:)) the last ([\d.]+)\u00a0(m?s)|in ([\d.]+)\u00a0(m?s) until/.exec(text);
        return found ? Number(found[1] ?? found[3]) * ((found[2] ?? found[4]) === "ms" ? 0.001 : 1) : null;
      };
      return [...document.querySelectorAll("[data-episode]:not(.over)")].map((one) => ({ id: one.dataset.episode, range: one.dataset.range, seconds: length(one.querySelector(".when").textContent), words: one.textContent, opens: one.querySelector("button") !== null }));
    });
  const all = [];
  const inWindow = (one) => one.id === "dpc.over-limit" && one.range === "window";
  for (const begin = Date.now(); !all.some(inWindow); await page.waitForTimeout(100)) {
    assert.ok(Date.now() - begin < LONG, `never of the whole window: ${JSON.stringify(all.slice(-5))}`);
    all.push(...(await seen()));
  }
  for (const one of all) {
    assert.ok(["last", "window"].includes(one.range), JSON.stringify(one));
    assert.ok(one.seconds > 0 && (one.range === "window" || one.seconds <= 3.001), JSON.stringify(one));
  }
  assert.ok(all.find(inWindow).seconds > 3.001, JSON.stringify(all.find(inWindow)));
  // What the window shows opens in the inspector. Which findings last goes on being told meanwhile, so each is sought by its name.
  // A replay that has ended by now has nothing to pause.
  await page.getByRole("button", { name: "Pause" }).click({ timeout: 5_000 }).catch(() => undefined);
  await page.waitForSelector("[data-live=paused], [data-live=ended]", { timeout: LONG });
  const opening = page.locator("[data-episode]:has(button)");
  await page.locator("[data-episode='dpc.over-limit'] button").first().waitFor({ timeout: LONG });
  for (const id of new Set(await opening.evaluateAll((list) => list.map((one) => one.dataset.episode)))) {
    await page.locator(`[data-episode='${id}'] button`).first().click();
    await page.locator("aside code", { hasText: id }).waitFor({ timeout: LONG });
  }
  const goOn = page.getByRole("button", { name: "Go on" });
  if (await goOn.isVisible()) await goOn.click();
  await page.waitForSelector("[data-live=ended]", { timeout: LONG });
  assert.deepEqual(wrong, []);
  await context.close();
});
