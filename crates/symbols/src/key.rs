//! What identifies a build of a module.

use std::fmt::Write;

/// A build of a module: the `RSDS` CodeView record of its image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKey {
    /// The PDB's name as recorded, perhaps with a path of the machine that built it. Hostile.
    pub pdb_name: String,
    /// The GUID in on-disk (Windows mixed-endian) byte order.
    pub guid: [u8; 16],
    /// The age: how often the PDB was written again.
    pub age: u32,
}

/// The on-disk byte that each pair of text digits comes from.
const TEXT_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

impl ModuleKey {
    /// GUID and age as symbol stores name folders: 32 upper-case hex digits, age in hex without padding.
    pub fn store_id(&self) -> String {
        store_id(&self.guid, self.age)
    }
}

/// See [`ModuleKey::store_id`].
pub fn store_id(guid: &[u8; 16], age: u32) -> String {
    let mut id = String::with_capacity(40);
    for at in TEXT_ORDER {
        let byte = guid.get(at).copied().unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = write!(id, "{byte:02X}");
    }
    let _ = write!(id, "{age:X}");
    id
}

/// GUID (on-disk byte order) and age of a store id, in either case.
pub fn parse_store_id(text: &str) -> Option<([u8; 16], u32)> {
    let (digits, age) = text.split_at_checked(32)?;
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) || age.is_empty() {
        return None;
    }
    let mut guid = [0; 16];
    for (pair, at) in digits.as_bytes().chunks(2).zip(TEXT_ORDER) {
        let pair = std::str::from_utf8(pair).ok()?;
        *guid.get_mut(at)? = u8::from_str_radix(pair, 16).ok()?;
    }
    Some((guid, u32::from_str_radix(age, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        let text = "00112233445566778899AABBCCDDEEFFA";
        let (guid, age) = parse_store_id(text).unwrap();
        assert_eq!(guid[..8], [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66]);
        assert_eq!(guid[8..], [0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]);
        assert_eq!(age, 10);
        let key = ModuleKey { pdb_name: "a.pdb".into(), guid, age };
        assert_eq!(key.store_id(), text);
        assert_eq!(parse_store_id(&text.to_lowercase()), Some((guid, 10)));
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in ["", "00112233445566778899AABBCCDDEEFF", "0011223344556677-899AABBCCDDEEFF01", "é"] {
            assert_eq!(parse_store_id(text), None, "{text}");
        }
        assert_eq!(parse_store_id("00112233445566778899AABBCCDDEEFF123456789"), None);
    }
}
