//! The bytes of a log as lines: Unicode in its forms, or a code page of Windows.

use crate::names;
use crate::pages::{PAGES, Page};
use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// The longest line that is read: a header of 100,000 counters has about 10 MB.
pub const LONGEST: usize = 64 << 20;

/// Reads UTF-16 as UTF-8.
#[derive(Debug)]
pub struct Utf16<R> {
    inner: R,
    big: bool,
    /// A byte, or the first half of a pair, that waits for the rest.
    left: Vec<u8>,
    out: Vec<u8>,
    at: usize,
    raw: Vec<u8>,
    ended: bool,
}

impl<R: Read> Utf16<R> {
    /// `big`: the high byte comes first.
    pub fn new(inner: R, big: bool) -> Utf16<R> {
        Utf16 { inner, big, left: Vec::new(), out: Vec::new(), at: 0, raw: vec![0; 1 << 16], ended: false }
    }

    fn more(&mut self) -> io::Result<()> {
        self.out.clear();
        self.at = 0;
        while self.out.is_empty() && !self.ended {
            let n = self.inner.read(&mut self.raw)?;
            self.ended = n == 0;
            let mut bytes = std::mem::take(&mut self.left);
            bytes.extend_from_slice(self.raw.get(..n).unwrap_or(&[]));
            let mut keep = bytes.len() % 2;
            let unit =
                |pair: &[u8; 2]| if self.big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) };
            let mut units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(unit).collect();
            if !self.ended && units.last().is_some_and(|u| (0xD800..0xDC00).contains(u)) {
                units.pop();
                keep += 2;
            }
            self.left = bytes.split_off(bytes.len() - keep);
            let mut four = [0; 4];
            for c in etwhy_base::utf16::chars(units) {
                self.out.extend_from_slice(c.encode_utf8(&mut four).as_bytes());
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.out.len() {
            self.more()?;
        }
        let rest = self.out.get(self.at..).unwrap_or(&[]);
        let n = rest.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        self.at += n;
        Ok(n)
    }
}

/// How the bytes of a file are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// UTF-8, or a code page whose first half is ASCII; so many bytes of a mark in front.
    Bytes(usize),
    /// UTF-16, low byte first.
    Little,
    /// UTF-16, high byte first.
    Big,
    /// No text.
    Binary,
}

/// The form of a file, by its first bytes.
pub fn form_of(head: &[u8]) -> Form {
    match head {
        [0xEF, 0xBB, 0xBF, ..] => return Form::Bytes(3),
        [0xFF, 0xFE, ..] => return Form::Little,
        [0xFE, 0xFF, ..] => return Form::Big,
        _ => {}
    }
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|b| **b == 0).count();
    let (low, high) = (zeros(1), zeros(0));
    let half = head.len() / 2;
    // Text in Latin letters has nearly every other byte zero; binary files have zeros at both places.
    if low > half / 2 && high == 0 {
        Form::Little
    } else if high > half / 2 && low == 0 {
        Form::Big
    } else if low + high > 0 {
        Form::Binary
    } else {
        Form::Bytes(0)
    }
}

/// What [`line`] read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, with its end if it had one.
    Read {
        /// It ended with a line feed.
        ended: bool,
    },
    /// A line that is too long; it was skipped.
    TooLong,
    /// No more.
    End,
}

/// Reads a line into `to`, without its end.
///
/// # Errors
/// Those of the reader.
pub fn line(from: &mut impl BufRead, to: &mut Vec<u8>) -> io::Result<Line> {
    to.clear();
    let n = from.by_ref().take(LONGEST as u64).read_until(b'\n', to)?;
    if n == 0 {
        return Ok(Line::End);
    }
    let ended = to.last() == Some(&b'\n');
    if !ended && n >= LONGEST {
        to.clear();
        to.shrink_to(1 << 16);
        // The rest of the line, a piece at a time.
        loop {
            let piece = from.fill_buf()?;
            let (n, found) = match piece.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (piece.len(), false),
            };
            from.consume(n);
            if found || n == 0 {
                return Ok(Line::TooLong);
            }
        }
    }
    while matches!(to.last(), Some(b'\n' | b'\r')) {
        to.pop();
    }
    Ok(Line::Read { ended })
}

/// How names of a header are read.
#[derive(Clone, Copy, Debug)]
pub enum Names {
    /// They are UTF-8.
    Utf8,
    /// They are of a code page.
    Page(&'static Page),
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code page {}", self.number)
    }
}

impl Names {
    /// How to read this header: as UTF-8 if it is, else by the page that gives most names that are known.
    pub fn parse(header: &[u8], separator: u8) -> Names {
        if std::str::from_utf8(header).is_ok() {
            return Names::Utf8;
        }
        let known = |page: &'static Page| {
            let fields =
                crate::row::Fields::new(header, separator).skip(1).filter(|f| !f.is_ascii()).take(500);
            fields
                .filter_map(|f| crate::path::CounterPath::parse(&Names::Page(page).read(f)))
                .map(|path| match names::object(&path.object) {
                    Some(object) => 1 + usize::from(names::counter(object, &path.name).is_some()),
                    None => 0,
                })
                .sum::<usize>()
        };
        // The first of the best: the Western page where nothing is known.
        let mut best = (0, PAGES.first());
        for page in PAGES {
            let score = known(page);
            if score > best.0 {
                best = (score, Some(page));
            }
        }
        best.1.map_or(Names::Utf8, Names::Page)
    }

    /// A name.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match self {
            Names::Utf8 => String::from_utf8_lossy(bytes),
            Names::Page(_) if bytes.is_ascii() => String::from_utf8_lossy(bytes),
            Names::Page(page) => {
                let upper: Vec<char> = page.upper.chars().collect();
                let char_of = |byte: &u8| match byte.checked_sub(128) {
                    Some(at) => upper.get(usize::from(at)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
                    None => char::from(*byte),
                };
                Cow::Owned(bytes.iter().map(char_of).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn forms() {
        let utf16: Vec<u8> = "\"(PDH-CSV 4.0)\"".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\"(PDH-CSV 4.0)\"".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(form_of(&utf16), Form::Little);
        assert_eq!(form_of(&big), Form::Big);
        assert_eq!(form_of(b"\xEF\xBB\xBF\"(PDH"), Form::Bytes(3));
        assert_eq!(form_of(b"\xFF\xFE\"\0"), Form::Little);
        assert_eq!(form_of(b"\"(PDH-CSV 4.0)\""), Form::Bytes(0));
        assert_eq!(form_of(b"\0\0\x01\0\x30\x02\0\0"), Form::Binary);
        assert_eq!(form_of(b""), Form::Bytes(0));
    }

    #[test]
    fn utf16_in_small_pieces() {
        struct One<'a>(&'a [u8]);
        impl Read for One<'_> {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
                to[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let text = "Prozessor € \u{1F5A5} Память";
        for big in [false, true] {
            let bytes: Vec<u8> = text
                .encode_utf16()
                .flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() })
                .collect();
            let mut read = String::new();
            Utf16::new(One(&bytes), big).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        let mut cut = String::new();
        Utf16::new(One(&[b'a', 0, 0x3D, 0xD8, b'x']), false).read_to_string(&mut cut).unwrap();
        assert_eq!(cut, "a\u{FFFD}");
    }

    #[test]
    fn pages_by_the_names_they_give() {
        // "Verfügbare" in code pages 1252 and 850, "Процессор" in 1251 and 866.
        let cases: [(&[u8], u16); 4] = [
            (b"\"(PDH-CSV 4.0)\",\"\\\\S\\Arbeitsspeicher\\Verf\xFCgbare MB\"", 1252),
            (b"\"(PDH-CSV 4.0)\",\"\\\\S\\Arbeitsspeicher\\Verf\x81gbare MB\"", 850),
            (b"\"(PDH-CSV 4.0)\",\"\\\\S\\\xCF\xE0\xEC\xFF\xF2\xFC\\\xC4\xEE\xF1\xF2\xF3\xEF\xED\xEE \xCC\xC1\"", 1251),
            (b"\"(PDH-CSV 4.0)\",\"\\\\S\\\x8F\xA0\xAC\xEF\xE2\xEC\\\x84\xAE\xE1\xE2\xE3\xAF\xAD\xAE \x8C\x81\"", 866),
        ];
        for (header, number) in cases {
            match Names::parse(header, b',') {
                Names::Page(page) => assert_eq!(page.number, number),
                Names::Utf8 => panic!("UTF-8"),
            }
        }
        assert!(matches!(Names::parse("\"Verfügbare\"".as_bytes(), b','), Names::Utf8));
        for page in PAGES {
            assert_eq!(page.upper.chars().count(), 128, "{page:?}");
        }
    }

    #[test]
    fn lines_and_their_ends() {
        let mut reader = BufReader::with_capacity(3, &b"ab\r\n\ncd"[..]);
        let mut to = Vec::new();
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::Read { ended: true });
        assert_eq!(to, b"ab");
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::Read { ended: true });
        assert_eq!(to, b"");
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::Read { ended: false });
        assert_eq!(to, b"cd");
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::End);
        let long = io::repeat(b'x').take(LONGEST as u64 + 5).chain(&b"\nnext"[..]);
        let mut reader = BufReader::new(long);
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::TooLong);
        assert_eq!(line(&mut reader, &mut to).unwrap(), Line::Read { ended: false });
        assert_eq!(to, b"next");
    }
}
