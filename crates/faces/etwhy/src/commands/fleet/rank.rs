//! `etwhy fleet rank`.

use super::answer::{Asked, Said, count, of, percent, rows};
use crate::exit::Exit;
use crate::report::table_json::table_json;
use etwhy_base::units::{counted, digits, duration_ns};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_table::Table as Rows;
use serde_json::Value;

#[derive(clap::Args)]
pub struct Args {
    /// drivers, processes, products, categories or findings
    #[arg(value_name = "WHAT")]
    what: What,
    #[command(flatten)]
    asked: Asked,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Drivers,
    Processes,
    Products,
    Categories,
    Findings,
}

impl What {
    /// The word for many.
    const fn several(self) -> &'static str {
        match self {
            What::Drivers => "drivers",
            What::Processes => "processes",
            What::Products => "products",
            What::Categories => "categories",
            What::Findings => "findings",
        }
    }

    /// `kind` of the bill.
    pub const fn kind(self) -> &'static str {
        match self {
            What::Drivers => "driver",
            What::Processes => "process",
            What::Products => "product",
            What::Categories => "category",
            What::Findings => "finding",
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleet = args.asked.fleet()?;
    let said = match args.what {
        What::Findings => findings(&args.asked, &fleet.ask("rank_findings")?),
        what => costs(&args.asked, what, &fleet.ask("rank")?),
    };
    args.asked.write(&fleet, "rank", said)?;
    Ok(Exit::Done)
}

fn costs(asked: &Asked, what: What, table: &Rows) -> Said {
    let kind = what.kind();
    let mut doc = Doc::titled(format!("Which {} cost most", what.several()));
    let of_kind: Vec<u32> = rows(table).filter(|&row| table.text(row, "kind") == Some(kind)).collect();
    let Some(&first) = of_kind.first() else {
        doc.text(match what {
            What::Drivers => "Cannot tell: no trace of this store has CPU samples with stacks (`etwhy record --print cpu`).",
            _ => "Cannot tell: no trace of this store says who used the CPU (`etwhy record --print cpu`).",
        });
        return Said { doc, rows: Vec::new() };
    };
    let able = table.i64(first, "machines_able");
    let mut shown = Table::new([
        Column::name(kind),
        Column::number("share"),
        Column::number("machines"),
        Column::number("typical").below("of a machine that has it"),
        Column::number("worst of 20").below("of a machine that has it"),
        Column::number("Wh a day").below("of a machine that has it"),
        Column::number("CPU time"),
        Column::name("vendor"),
        Column::word("category"),
    ]);
    for &row in &of_kind {
        let own = |column: &str| Line::from(table.text(row, column).unwrap_or_default());
        shown.row([
            Line::name(table.text(row, "culprit").unwrap_or_default()),
            percent(table.f64(row, "share_percent")),
            count(table.i64(row, "machines")),
            percent(table.f64(row, "p50_percent")),
            percent(table.f64(row, "p95_percent")),
            table.f64(row, "wh_per_day").map(digits).unwrap_or_default().into(),
            duration_ns(table.i64(row, "cpu_ns").unwrap_or(0)).into(),
            own("vendor"),
            own("category"),
        ]);
    }
    doc.heading(format!(
        "Which {} cost most, on {} that could tell",
        what.several(),
        counted(able.unwrap_or(0), "machine", "machines")
    ));
    doc.table(asked.cut(shown));
    doc.text(
        "Shares are of the observed time of the processors of all machines that could tell. Idle time and what is nobody's are left out.",
    );
    let rows =
        table_json(table).into_iter().filter(|row| row.get("kind").and_then(Value::as_str) == Some(kind));
    Said { doc, rows: rows.collect() }
}

fn findings(asked: &Asked, table: &Rows) -> Said {
    let mut doc = Doc::titled("What is found most");
    doc.heading("What is found most");
    let mut shown = Table::new([
        Column::name("finding"),
        Column::number("machines"),
        Column::number("traces"),
        Column::number("found"),
        Column::number("critical"),
        Column::name("most often"),
        Column::number("there"),
    ]);
    for row in rows(table).filter(|&row| table.i64(row, "found").unwrap_or(0) > 0) {
        shown.row([
            Line::name(table.text(row, "finding_id").unwrap_or_default()),
            of(table.i64(row, "machines_found"), table.i64(row, "machines_able")),
            of(table.i64(row, "found"), table.i64(row, "could_tell")),
            percent(table.f64(row, "found_percent")),
            count(table.i64(row, "critical")),
            Line::name(table.text(row, "culprit").unwrap_or_default()),
            count(table.i64(row, "culprit_machines")),
        ]);
    }
    if shown.rows.is_empty() {
        doc.text("Nothing was found in any trace that could tell.");
    }
    doc.table(asked.cut(shown));
    doc.text("Rates are of traces that could tell; `etwhy fleet coverage` says which could not, and why.");
    Said { doc, rows: table_json(table) }
}
