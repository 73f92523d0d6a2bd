//! Facts of the machine that results depend on.

#[cfg(target_os = "linux")]
#[path = "machine_linux.rs"]
mod linux;
#[cfg(target_os = "macos")]
#[path = "machine_macos.rs"]
mod macos;
#[cfg(windows)]
#[path = "machine_windows.rs"]
mod windows;

use serde::{Deserialize, Serialize};

/// A fact: `cpu`, `AMD EPYC`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What: `os`, `kernel`, `cpu`, `processors`, `memory_bytes`, `folder`, `file_system`, `storage`, `virtual`,
    /// `power_plan`.
    pub name: String,
    /// As the system says it.
    pub value: String,
}

impl Fact {
    /// Name and value as people read them: `memory`, `23.5 GiB`.
    pub fn shown(&self) -> (String, String) {
        let bytes = self.name.strip_suffix("_bytes").zip(self.value.parse::<u64>().ok());
        let (name, value) = match bytes {
            Some((name, bytes)) => (name, format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))),
            None => (self.name.as_str(), self.value.clone()),
        };
        (name.replace('_', " "), value)
    }
}

/// Facts of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// In the order in which they are shown.
    pub facts: Vec<Fact>,
}

impl Machine {
    /// What the system tells without special rights. `folder` is where probes make their files.
    pub fn read(folder: &std::path::Path) -> Machine {
        let mut machine = Machine::default();
        #[cfg(windows)]
        windows::read(&mut machine, folder);
        #[cfg(target_os = "linux")]
        linux::read(&mut machine, folder);
        #[cfg(target_os = "macos")]
        macos::read(&mut machine);
        #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
        machine.push("os", Some(std::env::consts::OS.to_owned()));
        machine.push("processors", std::thread::available_parallelism().ok().map(|n| n.to_string()));
        machine.push("folder", Some(folder.display().to_string()));
        machine
    }

    /// Adds a fact, if it is known.
    pub fn push(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.facts.push(Fact { name: name.to_owned(), value });
        }
    }

    /// A fact by its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_people_read_them() {
        let fact = |name: &str, value: &str| Fact { name: name.into(), value: value.into() }.shown();
        assert_eq!(fact("memory_bytes", "25276502016"), ("memory".into(), "23.5 GiB".into()));
        assert_eq!(fact("file_system", "ext4"), ("file system".into(), "ext4".into()));
        assert_eq!(fact("memory_bytes", "much"), ("memory bytes".into(), "much".into()));
    }
}
