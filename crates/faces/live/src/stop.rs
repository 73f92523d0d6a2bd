//! Conditions that end following: triggers.

use crate::error::{LiveError, Result};
use crate::history::History;
use crate::watch::Look;
use etwhy_trace::catalog::event_type::EventTypeRow;
use etwhy_trace::catalog::process::ProcessRow;
use std::collections::BTreeMap;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A finding is found.
    Finding(String),
    /// An event of this provider comes, of this id or name if one is given.
    Event(String, Option<String>),
    /// A process of this name or id starts.
    ProcessStart(String),
    /// A process of this name or id exits.
    ProcessExit(String),
}

/// The forms, for messages.
pub const FORMS: &str =
    "finding:ID, event:PROVIDER[/ID or NAME], process-start:NAME, process-exit:NAME (or process id)";

impl When {
    /// Reads one.
    ///
    /// # Errors
    /// If it has none of [`FORMS`].
    pub fn parse(text: &str) -> Result<When> {
        let wrong = || LiveError::Wrong(format!("`{text}` is no condition; known: {FORMS}"));
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let rest = rest.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        Ok(match kind.trim() {
            "finding" => When::Finding(rest.to_owned()),
            "event" => match rest.rsplit_once('/') {
                Some((provider, event)) => When::Event(provider.to_owned(), Some(event.to_owned())),
                None => When::Event(rest.to_owned(), None),
            },
            "process-start" => When::ProcessStart(rest.to_owned()),
            "process-exit" => When::ProcessExit(rest.to_owned()),
            _ => return Err(wrong()),
        })
    }
}

/// A condition that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// What happened, in words.
    pub text: String,
    /// When the cause happened, nanoseconds since 1970 (UTC); of what has no moment of its own, the end of the window that showed it.
    pub cause_unix_ns: i64,
    /// End of the window that showed it.
    pub seen_unix_ns: i64,
}

/// Watches for conditions.
#[derive(Debug)]
pub struct StopWhen {
    all: Vec<When>,
    /// Nanoseconds since 1970: what happened before does not count.
    since_unix_ns: Option<i64>,
    /// Events of each type in the window before.
    counts: Option<BTreeMap<String, i64>>,
}

impl StopWhen {
    /// Watches for any of `all`. `from_start`: what the first window shows counts too (a recording that is played again).
    pub fn new(all: Vec<When>, from_start: bool) -> StopWhen {
        let counts = from_start.then(BTreeMap::new);
        StopWhen { all, since_unix_ns: from_start.then_some(i64::MIN), counts }
    }

    /// The first condition that a window meets.
    pub fn check(&mut self, look: &Look, history: &History) -> Option<Fired> {
        let since = *self.since_unix_ns.get_or_insert(look.window.end_unix_ns());
        let counts = self.event_counts(look);
        let fired = self.all.iter().find_map(|when| self.met(when, look, history, since, &counts));
        self.counts = Some(counts);
        fired
    }

    fn event_counts(&self, look: &Look) -> BTreeMap<String, i64> {
        if !self.all.iter().any(|when| matches!(when, When::Event(..))) {
            return BTreeMap::new();
        }
        let mut counts = BTreeMap::new();
        for row in look.db.read_or_empty::<EventTypeRow>().iter() {
            let key = format!("{}\n{}\n{}", row.provider(), row.id(), row.name());
            *counts.entry(key).or_insert(0) += row.count();
        }
        counts
    }

    fn met(
        &self,
        when: &When,
        look: &Look,
        history: &History,
        since: i64,
        counts: &BTreeMap<String, i64>,
    ) -> Option<Fired> {
        let seen_unix_ns = look.window.end_unix_ns();
        let fired = |text: String, cause_unix_ns| Fired { text, cause_unix_ns, seen_unix_ns };
        match when {
            When::Finding(id) => {
                let episode = history.lasting().iter().find(|episode| episode.id == *id)?;
                Some(fired(format!("{id}: {}", episode.headline), episode.began_unix_ns))
            }
            When::Event(provider, event) => {
                // More than the window before had: it is new, as long as fewer leave than come.
                let before = self.counts.as_ref()?;
                let key = counts.iter().find(|(key, count)| {
                    matches_event(key, provider, event.as_deref())
                        && **count > before.get(*key).copied().unwrap_or(0)
                })?;
                let name = key.0.replace('\n', "/");
                Some(fired(format!("event {name}"), seen_unix_ns))
            }
            When::ProcessStart(who) => process(who, look, since, false).map(|(text, at)| fired(text, at)),
            When::ProcessExit(who) => process(who, look, since, true).map(|(text, at)| fired(text, at)),
        }
    }
}

/// A process of this name or id that started, or ended, after `since`, and when.
fn process(who: &str, look: &Look, since: i64, ended: bool) -> Option<(String, i64)> {
    let window = &look.window;
    let processes = look.db.read_or_empty::<ProcessRow>();
    processes.iter().find_map(|row| {
        let moment = if ended { row.end_ns() } else { row.start_ns() };
        let at = window.start_unix_ns.saturating_add(moment?);
        let own = row.name().eq_ignore_ascii_case(who)
            || row.name().eq_ignore_ascii_case(&format!("{who}.exe"))
            || who.parse() == Ok(row.pid());
        let verb = if ended { "ended" } else { "started" };
        (own && at > since).then(|| (format!("{} ({}) {verb}", row.name(), row.pid()), at))
    })
}

/// Whether the key of an event type (provider, id and name, one a line) is meant.
fn matches_event(key: &str, provider: &str, event: Option<&str>) -> bool {
    let mut parts = key.split('\n');
    let (of, id, name) = (parts.next(), parts.next(), parts.next());
    of.is_some_and(|of| of.eq_ignore_ascii_case(provider))
        && event.is_none_or(|event| {
            id == Some(event) || name.is_some_and(|name| name.eq_ignore_ascii_case(event))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        assert_eq!(When::parse("finding:cpu.starvation").ok(), Some(When::Finding("cpu.starvation".into())));
        let event = When::Event("Microsoft-Windows-DNS-Client".into(), Some("3008".into()));
        assert_eq!(When::parse("event: Microsoft-Windows-DNS-Client/3008").ok(), Some(event));
        for none in ["", "finding", "finding:", "counter:x", "process-exit: "] {
            assert!(When::parse(none).is_err(), "{none}");
        }
        assert!(matches_event("Kernel\n1\nStart", "kernel", Some("start")));
        assert!(!matches_event("Kernel\n1\nStart", "kernel", Some("2")));
    }
}
