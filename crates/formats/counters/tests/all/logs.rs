//! Logs of the shapes that Windows writes, in several languages.

use etwhy_base::rng::Rng;
use etwhy_counters::{Bound, CounterLogs, CountersError, Options, read};
use etwhy_table::{Memory, Table};
use etwhy_testkit::Are as _;
use std::path::PathBuf;
use tempfile::TempDir;

struct Case {
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Case {
    fn new(files: &[(&str, &[u8])]) -> Case {
        let folder = TempDir::new().unwrap();
        let write = |(name, bytes): &(&str, &[u8])| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let files = files.iter().map(write).collect();
        Case { folder, files }
    }

    fn read(&self) -> CounterLogs {
        self.with(&Options::default())
    }

    fn with(&self, options: &Options<'_>) -> CounterLogs {
        read(&self.files, options, &Memory::default()).unwrap()
    }
}

fn table<'a>(logs: &'a CounterLogs, name: &str) -> &'a Table {
    logs.tables.iter().find(|t| t.name() == name).unwrap()
}

/// Row of the counter with this path.
fn row(logs: &CounterLogs, path: &str) -> u32 {
    let counters = table(logs, "counter");
    (0..counters.rows() as u32).find(|row| counters.text(*row, "path") == Some(path)).expect(path)
}

fn number(logs: &CounterLogs, path: &str, column: &str) -> Option<f64> {
    table(logs, "counter").value(row(logs, path), column).as_f64()
}

fn text(logs: &CounterLogs, path: &str, column: &str) -> String {
    table(logs, "counter").text(row(logs, path), column).unwrap_or("null").to_owned()
}

fn notes(logs: &CounterLogs) -> Vec<(String, i64)> {
    let notes = table(logs, "counter_note");
    (0..notes.rows() as u32)
        .map(|row| (notes.text(row, "name").unwrap().to_owned(), notes.i64(row, "count").unwrap()))
        .collect()
}

fn noted(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Values of `counter_sample`: milliseconds since the first sample, counter, value.
fn samples(logs: &CounterLogs) -> Vec<(i64, i64, f64)> {
    let samples = table(logs, "counter_sample");
    (0..samples.rows() as u32)
        .map(|row| {
            let ms = samples.i64(row, "ts_ns").unwrap() / 1_000_000;
            (ms, samples.i64(row, "counter").unwrap(), samples.f64(row, "value").unwrap())
        })
        .collect()
}

/// `date -u -d "2012-02-27 18:36:00" +%s`.
const S: i64 = 1_330_367_760_000_000_000;

#[test]
fn perfmon_in_english() {
    let log = "\"(PDH-CSV 4.0) (Pacific Standard Time)(480)\",\"\\\\SRV1\\Processor(0)\\% DPC Time\",\"\\\\SRV1\\Processor(_Total)\\% DPC Time\",\"\\\\SRV1\\Memory\\Available MBytes\"\r\n\
        \"02/27/2012 10:36:00.000\",\" \",\" \",\"2048\"\r\n\
        \"02/27/2012 10:36:15.010\",\"98.5\",\"24.625\",\"2044\"\r\n\
        \"02/27/2012 10:36:30.020\",\"97.5\",\"24.375\",\"2040\"\r\n";
    let logs = Case::new(&[("a.csv", log.as_bytes())]).read();
    let dpc = "\\\\SRV1\\Processor(0)\\% DPC Time";
    assert_eq!(
        (text(&logs, dpc, "machine"), text(&logs, dpc, "name_en"), text(&logs, dpc, "unit")),
        ("SRV1".into(), "% DPC Time".into(), "percent".into())
    );
    let of = |column: &str| number(&logs, dpc, column);
    assert_eq!(
        (of("samples"), of("missing"), of("min_value"), of("mean_value"), of("max_value")),
        (Some(2.0), Some(1.0), Some(97.5), Some(98.0), Some(98.5))
    );
    assert_eq!(
        (of("p50_value"), of("p95_value"), of("first_value"), of("last_value"), of("cpu")),
        (Some(97.5), Some(98.5), Some(98.5), Some(97.5), Some(0.0))
    );
    // The first of the two samples speaks of the 15 seconds since the one that has no value, which nobody can tell from a start.
    assert_eq!((of("above_90_samples"), of("above_90_ns")), (Some(2.0), Some(15.01e9)));
    assert_eq!(number(&logs, "\\\\SRV1\\Memory\\Available MBytes", "first_utc_ns"), Some(S as f64));
    let machines = table(&logs, "counter_machine");
    assert_eq!(
        (machines.rows(), machines.text(0, "zone"), machines.i64(0, "bias_min")),
        (1, Some("Pacific Standard Time"), Some(480))
    );
    assert_eq!(
        (machines.i64(0, "first_utc_ns"), machines.i64(0, "cpus"), machines.i64(0, "interval_ns")),
        (Some(S), Some(1), Some(15_010_000_000))
    );
    assert_eq!(notes(&logs), []);
    samples(&logs).are(&[
        (0, 2, 2048.0),
        (15_010, 0, 98.5),
        (15_010, 1, 24.625),
        (15_010, 2, 2044.0),
        (30_020, 0, 97.5),
        (30_020, 1, 24.375),
        (30_020, 2, 2040.0),
    ]);
    let slices = table(&logs, "counter_slice");
    assert_eq!(
        (slices.rows(), slices.i64(0, "dur_ns"), slices.i64(0, "counter"), slices.f64(0, "mean_value")),
        (7, Some(1_000_000_000), Some(0), Some(98.5))
    );
}

#[test]
fn typeperf_in_german_on_the_console() {
    // As `typeperf … > log.csv`: a blank line in front, words behind, code page 850, decimal commas, semicolons.
    let log = b"\r\n\"(PDH-CSV 4.0)\";\"\\\\PC7\\Prozessor(_Total)\\Prozessorzeit (%)\";\"\\\\PC7\\Arbeitsspeicher\\Verf\x81gbare MB\"\r\n\
        \"02/13/2012 10:36:00.000\";\"12,5\";\"812,000000\"\r\n\
        \"02/13/2012 10:36:01.000\";\"13,5\";\"-1\"\r\n\
        \r\nBeenden, bitte warten...\r\nDer Befehl wurde erfolgreich ausgef\x81hrt.\r\n";
    let logs = Case::new(&[("log.csv", log)]).read();
    let cpu = "\\\\PC7\\Prozessor(_Total)\\Prozessorzeit (%)";
    assert_eq!(
        (text(&logs, cpu, "object_en"), text(&logs, cpu, "name_en"), number(&logs, cpu, "mean_value")),
        ("Processor".into(), "% Processor Time".into(), Some(13.0))
    );
    let memory = "\\\\PC7\\Arbeitsspeicher\\Verfügbare MB";
    assert_eq!(
        (
            text(&logs, memory, "name_en"),
            number(&logs, memory, "mean_value"),
            number(&logs, memory, "missing")
        ),
        ("Available MBytes".into(), Some(812.0), Some(1.0))
    );
    assert_eq!(
        notes(&logs),
        noted(&[("line-without-stamp", 2), ("minus-one", 1), ("no-time-zone", 1), ("code-page", 1)])
    );
    assert_eq!(table(&logs, "counter_machine").text(0, "zone"), None);
}

#[test]
fn values_whose_time_cannot_be_read_are_lost() {
    let log = b"\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\Memory\\Pages/sec\"\n\
        \"02/27/2012 19:36:00.000\",\"1\"\n\"99/99/2012 19:36:01.000\",\"2\"\n\"02/27/2012 19:36:02.000\",\"-7\"\nExiting, please wait...\n";
    let logs = Case::new(&[("log.csv", log)]).read();
    assert_eq!(
        notes(&logs),
        noted(&[("line-without-stamp", 1), ("stamp-unreadable", 1), ("not-a-number", 1)])
    );
}

#[test]
fn the_zone_of_a_log_without_one() {
    let log = "\"(PDH-CSV 4.0)\",\"\\\\S\\Memory\\Pages/sec\"\n\"02/27/2012 19:36:00.000\",\"1\"\n";
    let case = Case::new(&[("a.csv", log.as_bytes())]);
    let logs = case.with(&Options { utc_offset_min: Some(60), ..Options::default() });
    assert_eq!(table(&logs, "counter_sample").i64(0, "utc_ns"), Some(S));
    assert_eq!(notes(&logs), []);
    assert_eq!(table(&case.read(), "counter_sample").i64(0, "utc_ns"), Some(S + 3_600_000_000_000));
}

#[test]
fn russian_in_utf16_and_french_tsv() {
    let log = "\u{FEFF}\"(PDH-CSV 4.0) (Russia TZ 4 Standard Time)(-300)\",\"\\\\1C\\Память\\Доступно МБ\",\"\\\\1C\\Физический диск(0 C:)\\Средняя длина очереди диска\"\r\n\
        \"02/27/2012 23:36:00.000\",\"27899\",\" \"\r\n\"02/27/2012 23:36:05.000\",\"20480\",\"0.5\"\r\n";
    let utf16: Vec<u8> = log.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let french = "\"(PDH-TSV 4.0) (Paris, Madrid)(-60)\"\t\"\\\\FR\\Système\\Longueur de la file du processeur\"\t\"\\\\FR\\Processeur(3)\\% temps d’interruption\"\r\n\
        \"02/27/2012 19:36:00.000\"\t\"3\"\t\"1,25\"\r\n";
    let logs = Case::new(&[("1c.csv", &utf16), ("fr.tsv", french.as_bytes())]).read();
    let queue = "\\\\1C\\Физический диск(0 C:)\\Средняя длина очереди диска";
    assert_eq!(
        (text(&logs, queue, "name_en"), text(&logs, queue, "instance"), number(&logs, queue, "mean_value")),
        ("Avg. Disk Queue Length".into(), "0 C:".into(), Some(0.5))
    );
    assert_eq!(
        text(&logs, "\\\\FR\\Système\\Longueur de la file du processeur", "name_en"),
        "Processor Queue Length"
    );
    assert_eq!(number(&logs, "\\\\FR\\Processeur(3)\\% temps d’interruption", "mean_value"), Some(1.25));
    let machines = table(&logs, "counter_machine");
    let first: Vec<_> = (0..2)
        .map(|row| (machines.text(row, "machine").unwrap(), machines.i64(row, "first_utc_ns").unwrap()))
        .collect();
    assert_eq!(first, [("FR", S), ("1C", S)]);
    assert_eq!(notes(&logs), []);
}

#[test]
fn restarts_cuts_and_rubbish_are_counted() {
    let log = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\System\\Processes\",\"\\\\S\\Memory\\Pages/sec\",\"My data collector set.\"\r\n\
        \"02/27/2012 18:36:00.000\",\"100\",\"1\"\r\n\
        \"02/27/2012 18:36:01.000\",\"n/a\",\"2\",\"\",\"9\"\r\n\
        \"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\Memory\\Pages/sec\",\"\\\\S\\System\\Processes\"\r\n\
        \"02/27/2012 18:40:00.000\",\"4\",\"102\"\r\n\
        \"02/27/2012 18:40:01.000\",\"4\"\r\n\
        \"02/27/2012 18:40:02.000\",\"5\",\"10";
    let logs = Case::new(&[("a.csv", log.as_bytes())]).read();
    samples(&logs).are(&[
        (0, 0, 100.0),
        (0, 1, 1.0),
        (1000, 1, 2.0),
        (240_000, 1, 4.0),
        (240_000, 0, 102.0),
        (241_000, 1, 4.0),
        (242_000, 1, 5.0),
    ]);
    assert_eq!(
        notes(&logs),
        noted(&[
            ("cut-line", 2),
            ("extra-values", 1),
            ("not-a-number", 1),
            ("repeated-header", 1),
            ("column-without-counter", 1)
        ])
    );
}

#[test]
fn rotated_files_are_one_log() {
    let file = |times: &[(&str, &str)]| {
        let rows: String = times.iter().map(|(t, v)| format!("\"02/27/2012 {t}\",\"{v}\"\r\n")).collect();
        format!("\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\Memory\\Pages/sec\"\r\n{rows}")
    };
    let (first, second) = (
        file(&[("18:36:00.000", "1"), ("18:36:01.000", "2")]),
        file(&[("18:36:01.000", "2"), ("18:36:02.000", "3")]),
    );
    // Named in the wrong order, and with a sample that both have.
    let case = Case::new(&[("b.csv", second.as_bytes()), ("a.csv", first.as_bytes())]);
    let logs = case.read();
    assert_eq!(samples(&logs), [(0, 0, 1.0), (1000, 0, 2.0), (2000, 0, 3.0)]);
    assert_eq!(notes(&logs), noted(&[("overlapping-samples", 1)]));
    assert_eq!(table(&logs, "counter_machine").i64(0, "files"), Some(2));
    // As a folder, with a file that is none.
    std::fs::write(case.folder.path().join("other.csv"), "a,b\n1,2\n").unwrap();
    let logs = read(&[case.folder.path().to_path_buf()], &Options::default(), &Memory::default()).unwrap();
    assert_eq!((logs.files.len(), logs.skipped.len(), samples(&logs).len()), (2, 1, 3));
}

#[test]
fn a_part_of_a_log() {
    let log = "\"(PDH-CSV 4.0) (x)(480)\",\"\\\\S\\Memory\\Pages/sec\",\"\\\\S\\System\\Threads\"\n\
        \"02/27/2012 10:36:00.000\",\"1\",\"5\"\n\"02/27/2012 10:37:00.000\",\"2\",\"6\"\n\"02/27/2012 10:38:00.000\",\"3\",\"7\"\n";
    let case = Case::new(&[("a.csv", log.as_bytes())]);
    let keep = |path: &str| path.contains("Memory");
    // `date -u -d "2012-02-27 10:36:00" +%s`: local times of the log.
    let at_36 = 1_330_338_960_000_000_000;
    let options = Options {
        from: Some(Bound::Local(at_36 + 30_000_000_000)),
        // Eight hours later in UTC.
        to: Some(Bound::Utc(at_36 + 8 * 3_600_000_000_000 + 120_000_000_000)),
        keep: Some(&keep),
        utc_offset_min: None,
    };
    let logs = case.with(&options);
    assert_eq!((samples(&logs), table(&logs, "counter").rows()), (vec![(0, 0, 2.0)], 1));
    let none = Options { from: Some(Bound::Local(at_36 * 2)), ..Options::default() };
    let error = read(&case.files, &none, &Memory::default()).unwrap_err();
    assert!(matches!(error, CountersError::NoSample { .. }), "{error}");
    let header = log.lines().next().unwrap().to_owned() + "\n\"99/99/9999 99:99:99\",\"1\"\n";
    let timeless = Case::new(&[("a.csv", header.as_bytes())]);
    let error = read(&timeless.files, &Options::default(), &Memory::default()).unwrap_err();
    assert!(matches!(error, CountersError::NoTime { .. }), "{error}");
    assert_eq!((logs.files[0].rows, logs.files[0].values), (1, 1));
    let nothing = |path: &str| path.contains("Disk");
    let none = Options { keep: Some(&nothing), ..Options::default() };
    let error = read(&case.files, &none, &Memory::default()).unwrap_err();
    let kinds = ["Memory\\Pages/sec", "System\\Threads"];
    assert!(matches!(&error, CountersError::NoCounter { kinds: there } if *there == kinds), "{error}");
}

#[test]
fn what_is_no_counter_log() {
    let mut blg = vec![0u8; 0x10000];
    blg[2] = 1;
    blg[0x60..0x70].copy_from_slice(&[
        0xB3, 0x3B, 0x3F, 0x93, 0x3E, 0x94, 0x0D, 0x49, 0x9C, 0xED, 0x3C, 0xBB, 0x14, 0xC1, 0x44, 0x79,
    ]);
    let case = Case::new(&[
        ("Perf 1.blg", &[0, 0, 1, 0, 0x30]),
        ("copy.bin", &blg),
        ("x.bin", &[0; 100]),
        ("a.csv", b"a,b\n1,2\n"),
        ("empty.csv", b""),
    ]);
    let error = |n: usize| read(&case.files[n..=n], &Options::default(), &Memory::default()).unwrap_err();
    assert!(
        matches!(error(0), CountersError::Binary { .. })
            && error(0).to_string().contains("relog \"Perf 1.blg\" -f csv -o \"Perf 1.csv\"")
    );
    assert!(matches!(error(1), CountersError::Binary { .. }));
    assert!(matches!(error(2), CountersError::NotText { .. }));
    assert!(
        matches!(error(3), CountersError::NoHeader { .. }) && matches!(error(4), CountersError::Empty { .. })
    );
    let folder = TempDir::new().unwrap();
    let of_folder =
        || read(&[folder.path().to_path_buf()], &Options::default(), &Memory::default()).unwrap_err();
    assert!(matches!(of_folder(), CountersError::Nothing { .. }));
    std::fs::write(folder.path().join("a.blg"), &blg).unwrap();
    assert!(matches!(of_folder(), CountersError::Binary { .. }));
}

#[test]
fn damaged_logs_are_read_as_far_as_they_go() {
    let log = "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\System\\Processes\",\"\\\\S\\Memory\\Pages/sec\"\r\n\"02/27/2012 18:36:00.000\",\"100\",\"1\"\r\n\"02/27/2012 18:36:01.000\",\"101\",\"2\"\r\n";
    let mut rng = Rng::new(3);
    for _ in 0..1000 {
        let mut bytes = log.as_bytes().to_vec();
        for _ in 0..4 {
            let at = rng.index(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = rng.bits() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => {
                    let part = bytes[at..].to_vec();
                    bytes.extend(part);
                }
            }
        }
        let case = Case::new(&[("a.csv", &bytes)]);
        // A result or an error, no panic.
        let _ = read(&case.files, &Options::default(), &Memory::default());
    }
}

#[test]
fn time_above_ninety_ends_where_the_log_does() {
    let path = r"\\S\Processor(_Total)\% Processor Time";
    let line = |second: u32, value: u32| {
        format!("\"01/01/2024 00:{:02}:{:02}.000\",\"{value}\"\r\n", second / 60, second % 60)
    };
    let log = |lines: &[(u32, u32)]| {
        let all: String = lines.iter().map(|(second, value)| line(*second, *value)).collect();
        format!("\"(PDH-CSV 4.0) (UTC)(0)\",\"{path}\"\r\n{all}")
    };
    // Every 10 s; between 50 and 300 s nothing was recorded.
    let gap = log(&[(0, 10), (10, 95), (20, 95), (30, 95), (40, 95), (50, 95), (300, 95), (310, 95)]);
    let read = Case::new(&[("a.csv", gap.as_bytes())]).read();
    assert_eq!(number(&read, path, "above_90_samples"), Some(7.0));
    assert_eq!(number(&read, path, "above_90_ns"), Some(50e9));
    // Two files with 50 minutes between them, of which nothing is known.
    let late = log(&[(3000, 99), (3010, 99)]);
    let early = log(&[(0, 10), (10, 95), (20, 95)]);
    let read = Case::new(&[("a.csv", early.as_bytes()), ("b.csv", late.as_bytes())]).read();
    assert_eq!(number(&read, path, "above_90_samples"), Some(4.0));
    assert_eq!(number(&read, path, "above_90_ns"), Some(20e9));
}
