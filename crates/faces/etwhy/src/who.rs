//! Which processes and threads a filter means.

use crate::catalog::meant;
use etwhy_table::{Database, Pattern};
use etwhy_trace::catalog::thread::ThreadRow;

/// For each process (or thread: `what` is the name of their table) whether a filter that somebody typed wants it.
///
/// # Errors
/// If it wants none: an empty answer would look like one about the trace. The text names what was meant, perhaps.
pub fn chosen(what: &str, names: &[(String, i64)], filter: &str) -> anyhow::Result<Vec<bool>> {
    let wanted = wanted_processes(names, filter);
    if wanted.contains(&true) { Ok(wanted) } else { Err(no_such(what, names, filter)) }
}

/// That nothing of this trace matches.
pub fn no_such(what: &str, names: &[(String, i64)], filter: &str) -> anyhow::Error {
    let first = filter.split(';').map(str::trim).find(|item| !item.is_empty() && !item.starts_with('!'));
    let names = names.iter().flat_map(|(name, _)| [name.as_str(), name.strip_suffix(".exe").unwrap_or(name)]);
    let names = names.filter(|name| !name.is_empty());
    let meant = first.map(|first| meant(first, names)).unwrap_or_default();
    anyhow::anyhow!("no {what} of this trace matches `{filter}`{meant}; `etwhy dump {what}` lists them")
}

/// For each process whether a filter wants it. A bare number is a process id; a name matches with or without `.exe`
/// and with its id in brackets.
fn wanted_processes(names: &[(String, i64)], filter: &str) -> Vec<bool> {
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

    #[test]
    fn a_filter_that_matches_nothing_is_refused_with_what_was_meant() {
        let names = [("chrome.exe", 10), ("cmd.exe", 12)].map(|(n, p)| (n.to_owned(), p));
        assert_eq!(chosen("process", &names, "cmd;!10").unwrap(), [false, true]);
        let said = |filter: &str| chosen("process", &names, filter).unwrap_err().to_string();
        let listed = "`etwhy dump process` lists them";
        assert_eq!(
            said("chrme"),
            format!("no process of this trace matches `chrme`; did you mean `chrome`?; {listed}")
        );
        assert_eq!(said("4711"), format!("no process of this trace matches `4711`; {listed}"));
        assert_eq!(said("!c*"), format!("no process of this trace matches `!c*`; {listed}"));
        assert!(chosen("thread", &[], "x").unwrap_err().to_string().contains("no thread of this trace"));
    }
}
