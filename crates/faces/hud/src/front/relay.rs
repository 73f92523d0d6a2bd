//! Questions about a trace go to its process, and its answers come back: as they come, and no longer than somebody waits for them.

use super::Front;
use super::slot::{Address, Slot, Stage};
use crate::call::Fault;
use crate::reply::{fault, response};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Asks the process of the trace that a body names.
pub(super) async fn ask(front: Arc<Front>, name: &str, mut body: serde_json::Value) -> Response {
    let found = match involved(&front, name, &body) {
        Ok(involved) => involved,
        Err(error) => return fault(&error),
    };
    let slot = match found {
        Involved::One(slot) => {
            renumber(&mut body, "/trace", 0);
            renumber(&mut body, "/other/trace", 0);
            slot
        }
        Involved::Two(one, other) => {
            let pair = match front.pair(one, other) {
                Ok(pair) => pair,
                Err(error) => return fault(&error),
            };
            if !settled(&front, &pair).await {
                return fault(&Fault::Cancelled);
            }
            renumber(&mut body, "/trace", 0);
            renumber(&mut body, "/other/trace", 1);
            if body.get("other").is_some_and(serde_json::Value::is_u64) {
                renumber(&mut body, "/other", 1);
            }
            pair
        }
    };
    let address = match slot.address(name) {
        Ok(address) => address,
        Err(error) => return fault(&error),
    };
    match send(&address, name, &body).await {
        Ok(response) => response,
        // Its end is told by another thread, which is on its way.
        Err(error) => {
            let text = format!("{}: its process does not answer: {error}", slot.name);
            response(
                StatusCode::BAD_GATEWAY,
                "application/json",
                serde_json::json!({ "error": text }).to_string().into_bytes(),
            )
        }
    }
}

/// Whom a question is about.
enum Involved {
    One(Arc<Slot>),
    Two(usize, usize),
}

fn involved(front: &Front, name: &str, body: &serde_json::Value) -> Result<Involved, Fault> {
    let number = |value: Option<&serde_json::Value>| {
        let number = value.and_then(serde_json::Value::as_u64).unwrap_or(0);
        usize::try_from(number).unwrap_or(usize::MAX)
    };
    let one = number(body.get("trace"));
    let other = match name {
        "diff" => Some(number(body.get("other"))),
        "tree" => body.get("other").and_then(|other| other.get("trace")).map(|other| number(Some(other))),
        _ => None,
    };
    let slots = front.slots();
    let find = |number: usize| {
        slots.get(number).cloned().ok_or_else(|| Fault::Missing(format!("there is no trace {number}")))
    };
    // What is known of a name does not depend on the trace.
    if name == "knowledge"
        && let Some(ready) = slots.iter().find(|slot| slot.state().stage == Stage::Ready)
    {
        return Ok(Involved::One(Arc::clone(ready)));
    }
    let first = find(one)?;
    match other {
        Some(other) if other != one => {
            let second = find(other)?;
            for slot in [&first, &second] {
                slot.address(name)?;
            }
            Ok(Involved::Two(one, other))
        }
        _ => Ok(Involved::One(first)),
    }
}

/// Puts the number that a trace has in its process in the place of the one that it has here.
fn renumber(body: &mut serde_json::Value, at: &str, number: u64) {
    if let Some(value) = body.pointer_mut(at).filter(|value| value.is_u64()) {
        *value = number.into();
    }
}

/// Waits until a trace is read; false if that takes too long.
async fn settled(front: &Front, slot: &Slot) -> bool {
    /// A comparison reads both traces again.
    const LONGEST: Duration = Duration::from_secs(3600);
    let mut changed = front.changed.subscribe();
    let wait = async {
        while slot.state().stage.is_under_way() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(LONGEST, wait).await.is_ok()
}

/// Ends a connection when nobody waits for its answer.
struct Held(JoinHandle<hyper::Result<()>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer, with the connection that it comes over.
struct Answer {
    body: Incoming,
    _held: Held,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

async fn send(
    address: &Address,
    name: &str,
    body: &serde_json::Value,
) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(("127.0.0.1", address.port)).await?;
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake::<_, Body>(TokioIo::new(stream)).await?;
    let held = Held(tokio::spawn(connection));
    let request = Request::post(format!("/{}/api/v1/{name}", address.token))
        .header(header::HOST, format!("127.0.0.1:{}", address.port))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))?;
    let answer = sender.send_request(request).await?;
    let (parts, body) = answer.into_parts();
    let (media, saved) = (media(&parts.headers), parts.headers.get(header::CONTENT_DISPOSITION).cloned());
    // A trace that took over its process must not speak to the browser: only what the page expects goes through.
    let mut out = response(parts.status, media, Vec::new());
    match saved {
        Some(saved) if saved.as_bytes().starts_with(b"attachment;") => {
            out.headers_mut().insert(header::CONTENT_DISPOSITION, saved);
        }
        _ => {}
    }
    if let Some(length) = parts.headers.get(header::CONTENT_LENGTH) {
        out.headers_mut().insert(header::CONTENT_LENGTH, length.clone());
    }
    *out.body_mut() = Body::new(Answer { body, _held: held });
    Ok(out)
}

/// The media type of an answer; those that a browser would show are given only to files that are saved.
fn media(headers: &HeaderMap) -> &'static str {
    const PLAIN: [&str; 2] = ["application/json", "application/vnd.apache.arrow.stream"];
    const SAVED: [&str; 5] = [
        "text/html; charset=utf-8",
        "text/csv; charset=utf-8",
        "text/plain; charset=utf-8",
        "application/x-ndjson",
        "application/vnd.apache.parquet",
    ];
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let saved = headers
        .get(header::CONTENT_DISPOSITION)
        .is_some_and(|value| value.as_bytes().starts_with(b"attachment;"));
    let known = PLAIN.iter().chain(SAVED.iter().filter(|_| saved)).find(|known| **known == said);
    known.copied().unwrap_or("application/octet-stream")
}
