/** What is looked at: the address behind `#s1=`, as JSON without what stands at its default. */

import { signal } from "@preact/signals";

/** Which traces; what is empty filters nothing. `file` and `version` belong together. */
export interface Filter {
  model?: string;
  os?: string;
  from?: string;
  to?: string;
  file?: string;
  version?: string;
}

export interface View {
  what: string;
  /** Culprit or finding. */
  name?: string;
  machine?: string;
  trace?: string;
  filter: Filter;
}

/** Kinds that are ranked. */
export const KINDS: [string, string][] = [
  ["driver", "Drivers"],
  ["process", "Processes"],
  ["product", "Products"],
  ["category", "Categories"],
  ["finding", "Findings"],
];

const FILTERS = ["model", "os", "from", "to", "file", "version"] as const;
const START = "#s1=";

function read(): View {
  try {
    const raw: unknown = JSON.parse(decodeURIComponent(location.hash.slice(START.length)));
    const given = raw as Record<string, unknown>;
    const text = (of: Record<string, unknown>, key: string) => (typeof of[key] === "string" && of[key] !== "" ? { [key]: of[key] } : {});
    const filter = (given["filter"] ?? {}) as Record<string, unknown>;
    const what = KINDS.some(([kind]) => kind === given["what"]) ? String(given["what"]) : "driver";
    return { what, ...text(given, "name"), ...text(given, "machine"), ...text(given, "trace"), filter: Object.assign({}, ...FILTERS.map((key) => text(filter, key))) };
  } catch {
    return { what: "driver", filter: {} };
  }
}

export const view = signal<View>(read());
addEventListener("hashchange", () => (view.value = read()));

/** The address of a view. */
export const link = (to: View): string => START + encodeURIComponent(JSON.stringify(to));

export function go(to: View): void {
  location.hash = link(to);
}
