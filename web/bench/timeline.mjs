// How quick the timeline is, against its budgets. A measurement, not a test: run it on a machine that does nothing else.
//
//   etwhy serve TRACE --port 0                       prints a URL
//   ETWHY_BROWSER=/usr/bin/chromium node bench/timeline.mjs URL [seconds]
//
// Prints for each figure its value, its budget and their ratio; below 1 is within.

import { chromium } from "playwright-core";

const [url, seconds = "3"] = process.argv.slice(2);
if (!url || !process.env.ETWHY_BROWSER) {
  console.error("usage: ETWHY_BROWSER=chromium node bench/timeline.mjs URL [seconds]");
  process.exit(2);
}
const BUDGETS = { paint: 300, frame: 16, query: 100 };
const sorted = (list) => [...list].sort((a, b) => a - b);
const at = (list, share) => sorted(list)[Math.min(list.length - 1, Math.floor(list.length * share))] ?? NaN;
const line = (name, ms, budget) => console.log(`${name.padEnd(44)} ${ms.toFixed(1).padStart(9)} ms   budget ${String(budget).padStart(4)} ms   ratio ${(ms / budget).toFixed(2)}`);

const browser = await chromium.launch({ executablePath: process.env.ETWHY_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.on("pageerror", (error) => console.error(error.message));

// Paint: cold (the server computes its indexes), then warm.
const ready = () => page.waitForSelector('[data-part="timeline"][data-ready="true"]', { timeout: 300_000 });
async function load() {
  const started = performance.now();
  await page.goto(url, { waitUntil: "commit" });
  await ready();
  const all = performance.now() - started;
  const first = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
  return { all, first };
}
const cold = await load();
line("first paint, cold server", cold.first, BUDGETS.paint);
console.log(`${"timeline drawn, cold server".padEnd(44)} ${cold.all.toFixed(1).padStart(9)} ms`);
const warm = await load();
line("first paint, warm", warm.first, BUDGETS.paint);
console.log(`${"timeline drawn, warm".padEnd(44)} ${warm.all.toFixed(1).padStart(9)} ms`);

// Queries: every zoom from the whole trace to a microsecond, at places that a pseudo-random order gives.
const queries = await page.evaluate(async () => {
  const session = await (await fetch("api/v1/session", { method: "POST", body: "{}" })).json();
  const { first_ns: first, last_ns: last } = session.traces[0];
  const out = [];
  let seed = 1;
  for (let span = last - first; span > 1000; span /= 3) {
    for (let turn = 0; turn < 3; turn += 1) {
      seed = (seed * 48271) % 2147483647;
      const from = Math.floor(first + (seed / 2147483647) * (last - first - span));
      const started = performance.now();
      const answer = await fetch("api/v1/lanes", { method: "POST", body: JSON.stringify({ trace: 0, range: [from, Math.floor(from + span)], width: 1700 }) });
      const bytes = (await answer.arrayBuffer()).byteLength;
      out.push({ span, ms: performance.now() - started, bytes, ok: answer.ok });
    }
  }
  return out;
});
if (queries.some((one) => !one.ok)) console.error("some queries failed");
const times = queries.map((one) => one.ms);
line("query p50", at(times, 0.5), BUDGETS.query);
line("query p95", at(times, 0.95), BUDGETS.query);
line("query, longest", Math.max(...times), BUDGETS.query);
const worst = queries.find((one) => one.ms === Math.max(...times));
console.log(`${"   that was a range of".padEnd(44)} ${(worst.span / 1e6).toFixed(3).padStart(9)} ms of trace`);
console.log(`${"answer, largest".padEnd(44)} ${(Math.max(...queries.map((one) => one.bytes)) / 1024).toFixed(0).padStart(9)} KB`);

// Frames: time between frames, and what the timeline's own drawing took, while a hand moves.
async function frames(name, gesture) {
  await page.evaluate(() => {
    const canvas = document.querySelector('[data-part="timeline"] canvas');
    const seen = (window.seen = { gaps: [], own: [], on: true });
    let before = performance.now();
    const tick = (now) => {
      seen.gaps.push(now - before);
      seen.own.push(Number(canvas.dataset.frameMs));
      before = now;
      if (seen.on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const end = performance.now() + Number(seconds) * 1000;
  let turn = 0;
  while (performance.now() < end) await gesture(turn++);
  const { gaps, own } = await page.evaluate(() => {
    window.seen.on = false;
    return { gaps: window.seen.gaps.slice(2), own: window.seen.own.slice(2) };
  });
  line(`${name}: drawing p50`, at(own, 0.5), BUDGETS.frame);
  line(`${name}: drawing p95`, at(own, 0.95), BUDGETS.frame);
  line(`${name}: drawing max`, Math.max(...own), BUDGETS.frame);
  // The screen's own rhythm is 16.7 ms: a frame that comes in time is as long as that.
  line(`${name}: from frame to frame p50`, at(gaps, 0.5), 16.7);
  line(`${name}: from frame to frame p95`, at(gaps, 0.95), 16.7);
  line(`${name}: from frame to frame max`, Math.max(...gaps), 16.7);
}
const canvas = page.locator('[data-part="timeline"] canvas');
const box = await canvas.boundingBox();
await page.mouse.move(box.x + box.width / 2, box.y + 90);
await page.keyboard.down("Control");
await frames("zoom", async (turn) => {
  await page.mouse.wheel(0, turn % 80 < 40 ? -60 : 60);
  await page.waitForTimeout(12);
});
await page.keyboard.up("Control");
await ready();
await page.keyboard.down("Control");
for (let turn = 0; turn < 12; turn += 1) await page.mouse.wheel(0, -100);
await page.keyboard.up("Control");
await ready();
await page.keyboard.down("Shift");
await frames("pan", async (turn) => {
  await page.mouse.wheel(turn % 120 < 60 ? 40 : -40, 0);
  await page.waitForTimeout(12);
});
await page.keyboard.up("Shift");
await frames("select", async (turn) => {
  if (turn === 0) {
    await page.mouse.move(box.x + 200, box.y + 90);
    await page.mouse.down();
  }
  await page.mouse.move(box.x + 220 + ((turn * 7) % 700), box.y + 90);
  await page.waitForTimeout(12);
});
await page.mouse.up();
await browser.close();
