//! Escape sequences of messages.
//!
//! [Message text files](https://learn.microsoft.com/windows/win32/eventlog/message-text-files) and
//! [FormatMessage](https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-formatmessagew) document them.

use super::printf::Spec;

/// A piece of a compiled text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextPart {
    /// Text as it stands.
    Text(Box<str>),
    /// An insert, counted from 0.
    Insert(u8),
    /// An insert with a format.
    Formatted(u8, Spec),
}

impl TextPart {
    /// The insert, counted from 1.
    pub(crate) fn highest(&self) -> usize {
        match self {
            Self::Text(..) => 0,
            Self::Insert(n) => usize::from(*n) + 1,
            Self::Formatted(n, spec) => usize::from(*n) + 1 + spec.stars(),
        }
    }
}

/// Bytes of parameters that one message may name: real ones have some hundred. A hostile one names the longest as often as it can.
const FILLED_MAX: usize = 1 << 20;

/// Compiles a message; `parameter` gives the text of `%%8100`.
pub(crate) fn compile<'p>(message: &str, parameter: &dyn Fn(u32) -> Option<&'p str>) -> Box<[TextPart]> {
    let mut out = Compiled::default();
    let mut fills = FILLED_MAX;
    let mut rest = message;
    while let Some(at) = rest.find(['%', '\r']) {
        let (before, from) = rest.split_at(at);
        out.literals.push_str(before);
        if let Some(after) = from.strip_prefix('\r') {
            // Lines of message files end with CR LF.
            if !after.starts_with('\n') {
                out.literals.push('\r');
            }
            rest = after;
            continue;
        }
        let after = from.get(1..).unwrap_or_default();
        let Some(c) = after.chars().next() else {
            out.literals.push('%');
            rest = "";
            break;
        };
        rest = after.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '0' => {
                rest = "";
                break;
            }
            'n' => out.literals.push('\n'),
            't' => out.literals.push('\t'),
            'r' => out.literals.push('\r'),
            'b' => out.literals.push(' '),
            '%' => {
                // `%%8100` names a text of the parameter file; without one it is a percent sign and a number.
                if let Some((id, behind)) = number(rest)
                    && let Some(text) = parameter(id)
                    && let Some(left) = fills.checked_sub(text.len())
                {
                    fills = left;
                    out.literals.push_str(text);
                    rest = behind;
                } else {
                    out.literals.push('%');
                }
            }
            '1'..='9' => {
                let mut n = c as u8 - b'0';
                if let Some(d) = rest.bytes().next().filter(u8::is_ascii_digit) {
                    n = n * 10 + (d - b'0');
                    rest = rest.get(1..).unwrap_or_default();
                }
                out.flush();
                let n = n - 1;
                match Spec::parse(rest) {
                    Some((spec, behind)) => {
                        rest = behind;
                        out.parts.push(match spec.is_plain() {
                            true => TextPart::Insert(n),
                            false => TextPart::Formatted(n, spec),
                        });
                    }
                    None => out.parts.push(TextPart::Insert(n)),
                }
            }
            // "%." "%!" "% " and what Microsoft's list does not have: shown without the percent sign.
            other => out.literals.push(other),
        }
    }
    out.literals.push_str(rest);
    // Message files end each text with a line break that no viewer shows.
    while out.literals.ends_with(['\n', '\r']) {
        out.literals.pop();
    }
    out.flush();
    out.parts.into_boxed_slice()
}

/// A number at the start, decimal and perhaps negative, and what is behind it.
pub(crate) fn number(text: &str) -> Option<(u32, &str)> {
    let (id, len) = number_of(text.as_bytes())?;
    Some((id, text.get(len..)?))
}

/// The same of bytes, and how many of them are the number.
#[inline]
pub(crate) fn number_of(text: &[u8]) -> Option<(u32, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let mut value = 0i64;
    let mut end = sign;
    while let Some(digit) = text.get(end).filter(|b| b.is_ascii_digit()) {
        value = value * 10 + i64::from(digit - b'0');
        end += 1;
        // Ids have 32 bits.
        if value > i64::from(u32::MAX) {
            return None;
        }
    }
    if end == sign {
        return None;
    }
    // HRESULTs are written as signed numbers by some and as unsigned ones by others.
    let id = match sign {
        1 => i32::try_from(-value).ok()?.cast_unsigned(),
        _ => u32::try_from(value).ok()?,
    };
    Some((id, end))
}

#[derive(Default)]
struct Compiled {
    /// Text that belongs to no part yet.
    literals: String,
    parts: Vec<TextPart>,
}

impl Compiled {
    fn flush(&mut self) {
        if !self.literals.is_empty() {
            self.parts.push(TextPart::Text(std::mem::take(&mut self.literals).into_boxed_str()));
        }
    }
}
