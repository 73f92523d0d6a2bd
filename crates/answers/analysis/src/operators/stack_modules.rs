//! Builds of modules that stand on stacks: which symbols are worth having.
//!
//! # How it is computed
//!
//! Frames are counted by the build of their image: file name, PDB with GUID and age, time stamp and size, so that the 32-bit and
//! the 64-bit `ntdll.dll` are two. CPU time is that of `stack_cost` (idle time left out): exclusive is the innermost frame's,
//! inclusive counts a module once per stack. Of DPCs and ISRs only their own part of the stack counts, as in `module_cost`.
//!
//! # What fools it
//!
//! Inclusive times overlap: do not add them up. Modules of other events' stacks (waits, faults, files) may have frames
//! and no CPU time.

use super::add;
use crate::fold::{Facts, Fold, FoldRows, Stacks, Sums, groups};
use etwhy_table::{Database, RowOf};
use etwhy_trace::catalog::image::ImageRow;
use etwhy_trace::catalog::stack::FrameRow;
use foldhash::HashMap;
use serde::Serialize;

/// What it reads.
pub type StackModuleRows = FoldRows;

/// A build of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackModule {
    /// File name.
    pub name: String,
    /// Path on the machine that was traced.
    pub path: String,
    /// Name of its PDB, as recorded.
    pub pdb_name: Option<String>,
    /// GUID of its PDB, as text.
    pub pdb_guid: Option<String>,
    /// Age of its PDB.
    pub pdb_age: Option<u32>,
    /// `TimeDateStamp` of its header.
    pub time_date_stamp: u32,
    /// `SizeOfImage`.
    pub size_bytes: u64,
    /// Distinct places in it that stand on stacks.
    pub frames: u64,
    /// Of these, places that have a name.
    pub named_frames: u64,
    /// How often it stands on a stack, each stack taken once.
    pub places: u64,
    /// CPU time with it on the stack, nanoseconds.
    pub cpu_inclusive_ns: i64,
    /// CPU time in itself, nanoseconds.
    pub cpu_exclusive_ns: i64,
}

impl StackModule {
    /// True if some of its places have no name.
    pub fn lacks_names(&self) -> bool {
        self.named_frames < self.frames
    }
}

/// What tells builds apart.
type Build<'t> = (&'t str, &'t str, &'t str, i64, i64, i64);

fn build<'t>(image: RowOf<'_, 't, ImageRow>) -> Build<'t> {
    let (name, guid) = (image.pdb_name().unwrap_or(""), image.pdb_guid().unwrap_or(""));
    let age = image.pdb_age().unwrap_or(-1);
    (image.name(), name, guid, age, image.time_date_stamp(), image.size_bytes())
}

/// Modules on stacks, those with the most CPU time first; with `all`, those that stand on none behind them.
pub fn stack_modules(db: &Database, all: bool) -> Vec<StackModule> {
    let Ok(images) = db.read::<ImageRow>() else { return Vec::new() };
    let mut modules: Vec<StackModule> = Vec::new();
    let mut by_build: HashMap<Build<'_>, u32> = HashMap::default();
    let mut of_image: Vec<u32> = Vec::new();
    for image in &images {
        let next = u32::try_from(modules.len()).unwrap_or(u32::MAX);
        let number = *by_build.entry(build(image)).or_insert(next);
        if number == next {
            modules.push(module(image));
        }
        of_image.push(number);
    }
    let mut of_frame: Vec<Option<u32>> = Vec::new();
    for row in &db.read_or_empty::<FrameRow>() {
        let number = row.image_id().and_then(|id| of_image.get(usize::try_from(id).ok()?).copied());
        if let Some(module) = number.and_then(|n| modules.get_mut(n as usize)) {
            module.frames += 1;
            module.named_frames += u64::from(row.function().is_some());
        }
        of_frame.push(number);
    }
    let module_of = |frame: u32| of_frame.get(frame as usize).copied().flatten();
    let fold = Fold { facts: Facts::read(db, false), stacks: Stacks::read(db), groups: groups(db) };
    for number in fold.stacks.iter().flatten().filter_map(|&frame| module_of(frame)) {
        if let Some(module) = modules.get_mut(number as usize) {
            module.places += 1;
        }
    }
    let mut sums = Sums::new(modules.len());
    for group in &fold.groups {
        for row in &group.rows {
            sums.next();
            let part = fold.part(group.class, row.stack);
            for number in part.frames().filter_map(module_of) {
                sums.on_stack(number, row.samples, row.weight);
            }
            if let Some(cell) = part.leaf().and_then(module_of).and_then(|number| sums.cell(number)) {
                add(&mut cell.exclusive, row.weight);
            }
        }
    }
    for (number, cell) in sums.take() {
        if let Some(module) = modules.get_mut(number as usize) {
            (module.cpu_inclusive_ns, module.cpu_exclusive_ns) = (cell.inclusive, cell.exclusive);
        }
    }
    modules.retain(|module| all || module.frames > 0);
    modules.sort_by(|a, b| {
        let heavier = b.cpu_inclusive_ns.cmp(&a.cpu_inclusive_ns).then(b.places.cmp(&a.places));
        heavier.then_with(|| a.name.cmp(&b.name)).then_with(|| a.pdb_guid.cmp(&b.pdb_guid))
    });
    modules
}

fn module(image: RowOf<'_, '_, ImageRow>) -> StackModule {
    StackModule {
        name: image.name().to_owned(),
        path: image.path().to_owned(),
        pdb_name: image.pdb_name().filter(|name| !name.is_empty()).map(str::to_owned),
        pdb_guid: image.pdb_guid().map(str::to_owned),
        pdb_age: image.pdb_age().and_then(|age| u32::try_from(age).ok()),
        // The column holds the same 32 bits with a sign.
        time_date_stamp: image.time_date_stamp() as u32,
        size_bytes: u64::try_from(image.size_bytes()).unwrap_or(0),
        ..StackModule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::{ColumnType, Value};

    #[test]
    fn builds_are_kept_apart_and_stacks_count_a_module_once() {
        let (int, words) = (ColumnType::I64, ColumnType::Text);
        let text = Value::Text;
        let n = Value::I64;
        let image = |name, guid, stamp| {
            vec![text(name), text(name), text("a.pdb"), text(guid), n(1), n(stamp), n(4096)]
        };
        let mut db = Database::new();
        db.insert(table(
            "image",
            &[
                ("name", words),
                ("path", words),
                ("pdb_name", words),
                ("pdb_guid", words),
                ("pdb_age", int),
                ("time_date_stamp", int),
                ("size_bytes", int),
            ],
            // The first and the third are the same build in two processes.
            &[
                image("a.dll", "g1", 5),
                image("a.dll", "g2", -1),
                image("a.dll", "g1", 5),
                image("idle.dll", "g3", 7),
            ],
        ));
        let rows = [
            vec![n(0), text("named"), text("a.dll"), text("user")],
            vec![n(2), Value::Null, text("a.dll"), text("user")],
            vec![n(1), Value::Null, text("a.dll"), text("user")],
            vec![Value::Null, Value::Null, text("[unknown]"), text("unknown")],
        ];
        db.insert(table(
            "frame",
            &[("image_id", int), ("function", words), ("module", words), ("kind", words)],
            &rows,
        ));
        // Stack 0: frames 2, 0, 1 and 3; stack 1: frame 1 alone.
        db.insert(table(
            "stack",
            &[("depth", int), ("kernel_depth", int)],
            &[vec![n(4), n(0)], vec![n(1), n(0)]],
        ));
        let places: Vec<Vec<Value<'_>>> = [2, 0, 1, 3, 1].iter().map(|f| vec![n(*f)]).collect();
        db.insert(table("stack_frame", &[("frame_id", int)], &places));
        db.insert(table(
            "stack_cost",
            &[("class", words), ("upid", int), ("stack_id", int), ("samples", int), ("weight_ns", int)],
            &[vec![text("thread"), n(0), n(0), n(3), n(300)], vec![text("thread"), n(1), n(1), n(1), n(10)]],
        ));
        let found = stack_modules(&db, false);
        let short: Vec<_> = found
            .iter()
            .map(|m| {
                (
                    m.pdb_guid.as_deref().unwrap(),
                    m.frames,
                    m.named_frames,
                    m.places,
                    m.cpu_inclusive_ns,
                    m.cpu_exclusive_ns,
                )
            })
            .collect();
        assert_eq!(short, [("g1", 2, 1, 3, 310, 10), ("g2", 1, 0, 1, 300, 300)]);
        assert_eq!((found[1].time_date_stamp, found[1].size_bytes), (0xffff_ffff, 4096));
        assert!(found[0].lacks_names());
        assert_eq!(stack_modules(&db, true).len(), 3);
        assert!(stack_modules(&Database::new(), true).is_empty());
    }
}
