//! Where the CPU went.

use super::Form;
use crate::Quality;
use etwhy_analysis::cpu::{Cost, Cpu};
use etwhy_base::units::{percent, thousands};
use etwhy_doc::{Column, Doc, Line, Span, Table};

/// Processes whose modules and functions are shown, and stacks.
const PROCESSES: usize = 3;
const STACKS: usize = 5;

/// CPU time by process, module, function and stack; of a stack as many frames as wanted.
pub(super) fn section(doc: &mut Doc, cpu: &Cpu, quality: &Quality, form: &Form) {
    if cpu.samples > 0 || form.full {
        doc.heading("CPU");
    }
    if cpu.samples == 0 {
        // The sentence of the verdict says it too.
        return doc.text(if form.full {
            format!("Cannot tell: {}.", quality.no_samples())
        } else {
            String::new()
        });
    }
    doc.text(format!("{} busy, {} idle.", ms(cpu.busy_ns), ms(cpu.idle_ns)));
    let mut table = Table::new([
        Column::name("process").least(24),
        Column::number("CPU"),
        Column::number("share"),
        Column::number("of it kernel"),
        Column::word(""),
    ]);
    for one in &cpu.processes {
        let bar = Span::Bar(percent(one.cpu_ns, cpu.busy_ns) / 100.0);
        table.row([
            process(&one.name, one.pid),
            ms(one.cpu_ns).into(),
            share(one.cpu_ns, cpu.busy_ns),
            format!("{:.0} %", percent(one.kernel_ns, one.cpu_ns)).into(),
            bar.into(),
        ]);
    }
    doc.table(table);
    for one in cpu.processes.iter().take(PROCESSES).filter(|p| !p.modules.is_empty()) {
        doc.subheading(process(&one.name, one.pid).and(", by module"));
        costs(doc, "module", &one.modules, one.cpu_ns);
        doc.subheading(process(&one.name, one.pid).and(", by function"));
        costs(doc, "function", &one.functions, one.cpu_ns);
    }
    for (title, what, list) in [
        ("All processes: modules", "module", &cpu.modules),
        ("All processes: functions by exclusive time", "function", &cpu.functions),
        ("All processes: functions by inclusive time", "function", &cpu.inclusive),
    ] {
        if !list.is_empty() {
            doc.subheading(title);
            costs(doc, what, list, cpu.busy_ns);
        }
    }
    if !cpu.stacks.is_empty() {
        doc.subheading("Stacks (innermost frame first)");
    }
    for stack in cpu.stacks.iter().take(STACKS) {
        let shown = if form.frames == 0 { stack.frames.len() } else { form.frames };
        let more = stack.frames.len().checked_sub(shown).filter(|more| *more > 0);
        let listed = stack.frames.iter().take(shown).map(Line::name);
        let head = Line::from(format!("{} ", ms(stack.cpu_ns))).and(share(stack.cpu_ns, cpu.busy_ns));
        doc.item(
            head.and(" ").and(process(&stack.process, stack.pid)),
            listed.chain(more.map(|more| format!("… {more} more").into())),
        );
    }
}

/// Name and id of a process; what is no process has no id.
fn process(name: &str, pid: i64) -> Line {
    Line::name(if pid < 0 { name.to_owned() } else { format!("{name} ({pid})") })
}

fn ms(ns: i64) -> String {
    let tenths = ns / 100_000;
    format!("{}.{} ms", thousands((tenths / 10).into()), (tenths % 10).abs())
}

fn share(part: i64, whole: i64) -> Line {
    format!("{:.1} %", percent(part, whole)).into()
}

fn costs(doc: &mut Doc, what: &str, list: &[Cost], whole: i64) {
    let mut table = Table::new([
        Column::name(what).least(36),
        Column::number("exclusive"),
        Column::number("share"),
        Column::number("inclusive"),
        Column::number("share"),
        Column::word("category"),
    ]);
    for cost in list {
        table.row([
            Line::name(&cost.name),
            ms(cost.exclusive_ns).into(),
            share(cost.exclusive_ns, whole),
            ms(cost.inclusive_ns).into(),
            share(cost.inclusive_ns, whole),
            cost.category.clone().unwrap_or_default().into(),
        ]);
    }
    doc.table(table);
}
