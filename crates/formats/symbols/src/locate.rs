//! Where symbol files are: folders, stores and servers give candidates, readers decide whether they fit.

use crate::wanted::WantedModule;
use std::path::PathBuf;

/// What a file is taken for, by its name; the reader checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A program database (`.pdb`), native, `.ni.pdb` or portable.
    Pdb,
    /// A Breakpad symbol file (`.sym`).
    Breakpad,
    /// The image itself (`.exe`, `.dll`, `.sys`), whose export table is the last resort.
    Image,
}

/// A file that may hold the symbols of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file, on this machine.
    pub file: PathBuf,
    /// What it is taken for.
    pub kind: FileKind,
    /// It lies where the user said that symbols are, or came from there; not beside a trace, whose files came with it from wherever it
    /// is. Only what is read of such a file is kept for other traces.
    pub is_named: bool,
}

/// Something that knows where symbol files are. It never builds a path from a name that is no
/// [`SafeName`](crate::SafeName).
pub trait Locate: Send + Sync {
    /// What it is, for messages, e.g. the folders of a store.
    fn describe(&self) -> String;

    /// Files that may hold the symbols of `wanted`, the best first, without reading them. Whoever has to fetch them does so
    /// here; what went wrong is kept for [`Locate::problems`].
    fn candidates(&self, wanted: &WantedModule) -> Vec<Candidate>;

    /// What went wrong since the last call: servers that did not answer, broken cabinets, files of another build.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }
}

/// Something that keeps symbols from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file; `None` if it is none of a single file.
    pub file: Option<PathBuf>,
    /// What happened, in words, with the file's name.
    pub text: String,
    /// The file is of another build of the module.
    pub mismatch: bool,
}
