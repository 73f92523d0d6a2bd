/** Small windows in which something is written: a note on the time axis, the name of a view. */

import { useState } from "preact/hooks";
import { counted, span, visible } from "../base/value.ts";
import { Dialog } from "../parts/dialog.tsx";
import { say } from "../parts/live.tsx";
import { cursor, drawn } from "../parts/timeline/window.ts";
import { addNote, asFile, changeNote, merge, notesOf, place as kept, readNotes, savedIn } from "../state/notes_of.ts";
import { note } from "../state/notes.ts";
import { dropView, saved, saveView, showView, viewsFile } from "../state/saved.ts";
import { shown, trace } from "../state/view.ts";
import { writing } from "../state/writing.ts";
import { PinWindow } from "../more/pin.tsx";
import { importProfile } from "./wpa.ts";

/** Where a note goes: on the selection, else where the cursor is, else in the middle. */
const place = (): [number, number | null] => (drawn.value ? drawn.value : [Math.round(cursor.value?.ns ?? (shown.value[0] + shown.value[1]) / 2), null]);

function download(): void {
  const url = URL.createObjectURL(new Blob([asFile()], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `${trace.value?.name ?? "trace"}.notes.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function NoteWindow(props: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [[at, to]] = useState(place);
  const list = notesOf();
  return (
    <Dialog title="Notes on the time axis" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() === "") return;
          addNote({ at, text: text.trim(), ...(to === null ? {} : { to }) });
          props.onClose();
        }}
      >
        <label>
          New note at {span([at, to ?? at + 1]).split(" – ")[0]}
          {to !== null && ` to ${span([at, to]).split(" – ")[1]}`}
          <input class="wide" value={text} maxLength={2000} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={text.trim() === ""}>
          Add
        </button>{" "}
        <button type="button" disabled={list.length === 0} onClick={download}>
          Save as file
        </button>{" "}
        <label>
          Load a file{" "}
          <input
            type="file"
            accept=".json"
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (!file || file.size > 4e6) return;
              file.text().then(
                (content) => {
                  try {
                    const found = readNotes(content);
                    merge(found);
                    say(`${counted(found.length, "note")} read`);
                  } catch {
                    say("This file holds no notes.");
                  }
                },
                () => say("This file cannot be read."),
              );
            }}
          />
        </label>
      </form>
      {list.map((one, i) => (
        <p key={`${one.at} ${i}`}>
          <input aria-label={`Note at ${one.at}`} class="wide" value={one.text} onChange={(event) => changeNote(i, event.currentTarget.value)} />
        </p>
      ))}
      <p class="about" data-part="notes-place">
        {savedIn() ? `Notes are saved in ${visible(savedIn() ?? "")}, are part of links to this view, and go into the saved report.` : `Notes are part of links to this view, in the saved report and in this browser. ${visible(kept.value?.why ?? "")}${kept.value?.why ? ": s" : "S"}ave them as a file to keep them.`} An empty text removes one.
      </p>
    </Dialog>
  );
}

function ViewWindow(props: { onClose: () => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog title="Saved views" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() === "") return;
          saveView(name.trim());
          say(`${name.trim()}: saved`);
          props.onClose();
        }}
      >
        <label>
          Name of this view: panel, groups, columns, lanes
          <input class="wide" value={name} maxLength={80} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={name.trim() === ""}>
          Save
        </button>
      </form>
      <label>
        Views of a profile of WPA (.wpaProfile){" "}
        <input
          type="file"
          accept=".wpaProfile"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (!file) return;
            importProfile(file).then((said) => {
              said.forEach(note);
              props.onClose();
            }, (error: unknown) => say(error instanceof Error ? error.message : String(error)));
          }}
        />
      </label>
      <ul class="saved">
        {saved.value.map((one) => (
          <li key={one.name}>
            <button
              type="button"
              onClick={() => {
                showView(one);
                props.onClose();
              }}
            >
              {visible(one.name)}
            </button>{" "}
            <button type="button" class="small" aria-label={`Remove ${visible(one.name)}`} onClick={() => dropView(one.name)}>
              ×
            </button>
          </li>
        ))}
      </ul>
      <p class="about" data-part="views-place">
        {viewsFile() ? `Saved views are kept in ${visible(viewsFile() ?? "")}, for all traces.` : "Saved views are kept in this browser, for all traces."}
      </p>
    </Dialog>
  );
}

export function Writing() {
  const close = () => void (writing.value = null);
  return writing.value === "note" ? <NoteWindow onClose={close} /> : writing.value === "view" ? <ViewWindow onClose={close} /> : writing.value === "pin" ? <PinWindow onClose={close} /> : null;
}
