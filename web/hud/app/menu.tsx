/** What one does with the whole: share, save, open, theme, help. */

import { useEffect, useRef, useState } from "preact/hooks";
import { all, bind } from "../base/keys.ts";
import { visible } from "../base/value.ts";
import { copy, Fault } from "../parts/box.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { say } from "../parts/live.tsx";
import { toTrace } from "../state/identity.ts";
import { encode } from "../state/link.ts";
import { session } from "../state/session.ts";
import { view } from "../state/view.ts";
import { ask, save } from "../wire/api.ts";

/** The address of this view, whether or not the browser shows it already. */
const link = () => `${location.origin}${location.pathname}${encode(view.value)}`;

function Open(props: { onClose: () => void }) {
  const [path, setPath] = useState("");
  const [state, setState] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  const reading = useRef<AbortController | null>(null);
  const folders = session.value?.folders ?? [];
  // Nobody waits for it any more: the server gives it up.
  useEffect(() => () => reading.current?.abort(), []);
  const open = async () => {
    setState({ busy: true, error: null });
    const controller = new AbortController();
    reading.current = controller;
    try {
      const info = await ask("open", { path }, controller.signal);
      if (session.value) session.value = { ...session.value, traces: [...session.value.traces, info] };
      await toTrace(info.trace);
      props.onClose();
      say(`${info.name}: opened`);
    } catch (error) {
      if (controller.signal.aborted) return;
      setState({ busy: false, error: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <Dialog title="Open another trace" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void open();
        }}
      >
        <label>
          Path on the machine where <code>etwhy serve</code> runs
          <input class="wide" value={path} onInput={(event) => setPath(event.currentTarget.value)} spellcheck={false} />
        </label>{" "}
        <button type="submit" disabled={state.busy || path.trim() === ""}>
          {state.busy ? "Reading …" : "Open"}
        </button>
      </form>
      <p class="about">
        {folders.length > 0
          ? `Traces in ${folders.map(visible).join(", ")} can be opened. `
          : "No folder was named when etwhy serve was started: --folder DIR lets this page open the traces in it. "}
        The panel, its grouping and settings stay as they are. The trace can be compared with the others afterwards. Closing this ends the reading.
      </p>
      <Fault error={state.error} />
    </Dialog>
  );
}

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
