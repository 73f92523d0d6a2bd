// What an investigator comes for, in as few clicks as the page promises: the same tasks in Chromium and in Firefox (WebDriver BiDi), each on
// two traces, so that no task rests on what one machine happens to look like.
//
//   ETWHY_PROGRAM=…/etwhy [ETWHY_BROWSER=/usr/bin/chromium] [ETWHY_FIREFOX=/usr/bin/firefox-esr] node --test test/hud/tasks.test.mjs

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import puppeteer from "puppeteer-core";
import { servers, startServer, stop } from "./harness.mjs";

after(stop);

const program = process.env.ETWHY_PROGRAM;
const browsers = [
  ["chrome", process.env.ETWHY_BROWSER, ["--no-sandbox", "--disable-gpu"]],
  ["firefox", process.env.ETWHY_FIREFOX ?? "/usr/bin/firefox-esr", []],
];
const folder = mkdtempSync(join(tmpdir(), "etwhy-tasks-"));
const LONG = 60_000;

/** A written trace, made once. */
function written(scenario, scale) {
  const path = join(folder, `${scenario.replace("/", "_")}.etl`);
  if (!existsSync(path)) execFileSync(program, ["synth", new URL(`../../../scenarios/${scenario}.toml`, import.meta.url).pathname, "-o", path, "--scale", String(scale), "--quiet"], { stdio: "pipe" });
  return path;
}

const started = {};
/** A server of these traces, started once for both browsers. */
async function serve(...traces) {
  const key = traces.join();
  started[key] ??= await startServer(["serve", "--quiet", "--no-open", ...traces.map(([scenario, scale]) => written(scenario, scale))]);
  return servers[started[key]];
}

const DPC = ["dpc_flood", 0.1];
const AFTER = ["dpc_flood_ids_uninstalled", 0.1];
const LOCK = ["findings/lock.contention", 1];
const OPENS = ["antivirus_opens", 0.2];
const EXCLUDED = ["antivirus_opens_excluded", 0.2];
const LONG_DPCS = ["findings/dpc.over-limit", 1];
const FILTERED = ["findings/dpc.filter-in-path", 1];
const INVERSION = ["findings/cpu.priority-inversion", 1];
const DELAY = ["findings/security.minifilter-delay", 1];
const SPIN = ["openmp_spin", 0.2];
const SLOW_DISK = ["findings/disk.slow", 1];

/** A person: sees texts, clicks on what can be seen, and counts that. */
class Hand {
  clicks = 0;
  constructor(page) {
    this.page = page;
  }
  async go(url) {
    await this.page.goto(url);
    await this.page.waitForSelector("h1", { timeout: LONG });
    await this.rest();
  }
  /** Waits until nothing is asked any more. */
  async rest() {
    for (let quiet = 0; quiet < 3; ) {
      await new Promise((done) => setTimeout(done, 60));
      const still = await this.page.evaluate(() => (document.documentElement.dataset.awaited ?? "0") === "0" && document.querySelector("main") !== null && !document.querySelector(".loading"));
      quiet = still ? quiet + 1 : 0;
    }
  }
  async find(selector, text) {
    const found = await this.page.waitForFunction(
      (css, source) => {
        const like = new RegExp(source);
        return [...document.querySelectorAll(css)].find((one) => one.checkVisibility() && like.test(`${one.getAttribute("aria-label") ?? ""}\n${one.textContent}`));
      },
      { timeout: LONG },
      selector,
      text.source,
    );
    return found.asElement();
  }
  async click(selector, text, count = 1) {
    const element = await this.find(selector, text);
    await element.evaluate((one) => one.scrollIntoView({ block: "center" }));
    await element.click({ count });
    this.clicks += count;
    await this.rest();
  }
  async keys(...all) {
    for (const key of all) await this.page.keyboard.press(key);
    await this.rest();
  }
  async type(text) {
    await this.page.keyboard.type(text);
    await this.rest();
  }
  async read(selector = "body") {
    // A panel stands before its parts do.
    await this.page.waitForSelector(selector);
    return this.page.$eval(selector, (one) => one.innerText.replaceAll("\u00a0", " "));
  }
  panel() {
    return this.page.$eval("main", (one) => one.dataset.panel);
  }
}

for (const [name, executablePath, args] of browsers) {
  const skip = !program ? "ETWHY_PROGRAM names no program" : executablePath && existsSync(executablePath) ? false : `no ${name} at ${executablePath}`;
  describe(name, { skip, concurrency: 1 }, () => {
    let browser;
    before(async () => {
      browser = await puppeteer.launch({ browser: name, executablePath, args, headless: true, extraPrefsFirefox: { "browser.download.folderList": 2, "browser.download.dir": folder, "browser.download.always_ask_before_handling_new_types": false } });
    });
    after(() => browser?.close());

    /** Does a task on pages of its own, once for each of its traces; nothing may go wrong there. */
    const task = (title, most, traces, run) =>
      traces.forEach((of) => test(`${title}: ${of.traces.map(([scenario]) => scenario).join(", ")} (clicks: at most ${most})`, { timeout: 4 * LONG }, async () => {
        const page = await browser.newPage();
        await page.setViewport({ width: 1440, height: 900 });
        const wrong = [];
        page.on("pageerror", (error) => wrong.push(error.message));
        page.on("console", (message) => ["error", "warn"].includes(message.type()) && wrong.push(message.text()));
        const hand = new Hand(page);
        await run(hand, of);
        assert.ok(hand.clicks <= most, `${hand.clicks} clicks`);
        assert.deepEqual(wrong, []);
        await page.close();
      }));

    const FLOODS = [{ traces: [DPC], culprit: /^IDSvia64\.sys/ }, { traces: [LONG_DPCS], culprit: /^rt640x64\.sys/ }];
    task("who floods the processors with DPCs", 0, FLOODS, async (hand, of) => {
      await hand.go(await serve(...of.traces));
      assert.match(await hand.read("h1"), of.culprit);
    });

    task("its proof: durations and stacks", 2, [{ traces: [DPC] }, { traces: [FILTERED] }], async (hand, of) => {
      await hand.go(await serve(...of.traces));
      await hand.click("aside button", /Open DPC\/ISR/);
      assert.equal(await hand.panel(), "interrupts");
      assert.match(await hand.read("[data-part=flood]"), /over 100.µs[\s\S]*on their stacks IDSvia64\.sys/);
      await hand.find(".bins", /./);
      await hand.click("aside button", /Stacks/);
      assert.equal(await hand.panel(), "stacks");
      assert.match(await hand.read("[data-part=found]"), /match/);
    });

    const LATE = [
      { traces: [LOCK], thread: /shop\.exe 5036/, path: /Critical path of shop\.exe .* worker/ },
      { traces: [INVERSION], thread: /player\.exe \d+/, path: /Critical path of player\.exe/ },
    ];
    task("why a thread was late: its critical path with both stacks", 3, LATE, async (hand, of) => {
      await hand.go(await serve(...of.traces));
      await hand.click("nav button", /\nCPU$/);
      // What can be done with a thread shows under the pointer.
      await (await hand.find(".lane-names li", of.thread)).hover();
      await hand.click("main button", of.path);
      await hand.find("main [role=grid]", /^What took the time, by cause/);
      // An interval of a thread has both: where it waited, and who ended that.
      await hand.click("canvas[data-part=lanes]", /./);
      await hand.find("main .switch, aside .switch", /Where it waited[\s\S]*Who ended the wait/);
    });

    const CURED = [{ traces: [AFTER, DPC], gone: /IDSvia64\.sys/ }, { traces: [EXCLUDED, OPENS], gone: /exav\.sys/ }];
    task("what is better after the cure", 2, CURED, async (hand, of) => {
      await hand.go(await serve(...of.traces));
      await hand.click("header button", /Compare/);
      if (!of.gone.test(await hand.read("main"))) {
        const choose = await hand.find("main select", /Trace to compare with/);
        await choose.select("1");
        hand.clicks += 1;
        await hand.rest();
      }
      assert.match(await hand.read("main"), of.gone);
    });

    task("who opened which files, and what that cost", 2, [{ traces: [OPENS] }, { traces: [DELAY] }], async (hand, of) => {
      await hand.go(await serve(...of.traces));
      const [, cost] = /delayed file operations by ([\d.]+ s)/.exec(await hand.read("h1"));
      await hand.click("nav button", /Files/);
      assert.ok((await hand.read("main .panel")).includes(cost), cost);
      await hand.click("main button", /Open all/);
      await hand.find("main [role=treegrid] [data-cell]", /\.txt|\\/);
    });

    const FUNCTIONS = [{ traces: [LOCK], function: "shop.exe!Order::Serialize" }, { traces: [SPIN], function: "libiomp5md.dll!__kmp_wait_template" }];
    task("a function, its callers and callees", 2, FUNCTIONS, async (hand, of) => {
      const plain = of.function.split("!")[1];
      await hand.go(await serve(...of.traces));
      await hand.page.keyboard.down("Control");
      await hand.page.keyboard.press("k");
      await hand.page.keyboard.up("Control");
      await hand.type(plain);
      await hand.click("[role=option]", new RegExp(`^[^]*function[^]*${plain}`));
      await hand.find("main .panel", /Callers[\s\S]*Callees/);
      assert.match(decodeURIComponent(await hand.page.evaluate(() => location.hash)), new RegExp(`"tab":"butterfly","about":"${of.function.replaceAll(".", "\\.")}"`));
    });

    task("with keys alone: a thread's panel, a range, back", 0, [{ traces: [DPC] }, { traces: [FILTERED] }], async (hand, of) => {
      await hand.go(await serve(...of.traces));
      await hand.keys("4");
      assert.equal(await hand.panel(), "interrupts");
      await hand.keys("]");
      assert.notEqual(await hand.panel(), "interrupts");
      await hand.keys("[", "t", "ArrowRight");
      const before = await hand.page.$eval("main", (one) => one.dataset.scope);
      await hand.page.keyboard.down("Shift");
      for (let i = 0; i < 4; i += 1) await hand.page.keyboard.press("ArrowRight");
      await hand.page.keyboard.up("Shift");
      await hand.rest();
      await hand.page.waitForFunction((was) => document.querySelector("main").dataset.scope !== was, { timeout: LONG }, before);
      await hand.keys("Escape");
      await hand.page.waitForFunction((was) => document.querySelector("main").dataset.scope === was, { timeout: LONG }, before);
    });

    task("a link that survives a restart of the server", 0, [{ traces: [DPC], panel: "disk" }, { traces: [LOCK], panel: "precise" }], async (hand, of) => {
      const token = `a-word-of-the-${name}-test`;
      const start = (port) => startServer(["serve", "--quiet", "--no-open", "--token", token, "--port", String(port), ...of.traces.map((one) => written(...one))]);
      const one = servers[await start(0)];
      await hand.go(`${one}#v1=${encodeURIComponent(JSON.stringify({ panel: of.panel }))}`);
      const link = await hand.page.evaluate(() => location.href);
      assert.equal(await hand.panel(), of.panel);
      const other = servers[await start(0)];
      await hand.page.goto("about:blank");
      await hand.go(link.replace(new URL(one).port, new URL(other).port));
      assert.equal(await hand.panel(), of.panel);
    });

    const REPORTS = [{ traces: [DPC], culprit: /IDSvia64\.sys/ }, { traces: [LOCK], culprit: /shop\.exe/ }];
    task("a report to send, that opens without a server", 2, REPORTS, async (hand, of) => {
      await hand.go(await serve(...of.traces));
      if (name === "chrome") {
        const client = await hand.page.createCDPSession();
        await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
      }
      const reports = () => readdirSync(folder).filter((one) => /why.*\.html$/.test(one));
      const had = reports();
      await hand.click("header button", /^More/);
      await hand.click("button", /Save report/);
      for (let i = 0; i < 200 && reports().length === had.length; i += 1) await new Promise((done) => setTimeout(done, 100));
      const file = reports().find((one) => !had.includes(one));
      assert.ok(file, "no report was saved");
      assert.match(readFileSync(join(folder, file), "utf8"), /Content-Security-Policy/);
      await hand.page.goto(`file://${join(folder, file)}`);
      await hand.page.waitForSelector("h1");
      assert.match(await hand.read("body"), of.culprit);
    });

    task("a trace that is dropped onto the page", 0, [{ traces: [DPC], dropped: ["virtual_alloc_top_down", 0.01] }, { traces: [LOCK], dropped: LONG_DPCS }], async (hand, of) => {
      await hand.go(await serve(...of.traces));
      const bytes = readFileSync(written(...of.dropped)).toString("base64");
      await hand.page.evaluate((text) => {
        const binary = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([binary], "dropped.etl"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      }, bytes);
      await hand.page.waitForFunction(() => document.querySelector("header select")?.selectedOptions[0]?.textContent === "dropped.etl" && document.querySelector("h1"), { timeout: LONG });
      await hand.rest();
    });

    const PIVOTS = [
      { traces: [OPENS], panel: "files", keys: ["Process", "operation", "path"] },
      { traces: [SLOW_DISK], panel: "disk", keys: ["Process", "file · path", "operation"] },
    ];
    task("a pivot as in WPA: what is grouped by, by hand", 0, PIVOTS, async (hand, of) => {
      await hand.go(`${await serve(...of.traces)}#v1=${encodeURIComponent(JSON.stringify({ panel: of.panel }))}`);
      const heads = await hand.page.$$eval("main [role=columnheader]", (all) => all.map((one) => one.textContent));
      assert.ok(heads.length > 2, heads.join());
      const named = (...keys) => keys.join(" › ").toLowerCase();
      assert.ok(heads[0].toLowerCase().includes(named(...of.keys)), heads[0]);
      // A chip is dragged before another one, and one across the bar.
      const drag = async (from, to) => {
        for (const [on, type] of [[from, "dragstart"], [to, "dragover"], [to, "drop"], [from, "dragend"]]) {
          // What was dragged may stand elsewhere by the end.
          await hand.page.evaluate((css, name) => document.querySelector(css)?.dispatchEvent(new DragEvent(name, { dataTransfer: new DataTransfer(), bubbles: true, cancelable: true })), on, type);
          await new Promise((done) => setTimeout(done, 50));
        }
      };
      const first = async () => (await hand.page.$$eval("main [role=columnheader]", (all) => all.map((one) => one.textContent)))[0];
      await drag(".chips .side:first-child .chip:nth-child(3)", ".chips .side:first-child .chip:nth-child(1)");
      await hand.rest();
      const [one, two, three] = of.keys;
      assert.ok((await first()).toLowerCase().includes(named(three, one, two)), await first());
      await drag(".chips .side:first-child .chip:nth-child(3)", ".chips .side:last-child");
      await hand.rest();
      const last = (await first()).toLowerCase();
      assert.ok(last.includes(named(three, one)) && !last.includes(named(three, one, two)), last);
    });
  });
}
