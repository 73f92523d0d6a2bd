// Files as speedscope itself reads them: its own importer (npm's speedscope) in Chromium.
//
//     ETWHY_BROWSER=chromium node speedscope.mjs FILE...
//
// prints one line of JSON for each file: its profiles with unit and total, and what each frame
// itself took. The page imports the file as if it
// were dropped on it, and is asked to save what it has understood (Ctrl+S), in its own format.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const release = join(dirname(createRequire(import.meta.url).resolve("speedscope/package.json")), "dist/release");
const browser = await chromium.launch({ executablePath: process.env.ETWHY_BROWSER, args: ["--no-sandbox"] });
for (const file of process.argv.slice(2)) {
  const page = await browser.newPage({ acceptDownloads: true });
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("dialog", (dialog) => { problems.push(dialog.message()); dialog.dismiss(); });
  // Nothing may be asked from anywhere.
  await page.route(/^https?:/, (route) => { problems.push(`asked for ${route.request().url()}`); route.abort(); });
  await page.goto(pathToFileURL(join(release, "index.html")).href);
  await page.waitForFunction(() => window.speedscope?.loadFileFromBase64 !== undefined || document.querySelector("input[type=file]"));
  await page.setInputFiles("input[type=file]", { name: basename(file), mimeType: "application/octet-stream", buffer: readFileSync(file) });
  // The page takes its title from what it has loaded.
  await page.waitForFunction(() => document.title !== "speedscope", null, { timeout: 120_000 });
  // The title is there before the page listens to keys.
  let saved = null;
  const download = page.waitForEvent("download", { timeout: 120_000 }).then((file) => (saved = file));
  while (!saved) {
    await page.keyboard.press("Control+s");
    await Promise.race([download, new Promise((resolve) => setTimeout(resolve, 1000))]);
  }
  const { profiles, shared } = JSON.parse(readFileSync(await saved.path(), "utf8"));
  if (problems.length) {
    process.stderr.write(`${file}: ${problems.join("; ")}\n`);
    process.exit(1);
  }
  // What each frame itself took: the time during which it was the innermost.
  const own = new Map();
  for (const { events } of profiles) {
    const open = [];
    let last = 0;
    for (const { type, frame, at } of events) {
      if (open.length) own.set(open.at(-1), (own.get(open.at(-1)) ?? 0) + at - last);
      if (type === "O") open.push(frame);
      else open.pop();
      last = at;
    }
  }
  const names = {};
  for (const [frame, weight] of own) {
    const name = shared.frames[frame].name;
    if (weight > 0) names[name] = (names[name] ?? 0) + weight;
  }
  const of = ({ name, unit, startValue, endValue }) => ({ name, unit, total: endValue - startValue });
  console.log(JSON.stringify({ profiles: profiles.map(of), own: names }));
  await page.close();
}
await browser.close();
