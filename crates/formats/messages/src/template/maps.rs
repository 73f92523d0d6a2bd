//! `valueMap` and `bitMap` of manifests: numbers that are shown as texts.

/// Texts of the values of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMap {
    /// Name of the map in the manifest.
    pub name: String,
    /// Whether values are bits that may be set together.
    pub bits: bool,
    /// Value and text, sorted by value.
    pub values: Vec<(u32, String)>,
}

impl ValueMap {
    /// Appends the text of a number; false if the map does not have it.
    ///
    /// Texts of bits are joined with `|`; bits without a text are added as a number.
    pub fn write(&self, number: u64, out: &mut String) -> bool {
        if !self.bits {
            let found = u32::try_from(number)
                .ok()
                .and_then(|n| self.values.binary_search_by_key(&n, |v| v.0).ok())
                .and_then(|at| self.values.get(at));
            return found.map(|(_, text)| out.push_str(text)).is_some();
        }
        let (start, mut rest) = (out.len(), number);
        for (bit, text) in &self.values {
            let bit = u64::from(*bit);
            // A value of zero names the absence of all bits.
            if (bit != 0 && number & bit == bit) || (bit == 0 && number == 0) {
                if out.len() > start {
                    out.push('|');
                }
                out.push_str(text);
                rest &= !bit;
            }
        }
        if out.len() == start {
            return false;
        }
        if rest != 0 {
            use std::fmt::Write as _;
            let _ = write!(out, "|{rest:#x}");
        }
        true
    }
}
