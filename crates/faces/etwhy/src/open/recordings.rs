//! Files that were given, as recordings: only parts of one recording are read as one.

use super::{Found, Opened, TraceArgs};
use crate::options::time::{Span, TimeOfDay, offset_ns};
use crate::verbose::stage;
use etwhy_base::time::{filetime, filetime_text, unix_ns};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, Timeline, joint_trace_id};
use etwhy_export::extract;
use etwhy_export::sanitize;
use etwhy_trace::identity::{Apart, Difference, Grouping, Identity, group, recording};

/// One recording of those that were given.
pub struct Recording {
    args: TraceArgs,
    found: Option<Found>,
    /// Its files, as people call them.
    pub files: Vec<String>,
    /// What counts of it, in nanoseconds since 1970 (UTC), if not all does: the other files only say who is who.
    counts_utc: Option<(i64, i64)>,
}

impl Recording {
    /// Makes it ready to be read.
    ///
    /// # Errors
    /// Those of [`TraceArgs::open`].
    pub fn open(self) -> anyhow::Result<Opened> {
        let counts = self.counts_utc;
        let opened = match self.found {
            Some(found) => self.args.read(found),
            None => self.args.open(),
        }?;
        match counts {
            Some(counts) => opened.within_utc(counts),
            None => Ok(opened),
        }
    }

    /// Whether only a part of it counts.
    pub fn is_part(&self) -> bool {
        self.counts_utc.is_some()
    }

    /// What the column `recording_id` of its trace will say; not known of an extract before it is read.
    pub fn recording_id(&self) -> Option<String> {
        let ids: Vec<String> = self.found.as_ref()?.files.iter().map(EtlFile::trace_id).collect();
        Some(joint_trace_id(&ids))
    }

    /// SHA-256 of its file, or a name made from those of its files; not known of an extract.
    pub fn sha256(&self) -> Option<String> {
        let all: Vec<String> = self.found.as_ref()?.files.iter().map(EtlFile::sha256).collect();
        Some(joint_trace_id(&all))
    }

    /// Bytes of its files; 0 of an extract.
    pub fn size(&self) -> u64 {
        self.found.iter().flat_map(|found| &found.files).map(EtlFile::len).sum()
    }
}

/// Recordings in the order in which they were given.
pub struct Recordings {
    /// Each.
    pub list: Vec<Recording>,
    /// Why they are not one; empty if there is one.
    pub apart: Vec<String>,
}

/// Begin, end and zone of files that are read as one.
pub(super) fn span(files: &[EtlFile]) -> Span {
    let timeline = Timeline::read(files, &mut Ledger::new());
    let ends = files.iter().map(|file| covers(file).1);
    let bias = files.first().map(|file| i64::from(file.header().time_zone.bias));
    Span {
        start_ns: Some(timeline.start_unix_ns()),
        end_ns: ends.max().unwrap_or(0),
        offset_ns: offset_ns(bias),
    }
}

/// First and last moment of a file, nanoseconds since 1970 (UTC).
fn covers(file: &EtlFile) -> (i64, i64) {
    let moments = || file.buffers().iter().filter_map(|b| Some(file.clock().unix_ns(b.first_ticks?)));
    let (first, last) = (moments().min().unwrap_or(0), moments().max().unwrap_or(0));
    let ended = if file.header().end_time > 0 { unix_ns(file.header().end_time) } else { last };
    (first, last.max(ended))
}

/// First and last moments of the files of a recording. The files of one session lie one behind the other, whatever each of their headers says of the
/// session's begin and end.
fn moments(files: &[EtlFile]) -> Vec<(i64, i64)> {
    let session = |file: &EtlFile| file.header().session_name.clone();
    let data = |file: &EtlFile| {
        let moments =
            || file.buffers().iter().skip(1).filter_map(|b| Some(file.clock().unix_ns(b.first_ticks?)));
        moments().min().zip(moments().max())
    };
    let of = |file: &EtlFile| {
        let whole = covers(file);
        let others: Vec<&EtlFile> = files.iter().filter(|other| session(other) == session(file)).collect();
        let (Some((first, last)), 2..) = (data(file), others.len()) else { return whole };
        let next = others.into_iter().filter_map(&data).map(|other| other.0).filter(|begin| *begin > first);
        (first, next.min().map_or(whole.1, |next| whole.1.min(next).max(last)))
    };
    files.iter().map(of).collect()
}

/// Files that say who is who in others of their session: the first and the last one, where a session names what is there, and the neighbours, where
/// processes start and end.
fn who_is_who(files: &[EtlFile], spans: &[(i64, i64)], wanted: &[bool]) -> Vec<bool> {
    let session = |file: usize| files.get(file).map(|file| file.header().session_name.as_str());
    let is_wanted = |file: usize| wanted.get(file).copied().unwrap_or(false);
    let mut needed = vec![false; files.len()];
    for name in (0..files.len()).filter(|file| is_wanted(*file)).map(session) {
        let mut series: Vec<usize> = (0..files.len()).filter(|file| session(*file) == name).collect();
        series.sort_by_key(|file| spans.get(*file));
        let (first, last) = (0, series.len().saturating_sub(1));
        for (place, &file) in series.iter().enumerate() {
            let beside = [place.checked_sub(1), place.checked_add(1)].into_iter().flatten();
            let is_neighbour =
                beside.filter_map(|beside| series.get(beside)).any(|&beside| is_wanted(beside));
            if (place == first || place == last || is_neighbour)
                && let Some(needed) = needed.get_mut(file)
            {
                *needed = true;
            }
        }
    }
    needed
}

impl Recordings {
    /// Only what the files hold that cover a moment; what is read as one stays so. Others of their sessions are read to know who is who, and count
    /// for nothing.
    ///
    /// # Errors
    /// If none does.
    pub fn around(mut self, at: TimeOfDay) -> anyhow::Result<Recordings> {
        let all = self.list.iter().filter_map(|recording| recording.found.as_ref()).flat_map(|found| {
            let offset = |file: &EtlFile| offset_ns(Some(i64::from(file.header().time_zone.bias)));
            moments(&found.files).into_iter().zip(found.files.iter().map(offset).collect::<Vec<_>>())
        });
        let spans: Vec<((i64, i64), i64)> = all.collect();
        // Of several days with that time of day the latest counts.
        let moment = spans.iter().filter_map(|(span, offset)| at.within(*span, *offset)).max();
        let Some(moment) = moment else {
            let text = |ns: i64| filetime_text(filetime(ns), 0);
            let zone = spans.first().map_or(0, |(_, offset)| *offset);
            let first = spans.iter().map(|(span, _)| span.0).min().unwrap_or(0);
            let last = spans.iter().map(|(span, _)| span.1).max().unwrap_or(0);
            anyhow::bail!(
                "no file covers that time; they begin at {} and end at {}, local time of the machine",
                text(first.saturating_add(zone)),
                text(last.saturating_add(zone))
            );
        };
        for recording in &mut self.list {
            let Some(found) = &mut recording.found else { continue };
            let spans = moments(&found.files);
            let covering: Vec<bool> =
                spans.iter().map(|(first, last)| *first <= moment && moment <= *last).collect();
            let needed = who_is_who(&found.files, &spans, &covering);
            let counting =
                || spans.iter().zip(&covering).filter(|(_, covers)| **covers).map(|(span, _)| *span);
            if needed.iter().zip(&covering).any(|(needed, covers)| *needed && !covers) {
                let (first, last) =
                    (counting().map(|span| span.0).min(), counting().map(|span| span.1).max());
                recording.counts_utc = first.zip(last.map(|last| last.saturating_add(1)));
            }
            let shown = |file: &EtlFile| file.shown().display().to_string();
            recording.files = found
                .files
                .iter()
                .zip(&covering)
                .filter(|(_, covers)| **covers)
                .map(|(file, _)| shown(file))
                .collect();
            let mut keep = covering.iter().zip(&needed).map(|(covers, needed)| *covers || *needed);
            found.files.retain(|_| keep.next().unwrap_or(false));
        }
        self.list.retain(|recording| recording.found.as_ref().is_some_and(|found| !found.files.is_empty()));
        Ok(self)
    }
}

impl TraceArgs {
    /// Everything that was given, sorted into recordings; with `--merge` they are one. An extract is a recording of its own.
    ///
    /// # Errors
    /// If no trace can be opened.
    pub fn recordings(&self) -> anyhow::Result<Recordings> {
        crate::knowledge::load(&self.knowledge)?;
        crate::knowledge::load_tags(&self.tags)?;
        let (extracts, traces): (Vec<_>, Vec<_>) =
            self.traces.iter().cloned().partition(|path| extract::is_extract(path));
        let alone = |args: TraceArgs| {
            let files = args.traces.iter().map(|path| path.display().to_string()).collect();
            Recording { args, found: None, files, counts_utc: None }
        };
        if !extracts.is_empty() {
            let of = |traces| TraceArgs { traces, ..self.clone() };
            let mut all = Recordings { list: Vec::new(), apart: Vec::new() };
            if !traces.is_empty() {
                all = of(traces).recordings()?;
            }
            all.list.extend(extracts.into_iter().map(|path| alone(of(vec![path]))));
            return Ok(all);
        }
        let found = stage("input", || self.find())?;
        let grouping = if self.merge || found.files.len() < 2 {
            Grouping { recordings: vec![(0..found.files.len()).collect()], apart: Vec::new() }
        } else {
            group(&identities(&found.files))
        };
        if found.files.len() > 1 {
            tracing::info!("{} files are {} recordings", found.files.len(), grouping.recordings.len());
        }
        let apart = grouping.apart.iter().map(|apart| in_words(apart, &found.files)).collect();
        let list = split(found, &grouping.recordings)
            .into_iter()
            .map(|found| {
                let files = found.files.iter().map(|file| file.shown().display().to_string()).collect();
                Recording { args: self.clone(), found: Some(found), files, counts_utc: None }
            })
            .collect();
        Ok(Recordings { list, apart })
    }
}

fn identities(files: &[EtlFile]) -> Vec<Identity> {
    files.iter().map(Identity::from_file).collect()
}

/// The files of each recording with what they need. What was noticed on the way stays with the first.
fn split(found: Found, recordings: &[Vec<usize>]) -> Vec<Found> {
    let Found { files, mut ledger, inputs, mut demo } = found;
    let mut files: Vec<Option<EtlFile>> = files.into_iter().map(Some).collect();
    recordings
        .iter()
        .map(|members| Found {
            files: members.iter().filter_map(|&n| files.get_mut(n)?.take()).collect(),
            ledger: std::mem::replace(&mut ledger, Ledger::new()),
            inputs: inputs.clone(),
            demo: demo.take(),
        })
        .collect()
}

fn in_words(apart: &Apart, files: &[EtlFile]) -> String {
    let name = |n: usize| files.get(n).map_or_else(String::new, |file| file.shown().display().to_string());
    let [a, b] = apart.files;
    let differ: Vec<String> = apart.differences.iter().map(difference).collect();
    format!("{} and {}: {}", name(a), name(b), differ.join("; "))
}

fn difference(difference: &Difference) -> String {
    match &difference.values {
        [a, b] if !(a.is_empty() && b.is_empty()) => format!("{}: {a} and {b}", difference.fact),
        _ => format!("{}: {}", difference.fact, difference.text),
    }
}

/// Recordings that a message describes; the others are counted.
const SHOWN: usize = 3;

/// Files of several recordings were to be read as one.
#[derive(Debug)]
pub struct SeveralRecordings {
    /// What the files are and what sets them apart, line by line, safe for a terminal.
    pub lines: Vec<String>,
}

impl std::fmt::Display for SeveralRecordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

impl std::error::Error for SeveralRecordings {}

/// Refuses to read several recordings as one, or says that it is done because `--merge` wants it.
pub(super) fn check(found: &Found, merge: bool) -> Result<(), SeveralRecordings> {
    if found.files.len() < 2 {
        return Ok(());
    }
    let identities = identities(&found.files);
    let grouping = group(&identities);
    if grouping.recordings.len() < 2 {
        return Ok(());
    }
    let mut lines = describe(&grouping, &identities, &found.files);
    if merge {
        lines.push("read as one all the same, as --merge says".to_owned());
        for line in &lines {
            say!("etwhy: {line}");
        }
        return Ok(());
    }
    lines.push(
        "give the files of one recording; `etwhy why` answers several recordings one by one, `etwhy diff` and `etwhy serve` \
         compare them, --merge reads them as one all the same"
            .to_owned(),
    );
    Err(SeveralRecordings { lines })
}

fn describe(grouping: &Grouping, identities: &[Identity], files: &[EtlFile]) -> Vec<String> {
    let mut lines = vec![format!(
        "these {} files are of {} recordings and are not read as one:",
        files.len(),
        grouping.recordings.len()
    )];
    for members in grouping.recordings.iter().take(SHOWN) {
        let Some(first) = members.first().and_then(|&n| identities.get(n)) else { continue };
        let more = if members.len() > 1 { format!(" and {} more", members.len() - 1) } else { String::new() };
        lines.push(format!("  {}{more}: {}", first.shown.display(), recording::describe(first)));
    }
    let rest = grouping.recordings.len().saturating_sub(SHOWN);
    if rest > 0 {
        lines.push(format!("  and {rest} more"));
    }
    lines.extend(grouping.apart.iter().take(SHOWN).map(|apart| in_words(apart, files)));
    lines.iter().map(|line| sanitize(line).into_owned()).collect()
}
