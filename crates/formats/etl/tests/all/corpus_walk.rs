//! Every trace of the corpus, against the counts that an independent reader made.

use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::{Ledger, Record};
use etwhy_testkit::counted_traces;
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    kinds: BTreeMap<&'static str, u64>,
    records: u64,
    late: u64,
    hash: u64,
    last: i64,
}

impl Seen {
    fn see(&mut self, record: &Record<'_>, key: i64) {
        *self.kinds.entry(record.kind.name()).or_default() += 1;
        self.late += u64::from(key < self.last);
        self.last = self.last.max(key);
        let text = record.bytes.iter().fold(key as u64, |h, b| h.wrapping_mul(31) ^ u64::from(*b));
        self.hash = self.hash.wrapping_mul(0x100_0000_01b3) ^ text;
        assert!(record.payload().len() <= record.bytes.len());
    }
}

fn walk(file: &[EtlFile], parts: usize) -> (Seen, Ledger) {
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(file, &mut ledger);
    let mut seen = Seen { last: i64::MIN, ..Seen::default() };
    for part in Walk::new(file, &timeline).split(parts) {
        let stats = part.for_each(&mut ledger, |record, key| seen.see(record, key));
        seen.records += stats.records;
    }
    (seen, ledger)
}

fn walk_threaded(file: &[EtlFile], threads: usize) -> Seen {
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(file, &mut ledger);
    let mut seen = Seen { last: i64::MIN, ..Seen::default() };
    let walk = Walk::new(file, &timeline);
    let stats = walk.for_each_threaded(threads, &mut ledger, |r, key| seen.see(r, key));
    seen.records = stats.records;
    seen
}

#[test]
fn all_records_in_time_order() {
    for (path, counts) in counted_traces() {
        let name = path.display();
        let open = |chunk| EtlFile::open(&path, &path, &OpenOptions { chunk }).unwrap();
        let file = open(None);
        assert_eq!(file.buffers().len() as u64, counts["buffers"].as_u64().unwrap(), "{name}: buffers");
        let compressed = file.compressed_buffers();
        assert_eq!(compressed, counts["compressed_buffers"].as_u64().unwrap(), "{name}: compressed");
        let header = &counts["header"];
        assert_eq!(file.header().os_build as u64, header["build"].as_u64().unwrap(), "{name}");
        assert_eq!(file.header().processors as u64, header["cpus"].as_u64().unwrap(), "{name}");
        assert_eq!(file.header().events_lost as u64, header["lost"].as_u64().unwrap(), "{name}");
        assert_eq!(file.header().start_time, header["start"].as_i64().unwrap(), "{name}");
        assert_eq!(file.header().perf_freq, header["freq"].as_i64().unwrap(), "{name}");
        assert_eq!(file.header().session_name, header["names"][0].as_str().unwrap(), "{name}");
        assert_eq!(file.header().log_file_name, header["names"][1].as_str().unwrap(), "{name}");

        let (seen, ledger) = walk(&[file], 1);
        assert_eq!(seen.records, counts["records"].as_u64().unwrap(), "{name}: records");
        let want: BTreeMap<&str, u64> = counts["record_headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(kind, n)| (kind.as_str(), n.as_u64().unwrap()))
            .collect();
        assert_eq!(seen.kinds, want, "{name}: record headers");
        assert_eq!(seen.late, 0, "{name}: out of time order");
        let damage: Vec<_> = ledger
            .entries()
            .filter(|e| e.anomaly.severity == etwhy_etl::Severity::Error)
            .map(|e| (e.anomaly.name, e.count, e.first.clone()))
            .collect();
        assert!(damage.is_empty(), "{name}: {damage:?}");

        // The same in parts, and through small reads.
        assert_eq!(walk(&[open(None)], 3).0, seen, "{name}: in three parts");
        assert_eq!(walk_threaded(&[open(None)], 3), seen, "{name}: with helpers");
        assert_eq!(walk(&[open(Some(100))], 1).0, seen, "{name}: in reads of 100 bytes");
    }
}
