//! What a kernel session recorded: names of the bits of its group masks, as declared in
//! `layouts/keywords.txt`. Tells a user *why* a view is empty ("context switches were not recorded").

use super::files::KEYWORDS;
use std::sync::LazyLock;

/// One named flag (or combination of flags) of a kernel session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Which of the eight masks it is in.
    pub mask: usize,
    /// Its bits in that mask.
    pub bits: u32,
    /// xperf's name of it, e.g. `CSWITCH`.
    pub name: &'static str,
    /// Kernel event groups whose events it turns on.
    pub groups: Vec<u8>,
    /// What is recorded, in a few words.
    pub meaning: &'static str,
}

static ALL: LazyLock<Vec<Keyword>> = LazyLock::new(|| parse(KEYWORDS).0);

/// All flags that have a name, in the order of the file.
pub fn keywords() -> &'static [Keyword] {
    &ALL
}

/// Names of the flags that are set in a session's group masks, each once. `PROC_THREAD` stands for
/// `PROCESS` and `THREAD` together, as in xperf.
pub fn keyword_names(masks: &[u32]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for keyword in enabled(masks) {
        if !names.contains(&keyword.name) {
            names.push(keyword.name);
        }
    }
    names
}

/// Kernel event groups that a session's group masks turn on (in part at least), sorted.
pub fn groups_enabled(masks: &[u32]) -> Vec<u8> {
    let mut groups: Vec<u8> = enabled(masks).iter().flat_map(|k| k.groups.iter().copied()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// True when a flag of that name is set in any mask it occurs in.
pub fn is_enabled(masks: &[u32], name: &str) -> bool {
    ALL.iter().any(|k| k.name == name && is_set(masks, k))
}

/// The flag of that name; of those that occur in two masks the documented one.
pub fn keyword(name: &str) -> Option<&'static Keyword> {
    ALL.iter().find(|k| k.name == name)
}

fn is_set(masks: &[u32], keyword: &Keyword) -> bool {
    masks.get(keyword.mask).is_some_and(|m| m & keyword.bits == keyword.bits)
}

/// The flags set. A combination hides the single flags that it consists of.
fn enabled(masks: &[u32]) -> Vec<&'static Keyword> {
    let mut found: Vec<&'static Keyword> = Vec::new();
    for keyword in ALL.iter().filter(|k| is_set(masks, k)) {
        let covered = found.iter().any(|f| f.mask == keyword.mask && f.bits & keyword.bits == keyword.bits);
        if !covered {
            found.push(keyword);
        }
    }
    found
}

fn parse(text: &'static str) -> (Vec<Keyword>, Vec<&'static str>) {
    let mut all = Vec::new();
    let mut bad = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        match parse_line(line) {
            Some(keyword) => all.push(keyword),
            None => bad.push(line),
        }
    }
    (all, bad)
}

fn parse_line(line: &'static str) -> Option<Keyword> {
    let mut parts = line.splitn(5, ' ');
    let mask: usize = parts.next()?.parse().ok().filter(|m| *m < 8)?;
    let bits = u32::from_str_radix(parts.next()?, 16).ok().filter(|b| *b != 0)?;
    let name = parts.next()?;
    let groups = match parts.next()? {
        "-" => Vec::new(),
        list => list.split(',').map(|g| u8::from_str_radix(g, 16).ok()).collect::<Option<Vec<u8>>>()?,
    };
    Some(Keyword { mask, bits, name, groups, meaning: parts.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_parses_and_no_bit_is_declared_twice() {
        let (all, bad) = parse(KEYWORDS);
        assert!(bad.is_empty(), "{bad:?}");
        for k in all.iter().filter(|k| k.bits.is_power_of_two()) {
            assert_eq!(all.iter().filter(|o| o.mask == k.mask && o.bits == k.bits).count(), 1, "{}", k.name);
        }
    }

    #[test]
    fn masks_have_names() {
        let masks = [0x0000_0007, 0x0000_0086, 0, 0, 0, 0, 0x1, 0];
        assert_eq!(
            keyword_names(&masks),
            ["PROC_THREAD", "LOADER", "PROFILE", "CSWITCH", "DPC", "SYSCFG_SYSTEM"]
        );
        assert_eq!(groups_enabled(&masks), [0x03, 0x05, 0x0B, 0x0F, 0x14]);
        // As PerfView's default session has them.
        assert_eq!(
            keyword_names(&[0x0001_270F, 2]),
            ["PROC_THREAD", "LOADER", "PERF_COUNTER", "DISK_IO", "FILENAME", "DISK_IO_INIT", "HARD_FAULTS"]
                .into_iter()
                .chain(["NETWORKTRACE", "PROFILE"])
                .collect::<Vec<_>>()
        );
        assert_eq!(keyword_names(&[2]), ["THREAD"]);
        assert_eq!(keyword_names(&[0x10, 0x4]), ["CSWITCH"]);
        assert!(is_enabled(&[0, 4], "CSWITCH") && is_enabled(&[0x10], "CSWITCH"));
        assert!(!is_enabled(&[], "CSWITCH"));
        assert_eq!(keyword("CSWITCH").map(|k| (k.mask, k.meaning)), Some((0, "context switches")));
    }
}
