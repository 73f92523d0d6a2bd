//! The comparison with the Python reader dissect.etl on the same file.

use crate::walk::one_walk;
use crate::{best, short};
use etwhy_decode::read::Reader;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use std::path::Path;
use std::process::Command;

/// Prints CPU seconds for the walk and for the walk with decoding, of the first records of a file.
const SCRIPT: &str = r#"
import sys, time
from dissect.etl import ETL
path, decode = sys.argv[1], sys.argv[2] == "decode"
n = decoded = 0
start = time.process_time()
with open(path, "rb") as f:
    for record in ETL(f):
        n += 1
        if decode:
            try:
                record.event
                decoded += 1
            except Exception:
                pass
print(n, decoded, time.process_time() - start)
"#;

/// Prints how much faster etwhy walks and decodes.
pub fn compare(file: &Path) -> anyhow::Result<()> {
    let Some(python) = std::env::var_os("ETWHY_PYTHON") else {
        println!("  skipped: ETWHY_PYTHON names no Python with dissect.etl");
        return Ok(());
    };
    let run = |mode: &str| -> anyhow::Result<(f64, f64, f64)> {
        let output = Command::new(&python).arg("-c").arg(SCRIPT).arg(file).arg(mode).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap_or(0.0));
        let mut next = || numbers.next().unwrap_or(0.0);
        let (n, decoded, seconds) = (next(), next(), next());
        anyhow::ensure!(n > 0.0, "dissect.etl read nothing: {}", String::from_utf8_lossy(&output.stderr));
        Ok((n, decoded, seconds))
    };
    let (n, _, walk) = run("walk")?;
    let (_, decoded, decode) = run("decode")?;
    let (ours_walk, records) = best(5, || one_walk(file, 1).unwrap_or(0));
    let (ours_decode, ours_decoded) = best(3, || decode_all(file).unwrap_or(0));
    println!(
        "  {:<32} walking {:>5.0}x ({n:.0} records in {walk:.2} s against {} in {:.2} ms), decoding {:>5.0}x ({decoded:.0} events in {decode:.2} s against {} in {:.2} ms)",
        short(file),
        walk / ours_walk,
        records.unwrap_or(0),
        ours_walk * 1e3,
        decode / ours_decode,
        ours_decoded.unwrap_or(0),
        ours_decode * 1e3
    );
    Ok(())
}

/// Decodes every field of every event that has a schema; returns how many.
fn decode_all(file: &Path) -> anyhow::Result<u64> {
    let files = [EtlFile::open(file, file, &OpenOptions::default())?];
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(&files, &mut ledger);
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    let mut reader = Reader::default();
    let mut decoded = 0;
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        if Decoder::wants(record) {
            decoder.observe(record, &mut ledger);
        }
        if let Some(schema) = decoder.schema_ref(record) {
            let values = reader.read(schema, record.payload(), record.pointer_size());
            decoded += u64::from(!std::hint::black_box(&values).values.is_empty());
            reader.reuse(values);
        }
    });
    Ok(decoded)
}
