//! Scratch measurement.
use etwhy_decode::format::to_json;
use etwhy_decode::read::Reader;
use etwhy_decode::{Decoder, DecoderOptions, EventTypes};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use std::path::Path;
use std::time::Instant;

fn run(file: &Path, level: u32) -> (u64, u64) {
    let files = [EtlFile::open(file, file, &OpenOptions::default()).unwrap()];
    let mut ledger = Ledger::new();
    let timeline = Timeline::of(&files, &mut ledger);
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    let mut types = EventTypes::new();
    let (mut n, mut hash) = (0u64, 0u64);
    let mut out = String::new();
    let mut reader = Reader::default();
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        if level == 0 {
            types.index(record);
            n += 1;
            return;
        }
        if Decoder::wants(record) {
            decoder.observe(record, &mut ledger);
        }
        if let Some(schema) = decoder.schema_ref(record) {
            if level == 1 {
                n += 1;
                return;
            }
            let values = reader.read(schema, record.payload(), record.pointer_size());
            if level == 3 {
                out.clear();
                to_json(&mut out, schema, &values);
                out.push('|');
                etwhy_decode::message::render_message(&mut out, schema, &values.values);
                for b in out.bytes() {
                    hash = (hash ^ u64::from(b)).wrapping_mul(0x100000001b3);
                }
                if std::env::var_os("DUMP").is_some() {
                    println!("{out}");
                }
                n += values.values.len() as u64;
                reader.reuse(values);
                return;
            }
            n += u64::from(!std::hint::black_box(&values).values.is_empty());
            reader.reuse(values);
        }
    });
    (n, hash)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mode = &args[1];
    for f in &args[2..] {
        let f = Path::new(f);
        if mode == "hash" {
            println!("{} {:?}", f.file_name().unwrap().to_string_lossy(), run(f, 3));
        } else if let Ok(level) = mode.parse::<u32>() {
            for _ in 0..30 {
                std::hint::black_box(run(f, level));
            }
        } else {
            let mut line = String::new();
            for level in 0..3 {
                let mut best = f64::MAX;
                let mut n = 0;
                for _ in 0..9 {
                    let t = Instant::now();
                    n = run(f, level).0;
                    best = best.min(t.elapsed().as_secs_f64());
                }
                line += &format!(" [{level}] {:.2} ms ({n})", best * 1e3);
            }
            println!("{}{line}", f.file_name().unwrap().to_string_lossy());
        }
    }
}
