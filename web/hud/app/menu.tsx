/** What one does with the whole: share, save, open, theme, help. */

import { useEffect, useState } from "preact/hooks";
import { all, bind } from "../base/keys.ts";
import { copy } from "../parts/box.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { say } from "../parts/live.tsx";
import { encode } from "../state/link.ts";
import { session } from "../state/session.ts";
import { view } from "../state/view.ts";
import { save } from "../wire/api.ts";
import { Open } from "./open.tsx";

/** The address of this view, whether or not the browser shows it already. */
const link = () => `${location.origin}${location.pathname}${encode(view.value)}`;

function Help(props: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={props.onClose}>
      <div class="keys">
        {all().map(([heading, keys]) => (
          <section key={heading}>
            <h3>{heading}</h3>
            <dl>
              {keys.map((key) => (
                <div key={key.key}>
                  <dt>
                    <kbd>{key.key === " " ? "Space" : key.key}</kbd>
                  </dt>
                  <dd>{key.about}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>In tables</h3>
          <dl>
            {[
              ["Arrows", "move between cells; Right and Left open and close rows of trees"],
              ["Home, End, Page Up, Page Down", "move far; with Ctrl to the first and last row"],
              ["Enter", "what a double-click does"],
              ["Ctrl+C", "copy the cell"],
            ].map(([key, about]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{about}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}

export function Menu() {
  const [dialog, setDialog] = useState<"open" | "help" | null>(null);
  const share = () => void copy(link(), "link to this view");
  const report = () => {
    save("report_file", { trace: view.value.trace }).then(
      (file) => say(`${file}: saved`),
      (error: unknown) => say(String(error)),
    );
  };
  useEffect(
    () =>
      bind("Global", [
        { key: "?", about: "this list", run: () => setDialog("help") },
        { key: "Y", about: "copy a link to this view", run: share },
      ]),
    [],
  );
  return (
    <>
      <button type="button" onClick={share} title="Copy a link that shows this view: range, filters, panel, settings (Y)">
        Share
      </button>
      <button type="button" onClick={report} title="Save the verdict as one HTML file that needs no server">
        Save report
      </button>
      {!session.value?.readonly && (
        <button type="button" onClick={() => setDialog("open")} title="Open another trace of this machine">
          Open
        </button>
      )}
      <button type="button" onClick={() => setDialog("help")} title="Keys (?)" aria-label="Help: keys">
        ?
      </button>
      {dialog === "open" && <Open onClose={() => setDialog(null)} />}
      {dialog === "help" && <Help onClose={() => setDialog(null)} />}
    </>
  );
}
