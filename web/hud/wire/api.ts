/** Questions to the server: `POST api/v1/{name}` with JSON, relative to the page, whose address holds the token. */

import { Rows } from "./rows.ts";
import type { Answers, Facts } from "./types.ts";

/** The server says why it cannot answer. */
export class Fault extends Error {
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Who hears that the process of a trace does not answer. */
export const trouble = { heard: (): void => undefined };

/** Which window of a trace that is followed a question is about; null: it is not followed. */
export const windowOf = { trace: (_trace: unknown): number | null => null };

/** A body with the window that it speaks of, the present one unless it says another: its numbers mean nothing in the next one. */
function dated(body: unknown): unknown {
  const window = windowOf.trace((body as { trace?: unknown } | null)?.trace);
  return window === null ? body : { window, ...(body as object) };
}

export async function post(name: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`api/v1/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(dated(body)),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Fault("etwhy serve does not answer. Has it stopped?", 0);
  }
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = ((await response.json()) as { error: string }).error;
  } catch {
    // No JSON: the status says enough.
  }
  if (response.status === 409 || response.status === 502) trouble.heard();
  throw new Fault(message, response.status);
}

/** An answer in JSON. */
export async function ask<N extends keyof Answers>(name: N, body: unknown = {}, signal?: AbortSignal): Promise<Answers[N]> {
  return (await post(name, body, signal)).json() as Promise<Answers[N]>;
}

/** An answer in Arrow. */
export async function askRows<N extends keyof Facts>(name: N, body: unknown = {}, signal?: AbortSignal): Promise<Rows<Facts[N]>> {
  const response = await post(name, body, signal);
  return Rows.of<Facts[N]>(new Uint8Array(await response.arrayBuffer()));
}

/** An answer that is a file: it is saved as a download, as it is or as `change` makes it. */
export async function save(name: string, body: unknown = {}, change?: (text: string) => string): Promise<string> {
  const response = await post(name, body);
  const said = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "");
  const file = said?.[1] ?? name;
  const url = URL.createObjectURL(change ? new Blob([change(await response.text())], { type: "text/html" }) : await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return file;
}
