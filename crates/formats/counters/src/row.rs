//! Lines of a log, cut into fields.

/// The fields of a line. Quotes around a field are not part of it.
///
/// A quoted field ends at a quote that a separator or the end of the line follows: PDH writes names of instances as they are,
/// and they may hold quotes.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Fields<'a> {
    /// The fields of a line without its end.
    pub fn new(line: &'a [u8], separator: u8) -> Fields<'a> {
        Fields { rest: Some(line), separator }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if let [b'"', inside @ ..] = rest {
            let mut from = 0;
            while let Some(quote) = inside.get(from..).and_then(|part| part.iter().position(|b| *b == b'"')) {
                let at = from + quote;
                match inside.get(at + 1) {
                    None => self.rest = None,
                    Some(next) if *next == self.separator => self.rest = inside.get(at + 2..),
                    Some(_) => {
                        from = at + 1;
                        continue;
                    }
                }
                return inside.get(..at);
            }
            // No closing quote: the line is cut.
            self.rest = None;
            return Some(inside);
        }
        match rest.iter().position(|b| *b == self.separator) {
            Some(at) => {
                self.rest = rest.get(at + 1..);
                rest.get(..at)
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// The separator of a log, by its first header: what follows the first field.
pub fn separator(header: &[u8]) -> u8 {
    let is_separator = |b: &u8| matches!(b, b',' | b'\t' | b';');
    if let [b'"', inside @ ..] = header {
        let end = inside.windows(2).find(|pair| matches!(pair, [b'"', next] if is_separator(next)));
        if let Some([_, next]) = end {
            return *next;
        }
    }
    header.iter().copied().find(|b| is_separator(b)).unwrap_or(b',')
}

/// True if a line ends inside of a quoted field: it was cut.
pub fn is_cut(line: &[u8]) -> bool {
    line.iter().filter(|b| **b == b'"').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, separator: u8) -> Vec<String> {
        Fields::new(line.as_bytes(), separator).map(|f| String::from_utf8_lossy(f).into_owned()).collect()
    }

    #[test]
    fn fields_as_logs_have_them() {
        assert_eq!(fields(r#""a","b c"," ","""#, b','), ["a", "b c", " ", ""]);
        assert_eq!(fields(r#""12,5";"0""#, b';'), ["12,5", "0"]);
        assert_eq!(fields("a\t\"b\"\t", b'\t'), ["a", "b", ""]);
        assert_eq!(fields("1,2", b','), ["1", "2"]);
        assert_eq!(fields("", b','), [""]);
        assert_eq!(fields(r#""Process(say "hi")","x""#, b','), [r#"Process(say "hi")"#, "x"]);
        assert_eq!(fields(r#""1.5","2."#, b','), ["1.5", "2."]);
        assert_eq!(fields("\"", b','), [""]);
    }

    #[test]
    fn separators() {
        assert_eq!(separator(br#""(PDH-CSV 4.0) (GMT Standard Time)(0)","\\a\b\c""#), b',');
        assert_eq!(separator(b"\"(PDH-TSV 4.0) (x, y)(0)\"\t\"\\\\a\\b\\c\""), b'\t');
        assert_eq!(separator(br#""(PDH-CSV 4.0)";"\\a\b(1,2)\c""#), b';');
        assert_eq!(separator(b"time;cpu,x"), b';');
        assert_eq!(separator(b""), b',');
    }

    #[test]
    fn the_csv_crate_reads_the_same() {
        let lines =
            [r#""04/30/2010 10:34:11.123","8.207780"," ","22361.069101""#, r#""x","","1""#, "a,b,,c,"];
        for line in lines {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().unwrap().unwrap();
            assert_eq!(fields(line, b','), record.iter().collect::<Vec<_>>(), "{line}");
        }
    }
}
