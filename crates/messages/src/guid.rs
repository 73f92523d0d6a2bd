//! GUIDs as Windows writes them.

use std::fmt;

/// A GUID: its 16 bytes as they stand in files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// From text, with or without braces; nothing if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut digits = [0u8; 32];
        let mut count = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return None;
                }
                continue;
            }
            *digits.get_mut(count)? = char::from(byte).to_digit(16)? as u8;
            count += 1;
        }
        let mut out = [0u8; 16];
        for (at, pair) in digits.chunks_exact(2).enumerate() {
            // The first three parts are numbers and stand with their lowest byte first.
            let to = match at {
                0..=3 => 3 - at,
                4 | 5 => 9 - at,
                6 | 7 => 13 - at,
                _ => at,
            };
            *out.get_mut(to)? = pair[0] << 4 | pair[1];
        }
        Some(Self(out))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = &self.0;
        write!(
            f,
            "{{{:02X}{:02X}{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}-{:02X}{:02X}{:02X}{:02X}{:02X}{:02X}}}",
            b[3],
            b[2],
            b[1],
            b[0],
            b[5],
            b[4],
            b[7],
            b[6],
            b[8],
            b[9],
            b[10],
            b[11],
            b[12],
            b[13],
            b[14],
            b[15]
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Guid;

    #[test]
    fn text_and_bytes_agree() {
        // Microsoft-Windows-Security-Auditing, bytes as they stand in adtschema.dll.
        let bytes =
            [0x25, 0x96, 0x84, 0x54, 0x78, 0x54, 0x94, 0x49, 0xa5, 0xba, 0x3e, 0x3b, 0x03, 0x28, 0xc3, 0x0d];
        let text = "{54849625-5478-4994-A5BA-3E3B0328C30D}";
        assert_eq!(Guid::parse(text), Some(Guid(bytes)));
        assert_eq!(Guid::parse("54849625-5478-4994-a5ba-3e3b0328c30d"), Some(Guid(bytes)));
        assert_eq!(Guid(bytes).to_string(), text);
        for bad in
            ["", "{}", "{54849625-5478-4994-A5BA-3E3B0328C30}", "{54849625x5478-4994-A5BA-3E3B0328C30D}"]
        {
            assert_eq!(Guid::parse(bad), None, "{bad}");
        }
    }
}
