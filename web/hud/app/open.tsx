/** Opening traces: of the folders that the server was started with, by path, or a file of one's own that is sent to it. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { visible } from "../base/value.ts";
import { Fault } from "../parts/box.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { say } from "../parts/live.tsx";
import { toTrace } from "../state/identity.ts";
import { note } from "../state/notes.ts";
import { arrived } from "../state/opened.ts";
import { recent } from "../state/recent.ts";
import { session } from "../state/session.ts";
import { ask } from "../wire/api.ts";
import type { Listing, TraceInfo } from "../wire/types.ts";

const inWords = (error: unknown) => (error instanceof Error ? error.message : String(error));
const size = (bytes: number) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.max(0.1, bytes / 1e6).toFixed(1)} MB`);

async function show(info: TraceInfo): Promise<void> {
  arrived(info);
  await toTrace(info.trace);
  say(`${info.name}: is being opened`);
}

/** A file on its way to the server. */
export const sending = signal<{ name: string; share: number; stop: () => void } | null>(null);

/** Sends a file; what goes wrong is said on the page. */
export function send(file: File): Promise<void> {
  const most = session.value?.upload_bytes ?? 0;
  if (most === 0) return Promise.resolve(note("This server takes no files: it was started with --readonly or --max-upload 0."));
  if (file.size > most) return Promise.resolve(note(`${file.name} has ${size(file.size)}; this server takes ${size(most)} at most (--max-upload). Traces in its folders are read where they are.`));
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    const over = (said: string | null) => {
      sending.value = null;
      if (said) note(said);
      done();
    };
    request.open("PUT", `api/v1/upload/${encodeURIComponent(file.name)}`);
    request.upload.onprogress = (event) => {
      if (sending.value) sending.value = { ...sending.value, share: event.total > 0 ? event.loaded / event.total : 0 };
    };
    request.onload = () => {
      let answer: unknown;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        answer = { error: `${request.status} ${request.statusText}` };
      }
      if (request.status !== 200) return over((answer as { error: string }).error);
      over(null);
      void show(answer as TraceInfo);
    };
    request.onerror = () => over(`${file.name}: could not be sent`);
    request.onabort = () => over(null);
    sending.value = { name: file.name, share: 0, stop: () => request.abort() };
    request.send(file);
  });
}

export function Sending() {
  const one = sending.value;
  if (!one) return null;
  return (
    <div class="notes" role="status">
      <p>
        Sending {visible(one.name)} {Math.floor(one.share * 100)} % <progress max={1} value={one.share} aria-label={`Sending ${visible(one.name)}`} />
      </p>
      <button type="button" class="small" onClick={one.stop}>
        Stop
      </button>
    </div>
  );
}

/** Files that are dropped anywhere on the page are opened; the browser would show them instead. */
export function startDrop(): void {
  const files = (event: DragEvent) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => files(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    const dropped = [...(event.dataTransfer?.files ?? [])];
    void dropped.reduce((before, file) => before.then(() => send(file)), Promise.resolve());
  });
}

function Folder(props: { onFile: (path: string) => void }) {
  const [at, setAt] = useState<string | null>(null);
  const [listing, setListing] = useState<Listing | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    ask("folder", at === null ? {} : { path: at }, abort.signal).then(
      (found) => {
        setListing(found);
        setError(null);
      },
      (fault: unknown) => !abort.signal.aborted && setError(inWords(fault)),
    );
    return () => abort.abort();
  }, [at]);
  const shown = listing?.entries.filter((one) => one.folder || one.trace) ?? [];
  return (
    <section aria-label="Folders of the server">
      <p>
        {listing?.path ? visible(listing.path) : "Folders of the server"}{" "}
        {at !== null && (
          <button type="button" class="small" onClick={() => setAt(listing?.above ?? null)}>
            Up
          </button>
        )}
      </p>
      <ul class="files">
        {shown.map((one) => (
          <li key={one.path}>
            <button type="button" class="small" onClick={() => (one.folder ? setAt(one.path) : props.onFile(one.path))}>
              {visible(one.name)}
              {one.folder ? "/" : ""}
            </button>{" "}
            {!one.folder && `${size(one.size)}${one.modified_ms ? `, ${new Date(one.modified_ms).toLocaleString()}` : ""}`}
          </li>
        ))}
      </ul>
      {listing && shown.length === 0 && <p class="about">No traces here.</p>}
      {listing?.more && <p class="about">The folder holds more; give the path below.</p>}
      <Fault error={error} />
    </section>
  );
}

function Recently(props: { onFile: (path: string) => void }) {
  const list = recent();
  if (list.length === 0) return null;
  return (
    <section aria-label="Recent traces">
      <p>Recent</p>
      <ul class="files">
        {list.map((one) => (
          <li key={one.path}>
            <button type="button" class="small" title={visible(one.path)} onClick={() => props.onFile(one.path)}>
              {visible(one.name)}
            </button>{" "}
            {new Date(one.when).toLocaleString()}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Open(props: { onClose: () => void }) {
  const [path, setPath] = useState("");
  const [state, setState] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  const folders = session.value?.folders ?? [];
  const most = session.value?.upload_bytes ?? 0;
  const open = async (which: string) => {
    setState({ busy: true, error: null });
    try {
      await show(await ask("open", { path: which }));
      props.onClose();
    } catch (error) {
      setState({ busy: false, error: inWords(error) });
    }
  };
  return (
    <Dialog title="Open another trace" onClose={props.onClose}>
      {most > 0 && (
        <p>
          <label>
            A file of this computer, up to {size(most)} (or drop it here)
            <input
              type="file"
              onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (!file) return;
                props.onClose();
                void send(file);
              }}
            />
          </label>
        </p>
      )}
      <Recently onFile={(file) => void open(file)} />
      {folders.length > 0 && <Folder onFile={(file) => void open(file)} />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void open(path);
        }}
      >
        <label>
          Path on the machine where <code>etwhy serve</code> runs
          <input class="wide" value={path} onInput={(event) => setPath(event.currentTarget.value)} spellcheck={false} />
        </label>{" "}
        <button type="submit" disabled={state.busy || path.trim() === ""}>
          {state.busy ? "Opening …" : "Open"}
        </button>
      </form>
      <p class="about">
        {folders.length > 0
          ? `Traces in ${folders.map(visible).join(", ")} can be opened. `
          : "Start etwhy serve with --folder DIR to open traces in it here. "}
        Panel and settings stay as they are.
      </p>
      <Fault error={state.error} />
    </Dialog>
  );
}
