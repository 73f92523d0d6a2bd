//! The files of findings that are built into the program (`build.rs` lists them).

use std::io::Read;

/// A finding's file.
pub struct File {
    /// Its name without the ending.
    pub name: &'static str,
    /// Everything in front of its tests.
    pub head: &'static str,
    /// Its tests, deflated.
    tests: &'static [u8],
}

/// All of them, in order of name.
pub static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/findings.rs"));

impl File {
    /// The whole text.
    pub fn whole(&self) -> String {
        let mut text = self.head.to_owned();
        // What the build packed can be unpacked; a text cut short would be a finding without tests, which `etwhy rules test` refuses.
        let _ = flate2::read::DeflateDecoder::new(self.tests).read_to_string(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_the_end_of_a_file() {
        assert!(FILES.len() > 100);
        for file in FILES {
            let path = format!("{}/findings/{}.toml", env!("CARGO_MANIFEST_DIR"), file.name);
            assert_eq!(file.whole(), std::fs::read_to_string(path).unwrap(), "{}", file.name);
            let sections = file.whole().split_at(file.head.len()).1.to_owned();
            let other = sections.lines().find(|line| {
                line.starts_with('[') && !line.starts_with("[[test]]") && !line.starts_with("[test.")
            });
            assert_eq!(other, None, "{}", file.name);
        }
    }
}
