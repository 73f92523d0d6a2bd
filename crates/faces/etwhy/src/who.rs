//! Which processes and threads a filter means.

use etwhy_table::{Database, Pattern};
use etwhy_trace::catalog::thread::ThreadRow;

/// For each process whether a filter wants it. A bare number is a process id; a name matches with or without `.exe`
/// and with its id in brackets.
pub fn wanted_processes(names: &[(String, i64)], filter: &str) -> Vec<bool> {
    let items: Vec<(bool, Pattern, Option<i64>)> = filter
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| {
            let (exclude, item) = item.strip_prefix('!').map_or((false, item), |rest| (true, rest));
            (exclude, Pattern::parse(item), item.parse().ok())
        })
        .collect();
    let any_positive = items.iter().any(|(exclude, ..)| !exclude);
    names
        .iter()
        .map(|(name, pid)| {
            let bare = name.strip_suffix(".exe").unwrap_or(name);
            let forms = [name.clone(), bare.to_owned(), format!("{name}({pid})"), format!("{name} ({pid})")];
            let hit = |(_, pattern, id): &&(bool, Pattern, Option<i64>)| {
                *id == Some(*pid) || forms.iter().any(|form| pattern.matches(form))
            };
            let excluded = items.iter().filter(|i| i.0).any(|i| hit(&i));
            let included = !any_positive || items.iter().filter(|i| !i.0).any(|i| hit(&i));
            included && !excluded
        })
        .collect()
}

/// Name and id of each thread, by `utid`.
pub fn thread_names(db: &Database) -> Vec<(String, i64)> {
    let mut names = Vec::new();
    names.extend(
        db.read_or_empty::<ThreadRow>().iter().map(|row| (row.name().unwrap_or("").to_owned(), row.tid())),
    );
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_filters() {
        let names = [("chrome.exe", 10), ("chrome.exe", 11), ("cmd.exe", 12)].map(|(n, p)| (n.to_owned(), p));
        assert_eq!(wanted_processes(&names, "chrome"), [true, true, false]);
        assert_eq!(wanted_processes(&names, "chrome;!11"), [true, false, false]);
        assert_eq!(wanted_processes(&names, "12"), [false, false, true]);
        assert_eq!(wanted_processes(&names, "!c*(1?)"), [false, false, false]);
        assert_eq!(wanted_processes(&names, "CHROME.EXE(10)"), [true, false, false]);
    }
}
