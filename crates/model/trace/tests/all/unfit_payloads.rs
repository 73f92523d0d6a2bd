//! A payload that does not fit its layout is in the ledger, lowers the confidence of its type, and invents nobody.

use crate::support;
use crate::support::written::Written;
use crate::support::{corpus, ledger_count, number, pass, rows, table, text};
use etwhy_decode::read::read;
use etwhy_decode::schema::DecodedBy;
use etwhy_testkit::traces;

/// Above the process ids of real traces (the highest is 179,596); invented ones are characters and addresses.
const HIGHEST_PID: i64 = 1 << 19;

#[test]
fn what_does_not_fit_is_in_the_ledger_of_every_trace() {
    let Some(corpus) = corpus() else { return };
    let (mut unfit_traces, mut repaired) = (0, 0);
    for path in traces(&corpus) {
        let (mut longer, mut shorter) = (0u64, 0u64);
        support::walk(&path, |record, _, decoded, _| {
            let Some((schema, decoded)) = decoded else { return };
            if schema.decoded_by == DecodedBy::None || (!decoded.truncated && decoded.rest.is_empty()) {
                return;
            }
            let other = if record.pointer_size() == 4 { 8 } else { 4 };
            let again = read(schema, record.payload(), other);
            // In those of processes the SID shows which size is right.
            if &*schema.task == "Process" && !again.truncated && again.rest.is_empty() {
                repaired += 1;
            } else if decoded.truncated {
                shorter += 1;
            } else {
                longer += 1;
            }
        });
        let output = pass(&path, "event_type process image thread");
        let name = path.file_name().unwrap().to_string_lossy();
        let counted = ["payload_leftover", "payload_shortfall"].map(|anomaly| ledger_count(&output, anomaly));
        assert_eq!(counted, [longer, shorter], "{name}");
        unfit_traces += u64::from(longer + shorter > 0);
        // No type whose payloads do not fit is called verified, and there is one for what the ledger counts.
        let processes = table(&output, "process");
        for row in rows(processes) {
            let pid = number(processes, row, "pid").unwrap();
            assert!(pid < HIGHEST_PID, "{name}: process {pid} {}", text(processes, row, "name"));
        }
    }
    println!(
        "{unfit_traces} traces with payloads that do not fit, {repaired} records of the other pointer size"
    );
    assert!(unfit_traces >= 4 && repaired >= 16);
}

/// Written by a test of google/syzygy: process records with pointers of 64 bits in a session of a 32-bit system.
#[test]
fn records_of_another_pointer_size_are_read_with_it() {
    let Some(corpus) = corpus() else { return };
    let folder = corpus.join("google+syzygy");
    let pids = |name: &str| {
        let output = pass(&folder.join(name), "process");
        let processes = table(&output, "process");
        let mut pids: Vec<i64> = rows(processes)
            .filter(|&row| !text(processes, row, "name").is_empty())
            .map(|row| number(processes, row, "pid").unwrap())
            .collect();
        pids.sort_unstable();
        pids.dedup();
        (pids, ledger_count(&output, "pointers_of_other_size"))
    };
    for (wide, narrow) in [
        ("log_lib_process_data_64_v2.5c31715.etl", "log_lib_process_data_32_v2.e605e3a.etl"),
        ("log_lib_process_data_64_v3.500989f.etl", "log_lib_process_data_32_v3.6cf74bf.etl"),
    ] {
        let (found, other) = pids(wide);
        assert_eq!((&found, other), (&pids(narrow).0, 8), "{wide}");
        assert_eq!(pids(narrow).1, 0);
    }
}

/// Images of which nothing fits are left out: their bases and processes would be invented.
#[test]
fn images_that_fit_with_no_pointer_size_are_left_out() {
    let Some(corpus) = corpus() else { return };
    for name in ["log_lib_image_data_64_v2.e09ad69.etl", "viewer_test_data_64_v2.3fa70fa.etl"] {
        let output = pass(&corpus.join("google+syzygy").join(name), "image event_type");
        assert_eq!(table(&output, "image").rows(), 0, "{name}");
        assert_eq!(ledger_count(&output, "identities_unreadable"), 26, "{name}");
        let types = table(&output, "event_type");
        let images = rows(types).filter(|&row| text(types, row, "name").starts_with("Image/"));
        assert!(images.clone().count() > 0);
        for row in images {
            assert_eq!(number(types, row, "verified"), Some(0), "{name}: {}", text(types, row, "name"));
        }
    }
}

#[test]
fn moments_of_loss_count_once_and_empty_slots_not_at_all() {
    let mut written = Written::new();
    let mut slots = |us, count: u32, times: &[u64]| {
        written
            .system(us, (4, 8), 0x0052, |r| times.iter().fold(r.u32(count).u32(0), |r, &time| r.u64(time)));
    };
    slots(1, 2, &[0, 0]);
    slots(2, 2, &[700, 0]);
    slots(3, 2, &[700, 900]);
    // It promises more than it has, and has more than it promises.
    slots(4, u32::MAX, &[1_100]);
    slots(5, 1, &[900, 1_300]);
    let output = written.pass("trace");
    assert_eq!(ledger_count(&output, "last_dropped_times"), 3);
}
