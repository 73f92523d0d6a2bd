//! Texts that are written again and again.

/// Bytes that are copied without a call.
const SHORT: usize = 32;
const MIDDLE: usize = 64;

/// A text that stands between values. Copying a fixed number of bytes, of which some are cut off again, is faster than asking how
/// many to copy.
#[derive(Clone, Debug)]
pub struct Piece {
    short: [u8; MIDDLE],
    /// Bytes of `short`; if there are more than fit, they are in `long`.
    len: usize,
    long: Box<[u8]>,
}

impl Piece {
    /// A piece of these bytes.
    pub fn new(text: &[u8]) -> Piece {
        let mut short = [0; MIDDLE];
        match short.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                Piece { short, len: text.len(), long: Box::default() }
            }
            None => Piece { short, len: text.len(), long: text.into() },
        }
    }

    /// Appends it.
    #[inline(always)]
    pub fn push(&self, out: &mut Vec<u8>) {
        if self.len > MIDDLE {
            return out.extend_from_slice(&self.long);
        }
        let end = out.len() + self.len;
        match self.short.first_chunk::<SHORT>() {
            Some(short) if self.len <= SHORT => out.extend_from_slice(short),
            _ => out.extend_from_slice(&self.short),
        }
        out.truncate(end);
    }
}
