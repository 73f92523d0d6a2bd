//! Records of CodeView in untrusted bytes.

use etwhy_base::Bytes as _;

/// CodeView records: length (not counting itself) and kind, 16 bits each, then the fields.
///
/// Layout: "CodeView Symbol Records" and "CodeView Type Records" of the LLVM documentation; `cvinfo.h` of microsoft-pdb.
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// One record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// What it is.
    pub kind: u16,
    /// Its fields, behind the kind.
    pub data: &'a [u8],
    /// Where it begins.
    pub at: usize,
}

impl<'a> Records<'a> {
    /// Records of `bytes` from an offset.
    pub fn new(bytes: &'a [u8], at: usize) -> Records<'a> {
        Records { bytes, at }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let at = self.at;
        let length = usize::from(self.bytes.u16_at(at)?);
        let record = self.bytes.get(at.checked_add(2)?..at.checked_add(2)?.checked_add(length)?)?;
        let kind = record.u16_at(0)?;
        self.at = at + 2 + length;
        Some(Record { kind, data: record.get(2..)?, at })
    }
}
