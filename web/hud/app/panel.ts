/** What a panel is. */

import type { ComponentType } from "preact";

export interface Panel {
  /** Name in the address. */
  id: string;
  title: string;
  /** Where it stands in the navigation. */
  group: "look" | "cpu" | "wait" | "io" | "memory" | "system" | "tools";
  order: number;
  /** One sentence: what it shows. */
  about: string;
  /** Tables without which it has nothing to show: if all of them are empty, the navigation greys it and the panel says what to record. */
  tables: string[];
  /** At which layer its times are taken, and what lies above and below: where another panel or the verdict has another figure for the same thing. */
  measures?: string;
  View: ComponentType;
}
