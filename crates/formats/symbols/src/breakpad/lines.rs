//! Lines out of a reader, without copying them and in bounded memory.

use std::io::{self, ErrorKind, Read};

/// Bytes read at a time, and the longest line that is looked at. Mangled template names reach tens of
/// thousands of characters.
const BUFFER: usize = 1 << 20;

/// What comes next.
pub enum Next<'a> {
    /// A line without its end (`\n` or `\r\n`).
    Line(&'a [u8]),
    /// A line longer than the buffer, skipped.
    TooLong,
    /// Nothing.
    End,
}

/// Reads lines.
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl<R: Read> LineReader<R> {
    pub fn new(source: R) -> LineReader<R> {
        LineReader { source, buffer: vec![0; BUFFER], start: 0, end: 0, at_end: false }
    }

    /// The next line.
    pub fn next(&mut self) -> io::Result<Next<'_>> {
        let mut too_long = false;
        // How much of the unread bytes is known to hold no line end.
        let mut searched = 0;
        let found = loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or(&[]);
            let new = unread.get(searched..).unwrap_or(&[]);
            if let Some(at) = new.iter().position(|b| *b == b'\n') {
                break Some(searched.saturating_add(at));
            }
            searched = unread.len();
            if self.at_end {
                break None;
            }
            if searched == BUFFER {
                too_long = true;
                (self.start, self.end, searched) = (0, 0, 0);
            }
            self.fill()?;
        };
        let start = self.start;
        let len = match found {
            Some(len) => {
                self.start = start.saturating_add(len).saturating_add(1);
                len
            }
            None => {
                self.start = self.end;
                searched
            }
        };
        if too_long {
            return Ok(Next::TooLong);
        }
        if found.is_none() && len == 0 {
            return Ok(Next::End);
        }
        let line = self.buffer.get(start..start.saturating_add(len)).unwrap_or(&[]);
        Ok(Next::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Moves the unread bytes to the front and reads more behind them.
    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end = self.end.saturating_sub(self.start);
            self.start = 0;
        }
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.source.read(free) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end = self.end.saturating_add(n).min(BUFFER),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(3);
            self.0.read(&mut buffer[..n])
        }
    }

    fn all(source: impl Read) -> Vec<String> {
        let mut reader = LineReader::new(source);
        let mut lines = Vec::new();
        loop {
            match reader.next().unwrap() {
                Next::Line(line) => lines.push(String::from_utf8_lossy(line).into_owned()),
                Next::TooLong => lines.push("<too long>".to_owned()),
                Next::End => return lines,
            }
        }
    }

    #[test]
    fn line_ends_and_the_last_line() {
        let text = b"one\r\n\ntwo three\nfour";
        assert_eq!(all(&text[..]), ["one", "", "two three", "four"]);
        assert_eq!(all(Slow(text)), ["one", "", "two three", "four"]);
        assert!(all(&b""[..]).is_empty());
    }

    #[test]
    fn overlong_lines_are_skipped_in_bounded_memory() {
        let text = format!("a\n{}\nb\n{}", "x".repeat(3 * BUFFER + 5), "y".repeat(BUFFER));
        assert_eq!(all(text.as_bytes()), ["a", "<too long>", "b", "<too long>"]);
        let fits = "z".repeat(BUFFER - 1);
        assert_eq!(all(format!("{fits}\nb").as_bytes()), [fits.as_str(), "b"]);
    }
}
