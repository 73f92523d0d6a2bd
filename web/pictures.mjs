// Pictures of the page of `etwhy serve`, to be looked at: every panel of a server, in three sizes, light and dark.
//
//   ETWHY_BROWSER=/usr/bin/chromium node pictures.mjs URL FOLDER [--panels overview,stacks] [--sizes 1440x900,390x844] [--themes light]
//
// The page is that of web/dist, not the one built into the server: it can be looked at before the program is built.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { fresh, settled } from "./test/hud/harness.mjs";

const [url, folder] = process.argv.slice(2);
if (!url || !folder) {
  console.error("node pictures.mjs URL FOLDER [--panels a,b] [--sizes 1440x900] [--themes light,dark] [--hash '#v1=…']");
  process.exit(2);
}
const option = (name, usual) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? usual : process.argv[at + 1].split(",");
};
const sizes = option("sizes", ["1440x900", "1024x768", "390x844"]).map((size) => size.split("x").map(Number));
const themes = option("themes", ["light", "dark"]);
const wanted = option("panels", null);
const at = process.argv.indexOf("--hash");
const hash = at < 0 ? null : process.argv[at + 1];
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.ETWHY_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
try {
  for (const theme of themes) {
    const context = await browser.newContext({ colorScheme: theme, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && console.error(message.text()));
    page.on("pageerror", (error) => console.error(error.message));
    await fresh(page);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(url + (hash ?? ""));
    await page.waitForSelector("main[data-panel]");
    await settled(page);
    const panels = wanted ?? (await page.evaluate(() => window.etwhyPanels));
    for (const panel of panels) {
      if (!hash) {
        await page.goto(`${url}#v1=${encodeURIComponent(JSON.stringify({ panel }))}`);
        await page.waitForSelector(`main[data-panel=${panel}]`);
      }
      for (const [width, height] of sizes) {
        await page.setViewportSize({ width, height });
        await settled(page);
        await page.screenshot({ path: join(folder, `${panel}-${width}-${theme}.png`) });
      }
    }
    await context.close();
  }
} finally {
  await browser.close();
}
