//! GUIDs as Windows stores them: `u32`, `u16`, `u16` little-endian, then eight bytes.

use std::fmt;
use std::str::FromStr;

/// A GUID in its on-disk (Windows mixed-endian) byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The GUID of zeros.
    pub const ZERO: Guid = Guid([0; 16]);

    /// Builds a GUID from its four textual groups, e.g. `Guid::new(0x9e814aad, 0x3204, 0x11d2, [..])`.
    pub const fn new(d1: u32, d2: u16, d3: u16, d4: [u8; 8]) -> Guid {
        let a = d1.to_le_bytes();
        let b = d2.to_le_bytes();
        let c = d3.to_le_bytes();
        Guid([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d4[0], d4[1], d4[2], d4[3], d4[4], d4[5], d4[6],
            d4[7],
        ])
    }

    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in constants; malformed text gives a wrong GUID
    /// in release builds of constants only if a test did not cover it, so prefer [`FromStr`] for input.
    pub const fn from_text(text: &str) -> Guid {
        match parse(text.as_bytes()) {
            Some(guid) => guid,
            None => Guid::ZERO,
        }
    }

    /// `54849625-5478-4994-a5ba-3e3b0328c30d`, without an allocation.
    #[inline]
    pub fn text(&self) -> [u8; 36] {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let mut text = *b"00000000-0000-0000-0000-000000000000";
        for (byte, at) in self.0.into_iter().zip(TEXT_POSITION) {
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }

    /// `{54849625-5478-4994-A5BA-3E3B0328C30D}`, as the registry has it.
    pub fn braced(&self) -> String {
        format!("{{{self}}}").to_ascii_uppercase()
    }

    /// True for the GUID of zeros.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }
}

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Where the two hex digits of each on-disk byte stand in the text form.
const TEXT_POSITION: [usize; 16] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];

const fn parse(text: &[u8]) -> Option<Guid> {
    if text.len() != 36 || text[8] != b'-' || text[13] != b'-' || text[18] != b'-' || text[23] != b'-' {
        return None;
    }
    let mut out = [0u8; 16];
    let mut i = 0;
    while i < 16 {
        let at = TEXT_POSITION[i];
        match (hex(text[at]), hex(text[at + 1])) {
            (Some(high), Some(low)) => out[i] = high << 4 | low,
            _ => return None,
        }
        i += 1;
    }
    Some(Guid(out))
}

impl FromStr for Guid {
    type Err = ();

    /// Accepts the form with or without braces.
    fn from_str(text: &str) -> Result<Guid, ()> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        parse(text.as_bytes()).ok_or(())
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        let text = "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc";
        let guid: Guid = text.parse().unwrap();
        assert_eq!(guid.to_string(), text);
        assert_eq!(guid.0[..4], [0xb4, 0xbf, 0x1d, 0xce]);
        assert_eq!(guid, Guid::from_text(text));
        assert_eq!(
            guid,
            Guid::new(0xce1dbfb4, 0x137e, 0x4da6, [0x87, 0xb0, 0x3f, 0x59, 0xaa, 0x10, 0x2c, 0xbc])
        );
        assert_eq!(format!("{{{text}}}").parse::<Guid>(), Ok(guid));
        assert!("ce1dbfb4-137e-4da6-87b0-3f59aa102cbg".parse::<Guid>().is_err());
        for bad in
            ["", "{}", "{ce1dbfb4-137e-4da6-87b0-3f59aa102cb}", "{ce1dbfb4x137e-4da6-87b0-3f59aa102cbc}"]
        {
            assert!(bad.parse::<Guid>().is_err(), "{bad}");
        }
        assert_eq!(guid.braced(), "{CE1DBFB4-137E-4DA6-87B0-3F59AA102CBC}");
    }
}
