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
}
