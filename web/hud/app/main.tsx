/** The page of `etwhy serve`. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { startKeys } from "../base/keys.ts";
import { startTheme } from "../base/theme.ts";
import { say } from "../parts/live.tsx";
import { amend, follow } from "../state/link.ts";
import { failure, load, session, start } from "../state/session.ts";
import { view } from "../state/view.ts";
import { Shell } from "./shell.tsx";

startTheme();
startKeys();
const { newer } = follow();
render(<Shell />, document.getElementById("app") as HTMLElement);
start().then(
  () => {
    const missing = (trace: number) => trace >= (session.value?.traces.length ?? 0);
    effect(() => {
      const { trace, other } = view.value;
      if (missing(trace)) amend({ trace: 0 });
      if (other && missing(other.trace)) amend({ other: null });
    });
    effect(() => {
      void load(view.value.trace);
      if (view.value.other) void load(view.value.other.trace);
    });
    if (newer) say("This link is from a newer etwhy: what is not known here is left out.");
  },
  (error: unknown) => (failure.value = error instanceof Error ? error.message : String(error)),
);
