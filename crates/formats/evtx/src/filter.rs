//! Which records are wanted.

use crate::binxml::{Decoder, Event, Fault, System, Value};
use crate::read::RecordRef;
use etwhy_messages::Messages;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A condition on a text: equal, ignoring case, where `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

impl Pattern {
    /// The pattern of this text.
    pub fn new(text: &str) -> Pattern {
        Pattern(text.to_lowercase().split('*').map(str::to_owned).collect())
    }

    /// True if the text is as the pattern says.
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return false };
        if self.0.len() == 1 {
            return text == *first;
        }
        if text.len() < first.len() + last.len()
            || !text.starts_with(first.as_str())
            || !text.ends_with(last.as_str())
        {
            return false;
        }
        let mut rest = text.get(first.len()..text.len() - last.len()).unwrap_or("");
        for part in self.0.get(1..self.0.len() - 1).unwrap_or(&[]) {
            match rest.find(part.as_str()) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
                None => return false,
            }
        }
        true
    }
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Equal, with `*`.
    Is,
    /// Not equal.
    IsNot,
    /// The text stands somewhere in it.
    Contains,
    /// The number is less.
    Less,
    /// The number is greater.
    Greater,
}

/// A condition on a field.
#[derive(Clone, Debug)]
pub struct Condition {
    name: String,
    compare: Compare,
    pattern: Pattern,
    text: String,
    number: Option<f64>,
    /// Some record that was asked has the field; copies of the condition share it.
    seen: Arc<AtomicBool>,
}

impl Condition {
    /// Reads `Name=text`, `Name!=text`, `Name~text`, `Name<5`, `Name>5`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let at = text.find(['=', '!', '~', '<', '>']).filter(|at| *at > 0);
        let wrong =
            || format!("`{text}` is no condition; try Name=text, Name!=text, Name~part, Name<5 or Name>5");
        let at = at.ok_or_else(wrong)?;
        let (name, rest) = text.split_at(at);
        let operators = [
            ("!=", Compare::IsNot),
            ("=", Compare::Is),
            ("~", Compare::Contains),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        let (value, compare) = operators
            .into_iter()
            .find_map(|(operator, compare)| Some((rest.strip_prefix(operator)?, compare)))
            .ok_or_else(wrong)?;
        // As SQL writes it: `LogonType='3'`.
        let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
        let value = inner.filter(|inner| !inner.contains('\'')).unwrap_or(value);
        let number = value.trim().parse::<f64>().ok();
        if matches!(compare, Compare::Less | Compare::Greater) && number.is_none() {
            return Err(format!("`{value}` in `{text}` is not a number"));
        }
        Ok(Condition {
            name: name.trim().to_owned(),
            compare,
            pattern: Pattern::new(value),
            text: value.to_lowercase(),
            number,
            seen: Arc::default(),
        })
    }

    /// The field that it is about, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if some record that was asked has the field.
    pub fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Notes that a record has the field. Threads that only read do not wait for each other.
    fn see(&self) {
        if !self.is_seen() {
            self.seen.store(true, Ordering::Relaxed);
        }
    }

    fn holds(&self, text: &str) -> bool {
        match self.compare {
            Compare::Is => self.pattern.matches(text),
            Compare::IsNot => !self.pattern.matches(text),
            Compare::Contains => text.to_lowercase().contains(&self.text),
            Compare::Less | Compare::Greater => {
                let value = text.strip_prefix("0x").map_or_else(
                    || text.parse::<f64>().ok(),
                    |hex| u64::from_str_radix(hex, 16).ok().map(|n| n as f64),
                );
                match (value, self.number) {
                    (Some(value), Some(number)) if self.compare == Compare::Less => value < number,
                    (Some(value), Some(number)) => value > number,
                    _ => false,
                }
            }
        }
    }
}

/// Which records are wanted; what is empty wants all.
#[derive(Clone, Default)]
pub struct Filter {
    /// Ranges of event ids.
    pub ids: Vec<(u16, u16)>,
    /// Providers.
    pub providers: Vec<Pattern>,
    /// Channels.
    pub channels: Vec<Pattern>,
    /// Computers.
    pub computers: Vec<Pattern>,
    /// SIDs of users.
    pub users: Vec<Pattern>,
    /// Levels.
    pub levels: Vec<u8>,
    /// Outcomes of audits, true for success; a record of one of these is wanted whatever its level.
    pub audits: Vec<bool>,
    /// Tasks.
    pub tasks: Vec<u16>,
    /// Ranges of record ids.
    pub records: Vec<(u64, u64)>,
    /// Processes.
    pub processes: Vec<u32>,
    /// Not before (FILETIME).
    pub since: Option<u64>,
    /// Before (FILETIME).
    pub until: Option<u64>,
    /// Conditions on fields; all must hold.
    pub conditions: Vec<Condition>,
    /// A text that stands somewhere in the record, as [`Filter::search`] puts it.
    pub grep: Option<String>,
    /// Texts of messages, which are searched too.
    pub messages: Option<Arc<Messages>>,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("all", &self.is_empty()).finish_non_exhaustive()
    }
}

fn text_in(patterns: &[Pattern], value: &Value<'_>) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let mut text = String::new();
    value.push_text(&mut text);
    patterns.iter().any(|pattern| pattern.matches(&text))
}

impl Filter {
    /// True if all records are wanted.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
            && self.providers.is_empty()
            && self.channels.is_empty()
            && self.computers.is_empty()
            && self.users.is_empty()
            && self.levels.is_empty()
            && self.tasks.is_empty()
            && self.records.is_empty()
            && self.processes.is_empty()
            && self.since.is_none()
            && self.until.is_none()
            && self.conditions.is_empty()
            && self.audits.is_empty()
            && self.grep.is_none()
    }

    /// Wants only records that have this text in their time, level, provider, event id, channel, computer, user, fields (`Name=value`) or
    /// message. Case does not matter, runs of blanks and line ends count as one blank.
    pub fn search(&mut self, text: &str) {
        self.grep = Some(searchable(text));
    }

    /// True if the level or the outcome of the audit is wanted.
    fn wants_level(&self, system: &System<'_>) -> bool {
        self.levels.is_empty() && self.audits.is_empty()
            || self.levels.contains(&system.level)
            || system.audit().is_some_and(|outcome| self.audits.contains(&(outcome == "success")))
    }

    /// True if the record's system values are wanted.
    pub(crate) fn wants(&self, system: &System<'_>, record: &RecordRef) -> bool {
        let id = system.record_id.unwrap_or(record.id);
        let time = time_of(system, record);
        (self.ids.is_empty() || self.ids.iter().any(|(a, b)| (*a..=*b).contains(&system.event_id)))
            && self.wants_level(system)
            && (self.tasks.is_empty() || self.tasks.contains(&system.task))
            && (self.records.is_empty() || self.records.iter().any(|(a, b)| (*a..=*b).contains(&id)))
            && (self.processes.is_empty() || system.process.is_some_and(|p| self.processes.contains(&p)))
            && self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until)
            && text_in(&self.providers, &system.provider)
            && text_in(&self.channels, &system.channel)
            && text_in(&self.computers, &system.computer)
            && text_in(&self.users, &system.user)
    }

    /// True if all conditions on fields hold.
    ///
    /// # Errors
    /// If the fields cannot be read.
    pub(crate) fn conditions_hold(&self, decoder: &mut Decoder, event: &Event<'_>) -> Result<bool, Fault> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        // A field that is not there is not equal to anything.
        let mut holds: Vec<bool> = self.conditions.iter().map(|c| c.compare == Compare::IsNot).collect();
        let (mut field, mut text) = (String::new(), String::new());
        let result = decoder.fields(event, &mut |name, value| {
            field.clear();
            name.push(&mut field);
            for (condition, held) in self.conditions.iter().zip(&mut holds) {
                if field.eq_ignore_ascii_case(&condition.name) {
                    condition.see();
                    text.clear();
                    value.push_text(&mut text);
                    *held = condition.holds(&text);
                }
            }
        });
        result.map(|()| holds.into_iter().all(|held| held))
    }
}

/// Time of an event: its `TimeCreated`, else that of its record.
pub fn time_of(system: &System<'_>, record: &RecordRef) -> u64 {
    system.time.unwrap_or(record.time)
}

/// A text as it is searched: lower case, one blank for each run of blanks and line ends.
pub(crate) fn searchable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&word.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_ignore_case_and_know_stars() {
        for (pattern, text, matches) in [
            ("Microsoft-Windows-*", "microsoft-windows-kernel-power", true),
            ("*power", "Microsoft-Windows-Kernel-Power", true),
            ("*kernel*", "Microsoft-Windows-Kernel-Power", true),
            ("kernel", "Microsoft-Windows-Kernel-Power", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn conditions_compare_texts_and_numbers() {
        let holds = |condition: &str, text: &str| Condition::parse(condition).unwrap().holds(text);
        assert!(holds("TargetUserName=adm*", "Administrator"));
        assert!(!holds("TargetUserName!=adm*", "Administrator"));
        assert!(holds("CommandLine~ -ENC ", "powershell -enc AAAA"));
        assert!(holds("LogonType='3'", "3") && !holds("LogonType!='3'", "3"));
        assert!(holds("Path='a'b'", "'a'b'"));
        assert!(holds("Size>100", "0x65"));
        assert!(!holds("Size>101", "0x65"));
        assert!(holds("LogonType<4", "3"));
        assert!(!holds("LogonType<4", "three"));
        assert!(Condition::parse("=x").is_err());
        assert!(Condition::parse("Size<x").is_err());
        assert!(Condition::parse("nothing").is_err());
    }
}
