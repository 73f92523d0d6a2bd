//! Which traces there are and how far they are: asked, or told as it changes.

use super::Front;
use super::said::Facts;
use super::slot::{Slot, Stage};
use crate::reply::{fault, response};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Frame;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use ts_rs::TS;

/// What the page knows of the server.
#[derive(Serialize, TS)]
pub(crate) struct Session {
    /// Name and version.
    program: String,
    /// Nothing can be opened from the page.
    readonly: bool,
    /// Folders whose traces may be opened.
    folders: Vec<String>,
    /// Bytes that a file may have that is sent to the server; 0: none may be sent.
    upload_bytes: u64,
    traces: Vec<TraceInfo>,
}

/// A trace and its progress.
#[derive(Serialize, TS)]
pub(crate) struct TraceInfo {
    /// Its number on this server.
    trace: usize,
    name: String,
    stage: Stage,
    /// What its process does, in a word.
    doing: String,
    /// Bytes that are done.
    done: u64,
    /// Bytes in all; 0: not known.
    total: u64,
    /// Why it could not be read, or has to be read again.
    error: Option<String>,
    /// The file or folder, if it may be opened again.
    path: Option<String>,
    #[serde(flatten)]
    facts: Facts,
}

/// What is known of a trace.
pub(super) fn describe(trace: usize, slot: &Slot) -> TraceInfo {
    let state = slot.state();
    TraceInfo {
        trace,
        name: slot.name.clone(),
        stage: state.stage,
        doing: state.doing.clone(),
        done: state.done,
        total: state.total,
        error: state.error.clone(),
        path: slot.path().map(|path| path.display().to_string()),
        facts: state.facts.clone(),
    }
}

pub(super) fn session(front: &Front) -> Session {
    Session {
        program: front.launcher.program(),
        readonly: front.readonly,
        folders: if front.readonly { Vec::new() } else { front.folders.shown() },
        upload_bytes: if front.readonly { 0 } else { front.upload_bytes },
        traces: front.slots().iter().enumerate().map(|(number, slot)| describe(number, slot)).collect(),
    }
}

/// Time between two messages at least.
const PACE: Duration = Duration::from_millis(100);
/// Time after which a message says that the connection lives; one that is gone is noticed by it.
const ALIVE: Duration = Duration::from_secs(15);

/// The session as server-sent events, each time it changes.
pub(super) fn events(front: &Arc<Front>) -> Response {
    let Ok(place) = front.streams.clone().try_acquire_owned() else {
        let mut refused =
            fault(&crate::fault::Fault::NotNow("too many pages listen; ask `session`".to_owned()));
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return refused;
    };
    let (send, told) = mpsc::channel::<Bytes>(2);
    let front = Arc::clone(front);
    tokio::spawn(async move {
        let _place = place;
        let mut changed = front.changed.subscribe();
        loop {
            let text = serde_json::to_string(&session(&front)).unwrap_or_default();
            if send.send(Bytes::from(format!("data: {text}\n\n"))).await.is_err() {
                return;
            }
            tokio::time::sleep(PACE).await;
            while let Err(_quiet) = tokio::time::timeout(ALIVE, changed.changed()).await {
                if send.send(Bytes::from_static(b": alive\n\n")).await.is_err() {
                    return;
                }
            }
        }
    });
    let mut out = response(StatusCode::OK, "text/event-stream", Vec::new());
    *out.body_mut() = Body::new(Told(told));
    out
}

/// Messages as they come.
struct Told(mpsc::Receiver<Bytes>);

impl HttpBody for Told {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
