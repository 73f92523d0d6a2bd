/** What the inspector tells about: what was selected last, in any panel. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

export interface Action {
  text: string;
  run: () => void;
  primary?: boolean;
  /** Whether it is on, if it is a switch. */
  on?: boolean;
}

export interface Card {
  /** Tells it from all others: selecting it again changes nothing. */
  id: string;
  /** What it is: `Function in a security driver`. */
  kind: string;
  severity?: string;
  /** Whose colour it has. */
  swatch?: string;
  title: string;
  /** Asked of the knowledge base: who makes it, what it is for. */
  knows?: string;
  facts: [string, string][];
  parts?: { title: string; aside?: string; body: ComponentChildren }[];
  actions: Action[];
}

/** By a panel; null: the finding that is looked at, if any. */
export const card = signal<Card | null>(null);

/** Shows it. */
export function inspect(one: Card | null): void {
  card.value = one;
}
