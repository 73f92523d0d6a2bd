//! What is shown of a trace that is followed: a screen that is written anew, lines where there is no terminal, or JSON.

use crate::report::terminal::{out, text};
use etwhy_base::units::thousands;
use etwhy_export::{escape_json, sanitize};
use etwhy_live::line::line;
use etwhy_live::view::{Local, ended, screen};
use etwhy_live::{Fired, Follower, Look, Watch};
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
    told_ended: i64,
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
            told_ended: i64::MIN,
        }
    }

    /// What is new, and one line about the window.
    fn lines(&mut self, look: &Look, watch: &Watch) -> Vec<String> {
        let (now, local) = (look.window.end_unix_ns(), self.local);
        let seconds = (look.window.length_ns() as f64 / 1e9).max(1e-9);
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
        let mut all = vec![format!("{} {busy}, {rate} events/s{first}", local.time(now))];
        let doubts = look.doubts.iter().take(3);
        all.extend(doubts.map(|doubt| {
            format!("  {}: {} x {}", doubt.severity, thousands(doubt.count.into()), doubt.meaning)
        }));
        let history = watch.history();
        for episode in history.lasting().iter().filter(|e| !self.told.contains(&e.id)) {
            all.push(format!("  {} {}: {}", episode.severity.name(), episode.id, episode.headline));
            all.push(format!("    {}", episode.fix));
        }
        self.told = history.lasting().iter().map(|episode| episode.id.clone()).collect();
        let new = history.ended().iter().filter(|e| e.over_unix_ns > Some(self.told_ended));
        all.extend(new.map(|episode| format!("  {}: {}", episode.id, ended(episode, local))));
        self.told_ended = now;
        if let Some(process) = &look.process {
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
            let page = text(&screen(look, watch, &self.name, self.local));
            let rows = terminal_size::terminal_size().map_or(40, |(_, rows)| usize::from(rows.0));
            let shown: Vec<&str> = page.lines().take(rows.saturating_sub(1).max(5)).collect();
            writeln!(out, "{CLEAR}{}", shown.join("\n"))?;
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
