//! Bytes to text: which encoding a policy file is in.
//!
//! `auditpol /backup` and redirected output are in the console's code page or in UTF-16 (PowerShell); Group Policy's `audit.csv` is
//! UTF-8 (MS-GPAC 2.2). What has no byte order mark and is not UTF-8 is guessed by the names of subcategories that it then holds.

use crate::names;
use etwhy_base::utf16;

/// More than this of a file is not read; a policy has some kilobytes.
pub const MAX_BYTES: usize = 8 << 20;

/// How much of a file the guess looks at.
const LOOKED_AT: usize = 64 << 10;

/// Text and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text.
    pub text: String,
    /// Name of the encoding.
    pub encoding: &'static str,
    /// Nothing in the file says so.
    pub guessed: bool,
    /// Characters that could not be read.
    pub replaced: usize,
    /// Bytes behind [`MAX_BYTES`], which were not read.
    pub left_out: usize,
}

/// Reads bytes as text.
pub fn decode(bytes: &[u8]) -> Decoded {
    let left_out = bytes.len().saturating_sub(MAX_BYTES);
    let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    let (text, encoding, guessed) = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => (String::from_utf8_lossy(rest).into_owned(), "UTF-8", false),
        [0xFF, 0xFE, rest @ ..] => (utf16::text(rest), "UTF-16LE", false),
        [0xFE, 0xFF, rest @ ..] => (utf16::text_be(rest), "UTF-16BE", false),
        _ => without_mark(bytes),
    };
    let replaced = text.chars().filter(|&c| c == '\u{fffd}').count();
    Decoded { text, encoding, guessed, replaced, left_out }
}

fn without_mark(bytes: &[u8]) -> (String, &'static str, bool) {
    match zeros(bytes) {
        Some(true) => return (utf16::text(bytes), "UTF-16LE", true),
        Some(false) => return (utf16::text_be(bytes), "UTF-16BE", true),
        None => {}
    }
    if bytes.is_ascii() {
        return (String::from_utf8_lossy(bytes).into_owned(), "ASCII", false);
    }
    // A damaged byte does not make a UTF-8 file another one: several sequences of more than one byte are no accident.
    let (mut sound, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        sound += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    if broken == 0 || sound > broken {
        return (String::from_utf8_lossy(bytes).into_owned(), "UTF-8", broken > 0);
    }
    let sample = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let best = CODE_PAGES.iter().enumerate().max_by_key(|(at, page)| {
        let text = page.decode(sample);
        (names::known_in(&text), plausible(&text), std::cmp::Reverse(*at))
    });
    match best {
        Some((_, page)) => (page.decode(bytes), page.name, true),
        None => (String::from_utf8_lossy(bytes).into_owned(), "UTF-8", true),
    }
}

/// UTF-16 without a mark: GUIDs, commas and line ends are ASCII, every other byte of which is 0. `true` is little endian.
fn zeros(bytes: &[u8]) -> Option<bool> {
    let sample = bytes.get(..4096).unwrap_or(bytes);
    let (mut first, mut second, mut pairs) = (0usize, 0usize, 0usize);
    for pair in sample.chunks_exact(2) {
        pairs += 1;
        first += usize::from(pair.first() == Some(&0));
        second += usize::from(pair.get(1) == Some(&0));
    }
    let many = |n: usize| n >= 4 && n.saturating_mul(5) >= pairs;
    match (many(first), many(second)) {
        (false, true) => Some(true),
        (true, false) => Some(false),
        _ => None,
    }
}

/// Letters of one script beside each other are text; box drawings and signs in between are not.
fn plausible(text: &str) -> i64 {
    let mut score = 0i64;
    let mut before: Option<char> = None;
    for c in text.chars() {
        if !c.is_ascii() {
            score += match (c.is_alphabetic(), before) {
                (false, _) => -2,
                (true, Some(b)) if b.is_alphabetic() && c.is_uppercase() && b.is_lowercase() => -1,
                (true, _) => 1,
            };
        }
        before = Some(c);
    }
    score
}

/// A code page of one byte per character.
struct CodePage {
    name: &'static str,
    /// The characters of 0x80 to 0xFF, as Unicode's mapping tables (VENDORS/MICSFT) list them.
    upper: &'static str,
}

impl CodePage {
    fn decode(&self, bytes: &[u8]) -> String {
        let upper: Vec<char> = self.upper.chars().collect();
        let one = |byte: u8| match byte.checked_sub(0x80) {
            None => char::from(byte),
            Some(at) => upper.get(usize::from(at)).copied().unwrap_or('\u{fffd}'),
        };
        bytes.iter().map(|&byte| one(byte)).collect()
    }
}

/// In order of how common they are: the first wins where nothing speaks for one.
static CODE_PAGES: [CodePage; 4] = [
    CodePage {
        name: "Windows-1252",
        upper: "€\u{fffd}‚ƒ„…†‡ˆ‰Š‹Œ\u{fffd}Ž\u{fffd}\u{fffd}‘’“”•–—˜™š›œ\u{fffd}žŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿\
         ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ",
    },
    CodePage {
        name: "code page 850",
        upper: "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
         └┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    },
    CodePage {
        name: "Windows-1251",
        upper: "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—\u{fffd}™љ›њќћџ\u{a0}ЎўЈ¤Ґ¦§Ё©Є«¬\u{ad}®Ї°±Ііґµ¶·ё№є»јЅѕї\
         АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    },
    CodePage {
        name: "code page 866",
        upper: "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
         └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√№¤■\u{a0}",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_pages_have_128_characters() {
        for page in &CODE_PAGES {
            assert_eq!(page.upper.chars().count(), 128, "{}", page.name);
        }
        // 0x80: euro sign, Ç, Ђ, А; 0xFF: ÿ, no-break space, я, no-break space.
        let ends: Vec<String> = CODE_PAGES.iter().map(|page| page.decode(&[0x80, 0xFF])).collect();
        assert_eq!(ends, ["€ÿ", "Ç\u{a0}", "Ђя", "А\u{a0}"]);
    }

    #[test]
    fn marks_decide() {
        let decoded = decode(b"\xEF\xBB\xBFErfolg");
        assert_eq!((decoded.text.as_str(), decoded.encoding, decoded.guessed), ("Erfolg", "UTF-8", false));
        let decoded = decode(b"\xFF\xFEA\0\xE4\0");
        assert_eq!((decoded.text.as_str(), decoded.encoding), ("Aä", "UTF-16LE"));
        let decoded = decode(b"\xFE\xFF\0A\0\xE4");
        assert_eq!((decoded.text.as_str(), decoded.encoding), ("Aä", "UTF-16BE"));
    }

    #[test]
    fn what_has_no_mark_is_guessed() {
        let text = "  Objektzugriff\r\n  Filterplattformverbindung               Keine Überwachung\r\n  Handleänderung  Erfolg\r\n";
        let bytes = |page: usize, text: &str| -> Vec<u8> {
            let upper: Vec<char> = CODE_PAGES[page].upper.chars().collect();
            let one = |c: char| match u8::try_from(u32::from(c)) {
                Ok(byte) if c.is_ascii() => byte,
                _ => 0x80 + u8::try_from(upper.iter().position(|u| *u == c).unwrap()).unwrap(),
            };
            text.chars().map(one).collect()
        };
        for (page, text) in [
            (0, text),
            (1, text),
            (2, "  Вход в систему   Успех и сбой\r\n"),
            (3, "  Вход в систему   Успех и сбой\r\n"),
            (1, "  Cerrar sesión    Sin auditoría\r\n"),
        ] {
            let decoded = decode(&bytes(page, text));
            assert_eq!((decoded.text.as_str(), decoded.encoding), (text, CODE_PAGES[page].name));
            assert!(decoded.guessed);
        }
        for big in [false, true] {
            let units = text.encode_utf16();
            let bytes: Vec<u8> =
                units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect();
            let decoded = decode(&bytes);
            assert_eq!((decoded.text.as_str(), decoded.guessed), (text, true));
        }
    }

    #[test]
    fn one_bad_byte_does_not_change_the_encoding() {
        let mut bytes =
            "Überprüfung der Anmeldeinformationen, Verzeichnisdienständerungen".as_bytes().to_vec();
        bytes.push(0xFF);
        let decoded = decode(&bytes);
        assert_eq!((decoded.encoding, decoded.replaced, decoded.guessed), ("UTF-8", 1, true));
    }
}
