//! Finds logs and looks at how they begin.

use crate::error::CountersError;
use crate::path::CounterPath;
use crate::row::{Fields, separator};
use crate::stamp::{Order, order_of, parse};
use crate::text::{Form, Line, Utf16, form_of, line};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A file that begins as a counter log.
#[derive(Debug)]
pub struct Log {
    /// The file.
    pub path: PathBuf,
    /// How its bytes are text.
    pub form: Form,
    /// Order of its dates.
    pub order: Order,
    /// That the order had to be assumed.
    pub assumed_order: bool,
    /// What stands between fields.
    pub separator: u8,
    /// First stamp: local time.
    first: Option<i64>,
}

/// Lines that may stand in front of the header: `typeperf` writes an empty one, scripts write more.
const MOST_LINES: u64 = 100;

/// Stamps that are looked at, at the beginning.
const STAMPS: usize = 500;

/// Bytes that are looked at, at the end.
const TAIL: u64 = 64 << 10;

/// The deepest folder within folders.
const DEEPEST: usize = 8;

/// GUID of the provider whose events a `.blg` consists of, as it stands in event headers ({933f3bb3-943e-490d-9ced-3cbb14c14479}).
/// Seen in the `.blg` samples that public repositories hold; not documented.
const BLG: [u8; 16] =
    [0xB3, 0x3B, 0x3F, 0x93, 0x3E, 0x94, 0x0D, 0x49, 0x9C, 0xED, 0x3C, 0xBB, 0x14, 0xC1, 0x44, 0x79];

/// True if the head of a file is that of a binary counter log.
pub fn is_blg(head: &[u8]) -> bool {
    head.windows(16).any(|bytes| bytes == BLG)
}

/// A reader of a file's text.
///
/// # Errors
/// If it cannot be opened.
pub fn open(path: &Path, form: Form) -> Result<Box<dyn BufRead>, CountersError> {
    let io = |source| CountersError::Io { file: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(io)?;
    if let Form::Bytes(mark) = form {
        file.seek(SeekFrom::Start(mark as u64)).map_err(io)?;
        return Ok(Box::new(BufReader::with_capacity(1 << 20, file)));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 20, Utf16::new(file, form == Form::Big))))
}

/// Looks at how a file begins and ends.
///
/// # Errors
/// If it cannot be read, or is no counter log.
pub fn look(path: &Path) -> Result<Log, CountersError> {
    let io = |source| CountersError::Io { file: path.to_path_buf(), source };
    let mut head = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(128 << 10).read_to_end(&mut head).map_err(io)?;
    let form = form_of(head.get(..4096).unwrap_or(&head));
    if form == Form::Binary {
        let name = name_of(path);
        let is_named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("blg"));
        return Err(if is_named || is_blg(&head) {
            let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            CountersError::Binary { file: path.to_path_buf(), name, stem }
        } else {
            CountersError::NotText { file: path.to_path_buf() }
        });
    }
    let mut reader = open(path, form)?;
    let (mut bytes, mut lines) = (Vec::new(), 0);
    loop {
        lines += 1;
        match line(&mut reader, &mut bytes).map_err(io)? {
            _ if lines > MOST_LINES => {
                return Err(CountersError::NoHeader { file: path.to_path_buf(), lines: lines - 1 });
            }
            Line::End if lines == 1 => return Err(CountersError::Empty { file: path.to_path_buf() }),
            Line::End => return Err(CountersError::NoHeader { file: path.to_path_buf(), lines: lines - 1 }),
            Line::TooLong => {}
            Line::Read { .. } => {
                // UTF-16 has a mark of its own, which is a character here.
                let mark = if bytes.starts_with("\u{FEFF}".as_bytes()) { 3 } else { 0 };
                bytes.drain(..mark);
                if is_header(&bytes) {
                    break;
                }
            }
        }
    }
    let separator = separator(&bytes);
    let pdh = bytes.windows(5).take(4).any(|w| w == b"(PDH-");
    let mut stamps: Vec<Vec<u8>> = Vec::new();
    while stamps.len() < STAMPS {
        match line(&mut reader, &mut bytes).map_err(io)? {
            Line::End => break,
            Line::TooLong => {}
            Line::Read { .. } => stamps.extend(Fields::new(&bytes, separator).next().map(<[u8]>::to_vec)),
        }
    }
    let begin = stamps.len();
    tail(path, form, separator, &mut stamps);
    let looks_like_one =
        |s: &&[u8]| [Order::Mdy, Order::Dmy, Order::Ymd].iter().any(|order| parse(s, *order).is_some());
    let (order, assumed_order) = order_of(stamps.iter().map(Vec::as_slice).filter(looks_like_one), pdh);
    let first = stamps.iter().take(begin).find_map(|stamp| parse(stamp, order));
    Ok(Log { path: path.to_path_buf(), form, order, assumed_order, separator, first })
}

/// Stamps of the last lines: in a log of twelve days the first ones leave open which number is the month.
fn tail(path: &Path, form: Form, separator: u8, stamps: &mut Vec<Vec<u8>>) {
    let end = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL) & !1))?;
        let mut bytes = Vec::new();
        match form {
            Form::Bytes(_) | Form::Binary => file.take(TAIL + 1).read_to_end(&mut bytes)?,
            Form::Little | Form::Big => {
                Utf16::new(file.take(TAIL + 1), form == Form::Big).read_to_end(&mut bytes)?
            }
        };
        Ok(bytes)
    };
    // What cannot be read now will be said when it is read.
    let bytes = end().unwrap_or_default();
    let lines = bytes.split(|b| *b == b'\n').skip(1);
    stamps.extend(lines.filter_map(|line| Fields::new(line, separator).next()).map(<[u8]>::to_vec));
}

/// Files that are no logs, with the reason.
pub type Skipped = Vec<(PathBuf, String)>;

/// The logs of files and folders, in the order of their first samples, and files of folders that are none.
///
/// # Errors
/// The first file that was named and is none, and a folder without any.
pub fn all(paths: &[PathBuf]) -> Result<(Vec<Log>, Skipped), CountersError> {
    let (mut logs, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            logs.push(look(path)?);
            continue;
        }
        let mut files = Vec::new();
        walk(path, 0, &mut files).map_err(|source| CountersError::Io { file: path.clone(), source })?;
        files.sort();
        let (had, mut binary) = (logs.len(), None);
        for file in files {
            match look(&file) {
                Ok(log) => logs.push(log),
                Err(error) => {
                    if binary.is_none() && matches!(error, CountersError::Binary { .. }) {
                        binary = Some(file.clone());
                    }
                    skipped.push((file, error.to_string()));
                }
            }
        }
        if logs.len() == had {
            // A folder of binary logs is the usual case.
            if let Some(file) = binary {
                look(&file)?;
            }
            let found = if skipped.is_empty() {
                String::new()
            } else {
                format!("; {} files there are none", skipped.len())
            };
            return Err(CountersError::Nothing { folder: path.clone(), found });
        }
    }
    logs.sort_by_key(|log| log.first.unwrap_or(i64::MAX));
    Ok((logs, skipped))
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            if depth < DEEPEST {
                walk(&path, depth + 1, files)?;
            }
        } else if kind.is_file()
            && path.extension().is_some_and(|e| {
                ["csv", "tsv", "txt", "blg"].iter().any(|known| e.eq_ignore_ascii_case(known))
            })
        {
            files.push(path);
        }
    }
    Ok(())
}

/// True for the first line of a log: PDH's mark, or a second column that is a counter.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    if text.starts_with(b"(PDH-") {
        return true;
    }
    let separator = separator(line);
    let second = Fields::new(line, separator).nth(1).unwrap_or(&[]);
    second.starts_with(b"\\\\") && CounterPath::parse(&String::from_utf8_lossy(second)).is_some()
}

/// Files of a folder may be no logs: these are told by their name.
fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
