//! The decoder on real traces: which records are described, and whether payloads fit their layouts.

use crate::read::read;
use crate::testing::corpus;
use crate::{Decoder, DecoderOptions, EventTypes};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use std::path::Path;

/// Calls back with every record of a trace after the decoder has seen all of them.
fn with_trace(path: &Path, mut each: impl FnMut(&etwhy_etl::Record<'_>, &mut Decoder)) -> (Decoder, Ledger) {
    let files = [EtlFile::open(path, path, &OpenOptions::default()).unwrap()];
    let mut ledger = Ledger::new();
    let timeline = Timeline::of(&files, &mut ledger);
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    let mut learnt = Ledger::new();
    Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| decoder.observe(record, &mut learnt));
    Walk::new(&files, &timeline).for_each(&mut ledger, |record, _| each(record, &mut decoder));
    (decoder, learnt)
}

#[derive(Default, Clone, Copy)]
struct Fit {
    exact: u64,
    short: u64,
    rest: u64,
    max_rest: usize,
    none: u64,
}

#[test]
fn survey() {
    let Some(corpus) = corpus() else { return };
    let filter = std::env::var("SURVEY").unwrap_or_default();
    let mut traces = crate::files::find(&corpus.join("etl"), &["etl"], 1000, &mut Ledger::new());
    traces.retain(|t| t.to_string_lossy().contains(&filter));
    for path in traces {
        let mut types = EventTypes::new();
        let mut fits: Vec<Fit> = Vec::new();
        let (decoder, ledger) = with_trace(&path, |record, decoder| {
            let index = types.index(record) as usize;
            fits.resize(fits.len().max(index + 1), Fit::default());
            let fit = &mut fits[index];
            match decoder.schema(record) {
                None => fit.none += 1,
                Some(schema) => {
                    let decoded = read(&schema, record.payload(), record.pointer_size());
                    if decoded.truncated {
                        fit.short += 1;
                    } else if !decoded.rest.is_empty() {
                        fit.rest += 1;
                        fit.max_rest = fit.max_rest.max(decoded.rest.len());
                    } else {
                        fit.exact += 1;
                    }
                }
            }
        });
        println!("== {} {:?}", path.file_name().unwrap().to_string_lossy(), ledger.entries().collect::<Vec<_>>());
        for (index, fit) in fits.iter().enumerate() {
            let info = types.describe(index as u32, &decoder).unwrap();
            println!(
                "{} | {} | id {} v{} op {} {} | exact {} short {} rest {} ({}) none {}",
                info.provider, info.name, info.id, info.version, info.opcode, info.decoded_by.name(),
                fit.exact, fit.short, fit.rest, fit.max_rest, fit.none
            );
        }
    }
}
