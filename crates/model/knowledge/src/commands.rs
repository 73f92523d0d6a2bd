//! Commands, settings and interfaces that advice names, with the Windows that they came with.

use std::sync::LazyLock;

use crate::table::rows;

/// Something that advice tells people to type, set or call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandFact {
    /// As advice writes it, in its case: `Set-NetAdapterRss`, `chkdsk /scan`, `Dev Drive`.
    pub name: &'static str,
    /// command, cmdlet, tool (to be installed), api, setting, name (of an event, key, file or program).
    pub kind: &'static str,
    /// First build of Windows that has it; [`FIRST_BUILD`] for what all have that traces come from.
    pub since_build: i32,
    /// Where that is documented.
    pub source: &'static str,
}

/// Windows 7 and Server 2008 R2, the oldest that advice is written for.
pub const FIRST_BUILD: i32 = 7600;

static COMMANDS: LazyLock<Vec<CommandFact>> = LazyLock::new(|| {
    rows(include_str!("../data/commands.tsv"))
        .filter_map(|[name, kind, build, source]| {
            Some(CommandFact { name, kind, since_build: build.parse().ok()?, source })
        })
        .collect()
});

/// All of them.
pub fn commands() -> &'static [CommandFact] {
    &COMMANDS
}

/// Those that a text names, as whole words.
pub fn commands_in(text: &str) -> impl Iterator<Item = &'static CommandFact> + '_ {
    commands().iter().filter(move |command| names(text, command.name))
}

fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(|c| part(c) || c == '-') && !after.is_some_and(part)
    })
}

/// What people call the Windows that first had a build.
pub fn windows_of_build(build: i32) -> &'static str {
    const NAMES: [(i32, &str); 13] = [
        (26100, "Windows 11 24H2 and Server 2025"),
        (22621, "Windows 11 22H2"),
        (22000, "Windows 11"),
        (20348, "Windows Server 2022"),
        (19041, "Windows 10 2004"),
        (18362, "Windows 10 1903"),
        (17763, "Windows 10 1809 and Server 2019"),
        (17134, "Windows 10 1803"),
        (14393, "Windows 10 1607 and Server 2016"),
        (10586, "Windows 10 1511"),
        (10240, "Windows 10"),
        (9600, "Windows 8.1 and Server 2012 R2"),
        (9200, "Windows 8 and Server 2012"),
    ];
    NAMES.iter().find(|(first, _)| build >= *first).map_or("Windows 7 and Server 2008 R2", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_where_it_is_documented() {
        let lines =
            include_str!("../data/commands.tsv").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(commands().len(), lines);
        for (at, command) in commands().iter().enumerate() {
            assert!(command.since_build >= FIRST_BUILD && !command.source.is_empty(), "{}", command.name);
            assert!(
                commands().iter().skip(at + 1).all(|other| other.name != command.name),
                "{}",
                command.name
            );
        }
    }

    #[test]
    fn whole_words() {
        let found = |text| commands_in(text).map(|c| c.name).collect::<Vec<_>>();
        assert_eq!(found("`Restart-NetAdapter`"), ["Restart-NetAdapter"]);
        assert_eq!(found("x-Restart-NetAdapter Restart-NetAdapters"), Vec::<&str>::new());
        assert_eq!(windows_of_build(9200), "Windows 8 and Server 2012");
    }
}
