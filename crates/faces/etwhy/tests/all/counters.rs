//! `etwhy counters`: from a log to findings, recordings, tables and exit codes.

use etwhy_testkit::{Program, Str as _};
use std::fmt::Write as _;
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.wide("120");

fn stdout(args: &[&str]) -> String {
    let output = ETWHY.output(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The backup server: of 24 processors 0, 2, 4 and 6 are full of DPCs, for 20 minutes.
fn backup(path: &Path) {
    let mut text = String::from("\"(PDH-CSV 4.0) (W. Europe Daylight Time)(-120)\"");
    for cpu in 0..24 {
        for name in ["% Processor Time", "% DPC Time", "% Interrupt Time"] {
            write!(text, ",\"\\\\BACKUP\\Processor({cpu})\\{name}\"").unwrap();
        }
    }
    text.push_str(",\"\\\\BACKUP\\PhysicalDisk(0 C:)\\Avg. Disk sec/Read\"\r\n");
    for row in 0..120 {
        write!(text, "\"06/03/2024 {:02}:{:02}:{:02}.000\"", 22 + row / 60, row % 60, 0).unwrap();
        for cpu in 0..24 {
            let full = cpu % 2 == 0 && cpu <= 6 && (30..90).contains(&row);
            let values = if full { "\"100\",\"80.5\",\"9.5\"" } else { "\"8\",\"1\",\"0.5\"" };
            text.push(',');
            text.push_str(if row == 0 { "\" \",\" \",\" \"" } else { values });
        }
        text.push_str(",\"0.002\"\r\n");
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_backup_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.csv");
    backup(&file);
    let file = file.str();
    let text = stdout(&["counters", file]);
    for part in [
        "BACKUP: processors 0, 2, 4, 6 (4 of 24) run at 100 %, 90 % of their time in DPCs and interrupts",
        "wpr -start etwhy-dpc.wprp!dpc",
        "xperf -on CPU_CONFIG+CSWITCH+DPC+INTERRUPT",
        "cannot tell counters.memory-low: the counter \\Memory\\Available MBytes was not logged",
        "logman create counter etwhy -f csv -si 5",
    ] {
        // Lines are broken where they end.
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(part), "{part}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&stdout(&["counters", file, "--json"])).unwrap();
    let found = &json["findings"][0];
    assert_eq!(
        (found["id"].as_str(), found["answer"].as_str()),
        (Some("counters.cpu-pegged-by-dpc"), Some("found"))
    );
    // 22:30 in Central Europe, by slices of 64 seconds.
    let since = found["hits"][0]["values"]["since"].str();
    assert!(("2024-06-03 22:28:56".."2024-06-03 22:31:04").contains(&since), "{since}");
    assert_eq!(json["recordings"][0]["profile"], "dpc");
    let sql = "SELECT count(*) AS n FROM counter_cpu WHERE pegged_ns > 0";
    assert_eq!(stdout(&["counters", file, "--sql", sql, "--format", "csv"]).trim(), "n\n4");
    let dumped =
        stdout(&["counters", file, "--dump", "counter_sample", "--format", "csv", "--counter", "(0)*DPC"]);
    assert_eq!(dumped.lines().count(), 120);
    let one = stdout(&["counters", file, "--counter", "(0)*DPC"]);
    assert!(one.contains("BACKUP: 1 counter, 24 processors"), "{one}");
    let none = ETWHY.output(&["counters", file, "--counter", "Processor(*)DPC"]);
    let error = String::from_utf8_lossy(&none.stderr);
    assert!(
        none.status.code() == Some(2)
            && error.contains(r"no counter matches; there are Processor(*)\% DPC Time"),
        "{error}"
    );
    let part = stdout(&[
        "counters",
        file,
        "--since",
        "2024-06-03 23:50",
        "--dump",
        "counter_machine",
        "--format",
        "csv",
    ]);
    assert!(part.lines().nth(1).unwrap().starts_with("BACKUP,1,73,0,,24,0,0,1717451400"), "{part}");
}

#[test]
fn what_is_not_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let blg = folder.path().join("x.blg");
    std::fs::write(&blg, [0u8; 64]).unwrap();
    let output = ETWHY.output(&["counters", blg.str()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("relog \"x.blg\" -f csv -o \"x.csv\""));
    assert_eq!(ETWHY.output(&["counters", "/nowhere/x.csv"]).status.code(), Some(2));
    let cut = folder.path().join("cut.csv");
    std::fs::write(&cut, "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\S\\Memory\\Pages/sec\"\n\"02/27/2012 18:36:00\",\"1\"\n\"02/27/2012 18:36:01\",\"1").unwrap();
    let output = ETWHY.output(&["counters", cut.str()]);
    assert_eq!(output.status.code(), Some(1), "done in part: {}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("data_loss: 1 x cut-line"));
}
