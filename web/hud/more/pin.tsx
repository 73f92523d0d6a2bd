/** The window in which a view is pinned to the report. */

import { useState } from "preact/hooks";
import { span, visible } from "../base/value.ts";
import { Dialog } from "../parts/dialog.tsx";
import { mounted } from "../parts/grid/mounted.ts";
import { say } from "../parts/live.tsx";
import { ORDER } from "../app/order.ts";
import { saveReport } from "../app/commands.ts";
import { addPin, dropPin, pinsOf } from "../state/pins.ts";
import { scope, trace, view, whole, worded } from "../state/view.ts";
import { pictureOf } from "./picture.ts";

/** Rows of each table that are kept. */
const ROWS = 50;

/** Which part of the trace a view counts, in words. */
function counted(): string {
  const filters = worded(view.value.filters).map((one) => one.text);
  const where = [trace.value?.name ?? "", scope.value ? span(scope.value) : `whole trace, ${span(whole.value)}`].map(visible);
  return [...where, ...filters].join(" · ").replaceAll(" · or ", " or ");
}

export function PinWindow(props: { onClose: () => void }) {
  const [note, setNote] = useState("");
  const panel = ORDER.find((one) => one.id === view.value.panel);
  const pins = pinsOf();
  const pin = () => {
    const main = document.querySelector<HTMLElement>("main");
    const tables = [...mounted].map((one) => one.current(ROWS)).filter((one) => one.rows.length > 0);
    addPin({ title: panel?.title ?? "View", about: counted(), note: note.trim(), picture: main ? pictureOf(main) : null, tables });
    say(`${panel?.title ?? "View"}: pinned to the report`);
    props.onClose();
  };
  return (
    <Dialog title="Pin this view to the report" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          pin();
        }}
      >
        <p class="about">
          {panel?.title}: {counted()}
        </p>
        <label>
          What it shows (optional)
          <input class="wide" value={note} maxLength={2000} onInput={(event) => setNote(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary">
          Pin
        </button>{" "}
        {pins.length > 0 && (
          <button
            type="button"
            onClick={() => {
              props.onClose();
              saveReport();
            }}
          >
            Save report
          </button>
        )}
      </form>
      {pins.length > 0 && (
        <ul class="saved">
          {pins.map((one, at) => (
            <li key={at}>
              {one.picture && <img src={one.picture} alt="" width={96} />}{" "}
              <span>
                <b>{one.title}</b> {visible(one.note || one.about)}
              </span>{" "}
              <button type="button" class="small" aria-label={`Remove ${one.title}`} onClick={() => dropPin(one)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <p class="about">The saved report shows pinned views as they are now: a picture, and the first {ROWS} rows of each table. They last as long as this page is open.</p>
    </Dialog>
  );
}
