//! Which of the libraries in a program of Windows nobody has asked for.

use std::collections::BTreeSet;
use std::ops::Range;

/// A library or program that is loaded.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The file that it was loaded from.
    pub path: String,
    /// Its addresses.
    #[cfg_attr(not(windows), allow(dead_code, reason = "read on Windows alone"))]
    pub addresses: Range<u64>,
    /// Who made it, as its version resource says.
    pub company: Option<String>,
    /// Libraries that it needs.
    pub needs: Vec<String>,
}

impl Loaded {
    /// File name.
    pub fn name(&self) -> &str {
        self.path.rsplit(['\\', '/']).next().unwrap_or(&self.path)
    }

    fn is_microsofts(&self) -> bool {
        self.company.as_deref() == Some("Microsoft Corporation")
    }

    /// Whether it lies in Windows' folder.
    pub fn is_in(&self, windows: &str) -> bool {
        let folder = windows.trim_end_matches(['\\', '/']).to_lowercase();
        let path = self.path.to_lowercase().replace('/', "\\");
        let path = path.strip_prefix("\\\\?\\").unwrap_or(&path);
        !folder.is_empty() && path.strip_prefix(&folder).is_some_and(|rest| rest.starts_with('\\'))
    }
}

/// For each module why it is a stranger, if it is one. The first is the program. What it needs belongs to it, and what that needs;
/// what lies in Windows' folder and is Microsoft's belongs to Windows. `windows_has`: whether Windows has a library of that name.
pub fn strangers(
    modules: &[Loaded],
    windows: &str,
    windows_has: &dyn Fn(&str) -> bool,
) -> Vec<Option<String>> {
    let mut needed: BTreeSet<String> = BTreeSet::new();
    let mut look: Vec<&Loaded> = modules.first().into_iter().collect();
    while let Some(module) = look.pop() {
        for name in &module.needs {
            let name = name.to_lowercase();
            if needed.insert(name.clone()) {
                look.extend(modules.iter().find(|other| other.name().to_lowercase() == name));
            }
        }
    }
    let why = |(at, module): (usize, &Loaded)| {
        let in_windows = module.is_in(windows);
        let needed = needed.contains(&module.name().to_lowercase());
        if at == 0 || (module.is_microsofts() && (in_windows || needed)) {
            return None;
        }
        let reason = match (needed, in_windows) {
            (true, true) => return None,
            (true, false) if !windows_has(module.name()) => return None,
            (true, false) => "Windows has a library of this name in its own folder",
            (false, true) => "nothing that this program imports needs it, and it is no part of Windows",
            (false, false) => "nothing that this program imports needs it",
        };
        let maker = match &module.company {
            Some(company) => format!("its version resource names {company}"),
            None => "it names no maker".to_owned(),
        };
        Some(format!("{reason}; {maker}"))
    };
    modules.iter().enumerate().map(why).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, company: &str, needs: &[&str]) -> Loaded {
        let company = Some(company.to_owned()).filter(|company| !company.is_empty());
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        Loaded { path: path.to_owned(), company, needs, ..Loaded::default() }
    }

    #[test]
    fn strangers_are_what_neither_the_program_nor_windows_brought() {
        const MICROSOFT: &str = "Microsoft Corporation";
        let system =
            |name: &str, company: &str| module(&format!("C:\\Windows\\System32\\{name}"), company, &[]);
        let modules = [
            module(
                "D:\\tools\\etwhy.exe",
                "",
                &["KERNEL32.dll", "own.dll", "version.dll", "bcryptprimitives.dll"],
            ),
            system("ntdll.dll", MICROSOFT),
            module("C:\\Windows\\System32\\kernel32.dll", MICROSOFT, &["kernelbase.dll"]),
            system("kernelbase.dll", ""),
            system("bcryptprimitives.dll", ""),
            module("\\\\?\\c:\\WINDOWS\\winsxs\\x\\comctl32.dll", MICROSOFT, &[]),
            module("D:\\tools\\own.dll", "", &["OWN2.DLL", "VCRUNTIME140.dll"]),
            module("D:\\tools\\own2.dll", "Fabrikam", &["own.dll"]),
            module("D:\\tools\\vcruntime140.dll", MICROSOFT, &[]),
            // From here on strangers.
            module("D:\\tools\\version.dll", "Fabrikam", &[]),
            module("C:\\Program Files\\Fabrikam\\hook.dll", "Fabrikam", &["helper.dll"]),
            module("C:\\Program Files\\Fabrikam\\helper.dll", "", &[]),
            system("fabrikamhook.dll", "Fabrikam"),
            system("nobody.dll", ""),
            module("C:\\WindowsApps\\hook.dll", MICROSOFT, &[]),
        ];
        let has = |name: &str| ["version.dll", "vcruntime140.dll"].contains(&name.to_lowercase().as_str());
        let why = strangers(&modules, "C:\\Windows\\", &has);
        assert!(why[..9].iter().all(Option::is_none), "{why:?}");
        let said: Vec<&str> = why[9..].iter().map(|why| why.as_deref().unwrap()).collect();
        assert_eq!(
            said,
            [
                "Windows has a library of this name in its own folder; its version resource names Fabrikam",
                "nothing that this program imports needs it; its version resource names Fabrikam",
                "nothing that this program imports needs it; it names no maker",
                "nothing that this program imports needs it, and it is no part of Windows; its version resource names Fabrikam",
                "nothing that this program imports needs it, and it is no part of Windows; it names no maker",
                "nothing that this program imports needs it; its version resource names Microsoft Corporation",
            ]
        );
        assert!(strangers(&[], "C:\\Windows", &has).is_empty());
    }
}
