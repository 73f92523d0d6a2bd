//! Answers: JSON, or a table as an Arrow stream with facts about it.

use crate::fault::Fault;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use etwhy_table::{Selection, Table};
use serde::Serialize;
use std::sync::Arc;

/// An answer.
pub enum Reply {
    /// JSON.
    Json(Vec<u8>),
    /// An Arrow stream; the schema's metadata `etwhy.answer` is JSON with facts about the whole.
    Arrow(Vec<u8>),
    /// A file to save.
    File {
        /// Its name.
        name: String,
        /// Its media type.
        media: &'static str,
        /// What it holds.
        bytes: Vec<u8>,
    },
}

/// Key of the facts about the whole answer in the schema's metadata.
pub const FACTS: &str = "etwhy.answer";

impl Reply {
    /// JSON of a value.
    ///
    /// # Errors
    /// If it has no JSON.
    pub fn json(value: &impl Serialize) -> Result<Reply, Fault> {
        serde_json::to_vec(value).map(Reply::Json).map_err(Fault::wrong)
    }

    /// All rows of a table, which are few.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn table(table: &Table, facts: &impl Serialize) -> Result<Reply, Fault> {
        Reply::selection(&Selection::all(table), facts)
    }

    /// The rows of a selection.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn selection(selection: &Selection<'_>, facts: &impl Serialize) -> Result<Reply, Fault> {
        // All texts of a trace stand in one dictionary: only those of these rows are to travel.
        let small = selection.to_table().map_err(Fault::wrong)?;
        Reply::batches(small.schema(), small.batches(), facts)
    }

    /// Batches of one schema.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn batches(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        facts: &impl Serialize,
    ) -> Result<Reply, Fault> {
        let mut metadata = schema.metadata().clone();
        metadata.insert(FACTS.to_owned(), serde_json::to_string(facts).map_err(Fault::wrong)?);
        let schema = Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata));
        let mut out = Vec::new();
        let mut writer = StreamWriter::try_new(&mut out, &schema).map_err(Fault::wrong)?;
        for batch in batches {
            let batch =
                RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).map_err(Fault::wrong)?;
            writer.write(&batch).map_err(Fault::wrong)?;
        }
        writer.finish().map_err(Fault::wrong)?;
        drop(writer);
        Ok(Reply::Arrow(out))
    }

    /// As a response.
    pub fn response(self) -> Response {
        match self {
            Reply::Json(bytes) => response(StatusCode::OK, "application/json", bytes),
            Reply::Arrow(bytes) => response(StatusCode::OK, "application/vnd.apache.arrow.stream", bytes),
            Reply::File { name, media, bytes } => {
                let mut response = response(StatusCode::OK, media, bytes);
                // Names come from traces: nothing but plain letters goes into a header.
                let plain: String = name
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
                    .take(120)
                    .collect();
                if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{plain}\"")) {
                    response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
                }
                response
            }
        }
    }
}

/// A response with what all of them carry.
pub fn response(status: StatusCode, media: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    crate::guard::harden(headers);
    response
}

/// An error as a response.
pub fn fault(fault: &Fault) -> Response {
    let status = match fault {
        Fault::Wrong(_) => StatusCode::BAD_REQUEST,
        Fault::Missing(_) => StatusCode::NOT_FOUND,
        Fault::Passed => StatusCode::GONE,
        Fault::Forbidden(_) => StatusCode::FORBIDDEN,
        Fault::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Fault::NotNow(_) => StatusCode::CONFLICT,
        Fault::Cancelled => StatusCode::REQUEST_TIMEOUT,
    };
    let body = serde_json::json!({ "error": fault.to_string() });
    response(status, "application/json", body.to_string().into_bytes())
}
