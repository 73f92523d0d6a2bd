//! What a process says, line by line, however much that is.

use std::io::{BufRead, BufReader, Read};

/// Lines of a pipe. One that is longer than `most` bytes is cut.
pub struct Lines<R> {
    pipe: BufReader<R>,
    most: usize,
}

impl<R: Read> Lines<R> {
    /// Those of a pipe.
    pub fn new(pipe: R, most: usize) -> Lines<R> {
        Lines { pipe: BufReader::new(pipe), most }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            let piece = self.pipe.fill_buf().unwrap_or_default();
            if piece.is_empty() {
                return (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned());
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
            let room = self.most.saturating_sub(line.len()).min(text.len());
            line.extend_from_slice(text.get(..room).unwrap_or_default());
            let used = text.len().saturating_add(usize::from(end.is_some()));
            self.pipe.consume(used);
            if end.is_some() {
                return Some(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned());
            }
        }
    }
}

/// Calls `end`, which ends this process, when standard input ends: whoever started it is gone, or wants nothing more of it.
pub fn end_with_standard_input(end: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        end();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_the_rest_goes_on() {
        let text = format!("one\n{}\r\n\nlast", "x".repeat(100_000));
        let lines: Vec<String> = Lines::new(text.as_bytes(), 10).collect();
        assert_eq!(lines, ["one", "xxxxxxxxxx", "", "last"]);
    }
}
