/** The page of `etwhy why --html`: reads its data and lays out the parts. */

import type { Cost, DiskCost, Report } from "./model.ts";
import { activity } from "./components/activity.ts";
import { bill } from "./components/bill.ts";
import { facts, ledger } from "./components/facts.ts";
import { badge, finding } from "./components/finding.ts";
import { flame } from "./components/flame.ts";
import { growth } from "./components/growth.ts";
import { histogram } from "./components/histogram.ts";
import { dataTable } from "./components/table.ts";
import { themeButton } from "./components/theme.ts";
import { timeline } from "./components/timeline.ts";
import { h, type Child } from "./lib/dom.ts";
import { bytes, count, duration, percent, share } from "./lib/format.ts";

interface Section {
  id: string;
  title: string;
  body: Child;
}

/** The command that would tell. */
const record = (command: string | null) => command && h("span", {}, " Record: ", h("code", {}, command));

function findings(report: Report): Section {
  const found = report.findings.filter((one) => one.answer === "found");
  const without = report.findings.filter((one) => one.answer === "not_found");
  const open = report.findings.filter((one) => one.answer === "cannot_tell");
  const bySeverity = ["critical", "warning", "notice", "info"]
    .map((name) => ({ name, number: found.filter((one) => one.severity === name).length }))
    .filter((one) => one.number > 0);
  const tally: Child = report.findings.length === 0
    ? h("p", { class: "empty" }, "Cannot tell: no findings were evaluated.")
    : h(
        "p",
        { class: "tally" },
        bySeverity.map((one) => h("span", {}, count(one.number), " ", badge(one.name))),
        h("span", {}, `${count(without.length)} looked for and not found`),
        h("span", {}, `${count(open.length)} cannot be determined`),
      );
  return {
    id: "findings",
    title: "Findings",
    body: [
      tally,
      found.map(finding),
      without.length > 0 &&
        h("details", {}, h("summary", {}, `${count(without.length)} looked for and not found`), h("ul", { class: "plain columns" }, without.map((one) => h("li", {}, one.title, " ", h("code", {}, one.id))))),
    ],
  };
}

function costs(title: string, list: Cost[], whole: number): HTMLElement {
  const most = Math.max(1, ...list.map((one) => one.inclusive_ns));
  return dataTable(
    list,
    [
      { title, cell: (one) => one.name, key: (one) => one.name, head: true, name: true },
      { title: "category", cell: (one) => one.category ?? "–" },
      { title: "exclusive", cell: (one) => duration(one.exclusive_ns), key: (one) => one.exclusive_ns },
      { title: "share", cell: (one) => percent(share(one.exclusive_ns, whole)), key: (one) => one.exclusive_ns },
      {
        title: "inclusive",
        cell: (one) =>
          h(
            "div",
            { class: "with-bar" },
            h(
              "div",
              { class: "stack-bar", "aria-hidden": "true" },
              h("i", { class: "part-own", style: { width: `${(100 * one.exclusive_ns) / most}%` } }),
              h("i", { class: "part-called", style: { width: `${(100 * Math.max(0, one.inclusive_ns - one.exclusive_ns)) / most}%` } }),
            ),
            h("span", {}, duration(one.inclusive_ns)),
          ),
        key: (one) => one.inclusive_ns,
      },
      { title: "share", cell: (one) => percent(share(one.inclusive_ns, whole)), key: (one) => one.inclusive_ns },
    ],
    { caption: `CPU time by ${title}`, visible: true },
  );
}

function cpu(report: Report): Section {
  const data = report.cpu;
  const charts = report.charts;
  if (data.samples === 0) {
    const body = report.quality.samples_recorded
      ? h("p", { class: "empty" }, "Cannot tell who used the CPU: the trace has CPU samples, but none in this part of it.")
      : h("p", { class: "empty" }, "Cannot tell who used the CPU: the trace holds no CPU samples.", record("etwhy record --print cpu"));
    return { id: "cpu", title: "CPU", body };
  }
  const most = Math.max(1, ...data.processes.map((one) => one.cpu_ns));
  const processes = dataTable(
    data.processes,
    [
      { title: "process", cell: (one) => one.name, key: (one) => one.name, head: true, name: true },
      { title: "id", cell: (one) => (one.pid < 0 ? "–" : one.pid), key: (one) => one.pid },
      {
        title: "CPU",
        cell: (one) =>
          h(
            "div",
            { class: "with-bar" },
            h(
              "div",
              { class: "stack-bar", "aria-hidden": "true" },
              h("i", { class: "part-own", style: { width: `${(100 * (one.cpu_ns - one.kernel_ns)) / most}%` } }),
              h("i", { class: "part-kernel", style: { width: `${(100 * one.kernel_ns) / most}%` } }),
            ),
            h("span", {}, duration(one.cpu_ns)),
          ),
        key: (one) => one.cpu_ns,
      },
      { title: "share", cell: (one) => percent(share(one.cpu_ns, data.busy_ns)), key: (one) => one.cpu_ns },
      { title: "of it kernel", cell: (one) => percent(share(one.kernel_ns, one.cpu_ns)), key: (one) => share(one.kernel_ns, one.cpu_ns) },
    ],
    { caption: `CPU time by process (${duration(data.busy_ns)} busy, ${duration(data.idle_ns)} idle)`, visible: true },
  );
  return {
    id: "cpu",
    title: "CPU",
    body: [
      charts?.timeline && timeline(charts.timeline),
      h("div", { class: "pair" }, processes, costs("module", data.modules, data.busy_ns)),
      charts?.flame && flame(charts.flame),
      costs("function", data.functions, data.busy_ns),
    ],
  };
}

function disk(report: Report): Section | null {
  const { total, processes, files } = report.disk;
  if (total.reads + total.writes === 0) return null;
  const list = (title: string, rows: DiskCost[]) =>
    dataTable(
      rows,
      [
        { title, cell: (one) => one.name, key: (one) => one.name, head: true, name: true },
        { title: "service time", cell: (one) => duration(one.service_ns), key: (one) => one.service_ns },
        { title: "reads", cell: (one) => `${count(one.reads)} (${bytes(one.read_bytes)})`, key: (one) => one.read_bytes },
        { title: "writes", cell: (one) => `${count(one.writes)} (${bytes(one.write_bytes)})`, key: (one) => one.write_bytes },
        { title: "longest", cell: (one) => duration(one.longest_ns), key: (one) => one.longest_ns },
      ],
      { caption: `Disk by ${title}`, visible: true },
    );
  const text = `${count(total.reads)} reads (${bytes(total.read_bytes)}), ${count(total.writes)} writes (${bytes(total.write_bytes)}), ${duration(total.service_ns)} of service time, longest ${duration(total.longest_ns)}.`;
  return { id: "disk", title: "Disk", body: [h("p", {}, text), h("div", { class: "pair" }, list("process", processes), list("file", files))] };
}

function clr(report: Report): Section | null {
  if (report.clr.length === 0) return null;
  return {
    id: "clr",
    title: ".NET",
    body: dataTable(
      report.clr,
      [
        { title: "process", cell: (one) => `${one.name} (${one.pid})`, key: (one) => one.name, head: true, name: true },
        { title: "collections (gen 0, 1, 2)", cell: (one) => one.gc_by_generation.map(count).join(", "), key: (one) => one.gc_by_generation.reduce((a, b) => a + b, 0) },
        { title: "paused", cell: (one) => duration(one.gc_pause_ns), key: (one) => one.gc_pause_ns },
        { title: "longest", cell: (one) => duration(one.gc_longest_pause_ns), key: (one) => one.gc_longest_pause_ns },
        { title: "peak heap", cell: (one) => bytes(one.gc_peak_heap_bytes), key: (one) => one.gc_peak_heap_bytes },
        { title: "exceptions", cell: (one) => count(one.exceptions), key: (one) => one.exceptions },
        { title: "compiled", cell: (one) => `${count(one.jit_methods)} in ${duration(one.jit_ns)}`, key: (one) => one.jit_ns },
        { title: "waits for locks", cell: (one) => `${count(one.contentions)}, ${duration(one.contention_ns)}`, key: (one) => one.contention_ns },
      ],
      { caption: ".NET by process" },
    ),
  };
}

function cannotTell(report: Report): Section | null {
  const open = report.findings.filter((one) => one.answer === "cannot_tell");
  if (report.cannot_tell.length + open.length === 0) return null;
  return {
    id: "cannot-tell",
    title: "Cannot tell from this trace",
    body: h(
      "ul",
      { class: "plain" },
      report.cannot_tell.map((one) => h("li", {}, `${one.question}: ${one.because}.`, record(one.record))),
      open.flatMap((one) =>
        one.reasons.map((reason) => h("li", {}, `${one.title} (`, h("code", {}, one.id), `): ${reason.text.replace(/\.$/, "")}.`, record(reason.record))),
      ),
    ),
  };
}

function sections(report: Report): Section[] {
  const charts = report.charts;
  const warnings = report.quality.ledger.filter((line) => line.severity !== "info");
  const all: (Section | null | undefined | false)[] = [
    findings(report),
    {
      id: "bill",
      title: "The bill",
      body: bill(report.bill),
    },
    report.activity && { id: "activity", title: "What the trace shows", body: activity(report.activity) },
    cpu(report),
    charts && charts.histograms.length > 0 && { id: "dpc", title: "DPCs and interrupts", body: histogram(charts.histograms) },
    charts && charts.growth.length > 0 && { id: "growth", title: "Growth", body: h("div", { class: "pair" }, charts.growth.map(growth)) },
    clr(report),
    disk(report),
    cannotTell(report),
    report.quality.ledger.length > 0 && {
      id: "quality",
      title: "Quality of the trace",
      body: [
        h("p", {}, warnings.length === 0 ? "Nothing that makes results incomplete." : `${count(warnings.length)} ${warnings.length === 1 ? "kind of anomaly makes" : "kinds of anomalies make"} results incomplete or assumed.`),
        ledger(report.quality.ledger),
      ],
    },
  ];
  return all.filter((one): one is Section => !!one);
}

function show(report: Report): void {
  const parts = sections(report);
  document.body.append(
    h("a", { class: "skip", href: "#main" }, "Skip to the report"),
    h(
      "header",
      { class: "top" },
      h("div", { class: "bar" }, h("span", { class: "brand" }, "etwhy"), themeButton()),
      h("h1", {}, h("span", { class: "eyebrow" }, "Why was it slow?"), h("span", { class: "verdict" }, report.sentence)),
      facts(report.quality),
    ),
    h("nav", { class: "contents", "aria-label": "Contents" }, h("ul", {}, parts.map((part) => h("li", {}, h("a", { href: `#${part.id}` }, part.title))))),
    h("main", { id: "main" }, parts.map((part) => h("section", { id: part.id, "aria-labelledby": `${part.id}-title` }, h("h2", { id: `${part.id}-title` }, part.title), part.body))),
    h("footer", {}, `Made by etwhy; data follow the schema ${report.schema}. This file asks nothing of the network.`),
  );
}

/** On paper everything is open. */
function openForPrint(): void {
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details.evidence:not([open]), details.more:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
}

const data = document.getElementById("etwhy-report")?.textContent ?? "";
try {
  show(JSON.parse(data) as Report);
  openForPrint();
} catch (error) {
  document.body.append(h("p", { class: "empty", role: "alert" }, `This report cannot be shown: ${String(error)}`));
  throw error;
}
