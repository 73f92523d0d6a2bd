//! Triggers that a trace shows: when to stop following.

use crate::error::{LiveError, Result};
use crate::history::History;
use crate::watch::{Look, Range};
use etwhy_record::run::{Seen, Trigger, is_named};
use etwhy_rules::Answer;
use etwhy_trace::catalog::event::EventRow;
use etwhy_trace::catalog::event_type::EventTypeRow;
use etwhy_trace::catalog::process::ProcessRow;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads a trigger that a trace shows.
///
/// # Errors
/// If it is none, or one that only the machine itself shows.
pub fn trigger(text: &str) -> Result<Trigger> {
    let trigger: Trigger = text.parse().map_err(LiveError::Wrong)?;
    if trigger.seen() == Seen::OnMachine {
        let why = format!(
            "`{text}`: a trace does not show that; `etwhy record start --stop-when` watches it on the machine"
        );
        return Err(LiveError::Wrong(why));
    }
    Ok(trigger)
}

/// A condition that was met.
#[derive(Clone, Debug, PartialEq)]
pub struct Fired {
    /// What was waited for.
    pub trigger: Trigger,
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
    all: Vec<Trigger>,
    /// Nanoseconds since 1970: what happened before does not count.
    since_unix_ns: Option<i64>,
    /// Events of each type in the window before, of the last seconds and of the whole window.
    counts: [Option<BTreeMap<String, i64>>; 2],
}

impl StopWhen {
    /// Watches for any of `all`. `from_start`: what the first window shows counts too (a recording that is played again).
    pub fn new(all: Vec<Trigger>, from_start: bool) -> StopWhen {
        let counts = [(); 2].map(|()| from_start.then(BTreeMap::new));
        StopWhen { all, since_unix_ns: from_start.then_some(i64::MIN), counts }
    }

    /// The first condition that a window meets.
    pub fn check(&mut self, look: &Look, history: &History) -> Option<Fired> {
        let since = *self.since_unix_ns.get_or_insert(look.sum.window.end_unix_ns());
        let counts = self.event_counts(look);
        let fired = self.all.iter().find_map(|trigger| self.met(trigger, look, history, since, &counts));
        let [last, whole] = &mut self.counts;
        *(if look.sum.range == Range::Last { last } else { whole }) = Some(counts);
        fired
    }

    /// Tables that the triggers ask beside those of the findings.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        let fields = |trigger: &Trigger| matches!(trigger, Trigger::Event { field: Some(_), .. });
        self.all.iter().any(fields).then_some("event").into_iter()
    }

    fn event_counts(&self, look: &Look) -> BTreeMap<String, i64> {
        if !self.all.iter().any(|trigger| matches!(trigger, Trigger::Event { .. })) {
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
        trigger: &Trigger,
        look: &Look,
        history: &History,
        since: i64,
        counts: &BTreeMap<String, i64>,
    ) -> Option<Fired> {
        let seen_unix_ns = look.sum.window.end_unix_ns();
        let [last, whole] = &self.counts;
        let before = if look.sum.range == Range::Last { last } else { whole };
        let (text, cause_unix_ns) = match trigger {
            Trigger::Finding(id) => match history.lasting().iter().find(|episode| episode.id == *id) {
                Some(episode) => (format!("{id}: {}", episode.said.headline), episode.began_unix_ns),
                // Facts have no history: nobody wants them told unasked. This one was asked for.
                None => {
                    let outcome = look.outcomes.iter().find(|outcome| outcome.id == *id)?;
                    let hit = outcome.hits.first().filter(|_| outcome.answer == Answer::Found)?;
                    (format!("{id}: {}", hit.headline), seen_unix_ns)
                }
            },
            Trigger::Event { provider, event, field: None } => {
                // More than the window before had: it is new, as long as fewer leave than come.
                let before = before.as_ref()?;
                let key = counts.iter().find(|(key, count)| {
                    matches_event(key, provider, event.as_deref())
                        && **count > before.get(*key).copied().unwrap_or(0)
                })?;
                (format!("event {}", key.0.replace('\n', "/")), seen_unix_ns)
            }
            Trigger::Event { provider, event, field: Some(field) } => {
                event_with(look, since, provider, event.as_deref(), field)?
            }
            Trigger::ProcessStart(who) => process(who, look, since, false)?,
            Trigger::ProcessExit(who) => process(who, look, since, true)?,
            Trigger::Counter { .. } | Trigger::Log { .. } | Trigger::Key(_) => return None,
        };
        Some(Fired { trigger: trigger.clone(), text, cause_unix_ns, seen_unix_ns })
    }
}

/// An event with that value in a field, after `since`, and when.
fn event_with(
    look: &Look,
    since: i64,
    provider: &str,
    event: Option<&str>,
    (field, value): &(String, String),
) -> Option<(String, i64)> {
    let types = look.db.read_or_empty::<EventTypeRow>();
    let meant: BTreeMap<i64, String> = types
        .iter()
        .map(|row| (row.event_type_id(), format!("{}\n{}\n{}", row.provider(), row.id(), row.name())))
        .filter(|(_, key)| matches_event(key, provider, event))
        .collect();
    let events = look.db.read_or_empty::<EventRow>();
    events.iter().find_map(|row| {
        let key = meant.get(&row.event_type_id())?;
        let at = look.sum.window.start_unix_ns.saturating_add(row.ts_ns());
        let fields: Value = serde_json::from_str(row.fields()).ok()?;
        let is = fields
            .as_object()?
            .iter()
            .any(|(name, is)| name.eq_ignore_ascii_case(field) && has_value(is, value));
        (is && at > since).then(|| (format!("event {} with {field}={value}", key.replace('\n', "/")), at))
    })
}

/// Whether a field's value is the one that was typed: texts without letter case, numbers as numbers (`30` is `0x1E`).
fn has_value(value: &Value, typed: &str) -> bool {
    let number = |text: &str| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.eq_ignore_ascii_case(typed) || number(&text).is_some_and(|is| number(typed) == Some(is))
}

/// A process of this name or id that started, or ended, after `since`, and when.
fn process(who: &str, look: &Look, since: i64, ended: bool) -> Option<(String, i64)> {
    let window = &look.sum.window;
    let processes = look.db.read_or_empty::<ProcessRow>();
    processes.iter().find_map(|row| {
        let moment = if ended { row.end_ns() } else { row.start_ns() };
        let at = window.start_unix_ns.saturating_add(moment?);
        let own = is_named(row.name(), who) || who.parse() == Ok(row.pid());
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
    fn triggers_that_a_trace_shows() {
        assert_eq!(trigger("finding:cpu.starvation").ok(), Some(Trigger::Finding("cpu.starvation".into())));
        for none in ["", "finding", "finding:", "counter:\\x>1", "key:pause", "log:System/41", "exit: "] {
            assert!(trigger(none).is_err(), "{none}");
        }
        assert!(trigger("key:pause").unwrap_err().to_string().contains("etwhy record start"));
        assert!(matches_event("Kernel\n1\nStart", "kernel", Some("start")));
        assert!(!matches_event("Kernel\n1\nStart", "kernel", Some("2")));
        assert!(has_value(&Value::from(30), "0x1E") && has_value(&Value::from("0x1e"), "30"));
        assert!(has_value(&Value::from("Disk"), "disk") && !has_value(&Value::from("Disk2"), "disk"));
    }
}
