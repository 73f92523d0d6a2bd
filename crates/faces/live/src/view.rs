//! A window as one screen.

use crate::history::Episode;
use crate::one_process::List;
use crate::watch::{Range, Summary, Watch};
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::{bytes, duration_ns, thousands};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_sql::Cell;

/// Culprits that are shown.
const CULPRITS: usize = 8;
/// Findings that are shown, of those that last and of those that ended.
const FINDINGS: usize = 6;

/// Times of day where the trace was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Local time minus UTC, in nanoseconds.
    pub offset_ns: i64,
}

impl Local {
    /// `14:03:07`.
    pub fn time(&self, unix_ns: i64) -> String {
        let text = filetime_text(filetime(unix_ns.saturating_add(self.offset_ns)), 0);
        text.split_once(' ').map_or(text.clone(), |(_, time)| time.to_owned())
    }
}

/// One screen: the newest of what was looked at; `None` if nothing was yet.
pub fn screen(watch: &Watch, name: &str, local: Local) -> Option<Doc> {
    let mut doc = Doc::default();
    let (last, whole) = (watch.latest(Range::Last), watch.latest(Range::Whole));
    let look = whole.or(last)?;
    let now = watch.now_unix_ns();
    doc.heading(format!("{name} at {} ({} seen)", local.time(now), duration_ns(look.whole.length_ns())));
    for seen in last.into_iter().chain(whole) {
        doc.text(rates(seen, now));
    }
    findings(&mut doc, watch, local);
    if let Some(process) = &look.process {
        let count = process.instances.len();
        doc.subheading(format!(
            "{}: {count} {}",
            process.asked,
            if count == 1 { "process" } else { "processes" }
        ));
        for list in process.lists.iter().filter(|list| !list.rows.is_empty()) {
            doc.table(table_of(list));
        }
        for (id, headline, fix) in &process.hints {
            doc.item(Line::mark(id.clone()).and(format!(" {headline}")), [fix.clone()]);
        }
    } else {
        bill(&mut doc, look, now);
    }
    for doubt in look.doubts.iter().take(3) {
        doc.note(
            Line::mark(doubt.severity),
            format!("{} x {}", thousands(doubt.count.into()), doubt.meaning),
        );
    }
    if look.late.0 > 0 {
        let worst = duration_ns(look.late.1);
        doc.note(
            Line::mark("late"),
            format!("{} buffers, the worst by {worst}", thousands(look.late.0.into())),
        );
    }
    Some(doc)
}

/// Which part was looked at: `the last 3.00 s`, `60 s, 4.10 s ago`.
pub fn range_of(length_ns: i64, age_ns: i64) -> String {
    let length = duration_ns(length_ns);
    if age_ns <= 0 {
        format!("the last {length}")
    } else {
        format!("{length} until {} ago", duration_ns(age_ns))
    }
}

/// What happened in a part, in a line.
fn rates(look: &Summary, now_unix_ns: i64) -> String {
    let window = &look.window;
    let seconds = (window.length_ns() as f64 / 1e9).max(1e-9);
    let busy =
        look.busy_percent.map_or_else(|| "busy: unknown".to_owned(), |busy| format!("{busy:.0} % busy"));
    let range = range_of(window.length_ns(), now_unix_ns.saturating_sub(window.end_unix_ns()));
    let rate = thousands((look.events as f64 / seconds) as i128);
    let data = bytes(i64::try_from(look.bytes).unwrap_or(i64::MAX));
    format!(
        "{range}: {busy} · {} events, {rate}/s, {data} · read in {} ms",
        thousands(look.events.into()),
        look.cost.as_millis()
    )
}

fn findings(doc: &mut Doc, watch: &Watch, local: Local) {
    let (history, now) = (watch.history(), watch.now_unix_ns());
    if history.lasting().is_empty() {
        doc.text("No finding in this window.");
    }
    // Those of one range beside each other: it is named once.
    let mut ranges: Vec<(String, Vec<&Episode>)> = Vec::new();
    for episode in history.lasting().iter().take(FINDINGS) {
        let range = range_said(episode, now);
        match ranges.iter_mut().find(|(known, _)| *known == range) {
            Some((_, list)) => list.push(episode),
            None => ranges.push((range, vec![episode])),
        }
    }
    for (range, episodes) in ranges {
        let the = if range.starts_with("the ") { "" } else { "the " };
        doc.text(format!("Found in {the}{range}:"));
        for episode in episodes {
            let headline = format!(" {} ({})", episode.said.headline, began(episode, now, local));
            doc.item(Line::mark(episode.severity.name()).and(headline), Vec::<Line>::new());
        }
    }
    let more = history.lasting().len().saturating_sub(FINDINGS);
    if more > 0 {
        doc.text(format!("and {more} more"));
    }
    for episode in history.ended().iter().rev().take(FINDINGS / 2) {
        doc.bullet(ended(episode, local));
    }
}

/// What a finding is about: `the last 3.00 s`.
fn range_said(episode: &Episode, now_unix_ns: i64) -> String {
    let said = &episode.said;
    let length = said.to_unix_ns.saturating_sub(said.from_unix_ns);
    range_of(length, now_unix_ns.saturating_sub(said.to_unix_ns))
}

/// Since when a finding lasts: `began 14:03:07, 12.0 s ago`.
fn began(episode: &Episode, now_unix_ns: i64, local: Local) -> String {
    let ago = duration_ns(now_unix_ns.saturating_sub(episode.began_unix_ns));
    let quiet =
        episode.quiet_unix_ns.map_or_else(String::new, |at| format!(", not since {}", local.time(at)));
    format!("began {}, {ago} ago{quiet}", local.time(episode.began_unix_ns))
}

/// Since when a finding lasts, and what it is about: `began 14:03:07, 12.0 s ago; in the last 3.00 s`.
pub fn since(episode: &Episode, now_unix_ns: i64, local: Local) -> String {
    format!("{}; in {}", began(episode, now_unix_ns, local), range_said(episode, now_unix_ns))
}

/// An ended finding in a sentence.
pub fn ended(episode: &Episode, local: Local) -> String {
    let over = episode.over_unix_ns.map_or_else(String::new, |at| format!("over at {}, ", local.time(at)));
    format!(
        "{over}after {}: {} (began {})",
        duration_ns(episode.lasted_ns()),
        episode.said.headline,
        local.time(episode.began_unix_ns)
    )
}

fn bill(doc: &mut Doc, look: &Summary, now_unix_ns: i64) {
    let rows: Vec<_> = look
        .bill
        .iter()
        .filter(|row| row.kind == "process" && row.part == "culprit" && row.total_cpu_ns > 0)
        .take(CULPRITS)
        .collect();
    if rows.is_empty() {
        doc.text("Who used the processors cannot be determined: no CPU samples in this window.");
        return;
    }
    let range = range_of(look.window.length_ns(), now_unix_ns.saturating_sub(look.window.end_unix_ns()));
    let head = [
        Column::name(format!("Process, {range}")),
        Column::number("CPU"),
        Column::number("Share"),
        Column::number("Made others wait"),
    ];
    let mut table = Table::new(head);
    for row in rows {
        table.row([
            Line::name(row.culprit.clone()),
            duration_ns(row.total_cpu_ns).into(),
            row.share_percent.map_or_else(|| "?".into(), |share| format!("{share:.1} %")).into(),
            row.imposed_wait_ns.map_or_else(|| "?".into(), duration_ns).into(),
        ]);
    }
    doc.table(table);
}

fn table_of(list: &List) -> Table {
    let is_number =
        |at: usize| list.rows.iter().all(|row| row.get(at).is_none_or(|cell| cell.text().is_none()));
    let head = |(at, name): (usize, &String)| {
        let words = name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ");
        match (at, is_number(at)) {
            (0, false) => Column::name(format!("{}: {words}", list.title)),
            (0, true) => Column::number(format!("{}: {words}", list.title)),
            (_, true) => Column::number(words),
            (_, false) => Column::text(words),
        }
    };
    let mut table = Table::new(list.columns.iter().enumerate().map(head));
    for row in &list.rows {
        let cells = list.columns.iter().zip(row).map(|(name, cell)| match cell {
            Cell::I64(ns) if name.ends_with("_ns") => duration_ns(*ns).into(),
            Cell::I64(count) if name.ends_with("_bytes") => bytes(*count).into(),
            Cell::I64(number) => thousands((*number).into()).into(),
            Cell::F64(number) => format!("{number:.1}").into(),
            Cell::Text(text) => Line::name(text.clone()),
            Cell::Null => "?".into(),
        });
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::Local;

    #[test]
    fn the_time_of_day_is_that_of_the_machine() {
        let two_hours = Local { offset_ns: 7_200_000_000_000 };
        assert_eq!(two_hours.time(1_700_000_000_000_000_000), "00:13:20");
        assert_eq!(Local { offset_ns: 0 }.time(1_700_000_000_000_000_000), "22:13:20");
    }
}
