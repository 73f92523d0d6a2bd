//! Traces that the page opens: of the folders that were named, and files that it sends.

use super::Front;
use super::slot::{Slot, Source};
use crate::fault::Fault;
use crate::reply::{Reply, fault};
use crate::server::close;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header;
use axum::response::Response;
use etwhy_scratch::Scratch;
use serde::Deserialize;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Traces that are open at a time: each may have a process.
const MOST: usize = 32;
/// Numbers that are given to traces, closed ones too: the page lists them all.
const MOST_EVER: usize = 1000;

#[derive(Deserialize)]
pub(super) struct Open {
    /// In one of the folders.
    path: Option<String>,
    /// Instead: one that is there, to be read again.
    trace: Option<usize>,
}

pub(super) fn open(front: &Arc<Front>, body: serde_json::Value) -> Result<Reply, Fault> {
    let Open { path, trace } = serde_json::from_value(body).map_err(Fault::wrong)?;
    if let Some(number) = trace {
        let slot = front.slots().get(number).cloned();
        let slot = slot.ok_or_else(|| Fault::Missing(format!("there is no trace {number}")))?;
        front.again(&slot)?;
        return Reply::json(&super::session::describe(number, &slot));
    }
    may_open(front)?;
    let path = path.unwrap_or_default();
    if path.trim().is_empty() {
        return Err(Fault::wrong("which trace?"));
    }
    let real = front.folders.find(Path::new(path.trim()))?;
    let name = real.file_name().map_or(path, |name| name.to_string_lossy().into_owned());
    let number = front.add(name, vec![Source { path: Some(real), number: None }], None)?;
    described(front, number)
}

fn described(front: &Front, number: usize) -> Result<Reply, Fault> {
    let slots = front.slots();
    let slot = slots.get(number).ok_or_else(|| Fault::wrong("the trace went away"))?;
    Reply::json(&super::session::describe(number, slot))
}

pub(super) fn close_trace(front: &Arc<Front>, body: serde_json::Value) -> Result<Reply, Fault> {
    let Open { trace, .. } = serde_json::from_value(body).map_err(Fault::wrong)?;
    may_open(front)?;
    let number = trace.ok_or_else(|| Fault::wrong("which trace?"))?;
    let slot = front.slots().get(number).cloned();
    drop(slot.ok_or_else(|| Fault::Missing(format!("there is no trace {number}")))?.close());
    front.tell();
    described(front, number)
}

pub(super) fn folder(front: &Front, body: serde_json::Value) -> Result<Reply, Fault> {
    let Open { path, .. } = serde_json::from_value(body).map_err(Fault::wrong)?;
    may_open(front)?;
    Reply::json(&front.folders.list(path.as_deref().map(Path::new))?)
}

pub(super) fn may_open(front: &Front) -> Result<(), Fault> {
    if front.readonly {
        return Err(Fault::Forbidden("this server was started with --readonly".to_owned()));
    }
    Ok(())
}

/// Takes a file that the page sends, and opens it.
pub(super) async fn upload(front: Arc<Front>, name: &str, request: Request) -> Response {
    match receive(&front, name, request).await {
        Ok(reply) => reply.response(),
        // What is still on its way is not read.
        Err(error) => close(fault(&error)),
    }
}

/// A file that is sent must go on coming.
const PAUSE: Duration = Duration::from_secs(30);
/// Bytes a second that it has at least, behind the first pause: who sends one now and then keeps others from sending theirs.
const SLOWEST: u64 = 32 << 10;

/// Time to wait for more of a file of which so many bytes came in so long. None if it comes too slowly.
fn patience(bytes: u64, since: Duration) -> Option<Duration> {
    let left = (PAUSE + Duration::from_secs(bytes / SLOWEST)).checked_sub(since)?;
    (!left.is_zero()).then(|| left.min(PAUSE))
}

async fn receive(front: &Arc<Front>, name: &str, request: Request) -> Result<Reply, Fault> {
    may_open(front)?;
    let most = front.upload_bytes;
    let too_large = || {
        Fault::TooLarge(format!(
            "{name}: this server takes files up to {} MB (--max-upload); those in its folders it reads where they are",
            most / 1_000_000
        ))
    };
    if most == 0 {
        return Err(Fault::Forbidden("this server takes no files (--max-upload 0)".to_owned()));
    }
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > most) {
        return Err(too_large());
    }
    let _place =
        front.uploads.try_acquire().map_err(|_| Fault::NotNow("other files are on their way".to_owned()))?;
    check_room(&front.slots())?;
    let cannot = |error: std::io::Error| Fault::Wrong(format!("{name}: cannot be kept: {error}"));
    let scratch = Scratch::new(front.temp_dir.as_deref()).map_err(cannot)?;
    let path = scratch.path().join(plain(name));
    let mut file = File::options().write(true).create_new(true).open(&path).map_err(cannot)?;
    let mut body = request.into_body();
    let mut bytes = 0u64;
    let begun = Instant::now();
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let Some(wait) = patience(bytes, begun.elapsed()) else {
            return Err(Fault::Wrong(format!("{name}: it comes too slowly")));
        };
        let frame = match tokio::time::timeout(wait, next).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) | Err(_) => {
                return Err(Fault::Wrong(format!("{name}: it was cut off on its way")));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        bytes = bytes.saturating_add(data.len() as u64);
        if bytes > most {
            return Err(too_large());
        }
        tokio::task::block_in_place(|| file.write_all(&data)).map_err(cannot)?;
    }
    drop(file);
    if bytes == 0 {
        return Err(Fault::Wrong(format!("{name}: an empty file")));
    }
    let number = front.add(
        name.to_owned(),
        vec![Source { path: Some(path), number: None }],
        Some(Arc::new(scratch)),
    )?;
    described(front, number)
}

/// Refuses another trace if there are too many.
pub(super) fn check_room(slots: &[Arc<Slot>]) -> Result<(), Fault> {
    if slots.len() >= MOST_EVER {
        let text = format!("{MOST_EVER} traces were opened, more than this server counts; start another one");
        return Err(Fault::NotNow(text));
    }
    check_open(slots)
}

/// The same for one that has a number.
pub(super) fn check_open(slots: &[Arc<Slot>]) -> Result<(), Fault> {
    if slots.iter().filter(|slot| !slot.is_closed()).count() >= MOST {
        let text = format!(
            "{MOST} traces are open, as many as this server holds; close one, or start another server"
        );
        return Err(Fault::NotNow(text));
    }
    Ok(())
}

/// A name without anything that a system takes for more than a name. The ending stays: it says what an archive is.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or("");
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let all: Vec<char> = last.chars().map(safe).collect();
    let tail: String = all.get(all.len().saturating_sub(100)..).unwrap_or_default().iter().collect();
    // No name of a device, none that is hidden.
    format!("sent-{tail}")
}

#[cfg(test)]
mod tests {
    use super::{PAUSE, SLOWEST, patience};
    use std::time::Duration;

    #[test]
    fn a_file_comes_in_time() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(0, Duration::ZERO), Some(PAUSE));
        assert_eq!(patience(1, seconds(29)), Some(seconds(1)), "a byte now and then is not enough");
        assert_eq!(patience(2, PAUSE), None);
        assert_eq!(patience(SLOWEST * 600, seconds(600)), Some(PAUSE));
        assert_eq!(patience(SLOWEST * 600, seconds(631)), None);
    }

    #[test]
    fn names_are_names() {
        let plain = |name: &str| super::plain(name);
        assert_eq!(plain("a b.etl"), "sent-a_b.etl");
        assert_eq!(plain("../../etc/passwd"), "sent-passwd");
        assert_eq!(plain("C:\\x\\CON.zip"), "sent-CON.zip");
        assert_eq!(plain(".."), "sent-..");
        assert_eq!(plain(&format!("{}.etl", "ä".repeat(300))).len(), 105);
    }
}
