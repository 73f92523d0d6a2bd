//! Several recordings: a verdict for each, and a summary.

use super::{Answered, Args, answer, write_file};
use crate::exit::{self, Exit};
use crate::open::{Recording, Recordings};
use crate::report::terminal::{out, text};
use anyhow::{Context as _, Result, bail};
use etwhy_export::sanitize;
use etwhy_report::several::{One, SCHEMA, Several};
use etwhy_report::{document, html, json};
use etwhy_rules::Rule;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) fn run(args: &Args, rules: &[Rule], recordings: Recordings) -> Result<Exit> {
    let Recordings { list, apart } = recordings;
    if !args.logs.is_empty() {
        bail!(
            "--logs reads event logs beside one recording, and these are {}; give one of them, or --merge if they are one",
            list.len()
        );
    }
    if args.time.from.is_some() || args.time.to.is_some() {
        bail!("--from and --to mean times of one recording, and these are {}; give one of them", list.len());
    }
    let count = list.len();
    let mut several = Several { schema: SCHEMA, apart, traces: Vec::with_capacity(count) };
    let mut pages = Vec::new();
    let mut exit = Exit::Done;
    let mut first_error = None;
    let mut out = out();
    if !args.documents() {
        writeln!(out, "{count} recordings, answered one by one (--merge reads them as one)")?;
        write!(out, "{}", text(&several.apart()))?;
    }
    for (n, recording) in list.into_iter().enumerate() {
        let files = recording.files.clone();
        let number = n + 1;
        let (one, page) = match read(args, rules, recording, number, count, &mut out) {
            Ok((one, page, end)) => {
                exit = if exit == Exit::Done { end } else { exit };
                (one, page)
            }
            Err(error) if exit::is_closed_pipe(&error) => return Err(error),
            // One that cannot be read does not end the rest.
            Err(error) => {
                let one = One::failed(files, format!("{error:#}"));
                say!("etwhy: {}: {} (left out)", one.name(), one.verdict());
                exit = Exit::InPart;
                first_error.get_or_insert(error);
                (one, None)
            }
        };
        several.traces.push(one);
        pages.push(page);
    }
    if let Some(error) = first_error.filter(|_| several.traces.iter().all(|one| one.error.is_some())) {
        return Err(error);
    }
    write(args, &several, &pages, &mut out)?;
    out.flush()?;
    Ok(exit)
}

/// Reads one recording; its verdict, the name of its page and how it ended.
fn read(
    args: &Args,
    rules: &[Rule],
    recording: Recording,
    number: usize,
    count: usize,
    out: &mut impl Write,
) -> Result<(One, Option<String>, Exit)> {
    let files = recording.files.clone();
    let Answered { analysed, mut report, .. } = answer(args, rules, recording)?;
    if !args.documents() {
        let name = One { files: files.clone(), ..One::default() }.name();
        writeln!(out, "\n═══ {number} of {count}: {} ═══\n", sanitize(&name))?;
        write!(out, "{}", text(&document(&report, &args.form())))?;
        out.flush()?;
    }
    let mut page = None;
    if args.html.is_some() || args.markdown.is_wanted() {
        report.add_charts(&analysed.db);
    }
    if let Some(index) = &args.html {
        let path = page_of(index, number)?;
        write_file(&path, true, |out| html::write(&report, out))?;
        page = path.file_name().map(|name| name.to_string_lossy().into_owned());
    }
    if !args.markdown.is_wanted() {
        report.charts = None;
    }
    Ok((One::new(&analysed.db, files, report), page, analysed.exit))
}

/// `why.html` has `why.1.html`, `why.2.html` beside it.
fn page_of(index: &Path, number: usize) -> Result<PathBuf> {
    let stem = index.file_stem().with_context(|| format!("{}: names no file", index.display()))?;
    let mut name = stem.to_owned();
    name.push(format!(".{number}.html"));
    Ok(index.with_file_name(name))
}

fn write(args: &Args, several: &Several, pages: &[Option<String>], out: &mut impl Write) -> Result<()> {
    if !args.documents() {
        return Ok(write!(out, "\n{}", text(&several.summary()))?);
    }
    if args.json {
        let mut plain = several.clone();
        for report in plain.traces.iter_mut().filter_map(|one| one.report.as_mut()) {
            report.charts = None;
        }
        json::write_any(&plain, &mut *out)?;
    }
    args.write_markdown(&several.document(), out)?;
    if let Some(path) = &args.html {
        write_file(path, args.trace.quiet, |file| several.html(pages, file))?;
    }
    Ok(())
}
