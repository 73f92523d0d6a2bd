//! Files that grow, and what a pass over all of one gives.

use etwhy_base::rng::Rng;
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline};
use etwhy_live::{FollowOptions, Follower, Window, no_schemas};
use etwhy_table::{Memory, Table};
use etwhy_trace::{Base, Inputs, Output, Symbols, Wanted, catalog};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions as Write};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file that grows.
pub struct Growing {
    pub path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
}

impl Growing {
    /// Will become `bytes`; nothing is there yet.
    pub fn new(path: &Path, bytes: Vec<u8>) -> Growing {
        File::create(path).unwrap();
        Growing { path: path.to_owned(), bytes, at: 0 }
    }

    /// Writes so many more bytes; false if it is complete.
    pub fn write(&mut self, count: usize) -> bool {
        let end = self.at.saturating_add(count).min(self.bytes.len());
        let mut file = Write::new().append(true).open(&self.path).unwrap();
        file.write_all(&self.bytes[self.at..end]).unwrap();
        self.at = end;
        self.at < self.bytes.len()
    }
}

pub fn options(window_ns: Option<i64>) -> FollowOptions {
    FollowOptions {
        window_ns,
        window_bytes: u64::MAX,
        slack_ns: 1_000_000_000,
        patience_ns: 60_000_000_000,
        threads: 1,
        header: None,
    }
}

pub fn follow(path: &Path, window_ns: Option<i64>) -> Follower {
    Follower::new(path, options(window_ns), Symbols::new(&[]), no_schemas()).unwrap()
}

/// Names of all tables of a pass; what the ledger says depends on who counts.
pub fn all_tables() -> BTreeSet<String> {
    let tables = catalog::ALL.iter().flat_map(|spec| spec.tables.iter());
    tables.map(|table| table.name.to_string()).filter(|name| name != "ledger").collect()
}

/// What one pass over these files, as they are now, says of a window.
pub fn batch(paths: &[PathBuf], window: &Window, growing: bool) -> Output {
    let open = |path: &PathBuf| match growing {
        true => EtlFile::open_growing(path, path, None).unwrap(),
        false => EtlFile::open(path, path, &OpenOptions::default()).unwrap(),
    };
    batch_of(paths.iter().map(open).collect(), window, growing)
}

/// The same of files that are open.
pub fn batch_of(files: Vec<EtlFile>, window: &Window, growing: bool) -> Output {
    let timeline = Timeline::read(&files, &mut Ledger::new());
    let mut symbols = Symbols::new(&[]);
    let mut base = Base::new(no_schemas());
    base.advance(&files, &timeline, &mut symbols, 1, window.from);
    let tables = all_tables();
    let (memory, inputs) = (Memory::unlimited(), Inputs::default());
    let end = if growing { window.to } else { i64::MAX };
    let wanted =
        Wanted { tables: Some(&tables), threads: 1, memory: &memory, inputs: &inputs, to_ns: None, end };
    base.analyse(&files, &timeline, &wanted, &mut symbols, &mut (), Ledger::new()).unwrap()
}

/// The tables that a follower gives of a window.
pub fn followed(follower: &mut Follower, window: &Window) -> Output {
    follower.tables(window, &all_tables(), &Memory::unlimited()).unwrap()
}

fn line(table: &Table, row: u32) -> String {
    let columns = 0..table.spec().columns.len();
    columns
        .map(|column| format!("{}={:?} ", table.spec().columns[column].name, table.cell(row, column)))
        .collect()
}

/// Where two outputs differ first.
pub fn difference(a: &Output, b: &Output) -> Option<String> {
    for name in all_tables() {
        let (Some(a), Some(b)) = (a.db.get(&name), b.db.get(&name)) else {
            return Some(format!("{name} was made once only"));
        };
        if a.rows() != b.rows() {
            return Some(format!("{name}: {} and {} rows", a.rows(), b.rows()));
        }
        for row in 0..u32::try_from(a.rows()).unwrap() {
            let (a, b) = (line(a, row), line(b, row));
            if a != b {
                return Some(format!("{name}, row {row}:\n  {a}\n  {b}"));
            }
        }
    }
    None
}

/// Numbers that are drawn, of `ETWHY_SEED` if that is set.
pub fn drawn(name: &str) -> Rng {
    let seed = std::env::var("ETWHY_SEED").unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
    Rng::new(etwhy_base::rng::fnv1a(format!("{seed} {name}").as_bytes()))
}
