//! File names that are safe to use as one component of a path, on every system.

use std::fmt;

/// Longest name in bytes; file systems allow 255, an extension may be exchanged.
const MAX_LEN: usize = 240;

/// Names that Windows takes for devices whatever their extension ("Naming Files, Paths, and
/// Namespaces" in Microsoft's documentation).
const DEVICES: &[&str] = &["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];

/// A validated file name: no separators, no drive or stream colon, no device, nothing hidden.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SafeName(String);

impl SafeName {
    /// Takes `name` if it is one safe component.
    pub fn of_component(name: &str) -> Option<SafeName> {
        is_safe(name).then(|| SafeName(name.to_owned()))
    }

    /// Takes the part of `path` behind the last `/` or `\`: PDB names are often full paths of the
    /// machine that built the module.
    pub fn of_path(path: &str) -> Option<SafeName> {
        SafeName::of_component(path.rsplit(['/', '\\']).next()?)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name with `extension` in the place of `.pdb`, or added if it has another one. This is how
    /// Breakpad names symbol files.
    pub fn with_symbol_extension(&self, extension: &str) -> String {
        let name = self.as_str();
        let stem = match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
            Some((stem, end)) if end.eq_ignore_ascii_case(".pdb") && !stem.is_empty() => stem,
            _ => name,
        };
        format!("{stem}.{extension}")
    }
}

impl fmt::Display for SafeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_safe(name: &str) -> bool {
    let forbidden =
        |c: char| c.is_control() || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    !name.is_empty()
        && name.len() <= MAX_LEN
        && !name.chars().any(forbidden)
        // Windows drops trailing dots and spaces, so two names would be one; this covers "." and "..".
        && !name.ends_with(['.', ' '])
        && !name.starts_with(' ')
        && !is_device(name)
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    if DEVICES.iter().any(|d| d.eq_ignore_ascii_case(stem)) {
        return true;
    }
    // COM1 and LPT1, also with the superscript digits that Windows accepts there.
    let mut chars = stem.chars();
    let port: String = chars.by_ref().take(3).collect();
    let digit = chars.next();
    chars.next().is_none()
        && (port.eq_ignore_ascii_case("COM") || port.eq_ignore_ascii_case("LPT"))
        && digit.is_some_and(|c| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_paths_give_their_last_component() {
        for path in
            [r"d:\src\out\ntkrnlmp.pdb", "/home/x/ntkrnlmp.pdb", r"..\..\ntkrnlmp.pdb", "ntkrnlmp.pdb"]
        {
            assert_eq!(SafeName::of_path(path).unwrap().as_str(), "ntkrnlmp.pdb");
        }
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(MAX_LEN + 1);
        let names = [
            "",
            ".",
            "..",
            r"x\..",
            "x/..",
            r"x\",
            "C:",
            "C:evil.pdb",
            "a\0.pdb",
            "a\n.pdb",
            "CON",
            "con.pdb",
            "Nul.tar.pdb",
            "COM1",
            "lpt9.pdb",
            "COM¹.pdb",
            "aux .pdb",
            "a.pdb.",
            "a.pdb ",
            "a?.pdb",
            "a*.pdb",
            r"\\server\share\",
            "a|b",
            "a<b",
            "CONIN$",
            &long,
        ];
        for name in names {
            assert_eq!(SafeName::of_path(name), None, "{name:?}");
        }
    }

    #[test]
    fn names_that_only_look_like_devices_are_fine() {
        for name in ["console.pdb", "com.pdb", "COM10.pdb", "nullsoft.pdb", "größe.pdb", ".hidden.pdb"] {
            assert!(SafeName::of_path(name).is_some(), "{name}");
        }
    }

    #[test]
    fn symbol_files_replace_only_a_pdb_extension() {
        let symbol = |name| SafeName::of_path(name).unwrap().with_symbol_extension("sym");
        assert_eq!(symbol("a.PDB"), "a.sym");
        assert_eq!(symbol("a.so"), "a.so.sym");
        assert_eq!(symbol(".pdb"), ".pdb.sym");
    }
}
