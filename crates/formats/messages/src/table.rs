//! Message tables: `RT_MESSAGETABLE` resources.
//!
//! Layout: [MESSAGE_RESOURCE_DATA](https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-message_resource_data),
//! blocks of consecutive ids, each with an offset to entries of length, flags and text.

use crate::bytes::{Budget, ansi, utf16};
use etwhy_base::Bytes as _;

/// A text of a message table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id with severity and facility, as events name it.
    pub id: u32,
    /// Its language (LCID).
    pub language: u16,
    /// The text with its escape sequences, as it stands in the file, up to the terminating NUL.
    pub text: String,
}

/// `MESSAGE_RESOURCE_UNICODE` (winnt.h).
const UNICODE: u16 = 1;
/// `MESSAGE_RESOURCE_UTF8` (winnt.h).
const UTF8: u16 = 2;

/// Texts of one file. The largest of Windows' own have some ten thousand in each language.
const TEXTS_MAX: usize = 1 << 21;

/// Reads the texts of a resource. What is damaged is told in `damage`; the blocks before and behind it are read.
pub(crate) fn read(resource: &[u8], language: u16, messages: &mut Vec<Message>, damage: &mut Vec<String>) {
    let bytes = resource;
    let Some(blocks) = bytes.u32_at(0) else {
        damage.push(format!(
            "message table of language {language} has {} bytes, its header needs 4",
            bytes.len()
        ));
        return;
    };
    // Entries of sound tables do not overlap, so all of them together fit into the resource.
    let mut budget = Budget::new(bytes.len());
    for block in 0..blocks as usize {
        let at = 4usize.saturating_add(block.saturating_mul(12));
        let (Some(low), Some(high), Some(offset)) =
            (bytes.u32_at(at), bytes.u32_at(at + 4), bytes.u32_at(at + 8))
        else {
            damage.push(format!(
                "message table of language {language} tells {blocks} blocks and ends in block {block}"
            ));
            return;
        };
        if damage.len() >= 100 {
            return;
        }
        let mut offset = offset as usize;
        for id in low..=high {
            let entry = (|| {
                let length = usize::from(bytes.u16_at(offset)?);
                let flags = bytes.u16_at(offset.checked_add(2)?)?;
                let text = bytes.sub(offset.checked_add(4)?, length.checked_sub(4)?)?;
                Some((length, flags, text))
            })();
            let Some((length, flags, text)) = entry else {
                damage.push(format!(
                    "message {id:#x} of language {language} at offset {offset:#x} does not fit into its table of {} bytes",
                    bytes.len()
                ));
                break;
            };
            if messages.len() >= TEXTS_MAX {
                damage.push(format!("its tables have more than {TEXTS_MAX} messages"));
                return;
            }
            if !budget.take(length) {
                damage.push(format!(
                    "message table of language {language} has blocks that overlap; it is read up to message {id:#x}"
                ));
                return;
            }
            messages.push(Message {
                id,
                language,
                text: match flags {
                    UNICODE => utf16(text),
                    UTF8 => String::from_utf8_lossy(text.split(|&b| b == 0).next().unwrap_or_default())
                        .into_owned(),
                    _ => ansi(text),
                },
            });
            offset = offset.saturating_add(length);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A table with one block of two texts, one of them ANSI.
    fn table() -> Vec<u8> {
        let mut out = Vec::new();
        for number in [1u32, 7, 8, 16] {
            out.extend(number.to_le_bytes());
        }
        out.extend([12, 0, 1, 0]);
        out.extend("Hi%1".encode_utf16().flat_map(u16::to_le_bytes));
        out.extend([8, 0, 0, 0, b'a', 0x84, b'b', 0]);
        out
    }

    #[test]
    fn both_kinds_of_text() {
        let (mut messages, mut damage) = (Vec::new(), Vec::new());
        read(&table(), 1031, &mut messages, &mut damage);
        let texts: Vec<_> = messages.iter().map(|m| (m.id, m.language, m.text.as_str())).collect();
        assert_eq!(texts, [(7, 1031, "Hi%1"), (8, 1031, "a„b")]);
        assert_eq!(damage, Vec::<String>::new());
    }

    #[test]
    fn damage_is_told_and_never_grows() {
        let sound = table();
        for cut in 0..sound.len() {
            let (mut messages, mut damage) = (Vec::new(), Vec::new());
            read(sound.get(..cut).unwrap(), 0, &mut messages, &mut damage);
            assert!(!damage.is_empty(), "cut at {cut}");
        }
        // Four billion ids at one entry, and a hundred blocks that all have the same text.
        let mut hostile = vec![100, 0, 0, 0];
        for _ in 0..100 {
            for number in [0u32, u32::MAX, 4 + 1200] {
                hostile.extend(number.to_le_bytes());
            }
        }
        hostile.extend([200, 0, 1, 0]);
        hostile.extend([b'x'; 196]);
        let (mut messages, mut damage) = (Vec::new(), Vec::new());
        read(&hostile, 0, &mut messages, &mut damage);
        assert!(messages.len() <= hostile.len() / 4 && !damage.is_empty());
    }
}
