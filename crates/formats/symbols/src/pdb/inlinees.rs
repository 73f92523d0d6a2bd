//! Inlined calls: what their binary annotations say about code and lines.
//!
//! Layout: `CodeViewInfo`'s `BinaryAnnotationOpcode` in `cvinfo.h` of microsoft-pdb.

/// A range of code that is a line of the inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Offset from the start of the procedure.
    pub start: u32,
    /// Bytes.
    pub size: u32,
    /// Line.
    pub line: u32,
    /// Offset in the file checksums.
    pub file: u32,
}

/// A compressed number: one, two or four bytes.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    let more = |count: usize| rest.get(..count);
    let (value, used) = match first {
        0..=0x7F => (u32::from(first), 0),
        0x80..=0xBF => (u32::from(first & 0x3F) << 8 | u32::from(*more(1)?.first()?), 1),
        0xC0..=0xDF => {
            let &[a, b, c] = more(3)?.first_chunk()?;
            (u32::from(first & 0x1F) << 24 | u32::from(a) << 16 | u32::from(b) << 8 | u32::from(c), 3)
        }
        _ => return None,
    };
    *bytes = rest.get(used..)?;
    Some(value)
}

/// The sign stands in the lowest bit.
fn signed(value: u32) -> i32 {
    let half = (value >> 1) as i32;
    if value & 1 == 0 { half } else { half.wrapping_neg() }
}

/// Ranges of an inlined call whose function begins at `line` of `file`.
pub fn ranges(mut bytes: &[u8], line: u32, file: u32, found: &mut Vec<Range>) {
    found.clear();
    let bytes = &mut bytes;
    let (mut at, mut line, mut file) = (0u32, line, file);
    // The last range goes on until the next one if nothing says how long it is.
    let mut open = false;
    while let Some(operation) = number(bytes).filter(|o| *o != 0) {
        let Some(value) = number(bytes) else { break };
        let mut size = None;
        let starts = match operation {
            // CodeOffset
            1 => {
                at = value;
                false
            }
            // ChangeCodeOffset
            3 => {
                at = at.wrapping_add(value);
                true
            }
            // ChangeCodeLength
            4 => {
                if open && let Some(last) = found.last_mut() {
                    last.size = value;
                }
                open = false;
                at = at.wrapping_add(value);
                false
            }
            // ChangeFile
            5 => {
                file = value;
                false
            }
            // ChangeLineOffset
            6 => {
                line = line.wrapping_add_signed(signed(value));
                false
            }
            // ChangeCodeOffsetAndLineOffset
            11 => {
                line = line.wrapping_add_signed(signed(value >> 4));
                at = at.wrapping_add(value & 0xF);
                true
            }
            // ChangeCodeLengthAndCodeOffset
            12 => {
                let Some(delta) = number(bytes) else { break };
                size = Some(value);
                at = at.wrapping_add(delta);
                true
            }
            // Ends of lines, columns, kinds of ranges.
            _ => false,
        };
        if !starts {
            continue;
        }
        if open && let Some(last) = found.last_mut() {
            last.size = at.saturating_sub(last.start);
        }
        open = size.is_none();
        found.push(Range { start: at, size: size.unwrap_or(0), line, file });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], line: u32, file: u32) -> Vec<[u32; 4]> {
        let mut found = Vec::new();
        ranges(bytes, line, file, &mut found);
        found.into_iter().map(|r| [r.start, r.size, r.line, r.file]).collect()
    }

    /// Annotations quoted in the tests of the crate pdb2, with what Microsoft's DIA makes of them: Breakpad's
    /// `crash_generation_client.obj` and `xul.pdb`.
    #[test]
    fn annotations_of_real_files() {
        assert_eq!(all(&[12, 2, 63, 12, 3, 9, 0, 0], 341, 7), [[0x3F, 2, 341, 7], [0x48, 3, 341, 7]]);
        assert_eq!(
            all(&[6, 38, 3, 186, 32, 11, 71, 11, 36, 4, 5, 0], 499, 7),
            [[14880, 7, 518, 7], [14887, 4, 520, 7], [14891, 5, 521, 7]]
        );
    }

    #[test]
    fn damage_ends_the_list() {
        assert!(all(&[], 1, 1).is_empty());
        assert!(all(&[3], 1, 1).is_empty());
        assert!(all(&[0xFF, 3, 1], 1, 1).is_empty());
        assert_eq!(all(&[3, 1, 12, 1], 1, 1), [[1, 0, 1, 1]]);
        assert_eq!(signed(7), -3);
    }
}
