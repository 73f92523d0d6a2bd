//! The values that a message's `%1`, `%2`, … become.

/// The values of a record, in the order of `%1`, `%2`.
pub trait Inserts {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends value `n`, counted from 0, as text; false, and nothing appended, if there is none.
    fn write(&self, n: usize, out: &mut String) -> bool;

    /// The same to bytes that are UTF-8; nothing else may be appended.
    fn append(&self, n: usize, out: &mut Vec<u8>) -> Appended {
        let mut text = String::new();
        if !self.write(n, &mut text) {
            return Appended::Nothing;
        }
        out.extend_from_slice(text.as_bytes());
        if text.contains('%') { Appended::Percent } else { Appended::Plain }
    }

    /// Value `n` as a number, if it is one; what `%1!08X!`, maps and bit masks need.
    fn number(&self, n: usize) -> Option<u64>;

    /// Appends the name of value `n`, if the record names it; for records without a known text.
    fn name(&self, n: usize, out: &mut String) -> bool {
        let _ = (n, out);
        false
    }
}

/// What was appended for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// Nothing: the record does not have the value.
    Nothing,
    /// The value, which has no percent sign and so names no parameter.
    Plain,
    /// The value, in which there is a percent sign.
    Percent,
}

/// Texts as inserts, for tests and simple callers.
impl Inserts for [&str] {
    fn len(&self) -> usize {
        <[&str]>::len(self)
    }

    fn write(&self, n: usize, out: &mut String) -> bool {
        self.get(n).map(|text| out.push_str(text)).is_some()
    }

    fn number(&self, n: usize) -> Option<u64> {
        let text = self.get(n)?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok().or_else(|| text.parse::<i64>().ok().map(i64::cast_unsigned)),
        }
    }
}
