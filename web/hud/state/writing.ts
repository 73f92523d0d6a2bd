/** What is being written in a small window: a note on the time axis, the name of a view. */

import { signal } from "@preact/signals";

export const writing = signal<"note" | "view" | null>(null);
