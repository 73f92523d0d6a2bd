//! `etwhy modules` and facts of the user's own, on written traces.

use crate::{Json as _, Str as _};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn etwhy(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("APPDATA", folder.join("config"))
        .env("COLUMNS", "200")
        .output()
        .unwrap()
}

fn text(folder: &Path, arguments: &str) -> String {
    let output = etwhy(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn rows(folder: &Path, arguments: &str) -> Vec<Value> {
    serde_json::from_str(&text(folder, arguments)).unwrap()
}

fn one<'r>(rows: &'r [Value], name: &str) -> &'r Value {
    let found: Vec<_> = rows.iter().filter(|r| r["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

#[test]
fn modules_are_known_and_users_know_better() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/syscall_hook.toml");
    std::fs::copy(scenario, folder.join("hook.toml")).unwrap();
    text(folder, "synth hook.toml -o hook.etl --scale 0.002 --quiet");

    let all = rows(folder, "modules hook.etl --json");
    let cortex = one(&all, "tedrdrv.sys");
    assert_eq!(cortex["vendor"], "Palo Alto Networks");
    assert_eq!((&cortex["category"], &cortex["confidence"]), (&"EDR".into(), &"high".into()));
    assert_eq!((&cortex["altitudes"], &cortex["kind"]), (&"380430".into(), &"kernel".into()));
    assert_eq!(cortex["security"], true);
    assert_eq!(one(&all, "server.exe")["security"], false);
    assert_eq!(one(&all, "server.exe")["process_names"], "server.exe");
    // Each file once, however many processes have it.
    assert_eq!(one(&all, "ntdll.dll")["processes"], 2);

    let secure = rows(folder, "modules hook.etl --security --json");
    let names: Vec<_> = secure.iter().map(|r| r["name"].str()).collect();
    // The costliest first.
    assert_eq!(names, ["tedrdrv.sys", "cyserver.exe"]);
    let ns = |row: &Value, column: &str| row[column].int();
    assert!(ns(&secure[0], "cpu_inclusive_ns") > ns(&secure[0], "cpu_exclusive_ns"));
    assert_eq!(ns(&secure[1], "cpu_inclusive_ns"), 0);
    let kernel = rows(folder, "modules hook.etl --kernel --json");
    assert!(kernel.iter().all(|r| r["kind"] == "kernel") && kernel.len() >= 2);
    let own = rows(folder, "modules hook.etl --process cyserver --json");
    assert!(
        own.iter().any(|r| r["name"] == "cyserver.exe") && !own.iter().any(|r| r["name"] == "server.exe")
    );
    let shown = text(folder, "modules hook.etl");
    assert!(shown.starts_with("Security products\n  - Palo Alto Networks"), "{shown}");

    // The named file wins over the configured one, both over what ships; frames and images know it too.
    std::fs::create_dir_all(folder.join("config/etwhy")).unwrap();
    let configured = "file,category,product\nserver.exe,database,Ledger\ntedrdrv.sys,wrong,\n";
    std::fs::write(folder.join("config/etwhy/knowledge.csv"), configured).unwrap();
    std::fs::write(folder.join("mine.tsv"), "file\tcategory\tvendor\ntedrdrv.sys\tbackup\tMe\n").unwrap();
    let all = rows(folder, "modules hook.etl --json --knowledge mine.tsv");
    let mine = one(&all, "tedrdrv.sys");
    assert_eq!((&mine["category"], &mine["vendor"]), (&"backup".into(), &"Me".into()));
    assert_eq!((&mine["category_basis"], &mine["security"]), (&"user".into(), &false.into()));
    assert_eq!(mine["source"], "USER:mine.tsv:2");
    assert_eq!(one(&all, "server.exe")["category"], "database");
    let frames =
        rows(folder, "dump frame hook.etl --format json --where module=tedrdrv.sys --knowledge mine.tsv");
    assert!(!frames.is_empty() && frames.iter().all(|f| f["category"] == "backup"));

    std::fs::write(folder.join("bad.csv"), "file,category\nx.sys\n").unwrap();
    let output = etwhy(folder, "modules hook.etl --knowledge bad.csv");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("bad.csv:2: x.sys is not known"), "{error}");
}
