/** Gives the heaviest of a trace their colours, as its report weighs them. */

import { effect, signal } from "@preact/signals";
import type { Report } from "../../src/model.ts";
import { assign } from "../base/colors.ts";
import { themed } from "../base/theme.ts";
import { askRows } from "../wire/api.ts";
import { schema, view, wholeReport } from "./view.ts";

const GUARDS = /antivirus|edr|dlp|security/i;

/** Changes when names have other colours. */
export const painted = signal(0);

export function weigh(data: Report): { heaviest: string[]; windows: string[]; security: string[] } {
  const weights = new Map<string, number>();
  const windows = new Set(["System", "Idle", "Registry", "Memory Compression", "Secure System"]);
  const security = new Set<string>();
  const add = (name: string, weight: number) => {
    if (!name.startsWith("[")) weights.set(name, Math.max(weights.get(name) ?? 0, weight));
  };
  for (const row of data.bill) {
    if (row.part !== "culprit" || !["process", "driver", "module"].includes(row.kind) || row.culprit.startsWith("[")) continue;
    const name = row.culprit.replace(/ \(\d+\)$/, "");
    add(name, row.total_cpu_ns + (row.filter_ns ?? 0));
    if (row.category === "os") windows.add(name);
    if (GUARDS.test(row.category ?? "")) security.add(name);
  }
  for (const process of data.cpu.processes) {
    add(process.name, process.cpu_ns);
    for (const module of process.modules) {
      if (module.category === "os") windows.add(module.name);
      else add(module.name, module.exclusive_ns);
      if (GUARDS.test(module.category ?? "")) security.add(module.name);
    }
  }
  for (const finding of data.findings) {
    for (const hit of finding.hits) {
      // Who is blamed deserves a colour even where it used no processor.
      if (["process", "driver", "module", "product"].includes(hit.culprit_kind)) add(hit.culprit, hit.cost_ns ?? 0);
      if (finding.topic === "security" && hit.culprit_kind === "driver") security.add(hit.culprit);
    }
  }
  const heaviest = [...weights].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
  return { heaviest, windows: [...windows], security: [...security] };
}

/** Follows the trace that is shown. */
export function followPalette(): void {
  let trace = -1;
  effect(() => {
    const [data, tables] = [wholeReport.value, schema.value];
    if (!data || trace === view.value.trace) return;
    const { heaviest, windows, security } = weigh(data);
    const give = (more: string[], guards: string[]) => {
      assign(heaviest, [...windows, ...more], [...security, ...guards]);
      painted.value = painted.peek() + 1;
      themed.value = themed.peek() + 1;
    };
    give([], []);
    // Tables come after the verdict.
    if (!tables) return;
    trace = view.value.trace;
    // Whose a module is stands in its file's version: Windows' own are grey, whatever they cost.
    const asked = trace;
    const names = async (sql: string) => {
      const rows = await askRows("figures", { trace: asked, sql, limit: 20_000 });
      return Array.from({ length: rows.count }, (_, row) => rows.text(row, "name"));
    };
    Promise.all([
      names("SELECT DISTINCT name FROM module WHERE category = 'os' OR (vendor LIKE 'Microsoft%' AND (product LIKE '%Windows%' OR path LIKE '%\\Windows\\%'))"),
      names("SELECT DISTINCT name FROM module WHERE security = 1 AND coalesce(category, '') <> 'os'"),
    ]).then(
      ([own, guards]) => view.value.trace === asked && give(own, guards),
      () => undefined,
    );
  });
}
