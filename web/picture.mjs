// Renews docs/images/hud.webp, the picture in README.md: what `etwhy serve --demo` shows first. As WebP, which is half of a PNG.
//
//   ETWHY_BROWSER=/usr/bin/chromium [ETWHY_DIST=1] node picture.mjs ../target/release/etwhy
//
// With ETWHY_DIST the page is that of web/dist and not the one built into the program.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { fresh, settled } from "./test/hud/harness.mjs";

const [program] = process.argv.slice(2);
const server = spawn(program, ["serve", "--demo", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await chromium.launch({ executablePath: process.env.ETWHY_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const [url] = (await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next()).value.split(" ");
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: "light", reducedMotion: "reduce" });
  if (process.env.ETWHY_DIST) await fresh(page);
  await page.goto(url);
  await page.waitForSelector("main[data-panel]");
  await settled(page);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 60 });
  writeFileSync(new URL("../docs/images/hud.webp", import.meta.url), Buffer.from(data, "base64"));
} finally {
  await browser.close();
  server.kill();
}
