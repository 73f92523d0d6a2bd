//! Hives: the files of the registry (`System32\config\SOFTWARE` and `SYSTEM`).
//!
//! Layout: libregf's *Windows NT Registry File (REGF) format*. Of the crates for it, `nt-hive` and `nt_hive2` are under
//! the GPL, and `regf` takes no hive with a damaged cell, while hives of running machines often have some. What is
//! needed here is little: keys by name, their subkeys, values that are texts or numbers. Transaction logs beside a hive
//! are not applied: providers that were registered in its last seconds may be missing.

use crate::bytes::{Budget, Resource as _, utf16};
use crate::error::Error;
use etwhy_base::Bytes as _;
use std::cell::RefCell;

/// Where cells start.
const BINS: usize = 4096;
/// Subkeys or values that one key may have here; `EventLog\Application` has some hundred.
const CHILDREN_MAX: usize = 1 << 17;

/// Bytes that may be read of a hive in any case, and how many times larger than the hive all that is read may be: names are looked
/// through more than once, and cells of a hostile hive all refer to the same data.
const READ_MIN: usize = 1 << 20;
const READ_TIMES: usize = 4;

/// A hive.
pub(crate) struct Hive<'a> {
    bytes: &'a [u8],
    budget: RefCell<Budget>,
}

/// A key: offset of its `nk` cell.
#[derive(Clone, Copy)]
pub(crate) struct Key(u32);

impl<'a> Hive<'a> {
    /// Looks at the header.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let head = bytes.need("regf header", 0, BINS)?;
        if head.sub(0, 4) != Some(b"regf") {
            return Err(Error::malformed("regf header", 0, "signature is not regf"));
        }
        let budget = Budget::new(bytes.len().saturating_mul(READ_TIMES).saturating_add(READ_MIN));
        Ok(Self { bytes, budget: RefCell::new(budget) })
    }

    /// Takes what is read from the budget.
    fn spend(&self, bytes: usize) -> Option<()> {
        self.budget.borrow_mut().take(bytes).then_some(())
    }

    /// True if something was not read, because cells refer to the same data over and over.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget.borrow().is_spent()
    }

    /// The root.
    pub(crate) fn root(&self) -> Option<Key> {
        self.key(self.bytes.u32_at(36)?)
    }

    /// The data of an allocated cell.
    fn cell(&self, offset: u32) -> Option<&'a [u8]> {
        let at = BINS.checked_add(offset as usize)?;
        let size = self.bytes.u32_at(at)?.cast_signed().checked_neg().filter(|&s| s > 4)?;
        let len = usize::try_from(size).ok()? - 4;
        self.bytes.sub(at.checked_add(4)?, len)
    }

    fn key(&self, offset: u32) -> Option<Key> {
        (self.cell(offset)?.sub(0, 2)? == b"nk").then_some(Key(offset))
    }

    /// Name of a key.
    pub(crate) fn name(&self, key: Key) -> Option<String> {
        let cell = self.cell(key.0)?;
        let name = cell.sub(76, usize::from(cell.u16_at(72)?))?;
        self.spend(name.len())?;
        // KEY_COMP_NAME: one byte for each character.
        Some(match cell.u16_at(2)? & 0x20 != 0 {
            true => name.iter().map(|&b| char::from(b)).collect(),
            false => utf16(name),
        })
    }

    /// Subkeys.
    pub(crate) fn subkeys(&self, key: Key) -> Vec<Key> {
        let mut out = Vec::new();
        if let Some(list) =
            self.cell(key.0).and_then(|cell| (cell.u32_at(20)? > 0).then(|| cell.u32_at(28))?)
        {
            self.list(list, 0, &mut out);
        }
        out
    }

    fn list(&self, offset: u32, depth: usize, out: &mut Vec<Key>) {
        let Some(cell) = self.cell(offset) else { return };
        let (Some(kind), Some(count)) = (cell.sub(0, 2), cell.u16_at(2)) else {
            return;
        };
        let size = match kind {
            b"lf" | b"lh" => 8,
            b"li" | b"ri" => 4,
            _ => return,
        };
        for index in 0..usize::from(count) {
            let Some(child) = cell.u32_at(4 + index * size) else { return };
            if out.len() >= CHILDREN_MAX || self.spend(size).is_none() {
                return;
            }
            if kind == b"ri" {
                // A list of lists has no lists of lists in it.
                if depth == 0 {
                    self.list(child, 1, out);
                }
            } else {
                out.extend(self.key(child));
            }
        }
    }

    /// A subkey by name, whatever its case.
    pub(crate) fn subkey(&self, key: Key, name: &str) -> Option<Key> {
        self.subkeys(key).into_iter().find(|&k| self.name(k).is_some_and(|n| n.eq_ignore_ascii_case(name)))
    }

    /// A key by its path.
    pub(crate) fn path(&self, path: &[&str]) -> Option<Key> {
        path.iter().try_fold(self.root()?, |key, name| self.subkey(key, name))
    }

    /// Values that are texts (the first one of several) or numbers, by name in lower case; the default one has none.
    pub(crate) fn values(&self, key: Key) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let list = self.cell(key.0).and_then(|cell| {
            let count = (cell.u32_at(36)? as usize).min(CHILDREN_MAX);
            Some((count, self.cell(cell.u32_at(40)?)?))
        });
        let Some((count, list)) = list else { return out };
        for index in 0..count {
            let Some(offset) = list.u32_at(index * 4) else { break };
            if self.spend(4).is_none() {
                break;
            }
            out.extend(self.value(offset));
        }
        out
    }

    fn value(&self, offset: u32) -> Option<(String, String)> {
        let cell = self.cell(offset)?;
        if cell.sub(0, 2)? != b"vk" {
            return None;
        }
        let name = cell.sub(20, usize::from(cell.u16_at(2)?))?;
        let name = match cell.u16_at(16)? & 1 != 0 {
            true => name.iter().map(|&b| char::from(b)).collect(),
            false => utf16(name),
        };
        let size = cell.u32_at(4)?;
        // Up to four bytes stand in the place of the offset.
        let inline = size & 0x8000_0000 != 0;
        let size = (size & 0x7fff_ffff) as usize;
        let data = match inline {
            true => cell.sub(8, size.min(4))?,
            false => self.cell(cell.u32_at(8)?)?.sub(0, size)?,
        };
        self.spend(cell.len().min(20 + usize::from(cell.u16_at(2)?)).saturating_add(data.len()))?;
        let text = match cell.u32_at(12)? {
            // REG_SZ, REG_EXPAND_SZ, REG_MULTI_SZ.
            1 | 2 | 7 => utf16(data),
            // REG_DWORD.
            4 => data.u32_at(0)?.to_string(),
            _ => return None,
        };
        Some((name.to_lowercase(), text))
    }
}
