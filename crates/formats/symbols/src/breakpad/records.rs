//! The records of a Breakpad symbol file.

use std::borrow::Cow;

use crate::builder::{InlineRange, ModuleBuilder};

/// GUID and age of a `MODULE os arch id name` line.
pub fn module_id(line: &[u8]) -> Option<String> {
    let mut fields = Fields(line);
    if fields.word()? != b"MODULE" {
        return None;
    }
    let (_os, _architecture) = (fields.word()?, fields.word()?);
    Some(text(fields.word()?).to_ascii_uppercase())
}

/// Adds one line to `builder`; `None` if it cannot be understood.
pub fn record(line: &[u8], builder: &mut ModuleBuilder) -> Option<()> {
    let mut fields = Fields(line);
    // Line records have no keyword and are by far the most frequent.
    let Some(keyword) = fields.word() else { return Some(()) };
    match keyword {
        b"FUNC" => function(fields, builder),
        b"PUBLIC" => {
            let start = fields.multiple().hex()?;
            let _parameters = fields.hex()?;
            builder.public(start, &text(fields.rest()?));
            Some(())
        }
        b"FILE" => {
            let number = fields.decimal()?;
            builder.file(number, &text(fields.rest()?));
            Some(())
        }
        b"INLINE" => inline(fields, builder),
        b"INLINE_ORIGIN" => {
            let number = fields.decimal()?;
            builder.inline_origin(number, &text(fields.rest()?));
            Some(())
        }
        // Unwinding is done on the machine traced, and INFO says nothing about addresses.
        b"STACK" | b"INFO" | b"MODULE" => Some(()),
        _ => {
            let start = hex(keyword)?;
            let (size, line, file) = (fields.hex()?, fields.decimal()?, fields.decimal()?);
            builder.line(start, size, line, file).then_some(())
        }
    }
}

/// `FUNC [m] address size parameter_size name`
fn function(mut fields: Fields<'_>, builder: &mut ModuleBuilder) -> Option<()> {
    let start = fields.multiple().hex()?;
    let size = fields.hex()?;
    let _parameters = fields.hex()?;
    builder.function(start, size, &text(fields.rest().unwrap_or(b"")));
    Some(())
}

/// `INLINE depth call_line call_file origin [address size]+`
fn inline(mut fields: Fields<'_>, builder: &mut ModuleBuilder) -> Option<()> {
    let depth = fields.decimal()?;
    let call_line = fields.decimal()?;
    let call_file = fields.decimal()?;
    let origin = fields.decimal()?;
    let mut any = None;
    while let Some(start) = fields.word() {
        let (start, size) = (hex(start)?, fields.hex()?);
        let added = builder.inline(InlineRange { depth, call_line, call_file, origin, start, size });
        any = added.then_some(());
    }
    any
}

/// Names are UTF-8 by convention; others are shown with replacement characters.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The rest of a line.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The next word.
    #[inline]
    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii_start();
        let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Skips the `m` that marks one of several symbols at an address.
    fn multiple(&mut self) -> &mut Self {
        if let Some(rest) = self.0.trim_ascii_start().strip_prefix(b"m ") {
            self.0 = rest;
        }
        self
    }

    #[inline]
    fn hex(&mut self) -> Option<u32> {
        hex(self.word()?)
    }

    #[inline]
    fn decimal(&mut self) -> Option<u32> {
        let word = self.word()?;
        let mut value = 0u32;
        for digit in word {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.checked_mul(10)?.checked_add(digit.into())?;
        }
        Some(value)
    }

    /// Everything that is left, if there is something.
    fn rest(&mut self) -> Option<&'a [u8]> {
        let rest = self.0.trim_ascii();
        (!rest.is_empty()).then_some(rest)
    }
}

/// A hex number that fits an address in a module (images are smaller than 4 GiB).
#[inline]
fn hex(word: &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for digit in word {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        if value >> 28 != 0 {
            return None;
        }
        value = value << 4 | u32::from(digit);
    }
    (!word.is_empty()).then_some(value)
}
