//! All rows of a query as a file.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_export::{Format, Options};
use etwhy_sql::Limits;
use etwhy_table::Selection;
use serde::Deserialize;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "sql_file",
    about: "body: sql, format (csv, json, jsonl, parquet). All rows as a file",
    work: Work::Query,
    answer,
};

#[derive(Deserialize)]
struct Body {
    sql: String,
    format: String,
}

/// Rows of a file that the page asks for; beyond that `etwhy sql --output` writes without a browser between.
const MOST: usize = 10_000_000;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let format = Format::by_name(&body.format).map_err(Fault::wrong)?;
    let (table, more) = trace.sql(&body.sql, MOST, &Limits::FILE, &call.cancel)?;
    if more {
        return Err(Fault::wrong(
            "more than 10,000,000 rows: `etwhy sql TRACE QUERY --output FILE` writes them",
        ));
    }
    file("query", format, &Selection::all(&table))
}

/// A selection as a file of a format.
///
/// # Errors
/// Those of the format.
pub fn file(name: &str, format: &'static Format, selection: &Selection<'_>) -> Result<Reply, Fault> {
    let mut bytes = Vec::new();
    (format.write)(selection, &Options::default(), &mut bytes).map_err(Fault::wrong)?;
    let media = match format.name {
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "jsonl" => "application/x-ndjson",
        "parquet" => "application/vnd.apache.parquet",
        _ => "text/plain; charset=utf-8",
    };
    let ending = format.extensions.first().copied().unwrap_or(format.name);
    Ok(Reply::File { name: format!("{name}.{ending}"), media, bytes })
}
