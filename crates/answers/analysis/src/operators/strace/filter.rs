//! Which system calls are wanted: by name and class (`-e trace=...`), and by how they ended (`-e status=...`).

use super::classes::{CLASSES, classes_of};
use super::{Call, bare_name};
use etwhy_table::Pattern;

/// One thing that a filter names.
#[derive(Debug)]
enum Item {
    All,
    Class(usize),
    Name(Pattern),
}

/// Names and classes that are wanted and those that are not.
#[derive(Debug, Default)]
pub struct Filter {
    /// Any of these; everything if there are none.
    wanted: Vec<Item>,
    /// None of these.
    unwanted: Vec<Item>,
}

/// Which ends are wanted; all if none is named.
#[derive(Clone, Debug, Default)]
pub struct Results {
    wanted: Vec<&'static str>,
}

const RESULTS: [&str; 4] = ["successful", "failed", "unfinished", "unknown"];

impl Results {
    /// Adds a wanted end: successful, failed, unfinished or unknown.
    ///
    /// # Errors
    /// If there is no such end.
    pub fn add(&mut self, name: &str) -> Result<(), String> {
        let name = if name == "fault" { "failed" } else { name };
        match RESULTS.iter().find(|r| **r == name) {
            Some(result) => self.wanted.push(result),
            None if name == "all" => self.wanted.extend(RESULTS),
            None => return Err(format!("there is no status `{name}`; there are: {}", RESULTS.join(", "))),
        }
        Ok(())
    }

    /// True if every end is wanted.
    pub fn all(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether a call ended in a wanted way.
    pub fn wants(&self, call: &Call<'_>) -> bool {
        let result = match (call.end_ns, call.failed) {
            (Some(_), Some(true)) => "failed",
            // What is no NTSTATUS cannot fail as far as the trace tells.
            (Some(_), _) => "successful",
            (None, _) if matches!(call.outcome, "unfinished" | "thread_ended") => "unfinished",
            _ => "unknown",
        };
        self.wanted.is_empty() || self.wanted.contains(&result)
    }
}

impl Filter {
    /// Adds what a `-e` says: `trace=LIST`, `LIST` or `status=LIST`. A list is separated by commas; `!` before it
    /// takes away what it names.
    ///
    /// # Errors
    /// If it names no class and nothing that could be a function, or is of a kind that strace has and this does not.
    pub fn add(&mut self, text: &str, results: &mut Results) -> Result<(), String> {
        let (key, list) = text.split_once('=').unwrap_or(("trace", text));
        let names = |list: &str| {
            list.split(',').map(str::trim).filter(|i| !i.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        match key.trim() {
            "trace" | "t" => {}
            "status" => {
                let (not, list) = negated(list);
                let named = names(list);
                if !not {
                    return named.iter().try_for_each(|name| results.add(name));
                }
                let mut gone = Results::default();
                named.iter().try_for_each(|name| gone.add(name))?;
                let left = RESULTS.iter().copied().filter(|r| !gone.wanted.contains(r));
                results.wanted.extend(left);
                return Ok(());
            }
            other => return Err(format!("`{other}=` is not known in -e; use trace= or status=")),
        }
        let (not, list) = negated(list);
        let side = if not { &mut self.unwanted } else { &mut self.wanted };
        for name in names(list) {
            side.push(item(&name)?);
        }
        Ok(())
    }

    /// True if classes are named, so that what other tables say of a call matters.
    pub fn has_classes(&self) -> bool {
        self.wanted.iter().chain(&self.unwanted).any(|item| matches!(item, Item::Class(_)))
    }

    /// Whether the filter wants a function by its name alone.
    pub fn wants_function(&self, function: Option<&str>) -> bool {
        let hit = |item: &Item| item.matches(function);
        (self.wanted.is_empty() || self.wanted.iter().any(hit)) && !self.unwanted.iter().any(hit)
    }

    /// Whether it wants a call that is of other classes than its name tells.
    pub fn wants_classes<I: Iterator<Item = usize>>(
        &self,
        function: Option<&str>,
        classes: impl FnOnce() -> I,
    ) -> bool {
        if self.unwanted.iter().any(|item| item.matches(function))
            || !self.wanted.iter().any(|item| matches!(item, Item::Class(_)))
        {
            return false;
        }
        classes().any(|class| self.wanted.iter().any(|item| matches!(item, Item::Class(c) if *c == class)))
    }
}

fn negated(list: &str) -> (bool, &str) {
    list.strip_prefix('!').map_or((false, list), |list| (true, list))
}

fn item(text: &str) -> Result<Item, String> {
    let name = text.strip_prefix('%').unwrap_or(text);
    // Names of strace for what is called otherwise here.
    let name = match name {
        "net" => "network",
        "desc" => "object",
        "signal" | "futex" => "sync",
        name => name,
    };
    if name == "all" {
        return Ok(Item::All);
    }
    if let Some(class) = CLASSES.iter().position(|class| class.name == name) {
        return Ok(Item::Class(class));
    }
    let could_be_a_name = text.chars().any(|c| c.is_ascii_uppercase() || matches!(c, '*' | '?' | '+'));
    if text.starts_with(['%', '/']) || !could_be_a_name {
        let classes: Vec<&str> = CLASSES.iter().map(|class| class.name).collect();
        return Err(format!(
            "`{text}` is no class of system calls ({}) and no name such as NtReadFile or NtCreate*",
            classes.join(", ")
        ));
    }
    // The kernel's symbols call both Nt and Zw routines by their Nt names.
    let name = text.strip_prefix("Zw").map_or(text.to_owned(), |rest| format!("Nt{rest}"));
    Ok(Item::Name(Pattern::parse(&name)))
}

impl Item {
    fn matches(&self, function: Option<&str>) -> bool {
        match self {
            Item::All => true,
            Item::Class(class) => {
                function.and_then(bare_name).is_some_and(|name| classes_of(name).any(|c| c == *class))
            }
            Item::Name(pattern) => function.is_some_and(|function| {
                pattern.matches(function)
                    || function.split_once('!').is_some_and(|(_, name)| pattern.matches(name))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(list: &[&str]) -> Filter {
        let mut filter = Filter::default();
        for text in list {
            filter.add(text, &mut Results::default()).unwrap();
        }
        filter
    }

    fn wants(list: &[&str], function: &str) -> bool {
        filter(list).wants_function(Some(function))
    }

    #[test]
    fn names_and_classes_and_their_opposites() {
        let (read, key) = ("ntoskrnl.exe!NtReadFile", "ntoskrnl.exe!NtOpenKeyEx");
        assert!(wants(&[], read));
        assert!(wants(&["trace=file,registry"], read) && wants(&["%registry"], key));
        assert!(!wants(&["file"], key));
        assert!(wants(&["NtRead*"], read) && wants(&["trace=ZwReadFile"], read));
        assert!(wants(&["trace=!file"], key) && !wants(&["trace=!file"], read));
        assert!(wants(&["file", "registry"], key) && wants(&["file", "registry"], read));
        assert!(!wants(&["file", "!NtRead*"], read));
        assert!(!wants(&["file"], "ntoskrnl.exe!+0x1234") && wants(&["+0x1234"], "ntoskrnl.exe!+0x1234"));
    }

    #[test]
    fn events_inside_a_call_give_it_classes() {
        let file = CLASSES.iter().position(|c| c.name == "file").unwrap();
        assert!(filter(&["file"]).wants_classes(None, || [file].into_iter()));
        assert!(!filter(&["registry"]).wants_classes(None, || [file].into_iter()));
        assert!(!filter(&["NtFoo"]).wants_classes(None, || [file].into_iter()));
    }

    #[test]
    fn mistakes_are_said() {
        let add = |text: &str| Filter::default().add(text, &mut Results::default());
        assert!(add("trace=fiel").unwrap_err().contains("file, registry"));
        assert!(add("status=sad").unwrap_err().contains("successful"));
        assert!(add("inject=NtReadFile").is_err());
        assert!(add("status=!failed").is_ok());
    }
}
