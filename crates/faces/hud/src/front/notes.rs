//! Notes on a trace, kept in a file beside it: `x.etl.notes.json`. And any other object that the page keeps in a file (`views.rs`).
//!
//! What they mean is the page's business; here they are a JSON object of limited size. Who saves says which version he read, so that two
//! pages do not write over each other.

use super::Front;
use super::slot::{Slot, Source};
use crate::fault::Fault;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use ts_rs::TS;

/// Bytes of the file.
const MOST: u64 = 1 << 20;

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    trace: usize,
    /// What is to be kept; none: they are read.
    notes: Option<serde_json::Map<String, Value>>,
    /// The version that they were made from.
    version: Option<String>,
}

/// Notes of a trace, or what else the page keeps in a file.
#[derive(Serialize, TS)]
#[ts(rename = "NotesFile")]
pub(crate) struct Notes {
    /// The file; none: the trace has none beside it, and notes can only be downloaded.
    file: Option<String>,
    /// Why they cannot be kept there.
    why: Option<String>,
    /// An object; none: there are none yet.
    #[ts(type = "Record<string, unknown> | null")]
    notes: Option<Value>,
    /// To be sent with what is to be kept.
    version: String,
}

pub(super) fn notes(front: &Front, body: Value) -> Result<Reply, Fault> {
    let Body { trace, notes, version } = serde_json::from_value(body).map_err(Fault::wrong)?;
    let slot = front.slots().get(trace).cloned();
    let slot = slot.ok_or_else(|| Fault::Missing(format!("there is no trace {trace}")))?;
    let file = match file_of(&slot) {
        Some(file) => file,
        None => {
            let why = "this trace is no single file of this machine".to_owned();
            if notes.is_some() {
                return Err(Fault::Forbidden(why));
            }
            return Reply::json(&Notes::nowhere(why));
        }
    };
    Reply::json(&kept(&file, front.readonly, notes, version)?)
}

impl Notes {
    /// There is no file, and why.
    pub(super) fn nowhere(why: String) -> Notes {
        Notes { file: None, why: Some(why), notes: None, version: String::new() }
    }
}

/// What a file holds, after what is given was kept there, if it was made of the `version` that is there.
pub(super) fn kept(
    file: &Path,
    readonly: bool,
    given: Option<serde_json::Map<String, Value>>,
    version: Option<String>,
) -> Result<Notes, Fault> {
    let there = read(file)?;
    if let Some(given) = given {
        if readonly {
            return Err(Fault::Forbidden("this server was started with --readonly".to_owned()));
        }
        if version.is_some_and(|version| version != version_of(there.as_deref())) {
            return Err(Fault::NotNow(format!("somebody else changed {} meanwhile", file.display())));
        }
        let text = serde_json::to_vec_pretty(&given).map_err(Fault::wrong)?;
        if text.len() as u64 > MOST {
            return Err(Fault::TooLarge(format!("{} has 1 MB at most", file.display())));
        }
        let cannot = |error| Fault::Forbidden(format!("{}: {error}", file.display()));
        // Under its name there is always a whole file.
        etwhy_export::replace_file(file, |out| Ok(out.write_all(&text)?)).map_err(cannot)?;
    }
    let text = read(file)?;
    let version = version_of(text.as_deref());
    let notes = text.map(|text| serde_json::from_slice::<Value>(&text)).transpose();
    let notes = notes.map_err(|error| Fault::Wrong(format!("{}: {error}", file.display())))?;
    let why = readonly.then(|| "this server was started with --readonly".to_owned());
    Ok(Notes { file: Some(file.display().to_string()), why, notes, version })
}

/// The file beside a trace that is a file.
fn file_of(slot: &Slot) -> Option<PathBuf> {
    let [Source { path: Some(path), number: None }] = slot.sources.as_slice() else { return None };
    if slot.is_sent() || !path.is_file() {
        return None;
    }
    let mut name = path.file_name()?.to_owned();
    name.push(".notes.json");
    Some(path.with_file_name(name))
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, Fault> {
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(facts) if facts.is_file() && facts.len() <= MOST => {}
        _ => return Err(Fault::Forbidden(format!("{}: no regular file up to 1 MB", file.display()))),
    }
    let mut text = Vec::new();
    let opened = std::fs::File::open(file).map_err(Fault::wrong)?;
    opened.take(MOST).read_to_end(&mut text).map_err(Fault::wrong)?;
    Ok(Some(text))
}

fn version_of(text: Option<&[u8]>) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.map_or_else(String::new, |text| format!("{:016x}", text.iter().fold(0xcbf2_9ce4_8422_2325, step)))
}
