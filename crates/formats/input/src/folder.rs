//! Folders: the segments of a rotated recording, in the order a person would put them.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::WantedFiles;

/// How deep `recursive` looks.
const MAX_DEPTH: usize = 16;

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files wanted (`.etl`, `.evtx`), in natural order.
    pub traces: Vec<PathBuf>,
    /// How many other files there are.
    pub others: usize,
    /// Folders inside that were not looked into.
    pub deeper: bool,
}

/// Lists `folder`; folders inside it only if `recursive`.
pub fn list(folder: &Path, recursive: bool, wanted: WantedFiles) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let depth = if recursive { MAX_DEPTH } else { 0 };
    walk(folder, depth, wanted, &mut listing)?;
    listing.traces.sort_by(|a, b| natural_order(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(listing)
}

fn walk(folder: &Path, depth: usize, wanted: WantedFiles, listing: &mut Listing) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // `file_type` does not follow links, so a link to a parent folder cannot make a loop.
        if entry.file_type()?.is_dir() {
            match depth.checked_sub(1) {
                Some(rest) => walk(&path, rest, wanted, listing)?,
                None => listing.deeper = true,
            }
        } else if wanted.is_named(&path.to_string_lossy()) && fs::metadata(&path).is_ok_and(|m| m.is_file()) {
            listing.traces.push(path);
        } else {
            listing.others = listing.others.saturating_add(1);
        }
    }
    Ok(())
}

/// Compares names with runs of digits by value: `trace2` before `trace10`. Letters without case, as
/// Windows sorts names; equal names fall back to the bytes so that the order is total.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let (digits_x, rest_x) = split_digits(x);
        let (digits_y, rest_y) = split_digits(y);
        if !digits_x.is_empty() && !digits_y.is_empty() {
            let order = compare_digits(digits_x, digits_y);
            if order != Ordering::Equal {
                return order;
            }
            (x, y) = (rest_x, rest_y);
            continue;
        }
        let (mut chars_x, mut chars_y) = (x.chars(), y.chars());
        match (chars_x.next(), chars_y.next()) {
            (Some(c), Some(d)) => {
                let order = c.to_lowercase().cmp(d.to_lowercase());
                if order != Ordering::Equal {
                    return order;
                }
            }
            (None, None) => return a.cmp(b),
            (c, d) => return c.is_some().cmp(&d.is_some()),
        }
        (x, y) = (chars_x.as_str(), chars_y.as_str());
    }
}

/// The leading digits and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// By value without parsing, so any number of digits is fine.
fn compare_digits(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_by_value() {
        let mut names = ["t10.etl", "T2.etl", "t1.etl", "t.etl", "t002b.etl", "t99999999999999999999999.etl"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            names,
            ["t.etl", "t1.etl", "T2.etl", "t002b.etl", "t10.etl", "t99999999999999999999999.etl"]
        );
    }

    #[test]
    fn only_etl_files_of_the_folder_itself_unless_recursive() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("deeper")).unwrap();
        for name in ["b_10.etl", "b_9.ETL", "readme.txt", "deeper/c.etl"] {
            fs::write(dir.path().join(name), b"x").unwrap();
        }
        let names = |listing: &Listing| -> Vec<String> {
            listing.traces.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        let flat = list(dir.path(), false, WantedFiles::Traces).unwrap();
        assert_eq!(names(&flat), ["b_9.ETL", "b_10.etl"]);
        assert_eq!((flat.others, flat.deeper), (1, true));
        let all = list(dir.path(), true, WantedFiles::Traces).unwrap();
        assert_eq!(all.traces.len(), 3);
    }
}
