/** What can be done with the page as a whole: for menus, keys and the search. */

import { signal } from "@preact/signals";
import { chooseDensity, DENSITIES } from "../base/density.ts";
import { choose, THEMES } from "../base/theme.ts";
import { copy } from "../parts/box.tsx";
import { say } from "../parts/live.tsx";
import { dropTracks, ownTracks } from "../parts/timeline/catalog.ts";
import { swap, toTrace } from "../state/identity.ts";
import { redo, undo } from "../state/history.ts";
import { encode } from "../state/link.ts";
import { saved, showView } from "../state/saved.ts";
import { session } from "../state/session.ts";
import { look, set, view, zoomTo } from "../state/view.ts";
import { moment, span } from "../base/value.ts";
import { notesOf } from "../state/notes_of.ts";
import { pinned, plain, withPictures } from "../state/pins.ts";
import { writing } from "../state/writing.ts";
import { save } from "../wire/api.ts";
import { toggleInspector } from "./inspector.tsx";
import { listed } from "./rail.tsx";

/** What lies over the page. */
export const dialog = signal<"open" | "help" | null>(null);

/** The address of this view, whether or not the browser shows it already. */
const link = () => `${location.origin}${location.pathname}${encode(view.value)}`;

export const share = () => void copy(link(), "link to this view");

/** Pinned views and notes as the last part of a report. */
function withOwn(html: string): string {
  const [list, views] = [notesOf(), pinned()];
  const at = html.lastIndexOf("</body>");
  if ((list.length === 0 && views === "") || at < 0) return html;
  const rows = list.map((one) => `<li><strong>${plain(one.to === undefined ? moment(one.at, 1e6) : span([one.at, one.to]))}</strong> ${plain(one.text)}</li>`);
  const notes = list.length === 0 ? "" : `<section id="notes"><h2>Notes</h2><ul>${rows.join("")}</ul></section>`;
  const whole = `${html.slice(0, at)}<main>${views}${notes}</main>${html.slice(at)}`;
  return views === "" ? whole : withPictures(whole);
}

export function saveReport(): void {
  save("report_file", { trace: view.value.trace }, withOwn).then(
    (file) => say(`${file}: saved`),
    (error: unknown) => say(String(error)),
  );
}

export const commands = (): { text: string; key?: string; run: () => void }[] => [
  { text: "Share: copy a link to this view", key: "Y", run: share },
  { text: "Save report", run: saveReport },
  { text: "Pin this view to the report", key: "R", run: () => void (writing.value = "pin") },
  ...(session.value?.readonly ? [] : [{ text: "Open another trace", run: () => void (dialog.value = "open") }]),
  { text: "Add a note on the time axis", key: "n", run: () => void (writing.value = "note") },
  ...(ownTracks().length > 0 ? [{ text: "Drop the tracks that were added", run: dropTracks }] : []),
  { text: "Save this view", run: () => void (writing.value = "view") },
  ...saved.value.map((one) => ({ text: `View: ${one.name}`, run: () => showView(one) })),
  { text: "Undo", key: "Ctrl+Z", run: undo },
  { text: "Redo", key: "Ctrl+Shift+Z", run: redo },
  { text: "Show the whole trace", key: "0", run: () => zoomTo(null) },
  { text: "Zoom to the selection", key: "z", run: () => view.value.selection && zoomTo(view.value.selection) },
  { text: "Drop the selection", run: () => look({ selection: null }) },
  { text: "Drop all filters", run: () => look({ filters: [], finding: null }) },
  { text: "Compare traces or ranges", run: () => look({ panel: "compare" }) },
  ...(view.value.other ? [{ text: "Swap A and B", key: "x", run: swap }, { text: "End the comparison", run: () => look({ other: null }) }] : []),
  ...(session.value?.traces ?? []).filter((one) => one.trace !== view.value.trace).map((one) => ({ text: `Switch to ${one.name}`, run: () => void toTrace(one.trace) })),
  { text: "Inspector: open or close", key: "i", run: toggleInspector },
  { text: "All panels", run: () => void (listed.value = true) },
  { text: "Timeline: show or hide", run: () => set("timeline", { open: !((view.value.settings["timeline"] as { open?: boolean } | undefined)?.open ?? true) }) },
  ...THEMES.map((name) => ({ text: `Theme: ${name}`, run: () => choose(name) })),
  ...DENSITIES.map((name) => ({ text: `Rows: ${name}`, run: () => chooseDensity(name) })),
  { text: "Keys and help", key: "?", run: () => void (dialog.value = "help") },
];
