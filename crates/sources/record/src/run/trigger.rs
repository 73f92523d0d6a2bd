//! What ends a recording: triggers.

use super::Machine;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A performance counter is above a number for some seconds: `counter:\Processor(_Total)\% DPC Time>20 for 5s`.
    Counter {
        /// Path of the counter, in English.
        path: String,
        /// The number.
        above: f64,
        /// Milliseconds without a break.
        for_ms: u64,
    },
    /// An event: `event:Microsoft-Windows-Kernel-Power/41`, with a field: `event:PROVIDER/41/BugcheckCode=0x1E`.
    Event {
        /// Name or GUID.
        provider: String,
        /// Id.
        id: u16,
        /// Field and value.
        field: Option<(String, String)>,
    },
    /// A process starts: `start:backup.exe`.
    ProcessStart(String),
    /// A process ends: `exit:backup.exe`.
    ProcessExit(String),
    /// A record of an event log: `log:System/41`.
    Log {
        /// Channel.
        channel: String,
        /// Id.
        id: u32,
    },
    /// A key: `key:ctrl+alt+s`.
    Key(String),
    /// A finding: `finding:dpc.flood`.
    Finding(String),
}

impl Trigger {
    /// Why it cannot be watched yet; none if it can.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self {
            Trigger::Counter { .. } | Trigger::ProcessStart(_) | Trigger::ProcessExit(_) => None,
            Trigger::Event { .. } | Trigger::Finding(_) => {
                Some("needs a reader that follows the growing trace, which this version does not have")
            }
            Trigger::Log { .. } => Some("event logs are not watched by this version"),
            Trigger::Key(_) => Some("keys are not watched by this version"),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Counter { path, above, for_ms } => {
                write!(f, "counter:{path}>{above} for {}s", *for_ms as f64 / 1e3)
            }
            Trigger::Event { provider, id, field: None } => write!(f, "event:{provider}/{id}"),
            Trigger::Event { provider, id, field: Some((name, value)) } => {
                write!(f, "event:{provider}/{id}/{name}={value}")
            }
            Trigger::ProcessStart(name) => write!(f, "start:{name}"),
            Trigger::ProcessExit(name) => write!(f, "exit:{name}"),
            Trigger::Log { channel, id } => write!(f, "log:{channel}/{id}"),
            Trigger::Key(key) => write!(f, "key:{key}"),
            Trigger::Finding(id) => write!(f, "finding:{id}"),
        }
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Trigger, String> {
        let forms = "counter:PATH>NUMBER for 5s, event:PROVIDER/ID, event:PROVIDER/ID/FIELD=VALUE, start:NAME, exit:NAME, \
                     log:CHANNEL/ID, key:KEYS, finding:ID";
        let wrong = || format!("`{text}` is no trigger; there are {forms}");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        if rest.trim().is_empty() {
            return Err(wrong());
        }
        let rest = rest.trim().to_owned();
        Ok(match kind {
            "counter" => {
                let (path, condition) = rest.rsplit_once('>').ok_or_else(wrong)?;
                let (above, seconds) = condition.split_once(" for ").unwrap_or((condition, "1s"));
                let seconds: f64 = seconds.trim().trim_end_matches('s').parse().map_err(|_| wrong())?;
                let above: f64 = above.trim().parse().map_err(|_| wrong())?;
                if path.trim().is_empty() || !above.is_finite() || !(0.0..=86_400.0).contains(&seconds) {
                    return Err(wrong());
                }
                Trigger::Counter { path: path.trim().to_owned(), above, for_ms: (seconds * 1e3) as u64 }
            }
            "event" => {
                let mut parts = rest.splitn(3, '/');
                let provider = parts.next().unwrap_or_default().to_owned();
                let id = parts.next().and_then(|id| id.parse().ok()).ok_or_else(wrong)?;
                let field = match parts.next() {
                    None => None,
                    Some(part) => {
                        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
                        Some((name.to_owned(), value.to_owned()))
                    }
                };
                Trigger::Event { provider, id, field }
            }
            "start" => Trigger::ProcessStart(rest),
            "exit" => Trigger::ProcessExit(rest),
            "log" => {
                let (channel, id) = rest.rsplit_once('/').ok_or_else(wrong)?;
                Trigger::Log { channel: channel.to_owned(), id: id.parse().map_err(|_| wrong())? }
            }
            "key" => Trigger::Key(rest),
            "finding" => Trigger::Finding(rest),
            _ => return Err(wrong()),
        })
    }
}

/// Who reads the growing trace: it tells when an event was seen or a finding fires.
pub trait Finder {
    /// Why this trigger fires, if it does.
    fn fired(&mut self, trigger: &Trigger) -> Option<String>;
}

/// Watches triggers; it lives as long as the guard.
#[derive(Default)]
pub struct Watch {
    triggers: Vec<Watched>,
    processes: Option<BTreeSet<(String, u64)>>,
    finder: Option<Box<dyn Finder>>,
}

struct Watched {
    trigger: Trigger,
    /// Since when the counter is above the number.
    above_since: Option<u64>,
}

impl Watch {
    /// Watches these.
    pub fn new(triggers: Vec<Trigger>) -> Watch {
        let triggers = triggers.into_iter().map(|trigger| Watched { trigger, above_since: None }).collect();
        Watch { triggers, ..Watch::default() }
    }

    /// Has events and findings watched by this reader.
    #[must_use]
    pub fn with_finder(self, finder: Box<dyn Finder>) -> Watch {
        Watch { finder: Some(finder), ..self }
    }

    /// Why one of them fires, if one does.
    pub fn fired(&mut self, machine: &mut dyn Machine) -> Option<String> {
        if self.triggers.is_empty() {
            return None;
        }
        let by_process =
            |w: &Watched| matches!(w.trigger, Trigger::ProcessStart(_) | Trigger::ProcessExit(_));
        let mut started = BTreeSet::new();
        let mut ended = BTreeSet::new();
        if self.triggers.iter().any(by_process) {
            let now: BTreeSet<(String, u64)> =
                machine.processes().into_iter().map(|(name, id)| (name.to_lowercase(), id)).collect();
            if let Some(before) = self.processes.replace(now.clone()) {
                started = now.difference(&before).map(|(name, _)| name.clone()).collect();
                ended = before.difference(&now).map(|(name, _)| name.clone()).collect();
            }
        }
        for watched in &mut self.triggers {
            let why = match &watched.trigger {
                Trigger::ProcessStart(name) if started.contains(&name.to_lowercase()) => {
                    Some(format!("{name} has started"))
                }
                Trigger::ProcessExit(name) if ended.contains(&name.to_lowercase()) => {
                    Some(format!("{name} has ended"))
                }
                Trigger::Counter { path, above, for_ms } => match machine.counter(path) {
                    Ok(value) if value > *above => {
                        let now = machine.now_ms();
                        let since = *watched.above_since.get_or_insert(now);
                        (now.saturating_sub(since) >= *for_ms).then(|| {
                            format!("{path} is {value:.1}, above {above} for {:.1} s", *for_ms as f64 / 1e3)
                        })
                    }
                    _ => {
                        watched.above_since = None;
                        None
                    }
                },
                other => self.finder.as_mut().and_then(|finder| finder.fired(other)),
            };
            if let Some(why) = why {
                return Some(format!("{}: {why}", watched.trigger));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read_as_they_are_shown() {
        for text in [
            "counter:\\Processor(_Total)\\% DPC Time>20 for 5s",
            "event:Microsoft-Windows-Kernel-Power/41",
            "event:Microsoft-Windows-Kernel-Power/41/BugcheckCode=0x1E",
            "start:backup.exe",
            "exit:backup.exe",
            "log:System/41",
            "key:ctrl+alt+s",
            "finding:dpc.flood",
        ] {
            let trigger: Trigger = text.parse().unwrap();
            assert_eq!(trigger.to_string(), text);
        }
        for text in [
            "",
            "x",
            "counter:",
            "counter:\\A\\B",
            "counter:\\A>x",
            "counter:>1",
            "event:P",
            "event:P/x",
            "log:System",
            "finding:",
            "mood:bad",
        ] {
            assert!(text.parse::<Trigger>().unwrap_err().contains("there are counter:"), "{text}");
        }
    }

    #[test]
    fn what_is_not_watched_says_so() {
        assert!("start:x".parse::<Trigger>().unwrap().obstacle().is_none());
        for text in ["event:P/1", "finding:x", "key:f9", "log:System/1"] {
            assert!(text.parse::<Trigger>().unwrap().obstacle().is_some());
        }
    }
}
