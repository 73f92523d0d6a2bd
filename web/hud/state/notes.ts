/** What people must know of the view before they read its numbers. It stays until they have seen it. */

import { signal } from "@preact/signals";

export const notes = signal<string[]>([]);

/** Says it once. */
export function note(text: string): void {
  if (!notes.value.includes(text)) notes.value = [...notes.value, text];
}

export function dismiss(): void {
  notes.value = [];
}
