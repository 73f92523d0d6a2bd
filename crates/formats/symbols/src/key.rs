//! What identifies a build of a module.

use etwhy_base::Guid;

/// A build of a module: the `RSDS` CodeView record of its image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKey {
    /// The PDB's name as recorded, perhaps with a path of the machine that built it. Hostile.
    pub pdb_name: String,
    /// The GUID.
    pub guid: Guid,
    /// The age: how often the PDB was written again.
    pub age: u32,
}

impl ModuleKey {
    /// GUID and age as symbol stores name folders: 32 upper-case hex digits, age in hex without padding.
    pub fn store_id(&self) -> String {
        store_id(self.guid, self.age)
    }
}

/// See [`ModuleKey::store_id`].
pub fn store_id(guid: Guid, age: u32) -> String {
    let digits = guid.to_string().replace('-', "").to_uppercase();
    format!("{digits}{age:X}")
}

/// GUID and age of a store id, in either case.
pub fn parse_store_id(text: &str) -> Option<(Guid, u32)> {
    let (digits, age) = text.split_at_checked(32)?;
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) || age.is_empty() {
        return None;
    }
    let n = u128::from_str_radix(digits, 16).ok()?;
    let guid = Guid::new((n >> 96) as u32, (n >> 80) as u16, (n >> 64) as u16, (n as u64).to_be_bytes());
    Some((guid, u32::from_str_radix(age, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        let text = "00112233445566778899AABBCCDDEEFFA";
        let (guid, age) = parse_store_id(text).unwrap();
        assert_eq!(guid.0[..8], [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66]);
        assert_eq!(guid.0[8..], [0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]);
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
