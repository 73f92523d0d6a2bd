//! `%1!08X!`: formats of inserts.
//!
//! [FormatMessage](https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-formatmessagew) refers to the
//! [fields of wsprintf](https://learn.microsoft.com/windows/win32/api/winuser/nf-winuser-wsprintfw):
//! `[-][#][0][width][.precision]type`, and allows `*` for width and precision, which then are inserts before the value.

use super::inserts::Inserts;
use std::fmt::Write as _;

/// The widest that a value is filled to; a hostile `!999999999s!` would otherwise fill the memory.
const WIDTH_MAX: usize = 1024;

/// A width or precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    None,
    Fixed(u16),
    Insert,
}

/// A format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    left: bool,
    zero: bool,
    alternate: bool,
    plus: bool,
    width: Size,
    precision: Size,
    /// `s`, `c`, `d`, `u`, `x`, `X`, `o` or `p`.
    kind: char,
    /// Bits that a negative number is cut to in `x` and `u`.
    bits: u32,
}

impl Spec {
    /// Parses `!08X!` at the start; nothing if there is no format or an unknown one, which then is text.
    pub(crate) fn parse(text: &str) -> Option<(Self, &str)> {
        let inner = text.strip_prefix('!')?;
        let end = inner.find('!')?;
        let (mut format, behind) = (inner.get(..end)?, inner.get(end + 1..)?);
        let mut spec = Self {
            left: false,
            zero: false,
            alternate: false,
            plus: false,
            width: Size::None,
            precision: Size::None,
            kind: 's',
            bits: 32,
        };
        while let Some(flag) = format.chars().next().filter(|c| "-0#+ ".contains(*c)) {
            match flag {
                '-' => spec.left = true,
                '0' => spec.zero = true,
                '#' => spec.alternate = true,
                '+' => spec.plus = true,
                _ => {}
            }
            format = format.get(1..)?;
        }
        spec.width = size(&mut format);
        if let Some(rest) = format.strip_prefix('.') {
            format = rest;
            spec.precision = match size(&mut format) {
                // A point without a number means zero.
                Size::None => Size::Fixed(0),
                other => other,
            };
        }
        for (prefix, bits) in
            [("I64", 64), ("I32", 32), ("ll", 64), ("hh", 8), ("l", 32), ("h", 16), ("w", 32), ("I", 64)]
        {
            if let Some(rest) = format.strip_prefix(prefix) {
                format = rest;
                spec.bits = bits;
                break;
            }
        }
        let mut chars = format.chars();
        spec.kind = match chars.next()? {
            's' | 'S' | 'Z' => 's',
            'c' | 'C' => 'c',
            'd' | 'i' => 'd',
            kind @ ('u' | 'x' | 'X' | 'o') => kind,
            'p' => {
                spec.bits = 64;
                'p'
            }
            _ => return None,
        };
        chars.next().is_none().then_some((spec, behind))
    }

    /// Whether it is `!s!`, which is what is done without a format.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == 's' && self.width == Size::None && self.precision == Size::None
    }

    /// How many inserts stand before the value.
    pub(crate) fn stars(&self) -> usize {
        usize::from(self.width == Size::Insert) + usize::from(self.precision == Size::Insert)
    }

    /// Appends the value; false if the record does not have it.
    pub(crate) fn write<I: Inserts + ?Sized>(&self, n: usize, inserts: &I, out: &mut String) -> bool {
        let mut n = n;
        let mut left = self.left;
        let mut resolve = |size: Size, negative: &mut bool| match size {
            Size::None => Some(None),
            Size::Fixed(fixed) => Some(Some(usize::from(fixed))),
            Size::Insert => {
                let number = inserts.number(n)?.cast_signed();
                n += 1;
                *negative = number < 0;
                Some(Some(usize::try_from(number.unsigned_abs()).unwrap_or(WIDTH_MAX)))
            }
        };
        let mut negative = false;
        let Some(width) = resolve(self.width, &mut negative) else {
            return false;
        };
        left |= negative;
        let Some(precision) = resolve(self.precision, &mut negative) else {
            return false;
        };
        let precision = precision.map(|p| p.min(WIDTH_MAX));
        let start = out.len();
        let number = match self.kind {
            's' => None,
            _ => inserts.number(n),
        };
        let mut sign = 0;
        match number {
            Some(number) => sign = self.number(number, precision, out),
            // A text that is asked for as a number is shown as it is.
            None => {
                if !inserts.write(n, out) {
                    return false;
                }
                if self.kind == 's'
                    && let Some(precision) = precision
                    && let Some((cut, _)) = out.get(start..).and_then(|v| v.char_indices().nth(precision))
                {
                    out.truncate(start + cut);
                }
            }
        }
        let have = out.get(start..).map_or(0, |v| v.chars().count());
        let missing = width.unwrap_or(0).min(WIDTH_MAX).saturating_sub(have);
        if missing > 0 {
            if left {
                out.extend(std::iter::repeat_n(' ', missing));
            } else if self.zero && number.is_some() && precision.is_none() {
                insert(out, start + sign, '0', missing);
            } else {
                insert(out, start, ' ', missing);
            }
        }
        true
    }

    /// Appends a number; the length of sign and prefix, behind which zeros are filled in.
    fn number(&self, number: u64, precision: Option<usize>, out: &mut String) -> usize {
        let start = out.len();
        let signed = number.cast_signed();
        let cut = match self.bits {
            64 => number,
            // A value of 64 bits stays whole: records know the types of their values better than old texts do.
            bits if number >> 32 == 0 || number >> 31 == (1 << 33) - 1 => number & ((1 << bits) - 1),
            _ => number,
        };
        if self.kind == 'd' && signed < 0 {
            out.push('-');
        } else if self.kind == 'd' && self.plus {
            out.push('+');
        } else if self.alternate && cut != 0 {
            match self.kind {
                'x' => out.push_str("0x"),
                'X' => out.push_str("0X"),
                'o' => out.push('0'),
                _ => {}
            }
        }
        let sign = out.len() - start;
        let from = out.len();
        let _ = match self.kind {
            'd' => write!(out, "{}", signed.unsigned_abs()),
            'x' => write!(out, "{cut:x}"),
            'X' => write!(out, "{cut:X}"),
            'o' => write!(out, "{cut:o}"),
            // Pointers are written with all their digits.
            'p' => write!(out, "{cut:016X}"),
            'c' => write!(out, "{}", char::from_u32(cut as u32).unwrap_or(char::REPLACEMENT_CHARACTER)),
            _ => write!(out, "{cut}"),
        };
        let digits = out.len() - from;
        if let Some(precision) = precision.filter(|&p| p > digits && self.kind != 'c') {
            insert(out, from, '0', precision - digits);
        }
        sign
    }
}

/// A number or `*` at the start.
fn size(format: &mut &str) -> Size {
    if let Some(rest) = format.strip_prefix('*') {
        *format = rest;
        return Size::Insert;
    }
    let end = format.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(format.len());
    let (digits, rest) = format.split_at(end);
    *format = rest;
    match digits {
        "" => Size::None,
        digits => Size::Fixed(digits.parse().unwrap_or(u16::MAX)),
    }
}

/// Puts a character in several times.
fn insert(out: &mut String, at: usize, c: char, times: usize) {
    let tail = out.split_off(at);
    out.extend(std::iter::repeat_n(c, times));
    out.push_str(&tail);
}
