//! What is shown of a trace that is followed: a screen that is written anew, lines where there is no terminal, or JSON.

use crate::report::terminal::{out, text};
use etwhy_base::units::thousands;
use etwhy_export::{escape_json, sanitize};
use etwhy_live::line::line;
use etwhy_live::view::{Local, ended, range_of, screen, since};
use etwhy_live::{Fired, Follower, Look, Range, Watch};
use std::io::{IsTerminal as _, Write as _, stdout};

/// Moves to the first column of the first row and clears what was there.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Windows bias in minutes to nanoseconds.
const MINUTE_NS: i64 = 60_000_000_000;

/// Where windows are shown.
pub trait Sink {
    /// Nothing has come yet.
    ///
    /// # Errors
    /// Those of writing it.
    fn nothing_yet(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
    /// Another window.
    ///
    /// # Errors
    /// Those of writing it.
    fn window(
        &mut self,
        look: &Look,
        watch: &Watch,
        follower: &Follower,
        fired: Option<&Fired>,
    ) -> anyhow::Result<()>;
    /// A condition was met.
    ///
    /// # Errors
    /// Those of writing it.
    fn stopped(&mut self, fired: &Fired) -> anyhow::Result<()> {
        let _ = fired;
        Ok(())
    }
    /// The trace ended; `waits` says that a condition was waited for.
    ///
    /// # Errors
    /// Those of writing it.
    fn ended(&mut self, waits: bool) -> anyhow::Result<()> {
        let _ = waits;
        Ok(())
    }
}

/// Local time where a trace was recorded minus UTC, in nanoseconds.
pub fn bias_ns(follower: &Follower) -> i64 {
    let bias = follower.files().first().map_or(0, |file| file.header().time_zone.bias);
    i64::from(bias).saturating_mul(-MINUTE_NS)
}

/// How windows are shown as text.
pub struct Show {
    json: bool,
    terminal: bool,
    name: String,
    local: Local,
    /// Ids of findings that were told, and how many ended ones.
    told: Vec<String>,
    told_ended: u64,
}

impl Show {
    pub fn new(json: bool, name: &str) -> Show {
        let terminal = !json && stdout().is_terminal();
        Show {
            json,
            terminal,
            name: name.to_owned(),
            local: Local { offset_ns: 0 },
            told: vec![],
            told_ended: 0,
        }
    }

    /// One line about a window, and what is new; of the last seconds only if something is.
    fn lines(&mut self, look: &Look, watch: &Watch) -> Vec<String> {
        let (news, local) = (self.news(watch), self.local);
        let look = &look.sum;
        if look.range == Range::Last && news.is_empty() {
            return news;
        }
        let (end, length) = (look.window.end_unix_ns(), look.window.length_ns());
        let seconds = (length as f64 / 1e9).max(1e-9);
        let busy = look.busy_percent.map_or_else(|| "busy ?".to_owned(), |busy| format!("{busy:.0} % busy"));
        let first = look
            .bill
            .iter()
            .find(|row| row.kind == "process" && row.part == "culprit" && row.total_cpu_ns > 0);
        let first = first.map_or_else(String::new, |row| {
            let share = row.share_percent.map_or_else(|| "?".to_owned(), |share| format!("{share:.0} %"));
            format!(", {} {share}", row.culprit)
        });
        let rate = thousands((look.events as f64 / seconds) as i128);
        let range =
            if look.range == Range::Last { format!(", in {}", range_of(length, 0)) } else { String::new() };
        let mut all = vec![format!("{} {busy}, {rate} events/s{first}{range}", local.time(end))];
        if look.range == Range::Whole {
            let doubts = look.doubts.iter().take(3);
            all.extend(doubts.map(|doubt| {
                format!("  {}: {} x {}", doubt.severity, thousands(doubt.count.into()), doubt.meaning)
            }));
        }
        all.extend(news);
        if let Some(process) = look.process.as_ref().filter(|_| look.range == Range::Whole) {
            for list in process.lists.iter().filter(|list| !list.rows.is_empty()) {
                let row = list.rows.first().map(Vec::as_slice).unwrap_or_default();
                let cells =
                    list.columns.iter().zip(row).map(|(name, cell)| format!("{name} {}", plain(cell)));
                all.push(format!(
                    "  {} {}: {}",
                    process.asked,
                    list.title,
                    cells.collect::<Vec<_>>().join(", ")
                ));
            }
        }
        all
    }

    /// Findings that are new, and those that are over.
    fn news(&mut self, watch: &Watch) -> Vec<String> {
        let (history, local, now) = (watch.history(), self.local, watch.now_unix_ns());
        let mut all = Vec::new();
        for episode in history.lasting().iter().filter(|e| !self.told.contains(&e.id)) {
            let (said, since) = (&episode.said, since(episode, now, local));
            all.push(format!("  {} {}: {} ({since})", episode.severity.name(), episode.id, said.headline));
            all.push(format!("    {}", said.fix));
        }
        self.told = history.lasting().iter().map(|episode| episode.id.clone()).collect();
        let new = history.ended_in_all().saturating_sub(self.told_ended);
        let new = history.ended().iter().rev().take(usize::try_from(new).unwrap_or(usize::MAX));
        all.extend(new.map(|episode| format!("  {}: {}", episode.id, ended(episode, local))));
        self.told_ended = history.ended_in_all();
        all
    }
}

/// As many lines as there is room for; how many are left out is said.
fn fitted(page: &str, rows: usize) -> String {
    let lines: Vec<&str> = page.lines().collect();
    if lines.len() <= rows {
        return lines.join("\n");
    }
    let kept = rows.saturating_sub(1);
    let shown = lines.iter().take(kept).copied().collect::<Vec<_>>().join("\n");
    format!("{shown}\n… {} more lines: a higher window shows them", lines.len().saturating_sub(kept))
}

impl Sink for Show {
    fn nothing_yet(&mut self) -> anyhow::Result<()> {
        if self.terminal {
            let mut out = out();
            writeln!(out, "{CLEAR}{}: nothing was written yet", sanitize(&self.name))?;
            out.flush()?;
        }
        Ok(())
    }

    fn window(
        &mut self,
        look: &Look,
        watch: &Watch,
        follower: &Follower,
        fired: Option<&Fired>,
    ) -> anyhow::Result<()> {
        self.local = Local { offset_ns: bias_ns(follower) };
        let mut out = out();
        if self.json {
            let json = serde_json::to_string(&line(look, watch, fired))?;
            writeln!(out, "{}", escape_json(&json).unwrap_or(json))?;
        } else if self.terminal {
            let Some(screen) = screen(watch, &self.name, self.local) else { return Ok(()) };
            let page = text(&screen);
            let rows = terminal_size::terminal_size().map_or(40, |(_, rows)| usize::from(rows.0));
            writeln!(out, "{CLEAR}{}", fitted(&page, rows.saturating_sub(1).max(5)))?;
        } else {
            for told in self.lines(look, watch) {
                writeln!(out, "{}", sanitize(&told))?;
            }
        }
        out.flush()?;
        Ok(())
    }

    fn stopped(&mut self, fired: &Fired) -> anyhow::Result<()> {
        if !self.json {
            let mut out = out();
            let text = format!("{} stopped: {}", self.local.time(fired.seen_unix_ns), fired.text);
            writeln!(out, "{}", sanitize(&text))?;
            out.flush()?;
        }
        Ok(())
    }

    fn ended(&mut self, waits: bool) -> anyhow::Result<()> {
        if waits {
            say!("etwhy: the trace ended, and what was waited for did not happen");
        } else if !self.json {
            let mut out = out();
            writeln!(out, "the trace ended; `etwhy why` explains all of it")?;
            out.flush()?;
        }
        Ok(())
    }
}

fn plain(cell: &etwhy_sql::Cell) -> String {
    match cell {
        etwhy_sql::Cell::I64(number) => thousands((*number).into()),
        etwhy_sql::Cell::F64(number) => format!("{number:.1}"),
        etwhy_sql::Cell::Text(text) => text.clone(),
        etwhy_sql::Cell::Null => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn what_a_low_window_cuts_off_is_counted() {
        assert_eq!(fitted("a\nb\nc\n", 3), "a\nb\nc");
        assert_eq!(fitted("a\nb\nc\nd\ne", 3), "a\nb\n… 3 more lines: a higher window shows them");
    }
}
