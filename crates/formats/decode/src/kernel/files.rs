//! The text files that ship with the program.

/// One embedded file.
pub(super) struct LayoutFile {
    /// Its name, for messages of tests.
    #[cfg_attr(not(test), expect(dead_code))]
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All files that declare events.
pub(super) const LAYOUT_FILES: &[LayoutFile] = include!(concat!(env!("OUT_DIR"), "/layout_files.rs"));

/// Names of values.
pub(super) const ENUMS: &str = include_str!("layouts/enums.txt");

/// Names of the bits of group masks.
pub(super) const KEYWORDS: &str = include_str!("layouts/keywords.txt");
