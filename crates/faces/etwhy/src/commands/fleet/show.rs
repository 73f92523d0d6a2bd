//! `etwhy fleet show`.

use super::answer::{Asked, Said, percent, rows};
use crate::exit::Exit;
use crate::report::table_json::table_json;
use anyhow::bail;
use etwhy_base::units::duration_ns;
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_fleet::Fleet;
use etwhy_table::Table as Rows;
use serde_json::json;

#[derive(clap::Args)]
pub struct Args {
    /// A machine (its name or `machine_id`) or a trace (`trace_id`, or the end of its path); the beginning of an id is enough
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    asked: Asked,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleet = args.asked.fleet()?;
    let table = fleet.ask("traces")?;
    let text = |row: u32, column: &str| table.text(row, column).unwrap_or_default();
    let of_machine: Vec<u32> = rows(&table)
        .filter(|&row| {
            text(row, "computer").eq_ignore_ascii_case(&args.id) || text(row, "machine_id") == args.id
        })
        .collect();
    let begins = |row: &u32| text(*row, "machine_id").starts_with(&args.id);
    let is_trace =
        |row: &u32| text(*row, "trace_id").starts_with(&args.id) || text(*row, "path").ends_with(&args.id);
    let found: Vec<u32> = match of_machine.is_empty() {
        false => of_machine,
        true => match rows(&table).filter(is_trace).collect::<Vec<u32>>() {
            traces if traces.is_empty() => rows(&table).filter(begins).collect(),
            traces => traces,
        },
    };
    let said = match found.as_slice() {
        [] => bail!("there is no machine and no trace `{}` in this store", args.id),
        [one] => trace(&fleet, &args.asked, &table, *one)?,
        several => machine(&args.asked, &table, several),
    };
    args.asked.write(&fleet, "show", said)?;
    Ok(Exit::Done)
}

fn machine(asked: &Asked, table: &Rows, found: &[u32]) -> Said {
    let mut doc = Doc::titled("Traces");
    doc.heading(format!("{} traces", found.len()));
    let mut shown = Table::new([
        Column::word("trace"),
        Column::word("start (UTC)"),
        Column::name("machine"),
        Column::number("length"),
        Column::number("critical"),
        Column::number("warnings"),
        Column::text("verdict"),
    ]);
    for &row in found {
        let own = |column: &str| table.text(row, column).unwrap_or_default();
        let number = |column: &str| Line::from(table.i64(row, column).unwrap_or(0).to_string());
        shown.row([
            own("trace_id").chars().take(8).collect::<String>().into(),
            own("captured_utc").chars().take(19).collect::<String>().into(),
            super::answer::machine(table.text(row, "computer"), own("machine_id")),
            duration_ns(table.i64(row, "duration_ns").unwrap_or(0)).into(),
            number("critical"),
            number("warning"),
            own("sentence").into(),
        ]);
    }
    doc.table(asked.cut(shown));
    let all = table_json(table);
    let rows = found.iter().filter_map(|&row| all.get(row as usize).cloned()).collect();
    Said { doc, rows }
}

fn trace(fleet: &Fleet, asked: &Asked, table: &Rows, row: u32) -> anyhow::Result<Said> {
    let own = |column: &str| table.text(row, column).unwrap_or_default();
    let id = own("trace_id");
    // Ids are made of digits and letters; whatever a store says, it stays a text.
    let only = format!("trace_id = '{}'", id.replace('\'', "''"));
    let hits = fleet.select(
        "hits",
        &format!(
            "SELECT h.severity, h.finding_id, h.culprit, h.headline, h.cost_ns, h.share, h.confidence, h.file_version, h.vendor \
             FROM finding_hit AS h WHERE {only} ORDER BY CASE h.severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 WHEN 'notice' THEN 2 \
             ELSE 3 END, h.cost_ns DESC, h.finding_id, h.number"
        ),
    )?;
    let bill = fleet.select(
        "bill",
        &format!(
            "SELECT kind, culprit, vendor, total_cpu_ns, share_percent, energy_wh, confidence FROM bill WHERE {only} AND part = 'culprit' \
             AND NOT is_idle AND NOT is_unattributed ORDER BY kind, total_cpu_ns DESC, culprit"
        ),
    )?;
    let mut doc = Doc::titled("Trace");
    doc.facts(
        "Trace",
        vec![
            Line::from("id ").and(Line::name(id)),
            Line::from("file ").and(Line::name(own("path"))),
            Line::from("machine ")
                .and(super::answer::machine(table.text(row, "computer"), own("machine_id"))),
            format!("{}, {}", own("os"), table.text(row, "model").unwrap_or("model not recorded")).into(),
            format!(
                "{} UTC, {}",
                own("captured_utc"),
                duration_ns(table.i64(row, "duration_ns").unwrap_or(0))
            )
            .into(),
        ],
    );
    doc.text(own("sentence"));
    doc.heading("Findings");
    let mut shown = Table::new([Column::word(""), Column::text("what"), Column::name("finding")]);
    for hit in rows(&hits) {
        let of = |column: &str| hits.text(hit, column).unwrap_or_default();
        shown.row([Line::mark(of("severity")), of("headline").into(), Line::name(of("finding_id"))]);
    }
    if shown.rows.is_empty() {
        doc.text("None.");
    }
    doc.table(asked.cut(shown));
    doc.heading("Bill");
    let mut costs = Table::new([
        Column::word("kind"),
        Column::name("who"),
        Column::number("CPU time"),
        Column::number("share"),
        Column::name("vendor"),
    ]);
    for at in rows(&bill) {
        costs.row([
            bill.text(at, "kind").unwrap_or_default().into(),
            Line::name(bill.text(at, "culprit").unwrap_or_default()),
            duration_ns(bill.i64(at, "total_cpu_ns").unwrap_or(0)).into(),
            percent(bill.f64(at, "share_percent")),
            bill.text(at, "vendor").unwrap_or_default().into(),
        ]);
    }
    if costs.rows.is_empty() {
        doc.text("Cannot tell who used the CPU.");
    }
    doc.table(asked.cut(costs));
    let file = etwhy_rules::text::path_to_type(own("path"));
    doc.text(Line::from("All of it: ").and(Line::name(format!("etwhy why {file}"))));
    let facts = table_json(table).into_iter().nth(row as usize);
    let row = json!({ "trace": facts, "findings": table_json(&hits), "bill": table_json(&bill) });
    Ok(Said { doc, rows: vec![row] })
}
