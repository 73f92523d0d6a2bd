//! `etwhy modules`: what is loaded, who makes it, what it is for, what it costs.

use super::dump::ledger_hints;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::options::rows::{RowArgs, write_selection};
use crate::report::terminal::{out, text};
use crate::who::chosen;
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::derived::module::{ModuleRow, loaded_by};
use etwhy_analysis::fold::module_cost::ModuleCostRow;
use etwhy_base::units::duration_ns;
use etwhy_doc::Doc;
use etwhy_table::{RowOf, Selection, SortKey, Value, reads};
use etwhy_trace::catalog::{
    event_type::EventTypeRow, image::ImageRow, ledger::LedgerRow, process::ProcessRow,
};
use std::collections::BTreeMap;
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "modules",
    about: "Programs, libraries and drivers: version, vendor, product, category, altitude, CPU time",
    long_about: "Lists the image files of a trace with what is known of them: who makes them, what they are for, where file system \
                 filters stand, what processor time they take. Security products are named first.\n\n\
                 What is known comes from the knowledge base that ships, from the version resources in the trace, and from \
                 --knowledge. \"probably\" is said of what rests on general knowledge or on the company's name alone.",
    examples: "Examples:\n  etwhy modules trace.etl\n  etwhy modules trace.etl --security\n  \
               etwhy modules trace.etl --kernel --knowledge my-drivers.csv\n  etwhy modules trace.etl --process outlook --json\n  \
               etwhy modules trace.etl --format csv -o modules.csv",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Only those of security products
    #[arg(long)]
    security: bool,
    /// Only the kernel and its drivers
    #[arg(long)]
    kernel: bool,
    /// Only what these processes load, by name or id: 'chrome;!4711'
    #[arg(long, value_name = "FILTER")]
    process: Option<String>,
    /// At most N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    #[command(flatten)]
    rows: RowArgs,
}

/// What people see, where any row has it; files get all columns.
const SHOWN: &[&str] = &[
    "name",
    "file_version",
    "vendor",
    "product",
    "category",
    "confidence",
    "altitudes",
    "cpu_exclusive_ns",
    "cpu_inclusive_ns",
];

fn run(args: Args) -> anyhow::Result<Exit> {
    let written = args.rows.written()?;
    let tables = reads::<(ModuleRow, ModuleCostRow, ImageRow, ProcessRow, EventTypeRow, LedgerRow)>();
    let tables = tables.iter().map(|table| table.name.to_string()).collect();
    let analysed = args.trace.open()?.analyse(Some(tables))?;
    let db = &analysed.db;
    let table = db.table::<ModuleRow>()?;
    let modules = table.read::<ModuleRow>()?;
    let processes = |filter| chosen("process", &etwhy_analysis::operators::process_names(db), filter);
    let wanted = args.process.as_deref().map(processes).transpose()?;
    let wanted = wanted.map(|processes| loaded_by(db, &processes));
    let mut selection = Selection::all(table).filter_rows(|row| {
        let loaded = wanted.as_ref().is_none_or(|w| w.get(row as usize) == Some(&true));
        let is = |module: RowOf<'_, '_, ModuleRow>| {
            (!args.kernel || module.kind() == "kernel") && (!args.security || module.security())
        };
        loaded && modules.get(row).is_some_and(is)
    });
    let matching = selection.len();
    let mut keys = vec!["-security"];
    if selection.row_ids().filter_map(|row| modules.get(row)).any(|row| row.cpu_inclusive_ns().is_some()) {
        keys.push("-cpu_inclusive_ns");
    }
    keys.push("name");
    let keys = keys.iter().map(|k| SortKey::parse(k, table.spec())).collect::<Result<Vec<_>, _>>()?;
    selection = selection.sort(&keys, args.top);
    let mut out = out();
    if written.format.name == "table" {
        if written.path.is_none() {
            let shown = selection.row_ids().filter_map(|row| modules.get(row));
            security(&mut out, shown.filter(|module| module.security()))?;
        }
        let filled = |column: &&str| selection.row_ids().any(|row| table.value(row, column) != Value::Null);
        let shown: Vec<&str> = SHOWN.iter().copied().filter(filled).collect();
        if !shown.is_empty() {
            selection = selection.columns(&shown.join(","))?;
        }
    }
    write_selection(&selection, &written, matching, &mut out)?;
    out.flush()?;
    for line in ledger_hints(&analysed) {
        say!("etwhy: {line}");
    }
    Ok(analysed.exit)
}

/// One line for each security product: who, what, how many files, their time.
fn security<'r, 't: 'r>(
    out: &mut impl Write,
    modules: impl Iterator<Item = RowOf<'r, 't, ModuleRow>>,
) -> anyhow::Result<()> {
    let mut products: BTreeMap<String, (Vec<&str>, Option<i64>)> = BTreeMap::new();
    for module in modules {
        let guess = if module.confidence() == Some("low") { "probably " } else { "" };
        let (vendor, product) = (module.vendor().unwrap_or(""), module.product().unwrap_or(""));
        let name =
            if product.starts_with(vendor) { product.to_owned() } else { format!("{vendor} {product}") };
        let title = format!("{} ({guess}{})", name.trim(), module.category().unwrap_or(""));
        let (files, time) = products.entry(title).or_default();
        files.push(module.name());
        if let Some(ns) = module.cpu_exclusive_ns() {
            *time = Some(time.unwrap_or(0).saturating_add(ns));
        }
    }
    if products.is_empty() {
        return Ok(());
    }
    let mut doc = Doc::default();
    doc.heading("Security products");
    for (title, (files, time)) in products {
        let time = time.map_or(String::new(), |ns| format!("  {} in its own code", duration_ns(ns)));
        let some: Vec<&str> = files.iter().take(6).copied().collect();
        let more = if files.len() > 6 { format!(", … {} more", files.len() - 6) } else { String::new() };
        doc.bullet(format!("{title}: {}{more}{time}", some.join(", ")));
    }
    Ok(writeln!(out, "{}", text(&doc))?)
}
