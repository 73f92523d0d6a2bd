//! The runs of a benchmark for people.

use etwhy_base::units::{decimal, digits, duration_ns};
use etwhy_diff::series::{Course, Series, Step};
use etwhy_doc::{Column, Doc, Line, Span, Table};

/// Where the level changes; `top` courses without a step.
pub fn document(series: &Series, top: usize) -> Doc {
    let mut doc = Doc::titled("From which run on?");
    if let (Some(first), Some(last)) = (series.runs.first(), series.runs.last()) {
        let ends = Line::name(&first.label).and(" to ").and(Line::name(&last.label));
        doc.note(format!("{} runs", series.runs.len()), ends);
    }
    for caveat in &series.caveats {
        doc.note("But:", caveat);
    }
    doc.heading("Steps");
    let (changed, quiet): (Vec<&Course>, Vec<&Course>) =
        series.courses.iter().partition(|course| !course.steps.is_empty());
    if changed.is_empty() {
        doc.text("None: nothing costs more or less from some run on than it did before, beyond chance.");
    }
    let heads = ["from run", "before", "after", "ratio (95 %)", "sure"];
    let name = [Column::name("what"), Column::word("kind")];
    let mut table =
        Table::new(name.into_iter().chain(heads.map(Column::word)).chain([Column::rest("course")]));
    for course in &changed {
        for (at, step) in course.steps.iter().enumerate() {
            let first = at == 0;
            let name = if first { Line::name(&course.name) } else { Line::default() };
            let kind = if first { course.kind } else { "" };
            let spark = if first { spark(course) } else { Line::default() };
            table.row([
                name,
                kind.into(),
                Line::from(format!("{} ", step.run + 1)).and(Line::name(&step.label)),
                duration_ns(step.before_ns as i64).into(),
                duration_ns(step.after_ns as i64).into(),
                ratio(step).into(),
                format!("{} %", decimal(100.0 * step.confidence.min(0.9999), 2)).into(),
                spark,
            ]);
        }
    }
    doc.table(table);
    if !series.findings.is_empty() {
        doc.heading("Findings that not all runs have");
        let mut table = Table::new([Column::name("finding"), Column::number("runs"), Column::rest("in run")]);
        for found in &series.findings {
            let count = found.found.iter().filter(|found| **found).count();
            let marks: String = found.found.iter().map(|found| if *found { '#' } else { '.' }).collect();
            table.row([Line::name(&found.finding), count.to_string().into(), marks.into()]);
        }
        doc.table(table);
    }
    doc.heading("Without a step");
    let heads =
        [Column::name("what"), Column::word("kind"), Column::number("typical"), Column::rest("course")];
    let mut table = Table::new(heads);
    for course in quiet {
        let typical = duration_ns(course.median_ns as i64);
        table.row([Line::name(&course.name), course.kind.into(), typical.into(), spark(course)]);
    }
    doc.table(table.at_most(top));
    doc
}

/// `x1.05 (1.04 to 1.06)`.
fn ratio(step: &Step) -> String {
    match (step.ratio, step.ratio_low, step.ratio_high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("x{} ({} to {})", digits(ratio), digits(low), digits(high))
        }
        _ if step.before_ns <= 0.0 => "new".to_owned(),
        _ if step.after_ns <= 0.0 => "gone".to_owned(),
        _ => format!("x{}", digits(step.after_ns / step.before_ns)),
    }
}

fn spark(course: &Course) -> Line {
    let most = course.values_ns.iter().flatten().copied().fold(0.0, f64::max);
    Span::Spark(course.values_ns.clone(), most).into()
}
