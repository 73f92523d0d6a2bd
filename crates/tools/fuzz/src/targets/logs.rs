//! Targets that read event logs and the resources of message files.

use super::target::accepted;
use crate::scratch;
use crate::seeds::Seed;
use etwhy_evtx::binxml::{Decoder, Event, Fault, Name, Value};
use etwhy_evtx::columns::columns;
use etwhy_evtx::counts::count;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::json::Lines;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use etwhy_messages::{Messages, Options, pe};
use std::path::Path;

/// Reads everything of a record.
struct All<'m> {
    renderer: Renderer<'m>,
    text: String,
    json: Lines,
    bytes: Vec<u8>,
    records: u64,
    fields: usize,
}

impl Reader for All<'_> {
    type Output = (u64, usize);

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        self.records += 1;
        let event = event?;
        self.text.clear();
        let fields = &mut self.fields;
        let read = decoder.fields(&event, &mut |name: Name<'_>, value: Value<'_>| {
            *fields += 1;
            let mut text = String::new();
            name.push(&mut text);
            value.push_text(&mut text);
        });
        self.bytes.clear();
        let json = self.json.push(decoder, record, &event, None, &mut self.bytes);
        let xml = decoder.push_xml::<true>(&event, &mut self.bytes);
        assert!(std::str::from_utf8(&self.bytes).is_ok(), "JSON and XML are UTF-8");
        let message = self.renderer.message(decoder, &event, &mut self.text);
        read.and(json).and(xml).and(message.map(|_| ()))
    }

    fn finish(&mut self) -> (u64, usize) {
        (std::mem::take(&mut self.records), std::mem::take(&mut self.fields))
    }
}

/// An event log, in all three tiers, with one and two threads: the same.
pub fn log(data: &[u8]) {
    let Some(path) = scratch::file("mutant.evtx", data) else { return };
    let Ok(log) = LogFile::open(&path, &path) else { return };
    let messages = Messages::empty(&Options::default());
    let mut seen = Vec::new();
    for threads in [1, 2] {
        let options = ScanOptions { threads, in_order: true };
        let make = || All {
            renderer: Renderer::new(&messages),
            text: String::new(),
            json: Lines::default(),
            bytes: Vec::new(),
            records: 0,
            fields: 0,
        };
        let mut sum = (0, 0);
        let damage = scan(&log, &options, make, |(records, fields)| {
            sum = (sum.0 + records, sum.1 + fields);
            true
        });
        assert!(damage.is_ok(), "a file that is there can be read");
        seen.push(sum);
    }
    assert_eq!(seen.first(), seen.last());
    if seen.iter().any(|(records, fields)| *records > 0 && *fields > 0) {
        accepted();
    }
    let counted = count(&log, 1).map(|c| c.all.records).unwrap_or(0);
    assert_eq!(seen.first().map(|s| s.0), Some(counted), "counts and records agree");
    let options = ScanOptions { threads: 1, in_order: false };
    let rows = std::sync::atomic::AtomicU64::new(0);
    let take = |batch: &etwhy_evtx::columns::Batch, _: &etwhy_evtx::Codes| {
        assert!(
            batch.columns.iter().all(|c| c.nulls.len() == batch.rows() && c.numbers.len() == batch.rows())
        );
        rows.fetch_add(batch.rows() as u64, std::sync::atomic::Ordering::Relaxed);
    };
    let damage = columns(&log, &options, &|_, _| true, &Filter::default(), &take);
    assert!(damage.is_ok() && rows.into_inner() <= counted);
}

/// The first two chunks of every tenth log of the corpus.
pub fn log_seeds(corpus: &Path, limit: usize) -> Vec<Seed> {
    let mut files: Vec<_> = std::fs::read_dir(corpus.join("evtx"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|folder| std::fs::read_dir(folder.path()).ok())
        .flatten()
        .flatten()
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|e| e == "evtx"))
        .collect();
    files.sort();
    let head = |path: &Path| {
        let mut data = std::fs::read(path).ok()?;
        data.truncate((4096 + 2 * 65_536).min(limit.max(4096 + 65_536)));
        Some(Seed { name: path.file_name()?.to_string_lossy().into_owned(), data })
    };
    files.iter().step_by(10).filter_map(|path| head(path)).collect()
}

/// Resources of a message file.
pub fn message_file(data: &[u8]) {
    if pe::read(data).is_ok() {
        accepted();
    }
}

/// A library with exports, which has no resources, and resources made by hand.
pub fn message_file_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let home = std::env::var_os("CARGO_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| std::path::PathBuf::from(home).join(".cargo")));
    let mut seeds = vec![Seed { name: "exports".into(), data: crate::hostile::image() }];
    // The smallest of the real ones that the crate `evtx` brings.
    let sources = home.map(|home| home.join("registry/src"));
    let folders = sources.and_then(|s| std::fs::read_dir(s).ok()).into_iter().flatten().flatten();
    for folder in folders {
        let file = folder.path().join("evtx-0.15.1/samples/dlls/adtschema.dll");
        if let Ok(data) = std::fs::read(file) {
            seeds.push(Seed { name: "adtschema.dll".into(), data });
            break;
        }
    }
    seeds
}
