// What the page of a trace costs, beside what it may cost: a line each. Nothing fails here; a busy machine makes every figure worse.
//
//   ETWHY_PROGRAM=…/etwhy ETWHY_BROWSER=/usr/bin/chromium node bench/budgets.mjs TRACE [--interactions 1000] [--dist]
//
// With --dist the page is that of web/dist and not the one built into the program.

import { execFileSync, spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { chromium } from "playwright-core";

const [trace, ...options] = process.argv.slice(2);
const program = process.env.ETWHY_PROGRAM;
if (!trace || !program || !process.env.ETWHY_BROWSER) throw new Error("ETWHY_PROGRAM, ETWHY_BROWSER and a trace are needed");
const INTERACTIONS = Number(options[options.indexOf("--interactions") + 1] || 200);

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))] ?? Number.NaN;
const say = (what, value, unit, most) => console.log(`${what.padEnd(46)} ${value.toFixed(value < 10 ? 2 : 0).padStart(8)} ${unit.padEnd(3)}${most === undefined ? "" : `  budget ${most.toFixed(most < 10 ? 2 : 0)} ${unit}${value > most ? "  OVER" : ""}`}`);

// The verdict in a terminal, which may end with 1 where the trace is damaged.
let begin = performance.now();
try {
  execFileSync(program, ["why", trace, "--json", "--quiet"], { stdio: ["ignore", "ignore", "ignore"], maxBuffer: 1 << 30 });
} catch {
  // In part.
}
const why = performance.now() - begin;
say("etwhy why", why, "ms");

begin = performance.now();
const server = spawn(program, ["serve", "--quiet", "--no-open", trace], { stdio: ["ignore", "pipe", "ignore"] });
process.on("exit", () => server.kill("SIGINT"));
const url = await new Promise((done) => server.stdout.on("data", (data) => done(String(data).trim())));
await (await fetch(url)).text();
say("page answers", performance.now() - begin, "ms", 500);
const stage = async () => (await (await fetch(`${url}api/v1/session`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).json()).traces[0].stage;
const until = async (...stages) => {
  for (;;) {
    const now = await stage();
    if (stages.includes(now)) return;
    if (now === "failed") throw new Error("the trace cannot be read");
    await new Promise((done) => setTimeout(done, 20));
  }
};
await until("verdict", "ready");
say("verdict, and the time axis", performance.now() - begin, "ms", why * 1.1);
await until("ready");
say("all tables but event", performance.now() - begin, "ms");

/** Resident memory of the program and of the processes that it started, MB. */
function resident() {
  const status = (pid) => readFileSync(`/proc/${pid}/status`, "utf8");
  const all = readdirSync("/proc").filter((one) => /^\d+$/.test(one));
  const own = all.filter((pid) => {
    try {
      return Number(pid) === server.pid || new RegExp(`^PPid:\\s+${server.pid}$`, "m").test(status(pid));
    } catch {
      return false;
    }
  });
  return own.reduce((sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(status(pid))?.[1] ?? 0) / 1024, 0);
}
if (process.platform === "linux") say("resident memory without event", resident(), "MB", 1024);

const browser = await chromium.launch({ executablePath: process.env.ETWHY_BROWSER, args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"] });
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" })).newPage();
if (options.includes("--dist")) {
  await page.route("**/assets/*/hud*", (route) => {
    const [, name, ending] = /(hud[a-z-]*)\.(\w+)$/.exec(route.request().url());
    return route.fulfill({ contentType: ending === "css" ? "text/css" : "text/javascript", body: readFileSync(new URL(`../dist/${name}.${ending}`, import.meta.url)) });
  });
}
begin = performance.now();
await page.goto(url);
await page.waitForSelector("h1");
say("first answer in the browser", performance.now() - begin, "ms");

/** Runs something on the page; how long until no answer is awaited and the next frame is there. */
const timed = (act, argument) =>
  page.evaluate(
    async ([source, value]) => {
      const start = performance.now();
      // The functions are of this file.
      window[source](value);
      await new Promise((done) => requestAnimationFrame(done));
      const of = (name) => Number(document.documentElement.dataset[name] ?? 0);
      // The address is written when the hand has rested for a while: nobody waits for that.
      while (of("awaited") > of("resting")) await new Promise((done) => requestAnimationFrame(done));
      return performance.now() - start;
    },
    [act, argument],
  );
await page.evaluate(() => {
  window.press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  window.wheel = (by) => {
    const canvas = document.querySelector("canvas[aria-label^=Timeline]");
    const box = canvas?.getBoundingClientRect();
    canvas?.dispatchEvent(new WheelEvent("wheel", { deltaY: by, ctrlKey: true, clientX: box.left + box.width / 2, clientY: box.top + 80, bubbles: true, cancelable: true }));
  };
});
const heap = async () => {
  const client = await page.context().newCDPSession(page);
  await client.send("HeapProfiler.collectGarbage");
  return (await client.send("Runtime.getHeapUsage")).usedSize / 1e6;
};
await timed("press", "]");
const [panels, frames, zooms] = [[], [], []];
for (let round = 0; round < 3; round += 1) for (const key of "123456789") panels.push(await timed("press", key));
say("panel switch, first time, p95", quantile(panels.slice(0, 9), 0.95), "ms");
say("panel switch, p95", quantile(panels.slice(9), 0.95), "ms", 100);
await timed("press", "1");
for (let i = 0; i < 60; i += 1) {
  zooms.push(await timed("wheel", i % 20 < 10 ? -120 : 120));
  frames.push(Number(await page.evaluate(() => document.querySelector("canvas[aria-label^=Timeline]")?.dataset.frameMs ?? "NaN")));
}
say("zoom until everything is drawn anew, p95", quantile(zooms, 0.95), "ms");
say("drawing of a frame, p95", quantile(frames.filter(Number.isFinite), 0.95), "ms", 16);
const before = await heap();
for (let i = 0; i < INTERACTIONS; i += 1) await timed(i % 3 === 0 ? "press" : "wheel", i % 3 === 0 ? "123456789"[i % 9] : i % 2 ? -120 : 120);
say(`heap of the page before ${INTERACTIONS} interactions`, before, "MB");
say("and behind them", await heap(), "MB");
if (process.platform === "linux") say("resident memory then", resident(), "MB");
await browser.close();
server.kill("SIGINT");
process.exit(0);
