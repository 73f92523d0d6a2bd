/** The page of `etwhy serve`. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { startDensity } from "../base/density.ts";
import { startKeys } from "../base/keys.ts";
import { startTheme } from "../base/theme.ts";
import { say } from "../parts/live.tsx";
import { followHistory } from "../state/history.ts";
import { follow as followWho } from "../state/identity.ts";
import { follow, idsIn } from "../state/link.ts";
import { followLive } from "../state/live.ts";
import { followNotes } from "../state/notes_of.ts";
import { followTraces, known } from "../state/opened.ts";
import { followPalette } from "../state/palette.ts";
import { followRecent } from "../state/recent.ts";
import { followViews } from "../state/saved.ts";
import { failure, load, start } from "../state/session.ts";
import { view } from "../state/view.ts";
import { followPart } from "../state/within.ts";
import { loadSoon } from "./on_demand.tsx";
import { startDrop } from "./open.tsx";
import { Shell } from "./shell.tsx";

startTheme();
startDensity();
startKeys();
render(<Shell />, document.getElementById("app") as HTMLElement);
startDrop();
start().then(
  async () => {
    followTraces();
    // What is shown until it is known which traces the address means.
    const stop = effect(() => void load(view.value.trace));
    await known(idsIn(location.hash));
    stop();
    // Links name traces: which these are must be known before one is read.
    const { newer } = follow();
    followWho();
    followPalette();
    followNotes();
    followHistory();
    followRecent();
    void followViews();
    followLive(say);
    followPart();
    effect(() => {
      void load(view.value.trace);
      if (view.value.other) void load(view.value.other.trace);
    });
    loadSoon();
    if (newer) say("This link is from a newer etwhy: what is not known here is left out.");
  },
  (error: unknown) => (failure.value = error instanceof Error ? error.message : String(error)),
);
