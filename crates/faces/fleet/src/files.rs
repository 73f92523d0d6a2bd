//! Where the files of traces are now: where they were when they were read, or in a folder that was named.

use crate::error::Result;
use crate::store::Store;
use crate::tables::{InputRow, RunRow};
use etwhy_table::Database;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Folders of a path that are looked for, the innermost: a store may name a path of a megabyte.
const MOST_PARTS: usize = 64;

/// A file that was read.
#[derive(Debug)]
struct Was {
    path: PathBuf,
    size_bytes: i64,
}

/// What a trace was read from.
#[derive(Debug, Default)]
struct Origin {
    /// Its files by their content: a file may lie in several places.
    files: BTreeMap<String, Vec<Was>>,
    /// Archives that hold this trace and no other.
    archives: Vec<Was>,
    /// Where it lies in an archive with others.
    among: BTreeSet<String>,
}

/// What lies in an archive: its names and traces, looked up once, however many rows the archive has.
#[derive(Debug, Default)]
struct Inside<'r> {
    /// By the batch that read it: another archive may have had the name before.
    batches: BTreeMap<i64, Members<'r>>,
    /// The last batch of each trace.
    latest: HashMap<&'r str, i64>,
}

#[derive(Debug, Default)]
struct Members<'r> {
    all: Vec<(&'r str, &'r str)>,
    told: bool,
}

impl<'r> Inside<'r> {
    /// A trace of an archive is called after it: `a.zip!pc1/b.etl`.
    fn of(archive: &str, read: &'r BTreeMap<String, BTreeSet<(i64, String)>>) -> Inside<'r> {
        let inside = format!("{archive}!");
        let mut all = Inside::default();
        for (path, traces) in read.range(inside.clone()..).take_while(|(path, _)| path.starts_with(&inside)) {
            for (batch, trace) in traces {
                all.batches.entry(*batch).or_default().all.push((path.as_str(), trace.as_str()));
                let latest = all.latest.entry(trace.as_str()).or_insert(*batch);
                *latest = (*latest).max(*batch);
            }
        }
        all
    }

    /// What was in it when this trace was read from it for the last time.
    fn with(&mut self, trace: &str) -> Option<&mut Members<'r>> {
        self.batches.get_mut(self.latest.get(trace)?)
    }
}

impl<'r> Members<'r> {
    /// All of them, for the first who asks.
    fn untold(&mut self) -> &[(&'r str, &'r str)] {
        let all: &[_] = if self.told { &[] } else { &self.all };
        self.told = true;
        all
    }
}

/// Files of traces.
#[derive(Debug)]
pub struct Files {
    of: HashMap<String, Origin>,
    folders: Vec<PathBuf>,
}

impl Files {
    /// As the store names them.
    ///
    /// # Errors
    /// If a file of the store is damaged.
    pub fn of(store: &Store, folders: &[PathBuf]) -> Result<Files> {
        let mut database = Database::new();
        store.all::<InputRow>(&mut database)?;
        store.all::<RunRow>(&mut database)?;
        let mut read: BTreeMap<String, BTreeSet<(i64, String)>> = BTreeMap::new();
        for row in &database.read_or_empty::<RunRow>() {
            read.entry(row.path().to_owned()).or_default().insert((row.batch(), row.trace_id().to_owned()));
        }
        let mut archives: HashMap<String, Inside<'_>> = HashMap::new();
        let mut of: HashMap<String, Origin> = HashMap::new();
        for row in &database.read_or_empty::<InputRow>() {
            let was = Was { path: PathBuf::from(row.path()), size_bytes: row.size_bytes() };
            let is_file = row.identity().is_some();
            if !is_file {
                let archive =
                    archives.entry(row.path().to_owned()).or_insert_with(|| Inside::of(row.path(), &read));
                if let Some(inside) = archive.with(row.trace_id()).filter(|inside| inside.all.len() > 1) {
                    for (path, trace) in inside.untold() {
                        of.entry((*trace).to_owned()).or_default().among.insert((*path).to_owned());
                    }
                    continue;
                }
            }
            let from = of.entry(row.trace_id().to_owned()).or_default();
            match is_file {
                true => from.files.entry(row.content_id().to_owned()).or_default().push(was),
                false => from.archives.push(was),
            }
        }
        Ok(Files { of, folders: folders.to_vec() })
    }

    /// The files of a trace, where they are now.
    ///
    /// # Errors
    /// In words, if one is not there as it was.
    pub fn of_trace(&self, trace_id: &str) -> std::result::Result<Vec<PathBuf>, String> {
        let Some(from) = self.of.get(trace_id) else {
            return Err("the store names no file of it".to_owned());
        };
        // Its own files, or an archive in which it is alone: together they would be the trace twice.
        let files = || from.files.values().map(|places| self.now(places)).collect();
        let archive = || self.now(&from.archives).map(|archive| vec![archive]);
        let mut why = None;
        for found in [(!from.files.is_empty()).then(files), (!from.archives.is_empty()).then(archive)] {
            match found {
                Some(Ok(found)) => return Ok(found),
                Some(Err(error)) => drop(why.get_or_insert(error)),
                None => {}
            }
        }
        Err(match (why, from.among.first()) {
            (Some(why), _) => why,
            (None, Some(among)) => {
                format!("it is {among}, in an archive with other traces: unpack that first")
            }
            (None, None) => "the store names no file of it".to_owned(),
        })
    }

    /// One of the places where a content was.
    fn now(&self, places: &[Was]) -> std::result::Result<PathBuf, String> {
        for was in places {
            if let Some(path) = self.places(&was.path).find(|path| is_same(path, was.size_bytes)) {
                return Ok(path);
            }
        }
        let Some(was) = places.first() else { return Err("the store names no file of it".to_owned()) };
        Err(match self.places(&was.path).find(|path| path.is_file()) {
            Some(path) => format!("{} has changed since it was read", path.display()),
            None if !is_here(&was.path) => format!(
                "{} is no path of this machine; what is elsewhere is only looked for below a folder that is named: --folder DIR",
                was.path.display()
            ),
            None => {
                format!("{} is not there; --folder DIR looks for it in a folder, too", was.path.display())
            }
        })
    }

    /// Where a file may be: where it was, then in each folder, with as much of its path as is there.
    fn places<'a>(&'a self, was: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        let text = was.to_string_lossy();
        let innermost = text.rsplit(['/', '\\']).filter(|part| is_plain(part)).take(MOST_PARTS);
        let mut parts: Vec<String> = innermost.map(str::to_owned).collect();
        parts.reverse();
        let below = self.folders.iter().flat_map(move |folder| {
            let ends: Vec<PathBuf> = (0..parts.len())
                .map(|from| parts.iter().skip(from).fold(folder.clone(), |path, part| path.join(part)))
                .collect();
            ends
        });
        let there = is_here(was).then(|| was.to_path_buf());
        there.into_iter().chain(below)
    }
}

/// A path from the root of a drive or of this system. A store that came from somebody else could name anything: a machine where Windows logs
/// on to look (`\\server`, `\??\UNC\server`), a device, a name that is an option.
fn is_here(path: &Path) -> bool {
    let text = path.to_string_lossy();
    if cfg!(windows) { is_on_drive(&text) } else { text.starts_with('/') && !text.starts_with("//") }
}

/// `C:\` or `\\?\C:\`, with slashes of either kind.
fn is_on_drive(path: &str) -> bool {
    let text = path.replace('/', "\\");
    let drive = text.strip_prefix("\\\\?\\").unwrap_or(&text);
    matches!(drive.as_bytes(), [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic())
}

/// A name that leads nowhere else.
fn is_plain(part: &str) -> bool {
    !part.is_empty() && part != "." && part != ".." && !part.contains(':')
}

/// A regular file of this size: a pipe or a device that took its place is not opened.
fn is_same(path: &Path, size_bytes: i64) -> bool {
    std::fs::metadata(path).is_ok_and(|what| what.is_file() && i64::try_from(what.len()) == Ok(size_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(was: &[(&str, &Path, i64)], folders: &[&Path]) -> Files {
        let mut of: HashMap<String, Origin> = HashMap::new();
        for (content, path, size_bytes) in was {
            let was = Was { path: path.to_path_buf(), size_bytes: *size_bytes };
            let from = of.entry("t".to_owned()).or_default();
            match *content {
                "zip" => from.archives.push(was),
                content => from.files.entry(content.to_owned()).or_default().push(was),
            }
        }
        Files { of, folders: folders.iter().map(|folder| folder.to_path_buf()).collect() }
    }

    #[test]
    fn a_file_is_found_where_it_is_now_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("moved/pc1")).unwrap();
        std::fs::write(at("here.etl"), "12345").unwrap();
        std::fs::write(at("moved/pc1/a.etl"), "123").unwrap();
        let found = |was: &[(&str, &Path, i64)], folders: &[&Path]| files(was, folders).of_trace("t");
        let (here, moved) = (at("here.etl"), at("moved/pc1/a.etl"));
        assert_eq!(found(&[("c", &here, 5)], &[]), Ok(vec![here.clone()]));
        assert!(found(&[("c", &here, 6)], &[]).unwrap_err().contains("changed"));
        let gone = Path::new("\\\\server\\share\\pc1\\a.etl");
        assert!(found(&[("c", gone, 3)], &[]).unwrap_err().contains("no path of this machine"));
        for elsewhere in [
            r"\\server\share\a.etl",
            "//server/share/a.etl",
            r"\/server\share\a.etl",
            r"\\?\UNC\server\share\a.etl",
            r"\??\UNC\server\share\a.etl",
            "/??/UNC/server/share/a.etl",
            r"\\.\UNC\server\share\a.etl",
            r"\\.\pipe\a.etl",
            r"\\?\GLOBALROOT\Device\Mup\server\share\a.etl",
            r"\Device\Mup\server\share\a.etl",
            "C:a.etl",
            "--sqlite=a.etl",
            "srv*https://server",
            "a.etl",
            "",
        ] {
            assert!(!is_on_drive(elsewhere), "{elsewhere}");
            let is_unix = cfg!(unix) && elsewhere.starts_with("/?");
            assert_eq!(is_here(Path::new(elsewhere)), is_unix, "{elsewhere}");
        }
        for here in [r"\\?\C:\traces\a.etl", r"C:\traces\a.etl", "c:/traces/a.etl"] {
            assert!(is_on_drive(here), "{here}");
            assert_eq!(is_here(Path::new(here)), cfg!(windows), "{here}");
        }
        assert_eq!(found(&[("c", gone, 3)], &[&at("moved")]), Ok(vec![moved.clone()]));
        // A copy that is still there does as well; two contents are two files.
        assert_eq!(found(&[("c", gone, 5), ("c", &here, 5)], &[]), Ok(vec![here.clone()]));
        assert_eq!(
            found(&[("c", gone, 3), ("d", &here, 5)], &[&at("moved")]),
            Ok(vec![moved.clone(), here.clone()])
        );
        let long = format!("{}/pc1/a.etl", "/gone".repeat(200_000));
        assert_eq!(found(&[("c", Path::new(&long), 3)], &[&at("moved")]), Ok(vec![moved.clone()]));
        // An archive is another place for the same trace, not another part of it.
        assert_eq!(found(&[("c", &here, 5), ("zip", &moved, 3)], &[]), Ok(vec![here.clone()]));
        assert_eq!(found(&[("c", gone, 5), ("zip", &moved, 3)], &[]), Ok(vec![moved.clone()]));
        assert!(files(&[], &[]).of_trace("t").unwrap_err().contains("no file"));
        let out = Path::new("../../here.etl");
        assert!(
            found(&[("c", out, 5)], &[&at("moved/pc1")]).is_err(),
            "a path does not lead out of a folder"
        );
    }
}
