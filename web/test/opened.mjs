// What tests of pages share: a browser that notes everything that goes wrong.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The browser that ETWHY_BROWSER names. */
export async function launch() {
  const executablePath = process.env.ETWHY_BROWSER;
  assert.ok(executablePath, "ETWHY_BROWSER names no browser");
  // The sandbox of Chromium needs rights that containers lack; the pages are our own.
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}

/** A page with a file, and what went wrong on it: messages, errors, dialogs, requests. */
export async function opened(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => message.type() !== "log" && wrong.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const url = pathToFileURL(resolve(file)).href;
  page.on("request", (request) => request.url() !== url && wrong.push(`request: ${request.url().slice(0, 200)}`));
  await page.goto(url);
  await page.waitForSelector("main section");
  return { context, page, wrong };
}

/** What axe calls serious or critical. The page's policy forbids scripts by address, not those of a debugger. */
export async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document));
  return result.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
}
