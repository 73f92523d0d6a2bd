//! Checked little-endian reads. Every read of the project that touches input goes through these.

/// Reads of little-endian values at an offset; `None` when they would leave the slice.
pub trait Bytes {
    /// `n` bytes at `at`.
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]>;
    /// The bytes from `at` on, `len` of them.
    fn sub(&self, at: usize, len: usize) -> Option<&[u8]>;
    /// The bytes from `at` up to a NUL, or to the end.
    fn text_at(&self, at: usize) -> Option<&[u8]>;
    /// Unsigned 8 bit.
    #[inline]
    fn u8_at(&self, at: usize) -> Option<u8> {
        self.array::<1>(at).map(|b| b[0])
    }
    /// Unsigned 16 bit.
    #[inline]
    fn u16_at(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }
    /// Unsigned 32 bit.
    #[inline]
    fn u32_at(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }
    /// Unsigned 64 bit.
    #[inline]
    fn u64_at(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
    /// Signed 64 bit.
    #[inline]
    fn i64_at(&self, at: usize) -> Option<i64> {
        self.array(at).map(i64::from_le_bytes)
    }
    /// A pointer of `size` bytes (4 or 8), widened.
    #[inline]
    fn ptr_at(&self, at: usize, size: usize) -> Option<u64> {
        if size == 4 { self.u32_at(at).map(u64::from) } else { self.u64_at(at) }
    }
    /// A GUID.
    #[inline]
    fn guid_at(&self, at: usize) -> Option<crate::Guid> {
        self.array(at).map(crate::Guid)
    }
}

impl Bytes for [u8] {
    #[inline]
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.get(at..)?.first_chunk::<N>().copied()
    }
    #[inline]
    fn sub(&self, at: usize, len: usize) -> Option<&[u8]> {
        self.get(at..at.checked_add(len)?)
    }
    #[inline]
    fn text_at(&self, at: usize) -> Option<&[u8]> {
        self.get(at..)?.split(|b| *b == 0).next()
    }
}
