//! Copies that were cut: files that are nothing but the beginning of another one.
//!
//! What names the computer is often written last. A copy that was cut lacks it, and counted as a trace of its own and as one more machine.

use crate::inbox::Found;
use crate::plan::Item;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Result};
use std::path::Path;

/// Bytes that are compared at a time.
const PIECE: usize = 1 << 20;

/// Finds new files that are the beginning of another one of the same session, and notes of which ([`Item::cut_of`]).
pub fn find(items: &mut [Item]) {
    let mut sessions: HashMap<_, Vec<(usize, &Item)>> = HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if let Some(identity) = item.identity.as_ref().filter(|_| !item.archive) {
            sessions.entry(identity.beginning()).or_default().push((n, item));
        }
    }
    let mut cut: Vec<(usize, usize)> = Vec::new();
    for mut files in sessions.into_values().filter(|files| files.len() > 1) {
        files.sort_by_key(|(n, item)| (Reverse(item.found.bytes), *n));
        let mut whole: Vec<(usize, &Item)> = Vec::new();
        for (n, item) in files {
            // What was read stays.
            let mut longer = whole.iter().filter(|_| !item.done);
            let of = longer.find(|(_, other)| is_beginning(&item.found, &other.found)).map(|(of, _)| *of);
            match of {
                Some(of) => cut.push((n, of)),
                None => whole.push((n, item)),
            }
        }
    }
    for (n, of) in cut {
        if let Some(item) = items.get_mut(n) {
            item.cut_of = Some(of);
        }
    }
}

/// Files that cannot be compared are told apart.
fn is_beginning(short: &Found, long: &Found) -> bool {
    0 < short.bytes && short.bytes < long.bytes && begins_with(&long.path, &short.path).unwrap_or(false)
}

/// All bytes are compared: who knows a file can make another with its first ones.
fn begins_with(long: &Path, short: &Path) -> Result<bool> {
    let (mut long, mut short) = (File::open(long)?, File::open(short)?);
    let (mut of_long, mut of_short) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let n = short.read(&mut of_short)?;
        if n == 0 {
            return Ok(true);
        }
        let (Some(a), Some(b)) = (of_long.get_mut(..n), of_short.get(..n)) else { return Ok(false) };
        long.read_exact(a)?;
        if a != b {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::list;
    use std::fs;

    #[test]
    fn the_beginning_of_another_file_is_found_by_all_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..3 * PIECE).map(|n| (n / 7) as u8).collect();
        let mut other = bytes.clone();
        other[2 * PIECE + 5] ^= 1;
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("a.etl", &bytes);
        write("b.etl", &bytes[..2 * PIECE + 9]);
        write("c.etl", &other[..2 * PIECE + 9]);
        write("d.etl", &bytes[..100]);
        write("e.etl", &[]);
        let files = list(&[folder.path().to_path_buf()]).unwrap().files;
        let is = |short: usize, long: usize| is_beginning(&files[short], &files[long]);
        assert!(is(1, 0) && is(3, 0) && is(3, 1));
        assert!(!is(2, 0) && !is(0, 1) && !is(0, 0) && !is(4, 0));
        fs::remove_file(&files[0].path).unwrap();
        assert!(!is(1, 0), "what is gone is not compared");
    }
}
