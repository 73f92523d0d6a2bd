//! Names of files: by key (`FileKey`, which is the FsContext that disk events carry) and by file object.
//!
//! Keys are reused, and most names come in the rundown at the end of a trace. A reference makes a nameless
//! file; the next name event of its key names it, unless a create says that a new file begins.
//!
//! `FileIo` Create tells a path and a file object, but no key. The operations that follow on the object tell
//! both, and so the open is *bound* to a file when the first of them comes; until then, and for opens that
//! fail, its path is all that is known. A file that no name event names takes the path under which it was
//! opened; a name event is the better word (an open may use a short name or a link). A filter sees a create
//! before the file system does: what it does then waits for the Create event of the same object and IRP.

use crate::anomalies::FILE_OBJECTS_FORGOTTEN;
use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_decode::kernel::events::{DiskIo, FileIo, PageFault};
use etwhy_etl::Ledger;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

const CREATE: u8 = FileIo::FileCreate.opcode;
const DELETE: u8 = FileIo::FileDelete.opcode;
const OPEN: u8 = FileIo::Create.opcode;
const CLOSE: u8 = FileIo::Close.opcode;
const OPERATION: u8 = FileIo::Read.opcode;
const END: u8 = FileIo::OperationEnd.opcode;
const ON_DISK: u8 = DiskIo::Read.opcode;
const FILTER_PRE: u8 = FileIo::PreOpCompletion.opcode;
const FILTER_POST: u8 = FileIo::PostOpCompletion.opcode;

/// Fields of operations on an open file.
const OBJECT: &[&str] = &["FileObject", "FileKey"];
/// Fields of what filters do.
const FILTERED: &[&str] = &["FileObject", "FileContext", "IrpPtr", "MajorFunction"];

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(FileIo::Name, &[]),
    Select::kernel(FileIo::FileCreate, &[]),
    Select::kernel(FileIo::FileDelete, &[]),
    Select::kernel(FileIo::FileRundown, &[]),
    Select::kernel(FileIo::Create, &["FileObject", "IrpPtr", "ShareAccess"]),
    Select::with(What::Kernel(FileIo::Cleanup), OPERATION, OBJECT),
    Select::kernel(FileIo::Close, OBJECT),
    Select::kernel(FileIo::Read, OBJECT),
    Select::with(What::Kernel(FileIo::Write), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::SetInfo), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::Delete), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::Rename), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::DirEnum), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::Flush), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::QueryInfo), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::FSControl), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::DirNotify), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::DeletePath), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::RenamePath), OPERATION, OBJECT),
    Select::with(What::Kernel(FileIo::SetLinkPath), OPERATION, OBJECT),
    Select::kernel(FileIo::OperationEnd, &["IrpPtr", "NtStatus"]),
    Select::kernel(DiskIo::Read, &["FileObject"]),
    Select::with(What::Kernel(DiskIo::Write), ON_DISK, &["FileObject"]),
    Select::with(What::Kernel(DiskIo::OpticalRead), ON_DISK, &["FileObject"]),
    Select::with(What::Kernel(DiskIo::OpticalWrite), ON_DISK, &["FileObject"]),
    Select::with(What::Kernel(PageFault::HardFault), ON_DISK, &["FileObject"]),
    Select::kernel(FileIo::PreOpCompletion, FILTERED),
    Select::kernel(FileIo::PostOpCompletion, FILTERED),
    Select::with(What::Kernel(FileIo::PreOpFailure), FILTER_PRE, FILTERED),
    Select::with(What::Kernel(FileIo::PostOpFailure), FILTER_POST, FILTERED),
];

/// `IRP_MJ_CREATE`.
const MAJOR_CREATE: u64 = 0;

/// NTSTATUS values from here on are no success (`NT_SUCCESS`): warnings and errors.
const FAILED: u32 = 0x8000_0000;

/// Creates that may be under way at once: far beyond what a machine has.
const MOST_CREATES: usize = 1 << 18;

/// File objects that may be open at once. A busy server has some hundred thousand; beyond this they are
/// objects whose close was not recorded, and all are forgotten.
const MOST_OBJECTS: usize = 1 << 21;

/// One file instance.
#[derive(Clone, Copy, Debug)]
pub struct FileName {
    /// Its key.
    pub key: u64,
    /// Its path as recorded (device path).
    pub path: Option<Sym>,
    /// First event that named it, ns.
    pub first_ns: i64,
    /// The path is the one under which it was opened; no name event has named it.
    opened_as: bool,
}

/// One open, good or failed.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    path: Option<Sym>,
    /// Its file, once an operation told the key.
    file: Option<u32>,
}

/// What stands behind a file object now.
#[derive(Clone, Copy, Debug)]
struct Opened {
    open: u32,
    /// IRP of a create that filters have seen and the file system has not, else 0.
    awaits: u64,
    /// The open failed: filters still look at the object, operations on it are those of another file.
    failed: bool,
}

/// The file that an event means: a file, or an open whose file may not be known yet. Rows hold it until the
/// end of the pass, see `Finish::files_of` and `Finish::paths_of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileRef(pub(crate) i32);

impl FileRef {
    fn file(number: u32) -> FileRef {
        FileRef(number as i32 & i32::MAX)
    }

    fn open(number: u32) -> FileRef {
        FileRef(!(number as i32 & i32::MAX))
    }

    /// For a file column.
    pub fn provisional(self) -> i32 {
        self.0
    }

    /// For a path column.
    pub fn sym(self) -> Sym {
        Sym::provisional(self.0 as u32)
    }
}

/// A file for sums over events: equal for the same file, or for opens of the same path as long as their file
/// is unknown. Two of them may turn out to have the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SameFile {
    /// A file.
    File(u32),
    /// A path.
    Path(Option<Sym>),
}

/// All files; the file number is the index.
#[derive(Clone, Debug, Default)]
pub struct FileNames {
    all: Vec<FileName>,
    by_key: HashMap<u64, u32>,
    opens: Vec<Open>,
    by_object: HashMap<u64, Opened>,
    /// The file that was last opened under a path.
    by_path: HashMap<Sym, u32>,
    current: Option<FileRef>,
    /// Object and file of creates under way, by IRP.
    creates: HashMap<u64, (u64, FileRef)>,
}

impl FileNames {
    /// The file with this key, if anything named it by now.
    pub fn known(&self, key: u64) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// The file with this key at this moment; `None` for the null key.
    pub fn at(&mut self, key: u64, ns: i64) -> Option<u32> {
        if key == 0 {
            return None;
        }
        Some(self.by_key.get(&key).copied().unwrap_or_else(|| self.add(key, None, false, ns)))
    }

    /// The file of the file or filter event that is being looked at.
    pub fn current(&self) -> Option<FileRef> {
        self.current
    }

    /// What to sum under for a file.
    pub fn same(&self, file: FileRef) -> SameFile {
        match self.open_of(file) {
            None => SameFile::File(file.0 as u32),
            Some(open) => open.file.map_or(SameFile::Path(open.path), SameFile::File),
        }
    }

    /// A create begins.
    fn create_begins(&mut self, irp: u64, object: u64) {
        if self.creates.len() >= MOST_CREATES {
            self.creates.clear();
        }
        if let Some(file) = self.current {
            self.creates.insert(irp, (object, file));
        }
    }

    /// An operation ends.
    fn ends(&mut self, irp: u64, status: u32) {
        if let Some((object, file)) = self.creates.remove(&irp)
            && status >= FAILED
        {
            self.open_failed(object, Some(file));
        }
    }

    /// An open has failed: its object will not be closed.
    fn open_failed(&mut self, object: u64, file: Option<FileRef>) {
        if let Some(opened) = self.by_object.get_mut(&object)
            && file == Some(FileRef::open(opened.open))
        {
            opened.failed = true;
        }
    }

    /// The number of a file, if it is known by now.
    pub fn number(&self, file: FileRef) -> Option<u32> {
        self.open_of(file).map_or(Some(file.0 as u32), |open| open.file)
    }

    /// The path of a file as recorded.
    pub fn path(&self, file: FileRef) -> Option<Sym> {
        let named = self.number(file).and_then(|f| self.all.get(f as usize)?.path);
        named.or_else(|| self.open_of(file)?.path)
    }

    /// The path of a file that was summed under.
    pub fn path_of_same(&self, same: SameFile) -> Option<Sym> {
        let file = match same {
            SameFile::File(file) => Some(file),
            SameFile::Path(path) => path.and_then(|path| self.by_path.get(&path).copied()),
        };
        let named = file.and_then(|f| self.all.get(f as usize)?.path);
        named.or(if let SameFile::Path(path) = same { path } else { None })
    }

    fn open_of(&self, file: FileRef) -> Option<&Open> {
        if file.0 >= 0 { None } else { self.opens.get(!file.0 as usize) }
    }

    fn add(&mut self, key: u64, path: Option<Sym>, opened_as: bool, ns: i64) -> u32 {
        let file = self.all.len() as u32;
        self.all.push(FileName { key, path, first_ns: ns, opened_as });
        self.by_key.insert(key, file);
        file
    }

    fn named(&mut self, tag: u8, key: u64, path: Option<Sym>, ns: i64) {
        let current = self.by_key.get(&key).and_then(|&f| self.all.get_mut(f as usize));
        match (tag, current) {
            (CREATE, _) | (_, None) => {
                self.add(key, path, false, ns);
            }
            (_, Some(file)) if file.path.is_none() || file.opened_as => {
                file.path = path.or(file.path);
                file.opened_as &= path.is_none();
            }
            (_, Some(file)) if file.path != path => {
                self.add(key, path, false, ns);
            }
            _ => {}
        }
        if tag == DELETE {
            self.by_key.remove(&key);
        }
    }

    /// A new open, which is what `object` stands for from now on. Returns how many objects were forgotten.
    fn opened(&mut self, object: u64, path: Option<Sym>, awaits: u64) -> (u32, usize) {
        let number = self.opens.len() as u32;
        self.opens.push(Open { path, file: None });
        let forgotten = if self.by_object.len() >= MOST_OBJECTS { self.by_object.len() } else { 0 };
        if forgotten > 0 {
            self.by_object.clear();
        }
        self.by_object.insert(object, Opened { open: number, awaits, failed: false });
        (number, forgotten)
    }

    /// A Create event. Returns how many objects were forgotten.
    fn create(&mut self, object: u64, irp: u64, path: Option<Sym>) -> usize {
        if let Some(opened) = self.by_object.get_mut(&object)
            && opened.awaits == irp
            && irp != 0
            && let Some(open) = self.opens.get_mut(opened.open as usize)
        {
            opened.awaits = 0;
            open.path = path;
            self.current = Some(FileRef::open(opened.open));
            return 0;
        }
        let (number, forgotten) = self.opened(object, path, 0);
        self.current = Some(FileRef::open(number));
        forgotten
    }

    /// An operation on an object.
    fn operation(&mut self, object: u64, key: u64, ns: i64, strings: &Strings) -> Option<FileRef> {
        match self.by_object.get(&object) {
            Some(&Opened { open, awaits: 0, failed: false }) => {
                self.bind(open, key, ns, strings);
                let file = self.opens.get(open as usize).and_then(|open| self.all.get(open.file? as usize));
                // An object keeps its key. With another one it is a new object whose open was not recorded.
                if file.is_some_and(|file| key != 0 && file.key != key) {
                    return self.at(key, ns).map(FileRef::file);
                }
                Some(FileRef::open(open))
            }
            _ => self.at(key, ns).map(FileRef::file),
        }
    }

    /// What a filter saw: object, key, IRP, major function. Returns how many objects were forgotten.
    fn filtered(&mut self, tag: u8, seen: [u64; 4], ns: i64, strings: &Strings) -> usize {
        let [object, key, irp, major] = seen;
        let mut forgotten = 0;
        let opened = self.by_object.get(&object).copied();
        let waits = opened.filter(|o| o.awaits != 0 && o.awaits == irp);
        self.current = if let Some(opened) = waits {
            Some(FileRef::open(opened.open))
        } else if key == 0 && major == MAJOR_CREATE && irp != 0 && object != 0 {
            // Before the file system has seen it, or after; a failed create never gets a key.
            match (tag, opened) {
                (FILTER_PRE, _) => {
                    let made = self.opened(object, None, irp);
                    forgotten = made.1;
                    Some(FileRef::open(made.0))
                }
                (_, Some(Opened { open, awaits: 0, .. })) => Some(FileRef::open(open)),
                _ => None,
            }
        } else {
            self.operation(object, key, ns, strings)
        };
        forgotten
    }

    /// Tells an open its file.
    fn bind(&mut self, number: u32, key: u64, ns: i64, strings: &Strings) {
        let Some(&open) = self.opens.get(number as usize) else { return };
        if open.file.is_some() || key == 0 {
            return;
        }
        let known = self.by_key.get(&key).copied();
        let current = known.and_then(|f| self.all.get_mut(f as usize));
        let other = |a: Sym, b: Sym| a != b && !strings.get(a).eq_ignore_ascii_case(strings.get(b));
        let file = match (known, current, open.path) {
            (Some(number), Some(file), _) if file.path.is_none() => {
                file.path = open.path;
                file.opened_as = open.path.is_some();
                number
            }
            // Nothing says that the key is still the same file's.
            (Some(_), Some(FileName { path: Some(had), opened_as: true, .. }), Some(path))
                if other(*had, path) =>
            {
                self.add(key, open.path, true, ns)
            }
            (Some(number), ..) => number,
            _ => self.add(key, open.path, open.path.is_some(), ns),
        };
        if let Some(open) = self.opens.get_mut(number as usize) {
            open.file = Some(file);
        }
        if let Some(path) = open.path {
            self.by_path.insert(path, file);
        }
    }

    /// All files in the order of their numbers.
    pub fn all(&self) -> &[FileName] {
        &self.all
    }
}

pub(crate) fn event(event: &Event<'_>, files: &mut FileNames, strings: &mut Strings, ledger: &mut Ledger) {
    match event.tag {
        OPEN => {
            let path = strings.intern_non_empty(&event.text_after(2));
            files.current = None;
            let Some(object) = event.u64(0).filter(|&object| object != 0) else { return };
            let irp = event.u64(1).unwrap_or(0);
            let forgotten = files.create(object, irp, path);
            files.create_begins(irp, object);
            ledger.count(&FILE_OBJECTS_FORGOTTEN, forgotten as u64);
        }
        OPERATION | CLOSE => {
            let (object, key) = (event.u64(0).unwrap_or(0), event.u64(1).unwrap_or(0));
            files.current = files.operation(object, key, event.ns, strings);
            if event.tag == CLOSE {
                files.by_object.remove(&object);
            }
        }
        END => {
            if let (Some(irp), Some(status)) = (event.u64(0), event.u64(1)) {
                files.ends(irp, status as u32);
            }
        }
        ON_DISK => {
            event.u64(0).and_then(|key| files.at(key, event.ns));
        }
        FILTER_PRE | FILTER_POST => {
            let seen = [0, 1, 2, 3].map(|n| event.u64(n).unwrap_or(if n == 3 { u64::MAX } else { 0 }));
            let forgotten = files.filtered(event.tag, seen, event.ns, strings);
            ledger.count(&FILE_OBJECTS_FORGOTTEN, forgotten as u64);
        }
        _ => {
            let fields = event.fields();
            let key = fields.u64("FileObject");
            if key == 0 {
                return;
            }
            let path = strings.intern_non_empty(&fields.text("FileName"));
            files.named(event.tag, key, path, event.ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNDOWN: u8 = FileIo::FileRundown.opcode;

    #[test]
    fn names_reach_back_but_not_over_a_create() {
        let mut strings = Strings::new();
        let (a, b) = (Some(strings.intern("a")), Some(strings.intern("b")));
        let mut files = FileNames::default();
        let early = files.at(9, 0).unwrap();
        files.named(RUNDOWN, 9, a, 10);
        assert_eq!(files.all()[early as usize].path, a);
        files.named(DELETE, 9, a, 20);
        let later = files.at(9, 30).unwrap();
        assert_ne!(early, later);
        files.named(CREATE, 9, b, 40);
        let newest = files.at(9, 50).unwrap();
        assert_eq!(files.all()[later as usize].path, None);
        assert_eq!(files.all()[newest as usize].path, b);
        assert_eq!(files.at(0, 0), None);
    }

    #[test]
    fn opens_get_their_file_from_the_first_operation() {
        let mut strings = Strings::new();
        let path = Some(strings.intern("\\a"));
        let short = Some(strings.intern("\\A~1"));
        let mut files = FileNames::default();
        files.create(1, 100, path);
        let open = files.current().unwrap();
        assert_eq!((files.number(open), files.path(open)), (None, path));
        assert_eq!(files.same(open), SameFile::Path(path));
        let read = files.operation(1, 9, 0, &strings).unwrap();
        assert_eq!((read, files.number(open), files.path(open)), (open, Some(0), path));
        // Disk events know the key only, and mean the same file.
        assert_eq!(files.at(9, 5), Some(0));
        assert_eq!(files.path_of_same(SameFile::Path(path)), path);
        // The rundown knows better.
        let real = Some(strings.intern("\\Real"));
        files.named(RUNDOWN, 9, real, 50);
        assert_eq!((files.path(open), files.all().len()), (real, 1));
        assert_eq!(files.path_of_same(SameFile::Path(path)), real);
        // Another name of the file, of which a name event has told the right one, is the same file.
        files.create(2, 101, short);
        let other = files.current().unwrap();
        files.operation(2, 9, 60, &strings);
        assert_eq!((files.number(other), files.path(other)), (Some(0), real));
    }

    #[test]
    fn a_key_that_is_reused_without_a_word_is_another_file() {
        let mut strings = Strings::new();
        let (a, b) = (Some(strings.intern("\\a")), Some(strings.intern("\\b")));
        let same = Some(strings.intern("\\A"));
        let mut files = FileNames::default();
        files.create(1, 100, a);
        let first = files.operation(1, 9, 0, &strings).unwrap();
        files.create(1, 101, same);
        let again = files.operation(1, 9, 1, &strings).unwrap();
        assert_eq!(files.number(first), files.number(again), "case does not make another file");
        files.create(2, 102, b);
        let second = files.operation(2, 9, 2, &strings).unwrap();
        assert_ne!(files.number(first), files.number(second));
        assert_eq!((files.path(first), files.path(second)), (a, b));
        // Neither its close nor the next open was recorded.
        let lost = files.operation(2, 10, 3, &strings).unwrap();
        assert_eq!((lost, files.path(lost)), (FileRef::file(2), None));
        // The first object stays what it was.
        assert_eq!(files.operation(1, 9, 3, &strings), Some(again));
    }

    #[test]
    fn filters_see_a_create_first() {
        let mut strings = Strings::new();
        let path = Some(strings.intern("\\a"));
        let mut files = FileNames::default();
        files.filtered(FILTER_PRE, [1, 0, 100, MAJOR_CREATE], 0, &strings);
        let before = files.current().unwrap();
        files.filtered(FILTER_PRE, [1, 0, 100, MAJOR_CREATE], 0, &strings);
        assert_eq!(files.current(), Some(before), "a second filter, the same create");
        files.create(1, 100, path);
        assert_eq!(files.path(before), path);
        // A create that a filter refused, and then one with another IRP on the object.
        files.filtered(FILTER_PRE, [2, 0, 101, MAJOR_CREATE], 0, &strings);
        let refused = files.current().unwrap();
        files.create(2, 102, path);
        assert_eq!(files.path(refused), None);
        files.filtered(FILTER_PRE, [1, 9, 200, 3], 5, &strings);
        assert_eq!((files.current(), files.number(before)), (Some(before), Some(0)));
        // A create that the file system refused: the filter above it still learns the path.
        files.create(3, 103, path);
        let failed = files.current();
        files.open_failed(3, failed);
        files.filtered(FILTER_POST, [3, 0, 103, MAJOR_CREATE], 6, &strings);
        assert_eq!(files.current(), failed);
        assert_eq!(files.operation(3, 9, 7, &strings), Some(FileRef::file(0)), "another file's object");
    }
}
