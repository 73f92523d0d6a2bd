//! What ends a recording, or following one: the grammar of triggers.

use super::keys::Keys;
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
    /// An event: any of a provider (`event:Microsoft-Windows-Kernel-Power`), those of an id or name
    /// (`event:Microsoft-Windows-Kernel-Power/41`), with a field (`event:Microsoft-Windows-Kernel-Power/41/BugcheckCode=30`).
    Event {
        /// Name.
        provider: String,
        /// Id or name.
        event: Option<String>,
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
    Key(Keys),
    /// A finding: `finding:dpc.flood`.
    Finding(String),
}

/// Who can see that a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Whoever reads the trace.
    InTrace,
    /// Whoever runs on the machine.
    OnMachine,
    /// Both.
    Both,
}

impl Trigger {
    /// Who can see that it fires.
    pub fn seen(&self) -> Seen {
        match self {
            Trigger::Event { .. } | Trigger::Finding(_) => Seen::InTrace,
            Trigger::Counter { .. } | Trigger::Log { .. } | Trigger::Key(_) => Seen::OnMachine,
            Trigger::ProcessStart(_) | Trigger::ProcessExit(_) => Seen::Both,
        }
    }
}

/// Whether a process of this name is meant: letter case and `.exe` may be left out.
pub fn is_named(process: &str, who: &str) -> bool {
    let bare = |name: &str| {
        let name = name.to_lowercase();
        name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
    };
    bare(process) == bare(who)
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Counter { path, above, for_ms } => {
                write!(f, "counter:{path}>{above} for {}s", *for_ms as f64 / 1e3)
            }
            Trigger::Event { provider, event, field } => {
                write!(f, "event:{provider}")?;
                event.iter().try_for_each(|event| write!(f, "/{event}"))?;
                field.iter().try_for_each(|(name, value)| write!(f, "/{name}={value}"))
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
        let forms = "counter:PATH>NUMBER for 5s, event:PROVIDER, event:PROVIDER/ID, event:PROVIDER/ID/FIELD=VALUE, start:NAME, \
                     exit:NAME, log:CHANNEL/ID, key:KEYS, finding:ID";
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
                // Names of kernel events have a slash, and so may values.
                let parts: Vec<&str> = rest.split('/').map(str::trim).collect();
                let (provider, parts) = parts.split_first().ok_or_else(wrong)?;
                let has_value = |part: &&str| part.contains('=');
                let at = parts.iter().position(has_value).unwrap_or(parts.len());
                let (event, field) = parts.split_at_checked(at).ok_or_else(wrong)?;
                if provider.is_empty() || event.contains(&"") || (event.is_empty() && !field.is_empty()) {
                    return Err(wrong());
                }
                let joined = |parts: &[&str]| Some(parts.join("/")).filter(|text| !text.is_empty());
                let field = joined(field).and_then(|text| {
                    text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
                });
                let (provider, event) = ((*provider).to_owned(), joined(event));
                Trigger::Event { provider, event, field }
            }
            "start" => Trigger::ProcessStart(rest),
            "exit" => Trigger::ProcessExit(rest),
            "log" => {
                let (channel, id) = rest.rsplit_once('/').ok_or_else(wrong)?;
                Trigger::Log { channel: channel.to_owned(), id: id.parse().map_err(|_| wrong())? }
            }
            "key" => Trigger::Key(rest.parse()?),
            "finding" => Trigger::Finding(rest),
            _ => return Err(wrong()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read_as_they_are_shown() {
        for text in [
            "counter:\\Processor(_Total)\\% DPC Time>20 for 5s",
            "event:Microsoft-Windows-Kernel-Power",
            "event:Microsoft-Windows-Kernel-Power/41",
            "event:Microsoft-Windows-Kernel-Power/41/BugcheckCode=0x1E",
            "event:Windows Kernel/FileIo/Create/OpenPath=C:/x=y",
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
            "event:/1",
            "event:P/",
            "event:P//1",
            "event:P/x=1",
            "log:System",
            "finding:",
            "mood:bad",
        ] {
            assert!(text.parse::<Trigger>().unwrap_err().contains("there are counter:"), "{text}");
        }
    }

    #[test]
    fn names_of_processes() {
        assert!(is_named("Backup.exe", "backup") && is_named("backup.EXE", "BACKUP.exe"));
        assert!(!is_named("backup2.exe", "backup") && !is_named("backup", "back"));
    }
}
