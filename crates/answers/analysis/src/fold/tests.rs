//! Tables of costs, from stacks whose sums are easy to see.

use super::*;
use crate::derive;
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Table, TableSpec, Unit, Value,
};
use etwhy_testkit::Are as _;

/// The declaration of a table that ships.
fn shipped(name: &str) -> Option<&'static TableSpec> {
    let traces = etwhy_trace::catalog::ALL.iter().flat_map(|spec| spec.tables);
    let derived = crate::derived::ALL.iter().flat_map(|spec| spec.tables);
    let beside = [etwhy_evtx::tables::ALL, etwhy_audit::table::ALL, etwhy_counters::tables::ALL];
    let beside = beside.into_iter().flatten();
    traces.chain(derived).chain(beside).copied().find(|spec| spec.name == name)
}

/// The names of columns, separated by blanks; or with types, for tables that do not ship.
pub(crate) trait Columns {
    fn list(self) -> Vec<(&'static str, Option<ColumnType>)>;
}

impl Columns for &'static str {
    fn list(self) -> Vec<(&'static str, Option<ColumnType>)> {
        self.split_whitespace().map(|name| (name, None)).collect()
    }
}

impl Columns for &Vec<(&'static str, ColumnType)> {
    fn list(self) -> Vec<(&'static str, Option<ColumnType>)> {
        self.iter().map(|&(name, ty)| (name, Some(ty))).collect()
    }
}

impl<const N: usize> Columns for &[(&'static str, ColumnType); N] {
    fn list(self) -> Vec<(&'static str, Option<ColumnType>)> {
        self.iter().map(|&(name, ty)| (name, Some(ty))).collect()
    }
}

/// A table with these columns. One that ships has its other columns too, without values.
pub(crate) fn table(name: &'static str, columns: impl Columns, rows: &[Vec<Value<'_>>]) -> Table {
    let columns = columns.list();
    let given = columns.iter().map(|&(name, ty)| ColumnSpec {
        name: name.into(),
        ty: ty.unwrap_or(ColumnType::I64),
        unit: Unit::None,
        role: Role::Other,
        doc: "For a test.".into(),
        nullable: true,
    });
    let mut all: Vec<ColumnSpec> = match shipped(name) {
        Some(spec) => spec.columns.to_vec(),
        None => given.collect(),
    };
    all.iter_mut().for_each(|column| column.nullable = true);
    let known = |name: &str| all.iter().any(|column| column.name == name);
    assert!(columns.iter().all(|(column, _)| known(column)), "{name}: {columns:?}");
    let from = |column: &ColumnSpec| columns.iter().position(|(name, _)| *name == column.name);
    let from: Vec<Option<usize>> = all.iter().map(from).collect();
    let spec = TableSpec {
        name: name.into(),
        title: name.into(),
        doc: name.into(),
        columns: all.into(),
        sorted_by: None,
        version: 1,
        evidence: Evidence::Documented,
    };
    let mut builder = AdHocBuilder::new(spec, &Memory::unlimited());
    for row in rows {
        let cells: Vec<Value<'_>> =
            from.iter().map(|at| at.and_then(|at| row.get(at)).copied().unwrap_or(Value::Null)).collect();
        builder.push(&cells).unwrap();
    }
    builder.finish().unwrap()
}

/// Samples as tables: class, process, milliseconds, and the frames innermost first; those of the kernel stand before
/// the bar.
pub(crate) fn sampled(samples: &[(&str, i64, i64, &str)]) -> Database {
    sampled_in(&[], samples)
}

/// The same with these processes, by name and id.
pub(crate) fn sampled_in(processes: &[(&'static str, i64)], samples: &[(&str, i64, i64, &str)]) -> Database {
    const MS: i64 = 1_000_000;
    let mut frames: Vec<(String, bool)> = Vec::new();
    let (mut stacks, mut places, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for (number, &(class, upid, ms, text)) in samples.iter().enumerate() {
        let number = number as i64;
        let (kernel, user) = text.split_once('|').unwrap_or((text, ""));
        let split = |part: &str| part.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (kernel, user) = (split(kernel), split(user));
        let depth = (kernel.len() + user.len()) as i64;
        let of_kernel = kernel.len();
        let mut root = Value::Null;
        for (at, label) in kernel.into_iter().chain(user).enumerate() {
            let frame = (label, at < of_kernel);
            let id = frames.iter().position(|f| *f == frame).unwrap_or_else(|| {
                frames.push(frame);
                frames.len() - 1
            });
            places.push(vec![Value::I64(id as i64)]);
            root = Value::I64(id as i64);
        }
        let process = Value::I64(upid);
        stacks.push(vec![Value::I64(depth), Value::I64(of_kernel as i64), process, Value::Bool(false), root]);
        let stack = if depth > 0 { Value::I64(number) } else { Value::Null };
        costs.push(vec![Value::Text(class), Value::I64(upid), stack, Value::I64(ms), Value::I64(ms * MS)]);
    }
    let frames: Vec<Vec<Value<'_>>> = frames
        .iter()
        .map(|(label, kernel)| {
            let (module, function) =
                label.split_once('!').map_or((label.as_str(), None), |(m, f)| (m, Some(f)));
            let tag = etwhy_knowledge::stack_tag(module, function.unwrap_or("")).map(|t| t.category);
            let option = |text: Option<&'static str>| text.map_or(Value::Null, Value::Text);
            vec![
                Value::Text(module),
                Value::Text(label),
                function.map_or(Value::Null, Value::Text),
                Value::Text(if *kernel { "kernel" } else { "user" }),
                option(tag),
                Value::Null,
                Value::Null,
            ]
        })
        .collect();
    let mut db = Database::new();
    let columns = "class upid stack_id samples weight_ns";
    db.insert(table("stack_cost", columns, &costs));
    let columns = "depth kernel_depth upid leaf_only root_frame_id";
    db.insert(table("stack", columns, &stacks));
    db.insert(table("stack_frame", "frame_id", &places));
    let columns = "module label function kind tag image_id category";
    db.insert(table("frame", columns, &frames));
    let processes: Vec<Vec<Value<'_>>> =
        processes.iter().map(|&(name, pid)| vec![Value::Text(name), Value::I64(pid)]).collect();
    db.insert(table("process", "name pid", &processes));
    derived(&mut db, &["module_cost", "function_cost", "driver_cost", "tag_cost", "api_cost"]);
    db
}

/// Rows of a table as text: the columns named, with blanks between, `-` for null, times in so many nanoseconds.
pub(crate) fn shown(table: &Table, columns: &str, unit_ns: i64) -> Vec<String> {
    let cell = |row: u32, column: &str| match table.value(row, column) {
        Value::Null => "-".to_owned(),
        Value::I64(n) if column.ends_with("_ns") => (n / unit_ns).to_string(),
        Value::I64(n) => n.to_string(),
        Value::F64(n) => n.to_string(),
        Value::Text(text) => text.to_owned(),
        other => format!("{other:?}"),
    };
    let line = |row| columns.split_whitespace().map(|c| cell(row, c)).collect::<Vec<_>>().join(" ");
    (0..table.rows() as u32).map(line).collect()
}

/// The derived tables of these names.
pub(crate) fn derived(db: &mut Database, names: &[&str]) {
    let wanted = names.iter().map(|name| (*name).to_owned()).collect();
    derive(db, Some(&wanted), &Memory::default(), 1).unwrap();
}

/// Rows of a table as text, times in ms.
fn rows(db: &Database, name: &str, columns: &str) -> Vec<String> {
    shown(db.get(name).unwrap(), columns, 1_000_000)
}

const STACKS: &[(&str, i64, i64, &str)] = &[
    // A lock of the kernel that a filter driver takes, below the event of a system call.
    (
        "thread",
        1,
        30,
        "ntoskrnl.exe!ExfAcquireRundownProtection tedrdrv.sys!Hook ntoskrnl.exe!EtwpLogKernelEvent \
         ntoskrnl.exe!PerfInfoLogSysCallEntry | ntdll.dll!NtDelayExecution KernelBase.dll!SleepEx a.exe!Spin \
         a.exe!Spin ntdll.dll!RtlUserThreadStart",
    ),
    (
        "thread",
        1,
        5,
        "tedrdrv.sys!Hook ntoskrnl.exe!EtwpLogKernelEvent ntoskrnl.exe!PerfInfoLogSysCallEntry | \
                      ntdll.dll!NtDelayExecution KernelBase.dll!SleepEx a.exe!Spin",
    ),
    (
        "thread",
        1,
        4,
        "ntoskrnl.exe!NtDelayExecution | ntdll.dll!NtDelayExecution KernelBase.dll!SleepEx a.exe!Spin",
    ),
    // Two drivers: the inner one is charged. The filter manager is nobody.
    (
        "thread",
        1,
        7,
        "ntoskrnl.exe!memcpy stornvme.sys!StartIo storport.sys!RaidUnit Ntfs.sys!NtfsRead WdFilter.sys!MpPreRead \
         fltmgr.sys!FltpPerformPreCallbacks | ntdll.dll!NtReadFile a.exe!Load",
    ),
    ("thread", 1, 9, " | a.exe!Work"),
    ("thread", 1, 2, ""),
    // A DPC that interrupted a thread in a filter driver is not that driver's.
    (
        "dpc",
        1,
        8,
        "tcpip.sys!TcpReceive ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KiRetireDpcList tedrdrv.sys!Hook \
                   | a.exe!Work",
    ),
    (
        "dpc",
        2,
        3,
        "nic.sys!Poll ndis.sys!ndisInterruptDpc ntoskrnl.exe!KiExecuteAllDpcs intelppm.sys!MWaitIdle",
    ),
];

#[test]
fn samples_are_charged_once() {
    let db = sampled(STACKS);
    let columns = "class upid driver charged_ns exclusive_ns os_below_ns inclusive_ns";
    rows(&db, "driver_cost", columns).are(&[
        "thread 1 tedrdrv.sys 35 5 30 35",
        "thread 1 - 15 0 0 15",
        "thread 1 stornvme.sys 7 0 7 7",
        "thread 1 WdFilter.sys 0 0 0 7",
        "dpc 1 - 8 0 0 8",
        "dpc 2 nic.sys 3 3 0 3",
    ]);
    let vendor = |driver: &str| {
        let all = rows(&db, "driver_cost", "driver vendor category");
        all.into_iter().find(|row| row.starts_with(driver)).unwrap()
    };
    assert_eq!(vendor("tedrdrv.sys"), "tedrdrv.sys Palo Alto Networks EDR");
    assert_eq!(vendor("WdFilter.sys"), "WdFilter.sys Microsoft antivirus");
}

#[test]
fn a_file_system_hands_its_requests_to_a_disk() {
    let to_disk = |kernel: &str| {
        let db = sampled(&[("thread", 1, 10, &format!("{kernel} | ntdll.dll!NtReadFile a.exe!Load"))]);
        let mut rows = rows(&db, "driver_cost", "driver passed_on_ns to_disk_ns");
        rows.retain(|row| !row.starts_with('-'));
        rows.sort();
        rows.join(", ")
    };
    let below = "FltMgr.sys!FltpDispatch ntoskrnl.exe!IofCallDriver ntoskrnl.exe!NtReadFile";
    let call = "ntoskrnl.exe!IofCallDriver";
    // A file system of another maker, a filter that was put between, and one in front of Windows' file system.
    let disk = to_disk(&format!("disk.sys!DiskReadWrite {call} btr.sys!Read {call} {below}"));
    assert_eq!(disk, "btr.sys 10 10");
    let both =
        to_disk(&format!("disk.sys!DiskReadWrite {call} btr.sys!Read {call} old.sys!Pass {call} {below}"));
    assert_eq!(both, "btr.sys 10 10, old.sys 10 0");
    let filter = to_disk(&format!(
        "disk.sys!DiskReadWrite {call} Ntfs.sys!NtfsRead {call} old.sys!Pass {call} {below}"
    ));
    assert_eq!(filter, "old.sys 10 0");
    // Directly, without a function of the kernel between.
    assert_eq!(to_disk(&format!("volmgr.sys!VmRead btr.sys!Read {call} {below}")), "btr.sys 10 10");
    // A filter of volumes, below the file system.
    let volume = to_disk(&format!(
        "disk.sys!DiskReadWrite {call} cbt.sys!Read {call} Ntfs.sys!NtfsRead {call} {below}"
    ));
    assert_eq!(volume, "cbt.sys 10 0");
}

/// Who is charged with a kernel stack, and who is only in the path; `-` where nobody is.
fn charged(kernel: &str) -> (String, Vec<String>) {
    let db = sampled(&[("thread", 1, 10, &format!("{kernel} | ntdll.dll!NtReadFile a.exe!Load"))]);
    let rows = rows(&db, "driver_cost", "driver charged_ns passed_on_ns");
    let with =
        |end: &str| rows.iter().filter_map(|row| Some(row.strip_suffix(end)?.to_owned())).collect::<Vec<_>>();
    (with(" 10 0").join("+"), with(" 0 10"))
}

#[test]
fn work_that_is_handed_on_is_not_charged() {
    for (kernel, driver, in_the_path) in [
        // A network filter that inspects, asks for memory, or merely indicates.
        ("avnet.sys!Match avnet.sys!Receive ndis.sys!ndisCallReceiveHandler", "avnet.sys", ""),
        (
            "ntoskrnl.exe!ExAllocatePoolWithTag avnet.sys!Receive ndis.sys!ndisCallReceiveHandler",
            "avnet.sys",
            "",
        ),
        (
            "tcpip.sys!TcpReceive ndis.sys!ndisMIndicateNetBufferListsToOpen ndis.sys!NdisFIndicateReceiveNetBufferLists \
             pass.sys!Receive ndis.sys!ndisCallReceiveHandler",
            "-",
            "pass.sys",
        ),
        // Without names of the framework's functions, another layer below it tells.
        ("tcpip.sys pass.sys ndis.sys", "-", "pass.sys"),
        // A legacy filter hands an IRP to the file system; three of them, of which the middle one works.
        (
            "Ntfs.sys!NtfsCommonRead ntoskrnl.exe!IofCallDriver legacy.sys!Dispatch ntoskrnl.exe!NtReadFile",
            "-",
            "legacy.sys",
        ),
        (
            "Ntfs.sys!NtfsFsdRead legacy.sys!Dispatch ntoskrnl.exe!IofCallDriver ntoskrnl.exe!NtReadFile",
            "-",
            "legacy.sys",
        ),
        (
            "Ntfs.sys!NtfsCommonRead ntoskrnl.exe!IofCallDriver c.sys!Read ntoskrnl.exe!IofCallDriver b.sys!Read \
             ntoskrnl.exe!IofCallDriver a.sys!Read ntoskrnl.exe!NtReadFile",
            "-",
            "a.sys b.sys c.sys",
        ),
        (
            "b.sys!Decrypt b.sys!Read ntoskrnl.exe!IofCallDriver a.sys!Read ntoskrnl.exe!NtReadFile",
            "b.sys",
            "a.sys",
        ),
        // A request of its own is on its behalf, although an IRP goes down inside of it.
        (
            "Ntfs.sys!NtfsCommonRead ntoskrnl.exe!IofCallDriver ntoskrnl.exe!IopSynchronousServiceTail ntoskrnl.exe!NtReadFile \
             ntoskrnl.exe!KiSystemServiceCopyEnd ntoskrnl.exe!KiServiceInternal ntoskrnl.exe!ZwReadFile av.sys!Scan \
             fltmgr.sys!FltpPerformPostCallbacks",
            "av.sys",
            "",
        ),
        (
            "Ntfs.sys!NtfsCommonRead fltmgr.sys!FltPerformSynchronousIo av.sys!Read fltmgr.sys!FltpDispatch",
            "-",
            "av.sys",
        ),
        // A hook calls what it was put in front of; a driver's own call of the same function is its own.
        ("ntoskrnl.exe!NtReadFile hook.sys!OnRead ntoskrnl.exe!KiSystemServiceCopyEnd", "-", "hook.sys"),
        ("ntoskrnl.exe!NtReadFile hook.sys!Worker ntoskrnl.exe!PspSystemThreadStartup", "hook.sys", ""),
        ("hook.sys!Log hook.sys!OnRead ntoskrnl.exe!KiSystemServiceCopyEnd", "hook.sys", ""),
    ] {
        let (owner, mut path) = charged(kernel);
        path.sort();
        assert_eq!((owner.as_str(), path.join(" ").as_str()), (driver, in_the_path), "{kernel}");
    }
}

#[test]
fn exclusive_time_is_all_time() {
    let db = sampled(STACKS);
    let total: i64 = STACKS.iter().map(|s| s.2).sum();
    for name in ["module_cost", "function_cost"] {
        let table = db.get(name).unwrap();
        let sum = |column: &str| (0..table.rows() as u32).filter_map(|r| table.i64(r, column)).sum::<i64>();
        assert_eq!(sum("exclusive_ns"), total * 1_000_000, "{name}");
    }
    let modules = rows(&db, "module_cost", "class upid module os inclusive_ns exclusive_ns samples");
    // Twice on the stack counts once.
    assert!(modules.contains(&"thread 1 a.exe - 55 9 55".to_owned()), "{modules:?}");
    assert!(modules.contains(&"thread 1 ntoskrnl.exe Bool(true) 46 41 46".to_owned()), "{modules:?}");
    assert!(modules.contains(&"thread 1 tedrdrv.sys Bool(false) 35 5 35".to_owned()), "{modules:?}");
    assert!(modules.contains(&"thread 1 - - 2 2 2".to_owned()), "{modules:?}");
    // What a DPC interrupted is not on its stack.
    assert!(
        !modules.iter().any(|row| row.starts_with("dpc 1 a.exe") || row.starts_with("dpc 1 tedrdrv.sys"))
    );
    let functions = rows(&db, "function_cost", "class function inclusive_ns exclusive_ns");
    assert!(functions.contains(&"thread a.exe!Spin 39 0".to_owned()), "{functions:?}");
}

#[test]
fn tracing_of_system_calls_by_api() {
    let db = sampled(STACKS);
    rows(&db, "api_cost", "api syscall_stub tracing tag owner cost_ns").are(&[
        "KernelBase.dll!SleepEx ntdll.dll!NtDelayExecution syscall lock tedrdrv.sys 30",
        "- - - - - 11",
        "ntdll.dll!NtReadFile ntdll.dll!NtReadFile - memory stornvme.sys 7",
        "KernelBase.dll!SleepEx ntdll.dll!NtDelayExecution syscall etw tedrdrv.sys 5",
        "KernelBase.dll!SleepEx ntdll.dll!NtDelayExecution - spin - 4",
    ]);
}

#[test]
fn tags_count_once_and_the_innermost_alone() {
    let db = sampled(STACKS);
    let columns = "level class upid category owner inclusive_ns exclusive_ns";
    let mut found = rows(&db, "tag_cost", columns);
    found.retain(|row| row.starts_with("category thread"));
    found.sort();
    found.are(&[
        "category thread 1 etw tedrdrv.sys 35 5",
        "category thread 1 filter stornvme.sys 7 0",
        "category thread 1 integrity stornvme.sys 7 0",
        "category thread 1 lock tedrdrv.sys 30 30",
        "category thread 1 memory stornvme.sys 7 7",
        "category thread 1 spin - 4 4",
        "category thread 1 spin tedrdrv.sys 35 0",
    ]);
    let tags = rows(&db, "tag_cost", "level tag inclusive_ns exclusive_ns");
    assert!(tags.contains(&"tag ntoskrnl.exe!PerfInfoLogSysCallEntry 35 0".to_owned()), "{tags:?}");
}

#[test]
fn openmp_threads_spin_or_work() {
    let barrier = "libiomp5md.dll!__kmp_hyper_barrier_release libiomp5md.dll!__kmp_launch_worker";
    let spin = format!(" | libiomp5md.dll!__kmp_wait_template {barrier}");
    let work =
        " | render.exe!Region libiomp5md.dll!__kmp_invoke_microtask libiomp5md.dll!__kmp_launch_worker";
    let db = sampled(&[("thread", 1, 90, &spin), ("thread", 1, 10, work)]);
    let tags = rows(&db, "tag_cost", "level category inclusive_ns exclusive_ns");
    assert!(tags.contains(&"category spin 90 90".to_owned()), "{tags:?}");
    assert!(tags.contains(&"category openmp 100 10".to_owned()), "{tags:?}");
}

/// What `system_work` says of stacks on a thread of the System process.
fn system_work(stacks: &[&str]) -> Vec<String> {
    let samples: Vec<(&str, i64, i64, &str)> = stacks.iter().map(|stack| ("thread", 1, 10, *stack)).collect();
    let db = sampled_in(&[("Idle", 0), ("System", 4)], &samples);
    rows(&db, "system_work", "whose driver routine queued cpu_ns passed_on_ns")
}

#[test]
fn queued_work_is_the_drivers_whose_routine_runs() {
    let base =
        "ntoskrnl.exe!ExpWorkerThread ntoskrnl.exe!PspSystemThreadStartup ntoskrnl.exe!KiStartSystemThread";
    for (stack, expected) in [
        (
            "a.sys!Hash a.sys!Work ntoskrnl.exe!IopProcessWorkItem BASE",
            "driver a.sys a.sys!Work Bool(true) 10 0",
        ),
        // What it asks Windows and other drivers for is its own.
        ("b.sys!Encrypt a.sys!Work BASE", "driver a.sys a.sys!Work Bool(true) 10 0"),
        ("ntoskrnl.exe!ExAllocatePool2 a.sys!Work BASE", "driver a.sys a.sys!Work Bool(true) 10 0"),
        (
            "a.sys!Evt Wdf01000.sys!FxWorkItem::WorkItemHandler Wdf01000.sys!FxWorkItem::WorkItemThunk \
             ntoskrnl.exe!IopProcessWorkItem BASE",
            "driver a.sys a.sys!Evt Bool(true) 10 0",
        ),
        ("a.sys!Loop ntoskrnl.exe!PspSystemThreadStartup", "driver a.sys a.sys!Loop Bool(false) 10 0"),
        // A request that it only hands on.
        (
            "Ntfs.sys!NtfsCommonWrite ntoskrnl.exe!IofCallDriver a.sys!Work ntoskrnl.exe!IopProcessWorkItem BASE",
            "driver a.sys a.sys!Work Bool(true) 0 10",
        ),
        // Windows' own work, whatever drivers it meets.
        (
            "a.sys!Write fltmgr.sys!FltpDispatch ntoskrnl.exe!IofCallDriver ntoskrnl.exe!CcWorkerThread BASE",
            "windows - ntoskrnl.exe!CcWorkerThread Bool(false) 10 0",
        ),
        (
            "a.sys!Write ntoskrnl.exe!MiMappedPageWriter ntoskrnl.exe!PspSystemThreadStartup",
            "windows - ntoskrnl.exe!MiMappedPageWriter Bool(false) 10 0",
        ),
        (
            "a.sys!Receive ndis.sys!ndisPeriodicReceivesWorker ntoskrnl.exe!PspSystemThreadStartup",
            "windows - ndis.sys!ndisPeriodicReceivesWorker Bool(false) 10 0",
        ),
        // Nothing tells.
        ("", "unknown - - Bool(false) 10 0"),
        ("a.sys!Work", "unknown - - Bool(false) 10 0"),
        ("a.sys ntoskrnl.exe ntoskrnl.exe", "unknown - - Bool(false) 10 0"),
        (
            "a.sys!Work ntoskrnl.exe!~ExQueueWorkItem ntoskrnl.exe!PspSystemThreadStartup",
            "unknown - - Bool(false) 10 0",
        ),
    ] {
        assert_eq!(system_work(&[&stack.replace("BASE", base)]), [expected], "{stack}");
    }
}
