/** Views that stand in the saved report as they were: a picture, the tables that were in sight, and what somebody wrote about them. */

import { signal } from "@preact/signals";
import type { Kept } from "../parts/grid/mounted.ts";
import { visible } from "../base/value.ts";
import { trace } from "./view.ts";

export interface Pin {
  /** The trace that it is of. */
  of: string;
  title: string;
  /** Range and filters. */
  about: string;
  note: string;
  /** A `data:` address, or none. */
  picture: string | null;
  tables: Kept[];
}

const MOST = 20;

/** Of this page: they go with it. */
const all = signal<Pin[]>([]);

export const pinsOf = (): Pin[] => all.value.filter((one) => one.of === (trace.value?.trace_id ?? ""));
export const addPin = (pin: Omit<Pin, "of">) => (all.value = [...all.value, { ...pin, of: trace.value?.trace_id ?? "" }].slice(-MOST));
export const dropPin = (pin: Pin) => (all.value = all.value.filter((one) => one !== pin));

/** Text of a trace in a document. */
export const plain = (text: string) => visible(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function table(one: Kept): string {
  const row = (cells: string[], tag: string) => `<tr>${cells.map((cell) => `<${tag}>${plain(cell)}</${tag}>`).join("")}</tr>`;
  const more = one.count > one.rows.length ? `<p>The first ${one.rows.length.toLocaleString("en")} of ${one.count.toLocaleString("en")} rows.</p>` : "";
  return `<details><summary>${plain(one.label)}</summary><table><thead>${row(one.titles, "th")}</thead><tbody>${one.rows.map((cells) => row(cells, "td")).join("")}</tbody></table>${more}</details>`;
}

/** Pinned views as a part of a report; nothing if there are none. */
export function pinned(): string {
  const pins = pinsOf();
  if (pins.length === 0) return "";
  const parts = pins.map((one) => `<section><h3>${plain(one.title)}</h3><p>${plain(one.about)}</p>${one.note ? `<p><strong>${plain(one.note)}</strong></p>` : ""}${one.picture ? `<img alt="${plain(one.title)}" width="100%" src="${one.picture}">` : ""}${one.tables.map(table).join("")}</section>`);
  return `<section id="pinned"><h2>Pinned views</h2>${parts.join("")}</section>`;
}

/** Lets a document show the pictures that stand in it, and nothing from elsewhere. */
export const withPictures = (html: string) => html.replace(/(http-equiv="Content-Security-Policy" content="default-src 'none';)/, "$1 img-src data:;");
