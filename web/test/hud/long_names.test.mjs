// Names and headlines that no window holds: they are cut where they stand, tell the rest when pointed at, and push nothing away.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { beyond, hashOf, open, servers, settled, shot, startServer, stop, tooWide } from "./harness.mjs";

after(stop);

const program = process.env.ETWHY_PROGRAM;
const NAME = `Contoso.Platform.Telemetry.${"Aggregation".repeat(14)}.exe`;

test("a name of 200 letters fits everywhere", { skip: !program }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "etwhy-long-"));
  const [scenario, trace] = [join(folder, "long.toml"), join(folder, "long.etl")];
  const shipped = readFileSync(new URL("../../../scenarios/findings/cpu.spin-wait.toml", import.meta.url), "utf8");
  writeFileSync(scenario, shipped.replaceAll("worker.exe", NAME));
  execFileSync(program, ["synth", scenario, "-o", trace, "--quiet"], { stdio: "pipe" });
  const name = await startServer(["serve", "--quiet", "--no-open", trace]);
  const { page, wrong, context } = await open(name);
  const panels = await page.evaluate(() => window.etwhyPanels);
  const bad = [];
  for (const [width, height] of [[1440, 900], [1024, 768], [390, 844]]) {
    await page.setViewportSize({ width, height });
    for (const panel of panels) {
      await page.evaluate((hash) => (location.hash = hash), hashOf({ panel }));
      await page.waitForSelector(`main[data-panel=${panel}]`);
      await settled(page);
      for (const one of [...(await tooWide(page)), ...(await beyond(page))]) bad.push(`${panel} ${width}: ${one}`);
      // A legend names more than one.
      const legends = await page.$$eval("main .legend, main .stack-legend", (all) => all.map((one) => Math.max(0, ...[...one.querySelectorAll(".cut")].map((name) => name.clientWidth))));
      if (legends.some((wide) => wide > 260)) bad.push(`${panel} ${width}: a name in a legend is ${legends.join()} px wide`);
      // What is cut says all of it when pointed at: by its own title, that of a cell or button around it, or a hint.
      const silent = await page.$$eval("main .cut, main h1, header .cut, aside h2", (all) =>
        all.filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && !one.closest("[title], [data-hint]") && !one.querySelector("[title], [data-hint]")).map((one) => `${one.className || one.tagName}: ${one.textContent.slice(0, 60)}`),
      );
      for (const one of silent) bad.push(`${panel} ${width}: cut without a word: ${one}`);
      if (["overview", "stacks", "threads", "processes", "compare"].includes(panel)) await shot(page, `long-${panel}-${width}`);
    }
  }
  assert.deepEqual(bad, []);
  assert.deepEqual(wrong, []);
  await context.close();
});
