/** What is being written in a small window: a note on the time axis, the name of a view, what a pinned view shows. */

import { signal } from "@preact/signals";

export const writing = signal<"note" | "view" | "pin" | null>(null);
