//! What holds for every command.
//!
//! Whoever makes a trace, a log, a policy, a counter log or a result chooses the names in it. Such names go through every command and
//! every form of its output, and stay text: no escape codes, no markup in Markdown and HTML, no formulas in CSV.
//!
//! Commands, options and formats are not listed here but found: in the help of the program, in the registry of formats. A command that
//! this test has no hostile input for fails it.

use crate::{ETWHY, Str as _};
use std::path::{Path, PathBuf};
use std::process::Output;

/// A formula, markup of HTML and Markdown, an escape code, a direction mark, a bell.
const HOSTILE: &str = "=cmd|'C calc'#A0<img src=x onerror=alert(1)>![i](http://evil.example/p.png)[l](http://evil.example)\u{1b}[31m\u{202e}\u{7}`b`.exe";
/// The same without what paths of counters are made of.
const NAME: &str = "=cmd|<img src=x onerror=1>![i]<b>\u{1b}[31m\u{202e}";

fn run(arguments: &[String]) -> Output {
    ETWHY.command(arguments).env("ETWHY_CACHE", "").output().unwrap()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// What the help of a command says: its commands, its options and whether each takes a value.
struct Help {
    commands: Vec<String>,
    options: Vec<(String, bool)>,
}

fn help(command: &[String]) -> Help {
    let out = run(&[command, &["--help".to_owned()]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    let (mut commands, mut options, mut inside) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match line.trim() {
            "Commands:" => inside = true,
            "" => inside = false,
            word if inside && indent == 2 => commands.extend(word.split(' ').next().map(str::to_owned)),
            option if indent <= 6 && option.starts_with('-') => {
                if let Some(at) = option.find("--") {
                    let name = option[at..].split([' ', '=', '[']).next().unwrap().to_owned();
                    options.push((name, option.contains('<')));
                }
            }
            _ => {}
        }
    }
    commands.retain(|command| command != "help");
    Help { commands, options }
}

/// All commands that do something, with their options.
fn leaves(command: &[String], found: &mut Vec<(Vec<String>, Help)>) {
    let help = help(command);
    for sub in &help.commands {
        leaves(&[command, std::slice::from_ref(sub)].concat(), found);
    }
    // `etwhy evtx` does something by itself too.
    if !command.is_empty()
        && (help.commands.is_empty() || help.options.iter().any(|(name, _)| name == "--counts"))
    {
        found.push((command.to_vec(), help));
    }
}

/// Nothing but line ends and tabs steers a terminal.
fn no_control(text: &str, what: &str) {
    let bad = text.chars().find(|&c| !matches!(c, '\n' | '\t') && etwhy_export::is_unsafe(c));
    assert_eq!(bad, None, "{what}");
}

/// Cells of CSV, quotes taken off.
fn cells(csv: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in csv.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells
}

/// The text of Markdown without what is in code spans and blocks of code.
fn outside_of_code(markdown: &str) -> String {
    let (mut out, mut block) = (String::new(), String::new());
    for line in markdown.lines() {
        let fence: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        if block.is_empty() && fence.len() >= 3 {
            block = fence;
        } else if !block.is_empty() {
            if fence.len() >= block.len() {
                block.clear();
            }
        } else {
            let mut rest = line;
            while let Some(at) = rest.find('`').filter(|at| !rest[..*at].ends_with('\\')) {
                out.push_str(&rest[..at]);
                let Some(end) = rest[at + 1..].find('`') else { break };
                rest = &rest[at + 1 + end + 1..];
            }
            out.push_str(rest);
            out.push('\n');
        }
    }
    out
}

fn check(kind: &str, bytes: &[u8], what: &str) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(!matches!(kind, "text" | "csv" | "md" | "html" | "json"), "{what}: no UTF-8");
        return;
    };
    if matches!(kind, "parquet" | "pq") {
        return;
    }
    no_control(text, what);
    match kind {
        "csv" => {
            for cell in cells(text) {
                let formula = cell.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t']);
                assert!(!formula || cell.parse::<f64>().is_ok(), "{what}: {cell}");
            }
        }
        "md" => {
            // What a backslash stands before is text.
            let text = outside_of_code(text).replace("\\[", "").replace("\\]", "").replace("\\!", "");
            for markup in ["![i]", "<img", "<b>", "](http", "http://evil"] {
                assert!(!text.contains(markup), "{what}: {markup} in {text}");
            }
        }
        "html" | "svg" | "xml" => {
            assert!(!text.contains("<img src=x") && !text.contains("<b>\u{1b}"), "{what}: markup");
        }
        "json" => {
            assert!(
                serde_json::from_str::<serde_json::Value>(text).is_ok()
                    || text.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()),
                "{what}: {text}"
            );
        }
        _ => {}
    }
}

/// Hostile files of all kinds.
struct Inputs {
    folder: tempfile::TempDir,
    log: Option<PathBuf>,
}

impl Inputs {
    fn new() -> Inputs {
        let inputs = Inputs { folder: tempfile::tempdir().unwrap(), log: None };
        inputs.trace();
        inputs.policy();
        inputs.counters();
        inputs.probe();
        let log = inputs.log();
        Inputs { log, ..inputs }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).str().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// A scenario in which a program that is blamed has a hostile name.
    fn trace(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/findings");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let blamed = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("culprit = \"").map(str::to_owned))?;
            let name = line.split('"').next()?.to_owned();
            (name.ends_with(".exe") && text.contains(&format!("\nname = \"{name}\""))).then_some((text, name))
        };
        let (text, name) = files.iter().find_map(blamed).unwrap();
        let hostile: String =
            HOSTILE
                .chars()
                .map(|c| {
                    if etwhy_export::is_unsafe(c) {
                        format!("\\u{:04x}", u32::from(c))
                    } else {
                        c.to_string()
                    }
                })
                .collect();
        self.write("hostile.toml", text.replace(&name, &hostile));
        let out = run(&words(&format!(
            "synth {} -o {} --scale 0.1 --quiet",
            self.path("hostile.toml"),
            self.path("hostile.etl")
        )));
        assert!(out.status.success(), "{out:?}");
    }

    fn policy(&self) {
        let guid = |n: u32| format!("{{0CCE92{n}-69AE-11D9-BED3-505054503030}}");
        self.write(
            "policy.csv",
            format!(
                "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting\n\
                 {HOSTILE},System,{HOSTILE},{},Success,\n{HOSTILE},System,x,{{0CCE92FF-69AE-11D9-BED3-505054503030}},Success,\n\
                 {HOSTILE},S-1-5-{HOSTILE},{HOSTILE},{},{HOSTILE},Success,9\n{HOSTILE},,Option:{HOSTILE},,{HOSTILE},,1\n{HOSTILE}\n",
                guid(15), guid(26)
            ),
        );
    }

    fn counters(&self) {
        let mut text = format!("\"(PDH-CSV 4.0) ({NAME})(0)\"");
        for counter in [
            format!("Process({NAME})\\Handle Count"),
            "Processor(0)\\% DPC Time".to_owned(),
            format!("PhysicalDisk({NAME})\\Avg. Disk sec/Read"),
            format!("{NAME}\\{NAME}"),
        ] {
            text.push_str(&format!(",\"\\\\{NAME}\\{counter}\""));
        }
        for minute in 0..40 {
            text.push_str(&format!(
                "\n\"05/06/2024 10:{minute:02}:00.000\",\"{}\",\"99\",\"3\",\"1\"",
                1000 + minute * 900
            ));
        }
        self.write("counters.csv", text + "\n");
    }

    fn probe(&self) {
        let name = serde_json::to_string(HOSTILE).unwrap();
        let samples: Vec<String> = (0..6)
            .map(|round| {
                format!(
                    r#"{{"measure":{name},"variant":{name},"round":{round},"start_ns":0,"operations":100,"value":2000,"unit":"ns","wall_ns":1,"cpu_ns":null,"queue_ns":null,"blocked_ns":null,"waits":null,"p50_ns":2000,"p95_ns":null,"p99_ns":null,"max_ns":null}}"#
                )
            })
            .collect();
        let json = format!(
            r#"{{"schema":"etwhy.probe/1","version":"0.1.0","started_utc_s":1,"took_ns":1,"machine":{{"facts":[]}},"products":[],
            "probes":[{{"probe":{name},"parameters":{{}},"samples":[{}],"notes":[{name}],"suspects":[]}}]}}"#,
            samples.join(",")
        );
        self.write("probe.json", json);
    }

    /// A log of the corpus whose computer has another name of the same length.
    fn log(&self) -> Option<PathBuf> {
        let log = etwhy_testkit::corpus_file("evtx/omerbenamram+evtx/security.evtx")?;
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (old, new) = (utf16("WIN-03DLIIOFRRA"), utf16("=<b>![i](h)\u{1b}\u{202e}`|"));
        assert_eq!(old.len(), new.len());
        let mut bytes = std::fs::read(log).unwrap();
        for chunk in bytes[4096..].chunks_mut(65_536).filter(|chunk| chunk.starts_with(b"ElfChnk\0")) {
            // The flag "no checksums" of the chunk.
            chunk[120] |= 4;
            let mut at = 0;
            while let Some(found) = chunk[at..].windows(old.len()).position(|part| part == old) {
                chunk[at + found..at + found + new.len()].copy_from_slice(&new);
                at += found + new.len();
            }
        }
        let path = self.folder.path().join("hostile.evtx");
        std::fs::write(&path, bytes).unwrap();
        Some(path)
    }

    /// A store with the hostile trace.
    fn store(&self) -> String {
        let store = self.path("asked");
        if !Path::new(&store).exists() {
            let out = run(&words(&format!("fleet run {} -o {store} --quiet", self.path("hostile.etl"))));
            assert!(out.status.code().is_some_and(|code| code < 2), "{out:?}");
        }
        store
    }

    /// What a command is asked, with hostile input. `None` for commands that are not known here.
    fn of(&self, command: &str) -> Option<Vec<Vec<String>>> {
        let (trace, probe) = (self.path("hostile.etl"), self.path("probe.json"));
        let log = self.log.as_ref().map(|log| log.str().to_owned());
        let with_log = |rest: &[&str]| {
            log.iter()
                .map(|log| [vec![log.clone()], rest.iter().map(|r| (*r).to_owned()).collect()].concat())
                .collect::<Vec<Vec<String>>>()
        };
        let all = |base: &[&str]| vec![base.iter().map(|part| (*part).to_owned()).collect::<Vec<String>>()];
        Some(match command {
            "audit" => [
                all(&[&self.path("policy.csv"), "--all"]),
                with_log(&[]).into_iter().map(|log| [vec!["--log".to_owned()], log].concat()).collect(),
            ]
            .concat(),
            "counters" => {
                [all(&[&self.path("counters.csv")]), all(&[&self.path("counters.csv"), "--dump", "counter"])]
                    .concat()
            }
            "diff" => all(&[&trace, &trace]),
            "dump" => [all(&["process", &trace]), all(&["ledger", &trace])].concat(),
            "evtx" => [
                with_log(&[]),
                with_log(&["--first", "30"]),
                with_log(&["--sql", "SELECT DISTINCT computer, computer AS again FROM log_record"]),
            ]
            .concat(),
            "evtx why" => with_log(&[]),
            "explain" => all(&["ntoskrnl.exe!KeWaitForSingleObject", &trace]),
            "export" => etwhy_export::profile::profile_formats()
                .map(|format| vec![format.name.to_owned(), trace.clone()])
                .collect(),
            "follow" => [all(&[&trace]), all(&[&trace, "--process", HOSTILE])].concat(),
            "live" => all(&["--replay", &trace, "--speed", "max", "--process", HOSTILE]),
            "segments" | "flame" | "info" | "modules" | "strace" | "tree" | "why" => all(&[&trace]),
            "record merge" => all(&[&trace, "--force", "-o", &self.path("merged.etl")]),
            "sql" => all(&[&trace, "SELECT name, command_line, 'x' AS x FROM process"]),
            "path" => all(&[&trace, "--thread", "1", "--from", "0", "--to", "1"]),
            "probe compare" => all(&[&probe, &probe]),
            "probe report" => all(&[&probe]),
            "symbols missing" | "symbols plan" => all(&[&trace]),
            "symbols path" => all(&["--symbols", HOSTILE]),
            "symbols verify" => all(&[&self.path("hostile.toml"), &trace]),
            "rules" => all(&["show", HOSTILE]),
            "synth" => all(&[&format!("/nonexistent/{HOSTILE}")]),
            "evtx messages list" | "evtx messages build" => all(&[&format!("/nonexistent/{HOSTILE}")]),
            "evtx messages show" => all(&["/nonexistent/x", HOSTILE]),
            "fleet run" => all(&[&trace, "-o", &self.path("store")]),
            "fleet plan" => all(&[&trace]),
            "fleet identify" => all(&[&trace]),
            "fleet extract" => all(&[&trace, "-o", &self.path("part")]),
            "fleet rank" => ["drivers", "processes", "products", "categories", "findings"]
                .iter()
                .flat_map(|what| all(&[what, &self.store()]))
                .collect(),
            "fleet show" => all(&["hostile.etl", &self.store()]),
            "fleet coverage" | "fleet outliers" | "fleet regressions" => all(&[&self.store()]),
            "fleet detail" => {
                let store = self.store();
                let said: serde_json::Value = ETWHY.json(&["fleet", "show", "hostile.etl", &store, "--json"]);
                let id = said["rows"][0]["trace"]["trace_id"].as_str().unwrap().to_owned();
                all(&[&store, &id, "-o", &self.path("detail")])
            }
            "fleet trend" => all(&[&self.store(), "--of", "processes"]),
            "extract" | "symbols apply" => all(&[&format!("/nonexistent/{HOSTILE}")]),
            "probe list" | "probe run" => all(&[HOSTILE]),
            "record" => all(&["--print", HOSTILE]),
            "record start" => [all(&["cpu", "--on", HOSTILE]), all(&[HOSTILE, "--on", "host"])].concat(),
            "record mark" => all(&[HOSTILE]),
            "record save" | "record selftest" | "record stop" => all(&["--output", HOSTILE]),
            // They ask Windows for a recording, and there is none.
            "record guard" | "record status" | "record cancel" => all(&[]),
            // They print what is built in, wait for browsers, or ask servers.
            "evtx messages collect" | "serve" | "symbols fetch" => Vec::new(),
            _ => return None,
        })
    }
}

/// What is asked of a command besides: each flag and format that its help names, on standard output and as a file.
fn variants(help: &Help, folder: &Path) -> Vec<(Vec<String>, String, Option<PathBuf>)> {
    let mut all = vec![(Vec::new(), "text".to_owned(), None)];
    let formats = || etwhy_export::formats().map(|format| format.name);
    for (name, takes_value) in &help.options {
        let plain = name.trim_start_matches('-');
        match (plain, takes_value) {
            ("json" | "csv" | "md" | "html" | "xml" | "full" | "all" | "counts", false) => {
                let kind = if matches!(plain, "full" | "all" | "counts") { "text" } else { plain };
                all.push((vec![name.clone()], kind.to_owned(), None));
            }
            ("md" | "html", true) => {
                let file = folder.join(format!("out.{plain}"));
                all.push((vec![name.clone(), file.str().to_owned()], plain.to_owned(), Some(file)));
            }
            ("format", true) => {
                for format in formats() {
                    let kind = match format {
                        "jsonl" => "json",
                        "table" => "text",
                        format => format,
                    };
                    all.push((vec![name.clone(), format.to_owned()], kind.to_owned(), None));
                }
            }
            ("output", true) => {
                let endings = etwhy_export::formats().flat_map(|format| format.extensions.iter().copied());
                for ending in endings.chain(["html", "md", "svg", "xml"]) {
                    let file = folder.join(format!("out.{ending}"));
                    let kind = match ending {
                        "jsonl" | "ndjson" => "json",
                        "txt" => "text",
                        ending => ending,
                    };
                    all.push((vec![name.clone(), file.str().to_owned()], kind.to_owned(), Some(file)));
                }
            }
            _ => {}
        }
    }
    all
}

#[test]
fn hostile_names_stay_text_in_every_command_and_format() {
    let inputs = Inputs::new();
    let outputs = tempfile::tempdir().unwrap();
    let mut commands = Vec::new();
    leaves(&[], &mut commands);
    assert!(commands.len() >= 25, "{}", commands.len());
    let (mut asked, mut answered) = (0, 0);
    for (command, help) in &commands {
        let name = command.join(" ");
        let Some(bases) = inputs.of(&name) else {
            panic!("`etwhy {name}` has no hostile input here: add it to `Inputs::of`");
        };
        for base in bases {
            for (arguments, mut kind, file) in variants(help, outputs.path()) {
                // The format is named, whatever the file's ending.
                if name == "export" {
                    if !file.as_ref().is_some_and(|file| file.ends_with("out.txt")) {
                        continue;
                    }
                    kind = "bytes".to_owned();
                }
                // SQL and dumps choose formats, the rest of these commands does not.
                let mut line = [command.as_slice(), &base, &arguments].concat();
                if help.options.iter().any(|(option, _)| option == "--quiet") {
                    line.push("--quiet".to_owned());
                }
                let what = format!("etwhy {}", line.join(" "));
                file.iter().for_each(|file| drop(std::fs::remove_file(file)));
                let out = run(&line);
                asked += 1;
                no_control(&String::from_utf8_lossy(&out.stderr), &format!("standard error of {what}"));
                let code = out.status.code().unwrap_or_else(|| panic!("{what}: {out:?}"));
                assert!(
                    code < 5 && !String::from_utf8_lossy(&out.stderr).contains("panicked"),
                    "{what}: {out:?}"
                );
                if code >= 2 {
                    // What a command cannot write it does not write.
                    assert!(file.as_ref().is_none_or(|file| !file.exists()), "{what}: refused, and written");
                    continue;
                }
                answered += 1;
                let written = file.as_ref().and_then(|file| std::fs::read(file).ok());
                check(if file.is_some() { "text" } else { &kind }, &out.stdout, &what);
                if let Some(written) = written {
                    check(&kind, &written, &what);
                    let is_markup =
                        std::str::from_utf8(&written).is_ok_and(|text| text.trim_start().starts_with('<'));
                    assert!(
                        is_markup || !matches!(kind.as_str(), "html" | "svg" | "xml"),
                        "{what}: not what its ending says"
                    );
                }
            }
        }
    }
    assert!(asked > 100 && answered > 60, "{answered} of {asked}");
}

/// A time that is none is refused by every option that takes one; it is never read as another or passed over.
#[test]
fn impossible_times_are_refused_by_every_command() {
    let inputs = Inputs::new();
    let mut commands = Vec::new();
    leaves(&[], &mut commands);
    let mut tried = 0;
    for (command, help) in &commands {
        let Some(base) = inputs.of(&command.join(" ")).and_then(|bases| bases.into_iter().next()) else {
            continue;
        };
        for (option, _) in
            help.options.iter().filter(|(option, _)| ["--from", "--to"].contains(&option.as_str()))
        {
            for wrong in [
                "2015-13-45",
                "2015-08-41",
                "2015-02-31T99:99:99",
                "2023-02-29",
                "soon",
                "1parsec",
                "-1parsec",
            ] {
                // The last of two counts where a command needs one.
                let kept: Vec<String> = match base.iter().position(|part| part == option) {
                    Some(at) => [&base[..at], &base[at + 2..]].concat(),
                    None => base.clone(),
                };
                let mut line = [command.as_slice(), &kept, &[option.clone(), wrong.to_owned()]].concat();
                if command.join(" ") == "flame" {
                    line.extend(["-o".to_owned(), inputs.path("flame.svg")]);
                }
                let out = run(&line);
                let error = String::from_utf8_lossy(&out.stderr).into_owned();
                assert!(out.status.code() == Some(2) && error.contains(wrong), "{line:?}: {out:?}");
                assert!(error.contains("2026-11-24T09:00Z"), "no example: {error}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 20, "{tried}");
}
