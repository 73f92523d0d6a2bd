//! Names of files by key (`FileObject` of the name events, which is the FsContext that disk events carry).
//!
//! Keys are reused, and most names come in the rundown at the end of a trace. A reference makes a nameless
//! file; the next name event of its key names it, unless a create says that a new file begins.

use crate::event::{Context, Event, Select, What};
use etwhy_table::Sym;
use foldhash::HashMap;

const NAME: u8 = 0;
const CREATE: u8 = 32;
const DELETE: u8 = 35;
const RUNDOWN: u8 = 36;

pub(crate) const SELECTS: &[Select] = &[
    Select::new(What::Kernel(4, NAME), NAME),
    Select::new(What::Kernel(4, CREATE), CREATE),
    Select::new(What::Kernel(4, DELETE), DELETE),
    Select::new(What::Kernel(4, RUNDOWN), RUNDOWN),
];

/// One file instance.
#[derive(Clone, Copy, Debug)]
pub struct FileName {
    /// Its key.
    pub key: u64,
    /// Its path as recorded (device path).
    pub path: Option<Sym>,
    /// First event that named it, ns.
    pub first_ns: i64,
}

/// All files; the file number is the index.
#[derive(Debug, Default)]
pub struct FileNames {
    all: Vec<FileName>,
    by_key: HashMap<u64, u32>,
}

impl FileNames {
    /// The file with this key at this moment; `None` for the null key.
    pub fn at(&mut self, key: u64, ns: i64) -> Option<u32> {
        if key == 0 {
            return None;
        }
        Some(self.by_key.get(&key).copied().unwrap_or_else(|| self.add(key, None, ns)))
    }

    fn add(&mut self, key: u64, path: Option<Sym>, ns: i64) -> u32 {
        let file = self.all.len() as u32;
        self.all.push(FileName { key, path, first_ns: ns });
        self.by_key.insert(key, file);
        file
    }

    fn named(&mut self, tag: u8, key: u64, path: Option<Sym>, ns: i64) {
        let current = self.by_key.get(&key).and_then(|&f| self.all.get_mut(f as usize));
        match (tag, current) {
            (CREATE, _) | (_, None) => {
                self.add(key, path, ns);
            }
            (_, Some(file)) if file.path.is_none() => file.path = path,
            (_, Some(file)) if file.path != path => {
                self.add(key, path, ns);
            }
            _ => {}
        }
        if tag == DELETE {
            self.by_key.remove(&key);
        }
    }

    /// All files in the order of their numbers.
    pub fn all(&self) -> &[FileName] {
        &self.all
    }
}

pub(crate) fn event(event: &Event<'_>, cx: &mut Context<'_>) {
    let fields = event.fields();
    let key = fields.u64("FileObject");
    if key == 0 {
        return;
    }
    let path = cx.sym_or_none(fields.text("FileName"));
    cx.model.files.named(event.tag, key, path, event.ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_reach_back_but_not_over_a_create() {
        let mut strings = etwhy_table::Strings::new();
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
}
