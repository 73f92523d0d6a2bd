//! Numbers that are read in hex.

/// A number that is read in hex: its 32 bits if `.1`, else its 64.
pub(crate) struct Hex(pub i64, pub bool);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.1 { write!(f, "{:#010x}", self.0 as u32) } else { write!(f, "{:#x}", self.0) }
    }
}
