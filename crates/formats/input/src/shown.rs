//! Names from archives, made fit for a terminal and a report.

use std::path::{Path, PathBuf};

/// Longest part of a member's name that is shown, in characters.
const MAX_SHOWN: usize = 160;

/// `name` without control and direction-changing characters, shortened from the front.
pub fn clean(name: &str) -> String {
    let total = name.chars().count();
    let skip = total.saturating_sub(MAX_SHOWN);
    let mut out = String::new();
    if skip > 0 {
        out.push('…');
    }
    out.extend(name.chars().skip(skip).map(|c| if is_harmful(c) { '\u{FFFD}' } else { c }));
    out
}

/// Control characters drive terminals; the bidirectional ones (Unicode UAX #9) make `gpj.exe` look
/// like something else.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// `archive!member`, the way a member of an archive is shown.
pub fn member(archive: &Path, name: &str) -> PathBuf {
    let mut shown = archive.as_os_str().to_os_string();
    shown.push("!");
    shown.push(clean(name));
    PathBuf::from(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_and_bidi_do_not_reach_the_terminal() {
        assert_eq!(clean("a\x1B[31mb\u{202E}c\n"), "a\u{FFFD}[31mb\u{FFFD}c\u{FFFD}");
        assert_eq!(clean("täst.etl"), "täst.etl");
        let long = format!("{}x.etl", "d/".repeat(5000));
        let shown = clean(&long);
        assert!(shown.chars().count() <= MAX_SHOWN + 1 && shown.ends_with("x.etl"));
        assert_eq!(member(Path::new("a.zip"), "../t.etl"), Path::new("a.zip!../t.etl"));
    }
}
