//! What a table shows, as a file.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::pivot::Asked;
use crate::reply::Reply;
use etwhy_export::{Format, Options};
use etwhy_table::Selection;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "table_file",
    about: "body: as `pivot` (with rows: true as `rows`) and format: csv, json, jsonl or parquet; limit: rows of the file. A file",
    work: Work::Panel,
    answer,
};

/// Larger files are for `etwhy export`, which need not hold them in memory.
const MOST: usize = 2_000_000;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let cancel = call.cancel.clone();
    let give_up = || cancel.is_set();
    let name = call.body.get("format").and_then(serde_json::Value::as_str).unwrap_or("csv");
    let format = Format::by_name(name).map_err(Fault::wrong)?;
    let (media, ending) = match format.name {
        "csv" => ("text/csv; charset=utf-8", "csv"),
        "json" => ("application/json", "json"),
        "jsonl" => ("application/x-ndjson", "jsonl"),
        "parquet" => ("application/vnd.apache.parquet", "parquet"),
        other => return Err(Fault::wrong(format!("no file is made of `{other}`"))),
    };
    let mut asked = Asked::parse(call)?;
    let (table, sql) = if asked.wants_rows() {
        let (table, sql, _) = asked.rows(Some(MOST), &give_up)?;
        (table, sql)
    } else {
        let found = asked.pivot(Some(MOST), &give_up)?;
        (found.table, found.sql)
    };
    call.cancel.check()?;
    let options = Options { facts: vec![("etwhy.sql".to_owned(), sql)], ..Options::default() };
    let mut bytes = Vec::new();
    (format.write)(&Selection::all(&table), &options, &mut bytes).map_err(Fault::wrong)?;
    Ok(Reply::File { name: format!("{}.{}.{ending}", asked.trace.name, table.name()), media, bytes })
}
