//! `VS_VERSIONINFO` and `MUI` resources: which build of which file it is, and of which language.

use crate::bytes::utf16;
use etwhy_base::Bytes as _;

/// What the version resource of a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version {
    /// The four numbers of the file's version.
    pub numbers: [u16; 4],
    /// `OriginalFilename`, as the maker wrote it.
    pub original_name: Option<String>,
    /// `FileDescription`.
    pub description: Option<String>,
    /// `FileVersion`, as the maker wrote it.
    pub file_version: Option<String>,
    /// `ProductName`.
    pub product: Option<String>,
    /// `CompanyName`.
    pub company: Option<String>,
    /// `ProductVersion`, as the maker wrote it.
    pub product_version: Option<String>,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d] = self.numbers;
        write!(f, "{a}.{b}.{c}.{d}")
    }
}

/// Reads `VS_VERSIONINFO`.
///
/// [VS_FIXEDFILEINFO](https://learn.microsoft.com/windows/win32/api/verrsrc/ns-verrsrc-vs_fixedfileinfo) is found by
/// its signature, texts by their keys: all stand at offsets of four bytes.
pub(crate) fn read(resource: &[u8]) -> Option<Version> {
    const SIGNATURE: u32 = 0xfeef_04bd;
    let bytes = resource;
    let fixed = (0..bytes.len().min(256)).step_by(4).find(|&at| bytes.u32_at(at) == Some(SIGNATURE))?;
    let (high, low) = (bytes.u32_at(fixed + 8)?, bytes.u32_at(fixed + 12)?);
    Some(Version {
        numbers: [(high >> 16) as u16, high as u16, (low >> 16) as u16, low as u16],
        original_name: text(resource, "OriginalFilename"),
        description: text(resource, "FileDescription"),
        file_version: text(resource, "FileVersion"),
        product: text(resource, "ProductName"),
        company: text(resource, "CompanyName"),
        product_version: text(resource, "ProductVersion"),
    })
}

/// A text of the first language, by its key: it follows the key and its zero (`String`, verrsrc.h).
fn text(resource: &[u8], key: &str) -> Option<String> {
    let key: Vec<u8> = key.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let looked_at = resource.get(..resource.len().min(1 << 16)).unwrap_or_default();
    let at = looked_at.windows(key.len()).step_by(2).position(|window| window == key.as_slice())?;
    let after = at.checked_mul(2)?.checked_add(key.len())?;
    let aligned = after.checked_add(3)? & !3;
    let rest = resource.get(aligned..resource.len().min(aligned.saturating_add(520)))?;
    Some(utf16(rest)).filter(|text| !text.is_empty())
}

/// The language of a `MUI` resource.
///
/// Layout as libexe documents it (*MUI resource data*): signature 0xfecdfecd, at 116 and 120 offset and size of the
/// language, at 124 and 128 those of the language to fall back to.
pub(crate) fn mui(resource: &[u8]) -> Option<String> {
    let bytes = resource;
    if bytes.u32_at(0)? != 0xfecd_fecd {
        return None;
    }
    for at in [116usize, 124] {
        let (offset, size) = (bytes.u32_at(at)? as usize, bytes.u32_at(at + 4)? as usize);
        if offset == 0 || size < 2 {
            continue;
        }
        if let Some(text) = bytes.sub(offset, size.min(170)) {
            let text = utf16(text);
            if !text.is_empty() {
                return Some(text);
            }
        }
    }
    None
}
