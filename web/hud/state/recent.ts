/** Traces that this browser looked at, the latest first: for the dialog that opens others. */

import { effect, signal } from "@preact/signals";
import { session } from "./session.ts";
import { trace } from "./view.ts";

export interface Recent {
  path: string;
  name: string;
  /** Milliseconds since 1970. */
  when: number;
}

const KEY = "etwhy-recent";
const MOST = 12;

function read(): Recent[] {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]") as Recent[];
    return Array.isArray(found) ? found.filter((one) => typeof one?.path === "string" && typeof one.name === "string" && typeof one.when === "number") : [];
  } catch {
    return [];
  }
}

const all = signal<Recent[]>(read());

/** Those that this server can open and has not opened. */
export const recent = (): Recent[] => {
  const { folders = [], traces = [] } = session.value ?? {};
  const inFolder = (path: string) => folders.some((folder) => path.startsWith(folder) && /[\\/]/.test(path.charAt(folder.length) || folder.slice(-1)));
  return all.value.filter((one) => inFolder(one.path) && !traces.some((open) => open.path === one.path && open.stage !== "closed"));
};

/** Takes note of what is looked at. */
export function followRecent(): void {
  let last = "";
  effect(() => {
    const now = trace.value;
    if (!now?.path || now.stage !== "ready" || now.path === last) return;
    last = now.path;
    const one = { path: now.path, name: now.name, when: Date.now() };
    const list = [one, ...read().filter((each) => each.path !== one.path)].slice(0, MOST);
    all.value = list;
    try {
      localStorage.setItem(KEY, JSON.stringify(list));
    } catch {
      // No storage here: nothing is remembered.
    }
  });
}
