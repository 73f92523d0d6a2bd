//! Heads of the pages of a Parquet file: what each page claims to unpack to.
//!
//! The library makes room for as much as a page claims, and unpacks as much, before anybody can say that it is too large. Here the claims of
//! all pages of a column are compared with what the metadata say of it. A head is a struct in Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>), and what is in it is `PageHeader` of
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>. One that has its fields twice, in another order
//! or of other kinds is refused: the library could understand it in another way.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

/// Kinds of fields, as the protocol numbers them.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Statistics have no structs in structs.
const DEEPEST: u8 = 4;

/// Bytes read at once: a head has some tens.
const PIECE: usize = 512;

/// Refuses a column (from and to these bytes of the file) whose pages unpack to more than the metadata say.
pub(super) fn check_pages(file: impl Read + Seek, from: u64, len: u64, unpacked: u64) -> Result<(), String> {
    let bad = |error: io::Error| format!("the head of a page: {error}");
    let mut file = BufReader::with_capacity(PIECE, file);
    let (mut at, mut left, mut room) = (from, len, unpacked);
    while left > 0 {
        file.seek(SeekFrom::Start(at)).map_err(bad)?;
        let mut head = Read::by_ref(&mut file).take(left);
        let [claimed, packed] = sizes(&mut head).map_err(bad)?;
        let taken = left.saturating_sub(head.limit()).saturating_add(packed);
        room = room.checked_sub(claimed).ok_or("its pages unpack to more than its metadata say")?;
        left = left.checked_sub(taken).ok_or("a page ends outside of its column")?;
        at = at.saturating_add(taken);
    }
    Ok(())
}

/// Kinds of the fields of a page's head, from the first one; of those that are structs, of their fields.
fn kinds(of: Option<u64>) -> &'static [u8] {
    match of {
        // type, size unpacked, size, checksum; data, index, dictionary, data of version 2
        None => &[I32, I32, I32, I32, STRUCT, STRUCT, STRUCT, STRUCT],
        Some(5) => &[I32, I32, I32, I32, STRUCT],
        Some(7) => &[I32, I32, TRUE],
        Some(8) => &[I32, I32, I32, I32, I32, I32, TRUE, STRUCT],
        Some(_) => &[],
    }
}

/// Size of a page unpacked and in the file.
fn sizes(head: &mut dyn Read) -> io::Result<[u64; 2]> {
    let (mut claimed, mut packed) = (None, None);
    fields(head, None, &mut |id, value| match id {
        2 => claimed = u64::try_from(value).ok(),
        3 => packed = u64::try_from(value).ok(),
        _ => {}
    })?;
    claimed.zip(packed).map(|(claimed, packed)| [claimed, packed]).ok_or_else(damaged)
}

/// Reads the fields of a struct; `each` is told of numbers.
fn fields(head: &mut dyn Read, of: Option<u64>, each: &mut dyn FnMut(u64, i64)) -> io::Result<()> {
    let mut last = 0u64;
    loop {
        let first = byte(head)?;
        if first == 0 {
            return Ok(());
        }
        // Ids that do not follow closely are written in full; no head has such.
        let (delta, kind) = (u64::from(first >> 4), first & 15);
        let id = last.saturating_add(delta);
        let place = usize::try_from(id.saturating_sub(1)).map_err(|_| damaged())?;
        let wanted = kinds(of).get(place).copied();
        if delta == 0 || wanted != Some(if kind == FALSE { TRUE } else { kind }) {
            return Err(damaged());
        }
        match kind {
            I32 => each(id, number(head)?),
            STRUCT if of.is_none() => fields(head, Some(id), &mut |_, _| {})?,
            // Statistics: the library leaves them out by their kinds, too.
            kind => skip(head, kind, DEEPEST)?,
        }
        last = id;
    }
}

/// Reads over a value of a field.
fn skip(head: &mut dyn Read, kind: u8, depth: u8) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(damaged)?;
    match kind {
        TRUE | FALSE => Ok(()),
        BYTE => byte(head).map(drop),
        I16 | I32 | I64 => number(head).map(drop),
        DOUBLE => skip_bytes(head, 8),
        BINARY => {
            let len = unsigned(head)?;
            skip_bytes(head, len)
        }
        STRUCT => loop {
            let first = byte(head)?;
            if first == 0 {
                return Ok(());
            }
            if first >> 4 == 0 {
                number(head)?;
            }
            skip(head, first & 15, depth)?;
        },
        _ => Err(damaged()),
    }
}

fn skip_bytes(head: &mut dyn Read, len: u64) -> io::Result<()> {
    match io::copy(&mut head.take(len), &mut io::sink())? {
        read if read == len => Ok(()),
        _ => Err(damaged()),
    }
}

fn byte(head: &mut dyn Read) -> io::Result<u8> {
    let mut byte = [0u8];
    head.read_exact(&mut byte)?;
    let [byte] = byte;
    Ok(byte)
}

/// A number in pieces of seven bits, the lowest first.
fn unsigned(head: &mut dyn Read) -> io::Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = byte(head)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(damaged())
}

/// A number whose sign is its lowest bit.
fn number(head: &mut dyn Read) -> io::Result<i64> {
    let unsigned = unsigned(head)?;
    let half = i64::try_from(unsigned >> 1).map_err(|_| damaged())?;
    Ok(if unsigned & 1 == 0 { half } else { !half })
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A page of data: its type, sizes, four numbers of its kind, some bytes.
    fn page(unpacked: u8, bytes: &[u8]) -> Vec<u8> {
        let mut page = vec![0x15, 0, 0x15, unpacked * 2, 0x15, bytes.len() as u8 * 2];
        page.extend([0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
        page.extend(bytes);
        page
    }

    fn check(column: &[u8], unpacked: u64) -> Result<(), String> {
        let file = [b"PAR1", column].concat();
        check_pages(Cursor::new(file), 4, column.len() as u64, unpacked)
    }

    #[test]
    fn pages_unpack_to_no_more_than_is_said() {
        let column = [page(40, b"12345"), page(20, b"1")].concat();
        assert_eq!(check(&column, 60), Ok(()));
        assert!(check(&column, 59).unwrap_err().contains("more than its metadata say"));
        assert_eq!(check(&[], 0), Ok(()));
    }

    #[test]
    fn heads_that_can_be_understood_in_two_ways_are_refused() {
        let good = page(40, b"12345");
        assert_eq!(check(&good, 40), Ok(()));
        // The size once more, with its id in full.
        let mut twice = good.clone();
        twice.splice(6..6, [0x05, 4, 0x7e]);
        // A size as a text, which has bytes behind its number.
        let mut text = good.clone();
        text[2] = 0x18;
        let mut negative = good.clone();
        negative[3] = 1;
        let cut = good[..8].to_vec();
        let mut outside = good.clone();
        outside.pop();
        for bad in [twice, text, negative, cut, outside] {
            assert!(check(&bad, 1000).is_err(), "{bad:?}");
        }
    }
}
