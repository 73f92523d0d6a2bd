//! What is taken and not given back: kernel pool by driver, committed memory by process, handles by process and driver.
//!
//! # How it is computed
//!
//! Allocations of the trace (`pool`, `virtual_alloc`, `handle`) that are there at its end, by the quarter of the trace in which they
//! were made. A leak has some of every quarter; what a program takes when it starts, or has just taken, is of one. What a process
//! that ended in the trace had until its end (`exit_bytes`) is counted apart, by the quarter of its own life: a leak that restarts hide.
//! Time in which the machine stood still (`machine`), or that is missing of all processors (`unobserved`), is in no quarter.
//! The driver is the one that asked for the pool: the innermost module of the kernel stack that is not Windows itself, unless it only
//! handed work to another layer, which keeps something of it (an adapter's driver packets to `tcpip.sys`). The function is the
//! innermost of the program's own.
//! A handle is a driver's if the driver asked the kernel for it: not if it stands on the stack only because it hooks the system call or
//! passes a request on. Windows writes the event when the object is open, so that filters which were asked meanwhile are gone.
//!
//! # What fools it
//!
//! A cache that fills looks like a leak until it is full, and a trace is short. Without stacks nobody is named.
//! A driver may open a handle for the program that called it, which then has to close it: handles in the table of a process.

use crate::derive::DerivedSpec;
use crate::fold::{Facts, FactsRows, Fold, NONE, Stacks, StacksRows, freeze, id, text};
use crate::operators::{ProcessRow, add};
use crate::quarters::{Dark, QuarterRows, Quarters};
use etwhy_table::{Database, Memory, RowOf, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{handle::HandleRow, pool::PoolRow, virtual_alloc::VirtualAllocRow};
use std::collections::BTreeMap;

define_table! {
    /// Kernel pool that was allocated in the trace and is there at its end, by tag and driver.
    pub table POOL_LEAK: PoolLeakRow = "pool_leak" {
        version: 1,
        /// Tag.
        tag: Sym [None, Name],
        /// paged or nonpaged.
        pool: Sym [None, Kind],
        /// Driver that allocated it; null without stacks, and for Windows itself.
        driver: Option<Sym> [None, Name],
        /// Allocations.
        allocs: i64 [Count, Count],
        /// Bytes of all allocations.
        total_bytes: i64 [Bytes, Bytes],
        /// Allocations that are there at the end.
        outstanding_count: i64 [Count, Count],
        /// Their bytes.
        outstanding_bytes: i64 [Bytes, Bytes],
        /// Bytes of these that were allocated in the first quarter of the trace.
        quarter1_bytes: i64 [Bytes, Bytes],
        /// In the second quarter.
        quarter2_bytes: i64 [Bytes, Bytes],
        /// In the third quarter.
        quarter3_bytes: i64 [Bytes, Bytes],
        /// In the last quarter.
        quarter4_bytes: i64 [Bytes, Bytes],
    }
}

define_table! {
    /// Memory that was committed in the trace and is committed at its end, by process and function.
    pub table COMMIT_LEAK: CommitLeakRow = "commit_leak" {
        version: 2,
        /// Process whose address space it is.
        upid: i32 [None, Process],
        /// Innermost function on the stack that is not of Windows' own libraries, `module!function`; null without stacks.
        function: Option<Sym> [None, Name],
        /// Calls that committed memory.
        allocs: i64 [Count, Count],
        /// Bytes that they committed.
        total_bytes: i64 [Bytes, Bytes],
        /// Calls of which something is committed at the end.
        outstanding_count: i64 [Count, Count],
        /// Bytes of these that are committed at the end.
        outstanding_bytes: i64 [Bytes, Bytes],
        /// Bytes of these that were committed in the first quarter of the trace.
        quarter1_bytes: i64 [Bytes, Bytes],
        /// In the second quarter.
        quarter2_bytes: i64 [Bytes, Bytes],
        /// In the third quarter.
        quarter3_bytes: i64 [Bytes, Bytes],
        /// In the last quarter.
        quarter4_bytes: i64 [Bytes, Bytes],
        /// Bytes that ended with the process: committed in the trace and not freed before its end.
        exit_bytes: i64 [Bytes, Bytes],
        /// Of the quarters of the process's life, those in which at least a tenth of these were committed; 0 if its life is not
        /// within the trace.
        exit_quarters: i32 [Count, Count],
    }
}

define_table! {
    /// Handles that were opened in the trace, by process, type and the driver that opened them.
    pub table HANDLE_OPENER: HandleOpenerRow = "handle_opener" {
        version: 1,
        /// Process in whose table they are. Handles of the kernel are in that of System.
        upid: i32 [None, Process],
        /// Type of the object; null if the trace does not name the types.
        object_type: Option<Sym> [None, Kind],
        /// Number of the type.
        type_number: i32 [None, Other],
        /// Driver that opened them; null for the process itself and Windows, and without stacks.
        driver: Option<Sym> [None, Name],
        /// Handles opened, duplicates into the process included.
        creates: i64 [Count, Count],
        /// Of these, handles that were closed, but not those that ended with the process.
        closes: i64 [Count, Count],
        /// Of these, handles that are open at the end.
        outstanding: i64 [Count, Count],
        /// Of those that are open at the end, handles opened in the first quarter of the trace.
        quarter1_count: i64 [Count, Count],
        /// In the second quarter.
        quarter2_count: i64 [Count, Count],
        /// In the third quarter.
        quarter3_count: i64 [Count, Count],
        /// In the last quarter.
        quarter4_count: i64 [Count, Count],
    }
}

define_table! {
    /// Handles that programs opened in the trace, by process, type and the library that asked for them.
    pub table HANDLE_LIBRARY: HandleLibraryRow = "handle_library" {
        version: 1,
        /// Process in whose table they are.
        upid: i32 [None, Process],
        /// Number of the type (table `handle_leak` has its name).
        type_number: i32 [None, Other],
        /// Innermost module on the stack that is not of Windows' own libraries: the program itself, or a library in it.
        library: Sym [None, Name],
        /// Handles opened, duplicates into the process included.
        creates: i64 [Count, Count],
        /// Of these, handles that were closed, but not those that ended with the process.
        closes: i64 [Count, Count],
        /// Of these, handles that are open at the end.
        outstanding: i64 [Count, Count],
        /// Of those that are open at the end, handles opened in the last quarter of the trace.
        quarter4_count: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&POOL_LEAK, &COMMIT_LEAK, &HANDLE_OPENER, &HANDLE_LIBRARY],
    reads: reads::<(QuarterRows, ProcessRow, PoolRow, VirtualAllocRow, HandleRow, FactsRows, StacksRows)>,
    on_demand: false,
    make,
};

/// What one tag, or one function, took and did not give back.
#[derive(Default)]
struct Taken {
    count: i64,
    bytes: i64,
    left: i64,
    left_bytes: i64,
    quarters: [i64; 4],
    /// Bytes until the end of the process, by the quarter of its life.
    until_exit: [i64; 4],
}

impl Taken {
    fn add(&mut self, bytes: i64, left: i64, quarter: usize) {
        add(&mut self.count, 1);
        add(&mut self.bytes, bytes);
        if left > 0 {
            add(&mut self.left, 1);
            add(&mut self.left_bytes, left);
            if let Some(sum) = self.quarters.get_mut(quarter) {
                add(sum, left);
            }
        }
    }
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let any = !db.read_or_empty::<PoolRow>().is_empty()
        || !db.read_or_empty::<VirtualAllocRow>().is_empty()
        || !db.read_or_empty::<HandleRow>().is_empty();
    let (facts, stacks) = if any { (Facts::read(db, false), Stacks::read(db)) } else { Default::default() };
    let fold = Fold { facts, stacks, groups: Vec::new() };
    let dark = Dark::read(db);
    let trace = Quarters::of_trace(db, &dark);
    let quarter = |ts_ns| trace.at(ts_ns, &dark);
    let mut tables = vec![pool(db, memory, &fold, quarter)?, commit(db, memory, &fold, &dark, quarter)?];
    tables.extend(handles(db, memory, &fold, quarter)?);
    Ok(tables)
}

/// `quarter`: which quarter of the trace a time is in.
fn pool(
    db: &Database,
    memory: &Memory,
    fold: &Fold,
    quarter: impl Fn(i64) -> usize,
) -> etwhy_table::Result<Table> {
    let facts = &fold.facts;
    let mut sums: BTreeMap<(String, String, u32), Taken> = BTreeMap::new();
    let mut drivers: BTreeMap<i64, u32> = BTreeMap::new();
    for row in &db.read_or_empty::<PoolRow>() {
        let driver = *drivers
            .entry(row.stack_id().unwrap_or(-1))
            .or_insert_with_key(|&stack| fold.owner(&fold.stacks.get(stack)));
        let bytes = row.size_bytes();
        let left = if row.freed_by().is_none() { bytes } else { 0 };
        let key = (row.tag(), row.pool());
        let taken = sums.entry((key.0.to_owned(), key.1.to_owned(), driver)).or_default();
        taken.add(bytes, left, quarter(row.ts_ns()));
    }
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<PoolLeakRow>::new(memory);
    for ((tag, pool, driver), taken) in sums {
        let name = facts.module(driver).map_or("", |module| module.name.as_str());
        let [quarter1_bytes, quarter2_bytes, quarter3_bytes, quarter4_bytes] = taken.quarters;
        rows.push(PoolLeakRow {
            tag: strings.intern(&tag),
            pool: strings.intern(&pool),
            driver: text(&mut strings, name),
            allocs: taken.count,
            total_bytes: taken.bytes,
            outstanding_count: taken.left,
            outstanding_bytes: taken.left_bytes,
            quarter1_bytes,
            quarter2_bytes,
            quarter3_bytes,
            quarter4_bytes,
        });
    }
    rows.finish(&freeze(strings, db)?)
}

fn commit(
    db: &Database,
    memory: &Memory,
    fold: &Fold,
    dark: &Dark,
    quarter: impl Fn(i64) -> usize,
) -> etwhy_table::Result<Table> {
    let (facts, stacks) = (&fold.facts, &fold.stacks);
    let mut sums: BTreeMap<(i64, u32), Taken> = BTreeMap::new();
    let mut functions: BTreeMap<i64, u32> = BTreeMap::new();
    let processes = db.read_or_empty::<ProcessRow>();
    let life = |row: RowOf<'_, '_, ProcessRow>| {
        Some((row.upid(), Quarters::between(row.start_ns()?, row.end_ns()?, dark)))
    };
    let lives: BTreeMap<i64, Quarters> = processes.iter().filter_map(life).collect();
    for row in &db.read_or_empty::<VirtualAllocRow>() {
        let bytes = row.committed_bytes().unwrap_or(0);
        if bytes <= 0 {
            continue;
        }
        let function = *functions.entry(row.stack_id().unwrap_or(-1)).or_insert_with_key(|&stack| {
            let own = |frame: &&u32| !facts.is_system_library(**frame);
            stacks.get(stack).user.iter().find(own).map_or(NONE, |&frame| facts.function_of(frame))
        });
        let process = row.upid();
        let left = row.outstanding_bytes().unwrap_or(0);
        let taken = sums.entry((process, function)).or_default();
        taken.add(bytes, left, quarter(row.ts_ns()));
        if row.freed_by() == Some("exit") {
            let quarter = lives.get(&process).map_or(0, |life| life.at(row.ts_ns(), dark));
            if let Some(sum) = taken.until_exit.get_mut(quarter) {
                add(sum, bytes);
            }
        }
    }
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<CommitLeakRow>::new(memory);
    for ((upid, function), taken) in sums {
        let Some(upid) = id(upid) else { continue };
        let name = facts.functions.get(function as usize).map_or("", |(name, _)| name.as_str());
        let [quarter1_bytes, quarter2_bytes, quarter3_bytes, quarter4_bytes] = taken.quarters;
        let exit_bytes = taken.until_exit.iter().fold(0i64, |sum, bytes| sum.saturating_add(*bytes));
        let much = |bytes: &&i64| **bytes > 0 && bytes.saturating_mul(10) >= exit_bytes;
        let steady = taken.until_exit.iter().filter(much).count() as i32;
        rows.push(CommitLeakRow {
            upid,
            function: text(&mut strings, name),
            allocs: taken.count,
            total_bytes: taken.bytes,
            outstanding_count: taken.left,
            outstanding_bytes: taken.left_bytes,
            quarter1_bytes,
            quarter2_bytes,
            quarter3_bytes,
            quarter4_bytes,
            exit_bytes,
            exit_quarters: if lives.contains_key(&i64::from(upid)) { steady } else { 0 },
        });
    }
    rows.finish(&freeze(strings, db)?)
}

/// Those of drivers, and those of libraries.
fn handles(
    db: &Database,
    memory: &Memory,
    fold: &Fold,
    quarter: impl Fn(i64) -> usize,
) -> etwhy_table::Result<[Table; 2]> {
    let (facts, stacks) = (&fold.facts, &fold.stacks);
    let mut strings = Strings::new();
    // Of each stack the driver and the library.
    let mut openers: BTreeMap<i64, (u32, u32)> = BTreeMap::new();
    let mut types: BTreeMap<i64, Sym> = BTreeMap::new();
    // By process, number of the type and driver: what is left, and how many were closed.
    let mut sums: BTreeMap<(i64, i64, u32), (Taken, i64)> = BTreeMap::new();
    // The same by library, of those that no driver opened.
    let mut libraries: BTreeMap<(i64, i64, u32), (Taken, i64)> = BTreeMap::new();
    for row in &db.read_or_empty::<HandleRow>() {
        let Some(upid) = row.upid() else { continue };
        if row.opened_by() == "rundown" {
            continue;
        }
        let number = row.type_number();
        if let Some(name) = row.object_type() {
            types.entry(number).or_insert_with(|| strings.intern(name));
        }
        let (driver, library) = *openers.entry(row.stack_id().unwrap_or(-1)).or_insert_with_key(|&stack| {
            let part = stacks.get(stack);
            let own = part.user.iter().find(|frame| !facts.is_system_library(**frame));
            (fold.owner(&part), own.map_or(NONE, |&frame| facts.module_of(frame)))
        });
        let count = |(taken, closes): &mut (Taken, i64)| {
            taken.add(1, i64::from(row.closed_by().is_none()), quarter(row.ts_ns()));
            add(closes, i64::from(row.closed_by() == Some("close")));
        };
        count(sums.entry((upid, number, driver)).or_default());
        if driver == NONE && library != NONE {
            count(libraries.entry((upid, number, library)).or_default());
        }
    }
    let mut rows = TableBuilder::<HandleOpenerRow>::new(memory);
    for ((upid, number, driver), (taken, closes)) in sums {
        let (Some(upid), Some(type_number)) = (id(upid), id(number)) else { continue };
        let name = fold.facts.module(driver).map_or("", |module| module.name.as_str());
        let [quarter1_count, quarter2_count, quarter3_count, quarter4_count] = taken.quarters;
        rows.push(HandleOpenerRow {
            upid,
            object_type: types.get(&number).copied(),
            type_number,
            driver: text(&mut strings, name),
            creates: taken.count,
            closes,
            outstanding: taken.left,
            quarter1_count,
            quarter2_count,
            quarter3_count,
            quarter4_count,
        });
    }
    let mut of_libraries = TableBuilder::<HandleLibraryRow>::new(memory);
    for ((upid, number, library), (taken, closes)) in libraries {
        let (Some(upid), Some(type_number)) = (id(upid), id(number)) else { continue };
        let Some(module) = facts.module(library).filter(|module| !module.name.is_empty()) else { continue };
        of_libraries.push(HandleLibraryRow {
            upid,
            type_number,
            library: strings.intern(&module.name),
            creates: taken.count,
            closes,
            outstanding: taken.left,
            quarter4_count: taken.quarters[3],
        });
    }
    let strings = freeze(strings, db)?;
    Ok([rows.finish(&strings)?, of_libraries.finish(&strings)?])
}

#[cfg(test)]
mod tests {
    use crate::fold::tests::{derived, sampled, shown, table};
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    #[test]
    fn what_is_left_by_quarter_and_driver() {
        use Value::{I64 as N, Null, Text as T};
        let mut db = sampled(&[
            ("thread", 1, 1, "ntoskrnl.exe!ExAllocatePool2 leakdrv.sys!Work | ntdll.dll!NtX app.exe!Main"),
            (
                "thread",
                1,
                1,
                "ntoskrnl.exe!NtAllocateVirtualMemory | ntdll.dll!NtX app.exe!Grow app.exe!Main",
            ),
        ]);
        let columns = "first_ns last_ns";
        db.insert(table("trace", columns, &[vec![N(100), N(500)]]));
        let columns = "ts_ns tag pool size_bytes stack_id freed_by";
        let pool = |ts: i64, size: i64, stack: Value<'static>, freed: Value<'static>| {
            vec![N(ts), T("Leak"), T("nonpaged"), N(size), stack, freed]
        };
        let rows = [
            pool(100, 1, N(0), Null),
            pool(150, 2, N(0), T("free")),
            pool(210, 4, N(0), Null),
            pool(499, 8, N(0), Null),
            pool(500, 16, N(0), Null),
            pool(300, 32, Null, Null),
        ];
        db.insert(table("pool", columns, &rows));
        let columns = "ts_ns upid committed_bytes outstanding_bytes stack_id freed_by";
        let exits = |ts: i64, upid: i64| vec![N(ts), N(upid), N(16), N(0), Null, T("exit")];
        let rows = [
            vec![N(100), N(7), N(10), N(4), N(1), Null],
            vec![N(400), N(7), N(20), N(0), N(1), T("release")],
            vec![N(400), N(7), Null, Null, N(1), Null],
            vec![N(400), N(7), N(5), N(5), Null, Null],
            exits(210, 8),
            exits(230, 8),
            exits(250, 8),
            exits(270, 8),
            exits(110, 9),
        ];
        let lives = [(8, N(200)), (9, Null)].map(|(upid, start)| vec![N(upid), start, N(280)]);
        db.insert(table("process", "upid start_ns end_ns", &lives));
        db.insert(table("virtual_alloc", columns, &rows));
        derived(&mut db, &["pool_leak", "commit_leak"]);
        let numbers = "allocs total_bytes outstanding_count outstanding_bytes \
                       quarter1_bytes quarter2_bytes quarter3_bytes quarter4_bytes";
        let read = |name, who| shown(db.get(name).unwrap(), &format!("{who} {numbers}"), 1);
        read("pool_leak", "driver").are(&["leakdrv.sys 5 31 4 29 1 4 0 24", "- 1 32 1 32 0 0 32 0"]);
        read("commit_leak", "function").are(&[
            "app.exe!Grow 2 30 1 4 4 0 0 0",
            "- 1 5 1 5 0 0 0 5",
            "- 4 64 0 0 0 0 0 0",
            "- 1 16 0 0 0 0 0 0",
        ]);
        let exits = shown(db.get("commit_leak").unwrap(), "upid exit_bytes exit_quarters", 0);
        exits.are(&["7 0 0", "7 0 0", "8 64 4", "9 16 0"]);
    }

    #[test]
    fn pool_is_of_the_driver_that_asked_for_it_not_of_who_passed_work_on() {
        use Value::{I64 as N, Null, Text as T};
        let mut db = sampled(&[
            (
                "thread",
                1,
                1,
                "ntoskrnl.exe!ExAllocatePool2 tcpip.sys!TcpCreateTcb ndis.sys!NdisMIndicateReceiveNetBufferLists nicx.sys!Receive | ntdll.dll!NtX app.exe!Main",
            ),
            ("thread", 1, 1, "ntoskrnl.exe!ExAllocatePool2 nicx.sys!Receive | ntdll.dll!NtX app.exe!Main"),
            (
                "thread",
                1,
                1,
                "ntoskrnl.exe!ExAllocatePool2 Ntfs.sys!NtfsCommonCreate ntoskrnl.exe!IofCallDriver fltx.sys!Create | ntdll.dll!NtX app.exe!Main",
            ),
        ]);
        db.insert(table("trace", "first_ns last_ns", &[vec![N(100), N(500)]]));
        let columns = "ts_ns tag pool size_bytes stack_id freed_by";
        let rows = [(0, 1), (1, 2), (2, 4)]
            .map(|(stack, size)| vec![N(100), T("TcpE"), T("nonpaged"), N(size), N(stack), Null]);
        db.insert(table("pool", columns, &rows));
        derived(&mut db, &["pool_leak"]);
        shown(db.get("pool_leak").unwrap(), "driver outstanding_bytes", 1).are(&["nicx.sys 2", "- 5"]);
    }

    #[test]
    fn handles_are_those_of_the_driver_that_asked_for_them() {
        use Value::{I64 as N, Null, Text as T};
        let mut db = sampled(&[
            // Work of a driver in a thread of System.
            (
                "thread",
                1,
                1,
                "ntoskrnl.exe!ObpCreateHandle ntoskrnl.exe!NtCreateFile ntoskrnl.exe!KiSystemServiceCopyEnd \
                 ntoskrnl.exe!ZwCreateFile sync.sys!Scan ntoskrnl.exe!IopProcessWorkItem",
            ),
            // A driver that hooks the system call of a program hands it on.
            (
                "thread",
                1,
                1,
                "ntoskrnl.exe!ObpCreateHandle ntoskrnl.exe!NtCreateFile hook.sys!Watch \
                 ntoskrnl.exe!KiSystemServiceCopyEnd | ntdll.dll!NtCreateFile app.exe!Open",
            ),
            // The program itself.
            ("thread", 1, 1, "ntoskrnl.exe!NtCreateFile | ntdll.dll!NtCreateFile app.exe!Open"),
        ]);
        db.insert(table("trace", "first_ns last_ns", &[vec![N(100), N(500)]]));
        let columns = "ts_ns upid object_type type_number stack_id opened_by closed_by";
        let handle = |ts: i64, upid: i64, stack: Value<'static>, by: &'static str, closed: Value<'static>| {
            vec![N(ts), N(upid), T("File"), N(37), stack, T(by), closed]
        };
        let rows = [
            handle(50, 0, Null, "rundown", Null),
            handle(100, 0, N(0), "create", Null),
            handle(210, 0, N(0), "create", Null),
            handle(220, 0, N(0), "duplicate", T("close")),
            handle(499, 0, N(0), "create", Null),
            handle(300, 7, N(1), "create", Null),
            handle(310, 7, N(2), "create", T("exit")),
            handle(320, 7, Null, "create", Null),
            vec![N(330), Null, T("File"), N(37), N(0), T("create"), T("unseen")],
        ];
        db.insert(table("handle", columns, &rows));
        derived(&mut db, &["handle_opener", "handle_library"]);
        let columns = "upid object_type type_number driver creates closes outstanding \
                       quarter1_count quarter2_count quarter3_count quarter4_count";
        let rows = shown(db.get("handle_opener").unwrap(), columns, 1);
        rows.are(&["0 File 37 sync.sys 4 1 3 1 1 0 1", "7 File 37 - 3 0 2 0 0 2 0"]);
        let columns = "upid type_number library creates closes outstanding quarter4_count";
        shown(db.get("handle_library").unwrap(), columns, 1).are(&["7 37 app.exe 2 0 1 0"]);
    }
}
