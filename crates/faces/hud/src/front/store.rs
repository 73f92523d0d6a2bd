//! The page of a store: many traces that were read before. The program around the server answers its questions; from here a trace of it is
//! opened as any other.

use super::slot::{Slot, Source, Stage};
use super::{Front, opening};
use crate::assets;
use crate::fault::Fault;
use crate::reply::{Reply, fault, response};
use crate::server::{body_of, to_address};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A store of many traces, as the program around the server knows it.
pub trait Many: Send + Sync {
    /// Answers a question of the page.
    ///
    /// # Errors
    /// If there is no such question, what it names is not in the store, or a file of the store is damaged.
    fn ask(&self, question: &str, body: Value) -> Result<Value, Fault>;

    /// Where the file of a trace is.
    ///
    /// # Errors
    /// If it is not there as it was when it was read, in words.
    fn file(&self, trace_id: &str) -> Result<PathBuf, Fault>;
}

/// The page; nothing where there is no store.
pub(super) async fn page(State(front): State<Arc<Front>>) -> Response {
    if front.launcher.store().is_none() {
        return crate::server::nothing().await;
    }
    response(StatusCode::OK, "text/html; charset=utf-8", assets::store_page().into_bytes())
}

/// The page of traces, or of the store while none of its traces is open.
pub(super) async fn first(State(front): State<Arc<Front>>) -> Response {
    if front.launcher.store().is_some() && front.slots().is_empty() {
        return to_address(&format!("/{}/store/", front.doors.token));
    }
    crate::server::page().await
}

pub(super) async fn ask(
    State(front): State<Arc<Front>>,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    let body = match body_of(request, &front.doors.patience).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    // Questions wait in line: each of them is answered by all processors.
    let Ok(_turn) = front.questions.acquire().await else { return fault(&Fault::Cancelled) };
    let asked = Arc::clone(&front);
    let answer = tokio::task::spawn_blocking(move || {
        let store =
            asked.launcher.store().ok_or_else(|| Fault::Missing("there is no store here".to_owned()))?;
        match name.as_str() {
            "open" => open(&asked, store, body),
            name => Reply::json(&store.ask(name, body)?),
        }
    });
    match answer.await {
        Ok(Ok(reply)) => reply.response(),
        Ok(Err(why)) => fault(&why),
        Err(_) => {
            fault(&Fault::Wrong("the work ended in a fault of etwhy's own; please report it".to_owned()))
        }
    }
}

#[derive(Deserialize)]
struct Open {
    trace_id: String,
}

/// Opens a trace of the store; its number. One that is open is not opened again.
fn open(front: &Arc<Front>, store: &dyn Many, body: Value) -> Result<Reply, Fault> {
    let Open { trace_id } = serde_json::from_value(body).map_err(Fault::wrong)?;
    opening::may_open(front)?;
    let path = store.file(&trace_id)?;
    let source = Source { path: Some(path.clone()), number: None };
    let is_open = |slot: &Arc<Slot>| slot.sources == [source.clone()] && slot.state().stage != Stage::Closed;
    if let Some(number) = front.slots().iter().position(is_open) {
        return Reply::json(&serde_json::json!({ "trace": number }));
    }
    let name = path.file_name().map_or(trace_id, |name| name.to_string_lossy().into_owned());
    Reply::json(&serde_json::json!({ "trace": front.add(name, vec![source], None)? }))
}
