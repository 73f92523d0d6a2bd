//! `etwhy fleet coverage`.

use super::answer::{Asked, Said, of, percent, rows};
use crate::exit::Exit;
use crate::report::table_json::table_json;
use etwhy_doc::{Column, Doc, Line, Table};
use std::collections::BTreeMap;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleet = args.asked.fleet()?;
    let table = fleet.ask("coverage")?;
    let mut doc = Doc::titled("What could be told where");
    doc.heading("What could be told where");
    let mut shown = Table::new([
        Column::name("finding"),
        Column::number("could tell"),
        Column::number("traces"),
        Column::number("machines"),
        Column::text("most often because"),
    ]);
    let mut records: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows(&table) {
        let reason = table.text(row, "reason").unwrap_or_default();
        shown.row([
            Line::name(table.text(row, "finding_id").unwrap_or_default()),
            percent(table.f64(row, "could_tell_percent")),
            of(table.i64(row, "could_tell"), table.i64(row, "traces")),
            of(table.i64(row, "machines_able"), table.i64(row, "machines")),
            reason.lines().next().unwrap_or_default().into(),
        ]);
        if let Some(record) = table.text(row, "record") {
            let findings = records.entry(record).or_default();
            *findings = findings.saturating_add(1);
        }
    }
    if shown.rows.is_empty() {
        doc.text("No trace of this store was asked anything.");
    }
    doc.table(args.asked.cut(shown));
    let mut records: Vec<(&str, usize)> = records.into_iter().collect();
    records.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    if !records.is_empty() {
        doc.heading("What to record");
        let mut table =
            Table::new([Column::name("recording"), Column::number("findings that it would answer")]);
        for (record, findings) in records {
            table.row([Line::name(record), findings.to_string().into()]);
        }
        doc.table(args.asked.cut(table));
    }
    args.asked.write(&fleet, "coverage", Said { doc, rows: table_json(&table) })?;
    Ok(Exit::Done)
}
