//! Names of machines and readings.

use crate::contract;
use etwhy_etl::read::short_id;

/// The ids that lead the rows of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Name of the content of the trace.
    pub trace: String,
    /// The machine.
    pub machine: String,
    /// The reading.
    pub extract: String,
    /// Name of the only file, if it looks like another one and so has none of its own (`contents`).
    pub file: Option<String>,
}

/// A machine's name and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineId {
    /// The name.
    pub id: String,
    /// given, computer or boot.
    pub basis: &'static str,
}

/// The machine over all of its boots: what the caller says, else its computer name, else its boot, since nothing else that traces record
/// outlasts one.
pub fn machine_id(given: Option<&str>, computer: Option<&str>, boot_id: &str) -> MachineId {
    match (given, computer.map(str::trim).filter(|name| !name.is_empty())) {
        (Some(given), _) => MachineId { id: given.to_owned(), basis: "given" },
        (None, Some(name)) => {
            MachineId { id: short_id(&format!("computer {}", name.to_uppercase())), basis: "computer" }
        }
        (None, None) => MachineId { id: boot_id.to_owned(), basis: "boot" },
    }
}

/// Name of everything but the trace that decides what a reading finds. `facts` are the settings in words.
pub fn settings_id(program: &str, facts: &[String]) -> String {
    short_id(&format!("{program}\n{}\n{}", contract::VERSION, facts.join("\n")))
}

/// Most characters of an id: those of this program have 32 digits, or 16 and a number.
const MOST_OF_ID: usize = 64;

/// True for what may be the name of a trace or a reading: letters, digits and dashes, so that it is a part of a path as it stands.
pub fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MOST_OF_ID).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Name of a reading.
pub fn extract_id(trace_id: &str, settings_id: &str) -> String {
    short_id(&format!("{trace_id}\n{settings_id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_is_known_of_it() {
        let by_name = machine_id(None, Some("pc-1"), "b");
        assert_eq!(by_name, machine_id(None, Some(" PC-1"), "other boot"));
        assert_eq!(by_name.basis, "computer");
        assert_eq!(machine_id(None, Some(" "), "b").id, "b");
        assert_eq!(machine_id(Some("rack 7"), Some("pc-1"), "b").id, "rack 7");
    }

    #[test]
    fn an_id_leads_nowhere() {
        for id in [extract_id("t", "s"), format!("{}-3", extract_id("t", "s")), "a".repeat(64)] {
            assert!(is_id(&id), "{id}");
        }
        for other in [
            "",
            "x/../../escaped",
            "..",
            r"x\y",
            "C:",
            "a b",
            "a\u{1b}[31m",
            "a\n",
            "\u{e9}",
            &"a".repeat(65),
        ] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn a_reading_is_another_if_anything_is() {
        let one = extract_id("t", &settings_id("etwhy 1", &["symbols".to_owned()]));
        assert_eq!(one, extract_id("t", &settings_id("etwhy 1", &["symbols".to_owned()])));
        for other in [
            extract_id("u", &settings_id("etwhy 1", &["symbols".to_owned()])),
            extract_id("t", &settings_id("etwhy 2", &["symbols".to_owned()])),
            extract_id("t", &settings_id("etwhy 1", &[])),
        ] {
            assert_ne!(one, other);
        }
    }
}
