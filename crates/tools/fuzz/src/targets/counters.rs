//! Performance counter logs.

use super::target::accepted;
use crate::scratch;
use crate::seeds::Seed;
use etwhy_counters::{Options, read};
use etwhy_table::Memory;
use std::path::Path;

/// A log, with all of its tables.
pub fn logs(data: &[u8]) {
    let Some(path) = scratch::file("mutant.csv", data) else { return };
    let Ok(logs) = read(&[path], &Options::default(), &Memory::default()) else { return };
    if logs.files.iter().any(|file| file.values > 0) {
        accepted();
    }
    let values: u64 = logs.files.iter().map(|f| f.values).sum();
    assert!(values <= data.len() as u64 + 1);
    for table in &logs.tables {
        let most = match table.name() {
            // One row for each counter, value or slice, and what is said of each machine.
            "counter" | "counter_sample" | "counter_slice" | "counter_machine" | "counter_note" => {
                data.len() + 20
            }
            _ => (data.len() + 1) * 20,
        };
        assert!(table.rows() <= most, "{}: {} rows of {} bytes", table.name(), table.rows(), data.len());
    }
    let Some(counters) = logs.tables.iter().find(|t| t.name() == "counter") else { return };
    for row in 0..counters.rows() as u32 {
        let value = |column| counters.f64(row, column);
        if let (Some(min), Some(p50), Some(p99), Some(max)) =
            (value("min_value"), value("p50_value"), value("p99_value"), value("max_value"))
        {
            assert!(min <= max && p50 <= p99, "{min} {p50} {p99} {max}");
        }
    }
}

/// One of each style.
pub fn logs_seeds(_: &Path, _: usize) -> Vec<Seed> {
    let perfmon = "\"(PDH-CSV 4.0) (Pacific Standard Time)(480)\",\"\\\\S\\Processor(0)\\% DPC Time\",\"\\\\S\\Process(a#2)\\Handle Count\"\r\n\
        \"10/27/2024 01:59:45.000\",\" \",\"17\"\r\n\"10/27/2024 02:00:00.013\",\"98.97654321012345\",\"18\"\r\n\
        \"10/27/2024 01:00:15.001\",\"1.5e-3\",\"-1\"\r\n\"(PDH-CSV 4.0) (x)(0)\",\"\\\\T\\Memory\\Available MBytes\"\r\n\
        \"10/28/2024 02:00:00.013\",\"5\"\r\n";
    let german = "\r\n\"(PDH-CSV 4.0)\";\"\\\\PC\\Arbeitsspeicher\\Verfügbare MB\"\r\n\"13.02.2012 10:36:00\";\"812,5\"\r\nBeenden\r\n";
    let tabs = "\"(PDH-TSV 4.0) (UTC)(0)\"\t\"\\\\R\\Память\\Доступно МБ\"\n\"2/27/2012 6:36:00 PM\"\t\"1.234.567,8\"\n";
    let wide: Vec<u8> = tabs.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let console = german
        .replace('ü', "\u{1}")
        .into_bytes()
        .into_iter()
        .map(|b| if b == 1 { 0x81 } else { b })
        .collect();
    let binary = [
        &[0u8, 0, 1, 0][..],
        &[0xB3, 0x3B, 0x3F, 0x93, 0x3E, 0x94, 0x0D, 0x49, 0x9C, 0xED, 0x3C, 0xBB, 0x14, 0xC1, 0x44, 0x79],
    ]
    .concat();
    let seed = |name: &str, data: Vec<u8>| Seed { name: name.into(), data };
    vec![
        seed("perfmon", perfmon.into()),
        seed("german", german.into()),
        seed("tabs", tabs.into()),
        seed("utf-16", wide),
        seed("console", console),
        seed("binary", binary),
    ]
}
