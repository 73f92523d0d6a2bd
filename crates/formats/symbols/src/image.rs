//! The bytes of a module's symbols: one piece, which is at the same time the file of the compact cache.
//!
//! Nothing is unpacked. Numbers are little-endian `u32`s in columns, so that a search touches only what it
//! compares; texts stand once each in one blob.
//!
//! ```text
//! 0    magic "ETWHYSYM"
//! 8    version of the layout: u32
//! 12   flags: u32           bit 0: lines are those of the innermost inlined function (Breakpad)
//! 16   origin: u32          see Origin
//! 20   machine: u32         IMAGE_FILE_MACHINE_* of the PDB, 0 if unknown
//! 24   malformed: u64       records that could not be understood
//! 32   sections             for each: offset in bytes u64, count of numbers (of bytes for texts) u64
//! ```

use std::fmt;

use etwhy_os::Mapped;

/// Magic of a cache file.
pub const MAGIC: [u8; 8] = *b"ETWHYSYM";
/// Goes up whenever the layout, or what is put into it, changes. Files of other versions are made again.
pub const VERSION: u32 = 2;
/// Bytes before the sections' places.
const FIXED: usize = 32;
const HEADER: usize = FIXED + SECTIONS * 16;
/// Flag: the lines are those of the innermost function, and an inlined row's line that of its call.
pub const INNERMOST_LINES: u32 = 1;

/// What stands in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Section {
    /// First address of each function, ascending.
    FunctionStarts,
    /// Size, name, linkage name, first inlined row of each function.
    FunctionRows,
    /// First address of each line, ascending.
    LineStarts,
    /// Line number, `NONE` where a gap begins.
    LineNumbers,
    /// First address from which a source file holds, ascending.
    FileStarts,
    /// Name of that source file.
    FileNames,
    /// Inlined calls by function, depth and start: depth, start, size, name, file, line.
    Inlines,
    /// First address of each public name, ascending.
    PublicStarts,
    /// Name; `NONE` where a gap begins.
    PublicNames,
    /// End of each text.
    TextEnds,
    /// All texts.
    Texts,
    /// What the symbols are of, as a text: checked when a cache file is opened.
    Key,
}

/// Number of sections.
pub const SECTIONS: usize = 12;
/// Numbers of a function's row.
pub const FUNCTION_ROW: usize = 4;
/// Numbers of an inlined row.
pub const INLINE_ROW: usize = 6;
/// No name, no line.
pub const NONE: u32 = u32::MAX;

/// Where the symbols of a module come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A PDB with functions.
    Pdb,
    /// A PDB that has only public names (stripped, or written by NGEN).
    PdbPublics,
    /// A Breakpad symbol file.
    Breakpad,
    /// The export table of the image: names are those of the nearest export, which may be another function's.
    Export,
}

impl Origin {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Pdb | Origin::PdbPublics => "pdb",
            Origin::Breakpad => "breakpad",
            Origin::Export => "export",
        }
    }

    fn of(number: u32) -> Option<Origin> {
        [Origin::Pdb, Origin::PdbPublics, Origin::Breakpad, Origin::Export]
            .into_iter()
            .find(|o| *o as u32 == number)
    }
}

/// Memory or a file.
enum Backing {
    Owned(Vec<u8>),
    Mapped(Mapped),
}

/// The bytes with their sections checked.
pub struct Image {
    bytes: Backing,
    sections: [(usize, usize); SECTIONS],
    pub flags: u32,
    pub origin: Origin,
    pub machine: u16,
    pub malformed: u64,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("bytes", &self.bytes().len()).field("origin", &self.origin).finish()
    }
}

/// What the builder puts into an image.
pub struct Parts<'a> {
    pub flags: u32,
    pub origin: Origin,
    pub machine: u16,
    pub malformed: u64,
    /// The numbers of each section but the texts.
    pub numbers: [&'a [u32]; SECTIONS],
    pub texts: &'a str,
    pub key: &'a str,
}

impl Image {
    /// Puts an image together.
    pub fn build(parts: &Parts<'_>) -> Image {
        let lengths: [usize; SECTIONS] = std::array::from_fn(|i| match i {
            i if i == Section::Texts as usize => parts.texts.len(),
            i if i == Section::Key as usize => parts.key.len(),
            i => parts.numbers.get(i).map_or(0, |n| n.len()),
        });
        let total: usize = lengths.iter().map(|l| l.saturating_mul(4)).fold(HEADER, usize::saturating_add);
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(&MAGIC);
        for number in [VERSION, parts.flags, parts.origin as u32, u32::from(parts.machine)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&parts.malformed.to_le_bytes());
        let mut sections = [(0, 0); SECTIONS];
        let mut at = HEADER;
        for (number, (length, section)) in lengths.into_iter().zip(&mut sections).enumerate() {
            *section = (at, length);
            bytes.extend_from_slice(&(at as u64).to_le_bytes());
            bytes.extend_from_slice(&(length as u64).to_le_bytes());
            at += if is_text(number) { length } else { length * 4 };
        }
        for (number, numbers) in parts.numbers.into_iter().enumerate() {
            match number {
                n if n == Section::Texts as usize => bytes.extend_from_slice(parts.texts.as_bytes()),
                n if n == Section::Key as usize => bytes.extend_from_slice(parts.key.as_bytes()),
                _ => bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes())),
            }
        }
        bytes.shrink_to_fit();
        Image {
            bytes: Backing::Owned(bytes),
            sections,
            flags: parts.flags,
            origin: parts.origin,
            machine: parts.machine,
            malformed: parts.malformed,
        }
    }

    /// Opens a cache file of `key`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn open(mapped: Mapped, key: &str) -> Result<Image, String> {
        let header = Header::read(&mapped)?;
        let image = Image {
            bytes: Backing::Mapped(mapped),
            sections: header.sections,
            flags: header.flags,
            origin: header.origin,
            machine: header.machine,
            malformed: header.malformed,
        };
        image.check(key)?;
        Ok(image)
    }

    fn check(&self, key: &str) -> Result<(), String> {
        let found = self.section(Section::Key);
        if found != key.as_bytes() {
            return Err(format!("it is of {:?}, not of {key:?}", String::from_utf8_lossy(found)));
        }
        let same = |a: Section, b: Section, times: usize| {
            if self.len(a).checked_mul(times) == Some(self.len(b)) {
                Ok(())
            } else {
                Err(format!("{a:?} has {} numbers, which does not fit {} of {b:?}", self.len(a), self.len(b)))
            }
        };
        same(Section::FunctionStarts, Section::FunctionRows, FUNCTION_ROW)?;
        same(Section::LineStarts, Section::LineNumbers, 1)?;
        same(Section::FileStarts, Section::FileNames, 1)?;
        same(Section::PublicStarts, Section::PublicNames, 1)
    }

    /// All bytes, as they stand in a cache file.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Backing::Owned(bytes) => bytes,
            Backing::Mapped(mapped) => mapped,
        }
    }

    /// Bytes of memory of its own: a mapped file has none.
    pub fn is_mapped(&self) -> bool {
        matches!(self.bytes, Backing::Mapped(_))
    }

    /// Bytes of a section.
    #[inline]
    fn section(&self, section: Section) -> &[u8] {
        let number = section as usize;
        let Some(&(start, count)) = self.sections.get(number) else { return &[] };
        let size = if is_text(number) { count } else { count.saturating_mul(4) };
        self.bytes().get(start..start.saturating_add(size)).unwrap_or(&[])
    }

    /// How many numbers a section has.
    #[inline]
    pub fn len(&self, section: Section) -> usize {
        self.sections.get(section as usize).map_or(0, |s| s.1)
    }

    /// The numbers of a section.
    #[inline]
    pub fn numbers(&self, section: Section) -> Numbers<'_> {
        Numbers(self.section(section).as_chunks().0)
    }

    /// A text; `None` if there is none of that number or it is damaged.
    #[inline]
    pub fn text(&self, id: u32) -> Option<&str> {
        let ends = self.numbers(Section::TextEnds);
        let id = id as usize;
        let start = match id.checked_sub(1) {
            Some(before) => ends.get(before)?,
            None => 0,
        };
        let bytes = self.section(Section::Texts).get(start as usize..ends.get(id)? as usize)?;
        std::str::from_utf8(bytes).ok()
    }
}

fn is_text(section: usize) -> bool {
    section == Section::Texts as usize || section == Section::Key as usize
}

/// Little-endian numbers anywhere in memory.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(&'a [[u8; 4]]);

impl<'a> Numbers<'a> {
    /// The number at `index`.
    #[inline]
    pub fn get(self, index: usize) -> Option<u32> {
        self.0.get(index).map(|n| u32::from_le_bytes(*n))
    }

    /// `N` numbers of row `index`.
    #[inline]
    pub fn row<const N: usize>(self, index: usize) -> Option<[u32; N]> {
        let start = index.checked_mul(N)?;
        let row: &[[u8; 4]; N] = self.0.get(start..start.checked_add(N)?)?.try_into().ok()?;
        Some(row.map(u32::from_le_bytes))
    }

    /// Index of the last number that is at most `value`, in ascending numbers.
    #[inline]
    pub fn last_at_most(self, value: u32) -> Option<usize> {
        self.0.partition_point(|n| u32::from_le_bytes(*n) <= value).checked_sub(1)
    }
}

/// The front of a cache file.
struct Header {
    sections: [(usize, usize); SECTIONS],
    flags: u32,
    origin: Origin,
    machine: u16,
    malformed: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header, String> {
        let short = || format!("{} bytes at offset 0 are no header of {HEADER} bytes", bytes.len());
        let u32_at = |at: usize| -> Result<u32, String> {
            let field = bytes.get(at..).and_then(|b| b.first_chunk()).ok_or_else(short)?;
            Ok(u32::from_le_bytes(*field))
        };
        let u64_at = |at: usize| -> Result<u64, String> {
            let field = bytes.get(at..).and_then(|b| b.first_chunk()).ok_or_else(short)?;
            Ok(u64::from_le_bytes(*field))
        };
        if !bytes.starts_with(&MAGIC) {
            return Err("it does not start with ETWHYSYM".to_owned());
        }
        let version = u32_at(8)?;
        if version != VERSION {
            return Err(format!("it has version {version} of the layout, this program {VERSION}"));
        }
        let origin = u32_at(16)?;
        let origin = Origin::of(origin).ok_or_else(|| format!("origin {origin} at offset 16 is unknown"))?;
        let mut sections = [(0, 0); SECTIONS];
        let mut at = FIXED;
        for (number, section) in sections.iter_mut().enumerate() {
            let (offset, count) = (u64_at(at)?, u64_at(at + 8)?);
            let width = if is_text(number) { 1 } else { 4 };
            let end = count.checked_mul(width).and_then(|size| size.checked_add(offset));
            if offset < HEADER as u64 || end.is_none_or(|end| end > bytes.len() as u64) {
                return Err(format!(
                    "section {number} at offset {at} needs {count} numbers from {offset}, the file has {} bytes",
                    bytes.len()
                ));
            }
            *section = (usize::try_from(offset).unwrap_or(0), usize::try_from(count).unwrap_or(0));
            at += 16;
        }
        Ok(Header {
            sections,
            flags: u32_at(12)?,
            origin,
            machine: u16::try_from(u32_at(20)?).unwrap_or(0),
            malformed: u64_at(24)?,
        })
    }
}
