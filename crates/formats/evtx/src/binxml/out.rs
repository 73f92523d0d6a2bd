//! Where texts are written.

use super::text::{push_utf16, push_utf16_bytes};

/// A text that grows: a `String`, or bytes that are UTF-8.
pub trait Out {
    /// Appends bytes that are ASCII.
    fn ascii(&mut self, bytes: &[u8]);
    /// Appends the first `len` bytes of a block that is ASCII.
    fn head(&mut self, block: &[u8; 24], len: usize);
    /// Appends a text.
    fn text(&mut self, text: &str);
    /// Appends a character.
    fn char(&mut self, c: char);
    /// Appends UTF-16.
    fn utf16(&mut self, bytes: &[u8]);
}

impl Out for String {
    #[inline]
    fn ascii(&mut self, bytes: &[u8]) {
        self.push_str(std::str::from_utf8(bytes).unwrap_or(""));
    }

    #[inline]
    fn head(&mut self, block: &[u8; 24], len: usize) {
        self.ascii(block.get(..len).unwrap_or(block));
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn char(&mut self, c: char) {
        self.push(c);
    }

    fn utf16(&mut self, bytes: &[u8]) {
        push_utf16(self, bytes);
    }
}

impl Out for Vec<u8> {
    #[inline]
    fn ascii(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn head(&mut self, block: &[u8; 24], len: usize) {
        // Copying all of it and cutting the rest off is faster than asking how much to copy.
        let end = self.len() + len;
        self.extend_from_slice(block);
        self.truncate(end);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn char(&mut self, c: char) {
        self.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn utf16(&mut self, bytes: &[u8]) {
        push_utf16_bytes::<false>(self, bytes, bytes.len());
    }
}
