//! All kinds of causes: one small function for each, by what they are about.
//!
//! Limits are copied by hand from the manual pages of the findings, so that nothing here depends on the code that is judged.

mod clr;
mod cpu;
mod disk;
mod drivers;
mod files;
mod growth;
mod interrupts;
mod memory;
mod network;
mod power;
mod processes;
mod services;
mod waits;

use crate::cause::Kind;

/// All kinds.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    let lists: [&'static [Kind]; 13] = [
        interrupts::KINDS,
        drivers::KINDS,
        files::KINDS,
        cpu::KINDS,
        waits::KINDS,
        disk::KINDS,
        growth::KINDS,
        power::KINDS,
        memory::KINDS,
        network::KINDS,
        processes::KINDS,
        clr::KINDS,
        services::KINDS,
    ];
    lists.into_iter().flatten()
}

/// The kind of this name.
pub fn find(id: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_name_and_an_answer() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in all() {
            assert!(seen.insert(kind.id), "{} twice", kind.id);
            assert!(!kind.answers.is_empty() && kind.most > 1.2, "{}", kind.id);
        }
        assert!(seen.len() >= 20);
    }

    /// Findings without a kind: about the trace itself, information about machines of two nodes, and three runs of five seconds.
    const WITHOUT: [&str; 3] = ["machine.virtual", "net.numa-crossing", "memory.restarted-leak"];

    #[test]
    fn each_finding_about_a_trace_is_planted() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../answers/rules/findings");
        let mut missing = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let over_trace = !text.lines().take(12).any(|line| line.starts_with("over = "));
            let planted = all().any(|kind| kind.answers.contains(&id.as_str()));
            if over_trace && !planted && !id.starts_with("trace.") && !WITHOUT.contains(&id.as_str()) {
                missing.push(id);
            }
        }
        assert_eq!(missing, Vec::<String>::new());
    }
}
