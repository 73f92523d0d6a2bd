//! `etwhy record selftest`: records work whose truth is known, and compares.

use crate::exit::Exit;
use crate::own;
use crate::report::terminal::{out, text};
use anyhow::{Context as _, bail};
use etwhy_doc::terminal::Terminal;
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_record::run::{Here, Mode, Options};
use etwhy_record::selftest::{Amount, Check, MARK, Truth, checks, perform};
use etwhy_scratch::Scratch;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Profiles that show the work.
const PROFILES: [&str; 7] = ["cpu", "file", "registry", "memory", "handle", "network", "ui"];
/// What the user must know before the bundle leaves the machine.
const PRIVACY: &str = "The trace in it names all processes, files and registry keys that were used in these seconds, with command lines: look \
                       at it before you send it.";

#[derive(clap::Args)]
pub struct Args {
    /// Write the bundle to FILE: trace, truth, report
    #[arg(long, short, value_name = "FILE", default_value = "selftest.zip")]
    output: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut here = Here::open()?;
    let scratch = Scratch::new(None).context("no folder for temporary files")?;
    say!("etwhy: recording a few seconds of work of its own");
    let mut said = here.step(|recorder| {
        let profiles = PROFILES.map(str::to_owned).to_vec();
        let options = Options::new(profiles, Mode::File, scratch.path().to_path_buf());
        recorder.start(&Options { parts: true, ..options })
    })?;
    let worked = work(&mut here, scratch.path());
    // Whatever came of the work, the sessions end.
    let stopped = here.step(|recorder| recorder.stop());
    let truth = worked.context("the work cannot be done")?;
    let journal = stopped?;
    let trace = scratch.path().join("selftest.etl");
    let files = here.step(|recorder| recorder.collect(&trace, false))?;
    said.extend(journal.remarks.into_iter().map(|remark| remark.text));
    said.extend(truth.not_done.iter().cloned());
    said.sort();
    said.dedup();
    let seen: Vec<(Check, Result<f64, String>)> = checks(&truth)
        .into_iter()
        .map(|check| {
            let seen = ask(&files, &check.sql);
            (check, seen)
        })
        .collect();
    let report = report(&seen, &said);
    bundle(&args.output, &truth, &report, &files)?;
    let mut out = out();
    out.write_all(text(&report).as_bytes())?;
    out.flush()?;
    say!("etwhy: {} holds trace, truth and this report. {PRIVACY}", args.output.display());
    let agrees = seen.iter().all(|(check, seen)| check.agrees(seen.as_ref().ok().copied()));
    Ok(if agrees { Exit::Done } else { Exit::InPart })
}

/// The work between two marks.
fn work(here: &mut Here, folder: &Path) -> anyhow::Result<Truth> {
    here.step(|recorder| recorder.mark(&format!("{MARK} begins")))?;
    let truth = perform(folder, Amount::USUAL)?;
    here.step(|recorder| recorder.mark(&format!("{MARK} ends")))?;
    // What is still in buffers is written each second.
    std::thread::sleep(Duration::from_millis(1500));
    Ok(truth)
}

/// One number of the trace, as another etwhy reads it.
fn ask(files: &[PathBuf], sql: &str) -> Result<f64, String> {
    let asked = || -> anyhow::Result<f64> {
        let mut command = Command::new(own::program()?);
        // They are of one recording, whatever came of its sessions.
        command.args(["sql", "--merge", "--quiet", "--format", "csv", "-c", sql]);
        let output = own::ending_with(command, files).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.lines().nth(1).and_then(|line| line.trim().parse().ok()) {
            Some(number) => Ok(number),
            None => bail!(
                "{}",
                String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no answer").trim()
            ),
        }
    };
    asked().map_err(|error| format!("{error:#}"))
}

fn report(seen: &[(Check, Result<f64, String>)], said: &[String]) -> Doc {
    let mut doc = Doc::default();
    let agree = seen.iter().filter(|(check, seen)| check.agrees(seen.as_ref().ok().copied())).count();
    doc.heading(format!("{agree} of {} figures agree.", seen.len()));
    let mut table = Table::new([
        Column::text("figure"),
        Column::number("done"),
        Column::number("in the trace"),
        Column::number("expected at least"),
        Column::number("at most"),
        Column::word("agrees"),
    ]);
    for (check, seen) in seen {
        let shown = match seen {
            Ok(number) => format!("{number:.0}"),
            Err(_) => "no answer".to_owned(),
        };
        table.row([
            check.what.into(),
            format!("{:.0}", check.truth).into(),
            shown.into(),
            format!("{:.0}", check.least).into(),
            format!("{:.0}", check.most).into(),
            Line::from(if check.agrees(seen.as_ref().ok().copied()) { "yes" } else { "no" }),
        ]);
    }
    doc.table(table);
    for (check, seen) in seen {
        if let Err(why) = seen {
            doc.note(check.what, why.clone());
        }
    }
    for text in said {
        doc.note("said", text.clone());
    }
    doc
}

fn bundle(target: &Path, truth: &Truth, report: &Doc, files: &[PathBuf]) -> anyhow::Result<()> {
    let failed = || format!("{}: cannot be written", target.display());
    let file = std::fs::File::create(target).with_context(failed)?;
    let mut zip = ZipWriter::new(file);
    let options = SimpleFileOptions::default().large_file(true);
    zip.start_file("truth.json", options).with_context(failed)?;
    zip.write_all(serde_json::to_string_pretty(truth)?.as_bytes()).with_context(failed)?;
    zip.start_file("report.txt", options).with_context(failed)?;
    let etwhy = format!("etwhy {}\n", env!("CARGO_PKG_VERSION"));
    zip.write_all((etwhy + &Terminal::plain(100).render(report)).as_bytes()).with_context(failed)?;
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        zip.start_file(name, options).with_context(failed)?;
        let mut from = std::fs::File::open(path).with_context(|| path.display().to_string())?;
        std::io::copy(&mut from, &mut zip).with_context(failed)?;
    }
    zip.finish().with_context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_shows_what_agrees_and_what_does_not() {
        let truth = Truth {
            pid: 7,
            cpu_ns: 1_000_000_000,
            waits: 100,
            waited_ns: 1,
            opens: 500,
            registry_reads: 1000,
            allocations: 200,
            allocation_bytes: 4096,
            ..Truth::default()
        };
        let mut seen: Vec<(Check, Result<f64, String>)> =
            checks(&truth).into_iter().map(|c| (c.clone(), Ok(c.truth))).collect();
        seen[0].1 = Err("no such table".to_owned());
        seen[1].1 = Ok(1.0);
        let text = Terminal::plain(100).render(&report(&seen, &["lost: x".to_owned()]));
        assert!(text.contains("5 of 7 figures agree"), "{text}");
        assert!(text.contains("no such table") && text.contains("lost: x"), "{text}");
    }
}
