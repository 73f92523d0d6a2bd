//! `etwhy segments`: one line for each trace of a folder, to find the one that is worth opening.

use super::why::{TOP, answers};
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::quality;
use crate::report::terminal::{out, text};
use crate::rules::RuleArgs;
use anyhow::Context as _;
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::derived::machine::MachineRow;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::{bytes, counted, duration_ns, percent};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_etl::read::{EtlFile, OpenOptions, joint_trace_id};
use etwhy_report::{Open, Report};
use etwhy_rules::{Answer, Rule, Severity};
use etwhy_table::Database;
use etwhy_trace::Part;
use etwhy_trace::catalog::trace::TraceRow;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "segments",
    about: "One line per trace of a folder: when, how busy, interrupts, losses, the worst finding",
    long_about: "Reads each trace of a folder by itself, newest first: for days of recorded segments of which one is worth opening. `etwhy why FOLDER \
                 --at 14:03` then opens the segments around a time. What was found is kept in etwhy's cache folder, so that the next time \
                 only new segments are read; nothing is written into the folder.",
    examples: "Examples:\n  etwhy segments C:\\traces\n  etwhy segments C:\\traces --json\n  etwhy why C:\\traces --at 14:03",
    // The demonstration trace lies in no folder.
    build: |command| Args::augment_args(command).mut_arg("demo", |demo| demo.hide(true)),
    run: |matches| run(&Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Read all segments again
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    rules: RuleArgs,
}

/// What is said of a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Segment {
    /// Its path.
    file: String,
    /// Begin, nanoseconds since 1970 (UTC).
    begin_unix_ns: i64,
    /// Local time minus UTC where it was recorded.
    offset_ns: i64,
    /// From the first to the last event.
    length_ns: i64,
    /// Size of the file.
    size_bytes: i64,
    /// Busy share of the processors, if it tells.
    busy_percent: Option<f64>,
    /// Share of the processors' time in DPCs and ISRs, if it tells.
    interrupts_percent: Option<f64>,
    /// Events that the session lost.
    events_lost: i64,
    /// Buffers that the session lost.
    buffers_lost: i64,
    /// Buffers that the file lacks, whatever its header says.
    buffers_missing: i64,
    /// Not all of it could be read: the ledger says what is missing.
    in_part: bool,
    /// The worst finding.
    worst: Option<Worst>,
    /// How many patterns were asked for, and how many of them cannot be determined.
    #[serde(flatten)]
    open: Open,
    /// Why it could not be read.
    error: Option<String>,
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Worst {
    id: String,
    severity: String,
    headline: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let rules = args.rules.load()?;
    let mut files: Vec<PathBuf> = Vec::new();
    for path in &args.trace.traces {
        files.extend(traces_in(path)?);
    }
    anyhow::ensure!(!files.is_empty(), "there is no .etl file in what was given");
    // What somebody's own files say is not kept for others.
    let own = !args.rules.rules.is_empty() || !args.trace.knowledge.is_empty();
    let cache = if own { None } else { Cache::find() };
    let mut all: Vec<Segment> =
        files.iter().map(|file| segment(args, file, &rules, cache.as_ref())).collect();
    all.sort_by_key(|segment| std::cmp::Reverse(segment.begin_unix_ns));
    let failed = all.iter().any(|segment| segment.in_part);
    let mut out = out();
    if args.json {
        let json = serde_json::to_string_pretty(&all)?;
        writeln!(out, "{}", etwhy_export::escape_json(&json).unwrap_or(json))?;
    } else {
        write!(out, "{}", text(&document(&all)))?;
    }
    out.flush()?;
    Ok(if failed { Exit::InPart } else { Exit::Done })
}

/// The traces of a folder, or the file itself.
fn traces_in(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("{}: cannot open", path.display());
    if !std::fs::metadata(path).with_context(cannot)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).with_context(cannot)? {
        let file = entry?.path();
        if file.is_file() && file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("etl")) {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

/// What a segment says, from the cache if it was read before.
fn segment(args: &Args, file: &Path, rules: &[Rule], cache: Option<&Cache>) -> Segment {
    let shown = file.display().to_string();
    let content = EtlFile::open(file, file, &OpenOptions::default()).map(|file| file.trace_id()).ok();
    let id = content.and_then(|content| id_of(content, file));
    let known = id.as_ref().zip(cache).filter(|_| !args.fresh).and_then(|(id, cache)| cache.get(id));
    if let Some(known) = known {
        return Segment { file: shown, ..known };
    }
    match read(args, file, rules) {
        Ok(segment) => {
            if let Some((id, cache)) = id.as_ref().zip(cache) {
                cache.put(id, &segment);
            }
            segment
        }
        Err(error) => Segment {
            file: shown,
            begin_unix_ns: 0,
            offset_ns: 0,
            length_ns: 0,
            size_bytes: std::fs::metadata(file)
                .map_or(0, |meta| i64::try_from(meta.len()).unwrap_or(i64::MAX)),
            busy_percent: None,
            interrupts_percent: None,
            events_lost: 0,
            buffers_lost: 0,
            buffers_missing: 0,
            in_part: true,
            worst: None,
            open: Open::default(),
            error: Some(format!("{error:#}")),
        },
    }
}

/// What an answer is kept under. The name of a content is made from parts of it, so that a file can be made to have that of another: the answer
/// is of this file alone, as it is now.
fn id_of(content: String, file: &Path) -> Option<String> {
    let file = std::fs::canonicalize(file).ok()?;
    let is = std::fs::metadata(&file).ok()?;
    let modified = is.modified().ok()?;
    Some(joint_trace_id(&[content, format!("{} {modified:?} {}", is.len(), file.display())]))
}

fn read(args: &Args, file: &Path, rules: &[Rule]) -> anyhow::Result<Segment> {
    let trace = TraceArgs { traces: vec![file.to_owned()], ..args.trace.clone() };
    let recording = trace.recordings()?.list.into_iter().next();
    let recording = recording.ok_or_else(|| anyhow::anyhow!("{}: holds no trace", file.display()))?;
    let (analysed, report) = answers(recording, rules, TOP, Part::default(), std::iter::empty())?;
    let in_part = analysed.exit != Exit::Done;
    Ok(Segment { in_part, ..summary(file, &analysed.db, &report) })
}

/// How many buffers a file lacks, by their numbers or by how many were written: both may mean the same ones.
fn missing(db: &Database) -> i64 {
    let ledger = quality::ledger(db);
    let missing =
        ledger.iter().filter(|a| matches!(a.name.as_str(), "buffers_missing" | "fewer_buffers_than_written"));
    missing.map(|anomaly| anomaly.count).max().unwrap_or(0)
}

fn summary(file: &Path, db: &Database, report: &Report) -> Segment {
    let traces = db.read_or_empty::<TraceRow>();
    let first = traces.first();
    let machine = db.read_or_empty::<MachineRow>();
    let capacity = machine.first().map_or(0, |machine| machine.capacity_ns());
    let processes = || report.bill.iter().filter(|row| row.kind == "process");
    let idle = processes().filter(|row| row.is_idle).find_map(|row| row.share_percent);
    let interrupts = report.bill.iter().filter(|row| row.kind == "driver");
    let interrupts =
        interrupts.fold(0i64, |sum, row| sum.saturating_add(row.dpc_ns).saturating_add(row.isr_ns));
    let found = |o: &&etwhy_rules::Outcome| o.answer == Answer::Found && o.severity > Some(Severity::Info);
    let worst = report.findings.iter().find(found).and_then(|outcome| {
        let headline = outcome.hits.first()?.headline.clone();
        Some(Worst { id: outcome.id.clone(), severity: outcome.severity?.name().to_owned(), headline })
    });
    const MINUTE_NS: i64 = 60_000_000_000;
    Segment {
        file: file.display().to_string(),
        begin_unix_ns: first.as_ref().map_or(0, |row| row.start_unix_ns().saturating_add(row.first_ns())),
        offset_ns: first.as_ref().map_or(0, |row| row.time_zone_bias_min().saturating_mul(-MINUTE_NS)),
        length_ns: first.as_ref().map_or(0, |row| row.duration_ns()),
        size_bytes: first.as_ref().map_or(0, |row| row.size_bytes()),
        busy_percent: idle.map(|idle| (100.0 - idle).max(0.0)),
        interrupts_percent: (capacity > 0 && idle.is_some()).then(|| percent(interrupts, capacity)),
        events_lost: first.as_ref().map_or(0, |row| row.events_lost()),
        buffers_lost: first.as_ref().map_or(0, |row| row.buffers_lost()),
        buffers_missing: missing(db),
        in_part: false,
        worst,
        open: report.open(),
        error: None,
    }
}

fn document(all: &[Segment]) -> Doc {
    let mut doc = Doc::default();
    // A segment is chosen by the first of these, which therefore are there on narrow terminals too.
    let mut table = Table::new([
        Column::word("Begin (local)"),
        Column::name("File"),
        Column::number("Busy"),
        Column::text("Worst finding"),
        Column::number("Length"),
        Column::number("DPC+ISR"),
        Column::number("Lost"),
        Column::number("Size"),
    ])
    .naming_left_out();
    for segment in all {
        let share =
            |share: Option<f64>| share.map_or_else(|| "?".to_owned(), |share| format!("{share:.1} %"));
        let begin = filetime_text(filetime(segment.begin_unix_ns.saturating_add(segment.offset_ns)), 0);
        let lost = match (segment.events_lost, segment.buffers_lost.max(segment.buffers_missing)) {
            _ if segment.error.is_some() => "?".to_owned(),
            (0, 0) => "0".to_owned(),
            (events, 0) => counted(events, "event", "events"),
            (_, buffers) => counted(buffers, "buffer", "buffers"),
        };
        let length = match &segment.error {
            Some(_) => "?".to_owned(),
            None => duration_ns(segment.length_ns),
        };
        let name = Path::new(&segment.file).file_name().map(|name| name.to_string_lossy().into_owned());
        let worst = match (&segment.error, &segment.worst) {
            (Some(error), _) => format!("cannot be read: {error}"),
            (None, Some(worst)) => format!("{}: {}", worst.severity, worst.headline),
            (None, None) => segment.open.nothing_found(),
        };
        table.row([
            if segment.begin_unix_ns == 0 { "?".into() } else { begin.into() },
            Line::name(name.unwrap_or_default()),
            share(segment.busy_percent).into(),
            worst.into(),
            length.into(),
            share(segment.interrupts_percent).into(),
            lost.into(),
            bytes(segment.size_bytes).into(),
        ]);
    }
    doc.table(table);
    doc
}

/// What was found in segments before, each under its [`id_of`].
struct Cache(PathBuf);

impl Cache {
    /// The folder, beside that of symbols; `None` if there is no place for caches.
    fn find() -> Option<Cache> {
        let folder = etwhy_symbols::cache_folder()?;
        // The first number is that of the fields of a segment.
        let version = concat!("segments-2-", env!("CARGO_PKG_VERSION"));
        Some(Cache(folder.parent()?.join(version)))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn get(&self, id: &str) -> Option<Segment> {
        serde_json::from_slice(&std::fs::read(self.path(id)).ok()?).ok()
    }

    /// A cache that cannot be written is no reason to stop.
    fn put(&self, id: &str, segment: &Segment) {
        let written = std::fs::create_dir_all(&self.0).is_ok()
            && etwhy_export::replace_file(&self.path(id), |out| {
                Ok(serde_json::to_writer(out, segment).map_err(std::io::Error::from)?)
            })
            .is_ok();
        tracing::debug!("{}: {}", self.path(id).display(), if written { "written" } else { "not written" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_doc::terminal::Terminal;

    fn segment(file: &str, worst: Option<&str>) -> Segment {
        let worst = worst.map(|headline| Worst {
            id: "dpc.over-limit".to_owned(),
            severity: "warning".to_owned(),
            headline: headline.to_owned(),
        });
        Segment {
            file: format!("/traces/{file}"),
            begin_unix_ns: 1_748_859_300_000_000_000,
            offset_ns: 0,
            length_ns: 29_520_000_000_000,
            size_bytes: 3_210_000,
            busy_percent: Some(67.4),
            interrupts_percent: Some(1.0),
            events_lost: 1_234_567,
            buffers_lost: 0,
            buffers_missing: 0,
            in_part: false,
            worst,
            open: Open { undetermined: 87, asked: 89 },
            error: None,
        }
    }

    #[test]
    fn what_is_lost_is_not_said_to_be_none() {
        let cut = Segment { events_lost: 0, buffers_missing: 13, ..segment("cut.etl", None) };
        let unread =
            Segment { error: Some("no trace".to_owned()), length_ns: 0, ..segment("text.etl", None) };
        let shown = Terminal::plain(240).render(&document(&[cut, unread]));
        let line = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(line("cut.etl").contains("13 buffers"), "{shown}");
        assert!(!line("text.etl").contains("events") && !line("text.etl").contains("0 ns"), "{shown}");
    }

    #[test]
    fn a_narrow_terminal_shows_which_file_and_what_was_found() {
        let found = "exvpn.sys: 55 of 55 DPCs took longer than 100 µs (23.8 ms in total, longest 1.01 ms)";
        let doc =
            document(&[segment("monday.etl", Some(found)), segment("ShutdownPerfDiagLogger.etl", None)]);
        for columns in [80, 100, 240] {
            let text = Terminal::plain(columns).render(&doc);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}:\n{text}");
            for wanted in ["Begin (local)", "File", "Worst finding", "monday.etl", "67.4 %", "warning:"] {
                assert!(words.contains(wanted), "{columns}: {wanted}:\n{text}");
            }
            assert_eq!(columns < 240, words.contains("left out: "), "{columns}:\n{text}");
        }
        let wide = Terminal::plain(240).render(&doc);
        assert!(wide.contains(found) && wide.contains("1,234,567 events"), "{wide}");
        assert!(wide.contains("nothing found; 87 of 89 patterns cannot be determined"), "{wide}");
    }

    #[test]
    fn a_twin_of_the_same_content_id_has_an_answer_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (honest, twin) = (folder.path().join("honest.etl"), folder.path().join("twin.etl"));
        std::fs::write(&honest, "honest").unwrap();
        std::fs::write(&twin, "forged").unwrap();
        let time = std::fs::metadata(&honest).unwrap().modified().unwrap();
        let touch = |file: &std::path::Path, time| {
            std::fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
        };
        touch(&twin, time);
        let id = |file: &std::path::Path| id_of("the same".to_owned(), file);
        let first = id(&honest);
        assert!(first.is_some());
        assert_ne!(id(&twin), first);
        assert_eq!(id(&honest), first);
        touch(&honest, time + std::time::Duration::from_secs(2));
        assert_ne!(id(&honest), first);
        assert_ne!(id_of("another".to_owned(), &honest), id(&honest));
    }
}
