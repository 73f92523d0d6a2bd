//! Modules: each program, library and driver file of the trace once, and what is known of it.
//!
//! # How it is computed
//!
//! Rows of `image` that are the same file (name, path, version, size) become one. Vendor, category and altitudes come
//! from the knowledge base and from what the user adds to it, by file name, else by the company of the version
//! resource. CPU time is that of `module_cost`, by the name of the module and, for user images, the process.
//!
//! # What fools it
//!
//! A name says who registered it, not what runs: a renamed file is unknown, and a private build of another program
//! may bear a known name. `confidence` and `category_basis` say how far to trust a row. Where two builds of one
//! library are loaded, time goes to the one of the process that spent it; where one process has both, to the first.
//! `link_unix_ns` is left out where the time stamp of the PE header cannot be a date: Windows 10 and most new
//! compilers write a hash of the build there, which may by chance look like one.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::fold::module_cost::ModuleCostRow;
use crate::operators::{ProcessRow, process_names};
use etwhy_knowledge::{Classification, category_of, driver, is_os_driver, is_security, is_system_library};
use etwhy_table::{Database, Memory, RowOf, Rows, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{image::ImageRow, trace::TraceRow};
use foldhash::{HashMap, HashMapExt};

define_table! {
    /// Modules: each image file once, with its vendor, category and CPU time.
    ///
    /// One row per distinct name, path, version and size.
    pub table MODULE: ModuleRow = "module" {
        version: 1,
        /// File name.
        name: Sym [None, Name],
        /// Path, with drive letters where the trace maps them.
        path: Sym [None, Path],
        /// kernel or user.
        kind: Sym [None, Kind],
        /// Size in memory.
        size_bytes: i64 [Bytes, Bytes],
        /// Processes that load it; 0 for the kernel and its drivers.
        processes: i32 [Count, Count],
        /// Their names, the most frequent first (twenty at most).
        process_names: Option<Sym> [None, Message],
        /// File version from its version resource.
        file_version: Option<Sym> [None, Other],
        /// Vendor, from the knowledge base, else the company of the version resource, else that of libraries of Windows.
        vendor: Option<Sym> [None, Name],
        /// Product, from the knowledge base, else from the version resource.
        product: Option<Sym> [None, Name],
        /// Company from its version resource.
        company: Option<Sym> [None, Name],
        /// Description from its version resource.
        description: Option<Sym> [None, Name],
        /// Category (antivirus, EDR, backup, network, …), from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// What the category rests on: load-order-group (what the vendor asked Microsoft for), vendor, curated,
        /// LOLDrivers (an ordinary utility that had a vulnerable build), ETWAnalyzer, process-name, company, user.
        category_basis: Option<Sym> [None, Kind],
        /// How sure category and vendor are: high, medium, low (to be read as "probably").
        confidence: Option<Sym> [None, Kind],
        /// Keys of the sources, explained in the knowledge base.
        source: Option<Sym> [None, Other],
        /// The category is that of a product that watches, scans or restricts for security's sake.
        security: bool [None, Flag],
        /// Altitudes that a file system filter is registered at, higher ones see an operation first.
        altitudes: Option<Sym> [None, Other],
        /// Load-order groups that a file system filter is registered for.
        load_order_groups: Option<Sym> [None, Other],
        /// When it was linked, nanoseconds since 1970 UTC; null where the header has no date.
        link_unix_ns: Option<i64> [Ns, Other],
        /// CPU time with the module's code innermost; null without the table of costs.
        cpu_exclusive_ns: Option<i64> [Ns, Duration],
        /// CPU time with the module anywhere on the stack.
        cpu_inclusive_ns: Option<i64> [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&MODULE],
    reads: reads::<(ImageRow, ProcessRow, TraceRow, ModuleCostRow)>,
    on_demand: false,
    make,
};

/// Names of processes that a row lists.
const MOST_NAMES: usize = 20;

/// What makes a file distinct: name, path, version, size.
type File<'t> = (&'t str, &'t str, &'t str, i64);

/// Modules and what `image` says of them.
struct Modules<'t> {
    /// Row of `image` that was first, by module.
    first: Vec<u32>,
    /// Processes that load it, by module, each once.
    upids: Vec<Vec<i32>>,
    by_file: HashMap<File<'t>, usize>,
}

fn modules<'t>(images: &Rows<'t, ImageRow>) -> Modules<'t> {
    let mut found = Modules { first: Vec::new(), upids: Vec::new(), by_file: HashMap::new() };
    for (row, image) in (0u32..).zip(images) {
        let at = *found.by_file.entry(file(image)).or_insert(found.first.len());
        if at == found.first.len() {
            found.first.push(row);
            found.upids.push(Vec::new());
        }
        let upid = image.upid().and_then(|u| i32::try_from(u).ok());
        if let (Some(upids), Some(upid)) = (found.upids.get_mut(at), upid)
            && upids.last() != Some(&upid)
        {
            upids.push(upid);
        }
    }
    for upids in &mut found.upids {
        upids.sort_unstable();
        upids.dedup();
    }
    found
}

fn file<'t>(image: RowOf<'_, 't, ImageRow>) -> File<'t> {
    (image.name(), image.path(), image.file_version().unwrap_or(""), image.size_bytes())
}

/// For each row of the table `module`, whether one of the processes loads it.
pub fn loaded_by(db: &Database, wanted: &[bool]) -> Vec<bool> {
    let images = db.read_or_empty::<ImageRow>();
    let is_wanted = |upid: &i32| usize::try_from(*upid).ok().and_then(|u| wanted.get(u)) == Some(&true);
    modules(&images).upids.iter().map(|upids| upids.iter().any(is_wanted)).collect()
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<ModuleRow>::new(memory);
    let mut strings = Strings::new();
    let images = db.read_or_empty::<ImageRow>();
    let modules = modules(&images);
    let costs = costs(db, &images, &modules);
    let names = process_names(db);
    let end = trace_end(db);
    for (at, image) in modules.first.iter().filter_map(|&row| images.get(row)).enumerate() {
        let upids = modules.upids.get(at).map_or(&[][..], Vec::as_slice);
        let cost = costs.as_ref().map(|c| c.get(at).copied().unwrap_or_default());
        rows.push(module(image, (upids, &names), cost, end, &mut strings));
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

fn module(
    image: RowOf<'_, '_, ImageRow>,
    (upids, names): (&[i32], &[(String, i64)]),
    cost: Option<(i64, i64)>,
    trace_end: Option<i64>,
    strings: &mut Strings,
) -> ModuleRow {
    let (name, path, version, size_bytes) = file(image);
    let company = image.company().filter(|company| !company.is_empty());
    let fact = category_of(name, company.unwrap_or(""));
    let filter = driver(name);
    let kernel = image.upid().is_none();
    // Traces that were not merged have no version resources, but these names are known.
    let is_of_windows =
        if kernel { is_os_driver(name, company.unwrap_or("")) } else { is_system_library(name) };
    let windows = is_of_windows.then_some("Microsoft");
    // The column holds the same 32 bits with a sign.
    let stamp = image.time_date_stamp() as i32 as u32;
    let altitudes = filter.map(|f| f.altitudes().collect::<Vec<_>>().join(";"));
    let known = |text: fn(&Classification) -> &'static str| fact.as_ref().map(text).filter(|t| !t.is_empty());
    let mut sym = |text: Option<&str>| text.filter(|t| !t.is_empty()).map(|text| strings.intern(text));
    ModuleRow {
        name: sym(Some(name)).unwrap_or_default(),
        path: sym(Some(path)).unwrap_or_default(),
        kind: sym(Some(if kernel { "kernel" } else { "user" })).unwrap_or_default(),
        size_bytes,
        processes: i32::try_from(upids.len()).unwrap_or(i32::MAX),
        process_names: sym(Some(&list_of_names(upids, names))),
        file_version: sym(Some(version)),
        vendor: sym(known(|f| f.vendor).or(company).or(windows)),
        product: sym(known(|f| f.product).or(image.product())),
        company: sym(company),
        description: sym(image.description()),
        category: sym(known(|f| f.category)),
        category_basis: sym(known(|f| f.category_basis)),
        confidence: sym(fact.map(|f| f.confidence.name())),
        source: sym(known(|f| f.sources)),
        security: fact.is_some_and(|f| is_security(f.category)),
        altitudes: sym(altitudes.as_deref()),
        load_order_groups: sym(filter.map(|f| f.load_order_groups)),
        link_unix_ns: link_ns(stamp, company.unwrap_or(""), version, trace_end),
        cpu_exclusive_ns: cost.map(|c| c.0),
        cpu_inclusive_ns: cost.map(|c| c.1),
    }
}

/// Names of processes, those that most processes have first.
fn list_of_names(upids: &[i32], names: &[(String, i64)]) -> String {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for name in upids.iter().filter_map(|&u| names.get(usize::try_from(u).ok()?)) {
        *counts.entry(&name.0).or_default() += 1;
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let more = counts.len().saturating_sub(MOST_NAMES);
    counts.truncate(MOST_NAMES);
    let mut text = counts.iter().map(|c| c.0).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(", … {more} more"));
    }
    text
}

/// Last moment of the trace in nanoseconds since 1970.
fn trace_end(db: &Database) -> Option<i64> {
    let trace = db.read_or_empty::<TraceRow>();
    let started = trace.iter().filter(|row| row.start_unix_ns() > 0);
    started.map(|row| row.start_unix_ns().saturating_add(row.duration_ns())).max()
}

/// 1992-01-01: the year before Windows NT, whose format this is.
const FIRST_LINK_S: i64 = 694_224_000;
const DAY_NS: i64 = 86_400_000_000_000;

/// The date of a `TimeDateStamp`, if it can be one: not before the file format, not after the trace, and not of a
/// Windows that is built reproducibly, whose stamps are hashes (since 10.0;
/// https://devblogs.microsoft.com/oldnewthing/20180103-00/?p=97705).
fn link_ns(stamp: u32, company: &str, version: &str, trace_end: Option<i64>) -> Option<i64> {
    let seconds = i64::from(stamp);
    let ns = seconds.checked_mul(1_000_000_000)?;
    let major: u32 = version.split(['.', ' ', ',']).next()?.parse().unwrap_or(0);
    let hashed = company.starts_with("Microsoft") && (version.is_empty() || major >= 10);
    (seconds >= FIRST_LINK_S && ns <= trace_end?.saturating_add(DAY_NS) && !hashed).then_some(ns)
}

/// The first module of a name, and which one each process (none: the kernel) has.
type Loaded = (usize, HashMap<Option<i64>, usize>);

/// Exclusive and inclusive CPU time by module; `None` if it was not counted.
fn costs(db: &Database, images: &Rows<'_, ImageRow>, modules: &Modules<'_>) -> Option<Vec<(i64, i64)>> {
    let costs = db.read::<ModuleCostRow>().ok()?;
    // Of several files of one name in a process, or in the kernel, the first one.
    let mut by_name: HashMap<String, Loaded> = HashMap::new();
    for image in images {
        let (file, upid) = (file(image), image.upid());
        if let Some(&at) = modules.by_file.get(&file) {
            let loaded = by_name.entry(file.0.to_ascii_lowercase()).or_insert_with(|| (at, HashMap::new()));
            loaded.1.entry(upid).or_insert(at);
        }
    }
    let mut sums = vec![(0i64, 0i64); modules.first.len()];
    for row in costs.iter().filter(|&row| row.class() != "idle") {
        let Some(name) = row.module().map(str::to_ascii_lowercase) else { continue };
        let Some((first, loaded)) = by_name.get(&name) else { continue };
        // Frames of a process whose images are not known are named after those of others.
        let at = loaded.get(&row.upid()).or_else(|| loaded.get(&None)).unwrap_or(first);
        let Some(sum) = sums.get_mut(*at) else { continue };
        sum.0 = sum.0.saturating_add(row.exclusive_ns());
        sum.1 = sum.1.saturating_add(row.inclusive_ns());
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_table::Value;

    fn table(name: &'static str, columns: &'static str, rows: &[&[Value<'_>]]) -> Table {
        crate::fold::tests::table(name, columns, &rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
    }

    fn made() -> (Database, Table) {
        use Value::{I64 as Int, Null};
        let t = Value::Text;
        let mut db = Database::new();
        let image = |upid, name, version, size, stamp, company| {
            [upid, t(name), t("C:\\x"), version, Int(size), Int(stamp), company]
        };
        let rows = [
            image(Null, "tedrdrv.sys", Null, 10, 1_600_000_000, Null),
            image(Int(0), "a.exe", t("1.2"), 20, 1_600_000_000, t("Me")),
            image(Int(0), "Lib.dll", t("1.0"), 30, 3_000_000_000, t("CrowdStrike, Inc.")),
            image(Int(1), "lib.dll", t("2.0"), 30, 1_600_000_000, t("Microsoft Corporation")),
            image(Int(1), "a.exe", t("1.2"), 20, 1_600_000_000, t("Me")),
            image(Int(2), "a.exe", t("1.2"), 20, 1_600_000_000, t("Me")),
            image(Int(2), "ntdll.dll", t("10.0.1"), 20, 1_600_000_000, t("Microsoft Corporation")),
        ];
        let rows: Vec<&[Value<'_>]> = rows.iter().map(|r| &r[..]).collect();
        let columns = "upid name path file_version size_bytes time_date_stamp company";
        db.insert(table("image", columns, &rows));
        let process: [&[Value<'_>]; 3] =
            [&[t("a.exe"), Int(8)], &[t("b.exe"), Int(12)], &[t("a.exe"), Int(16)]];
        db.insert(table("process", "name pid", &process));
        db.insert(table("trace", "start_unix_ns duration_ns", &[&[Int(1_700_000_000_000_000_000), Int(5)]]));
        let cost = |class, upid, module, exclusive, inclusive| {
            [t(class), upid, t(module), Int(exclusive), Int(inclusive)]
        };
        let rows = [
            cost("thread", Int(0), "TEDRDRV.SYS", 5, 50),
            cost("dpc", Null, "tedrdrv.sys", 1, 2),
            cost("idle", Null, "tedrdrv.sys", 1000, 1000),
            cost("thread", Int(0), "lib.dll", 7, 8),
            cost("thread", Int(1), "lib.dll", 70, 80),
            cost("thread", Int(9), "lib.dll", 100, 100),
            cost("thread", Int(9), "[unknown]", 100, 100),
        ];
        let rows: Vec<&[Value<'_>]> = rows.iter().map(|r| &r[..]).collect();
        let columns = "class upid module exclusive_ns inclusive_ns";
        db.insert(table("module_cost", columns, &rows));
        let made = make(&db, &Memory::default()).unwrap().remove(0);
        (db, made)
    }

    #[test]
    fn drivers_of_windows_are_known_without_version_resources() {
        use Value::{I64 as Int, Null};
        let mut db = Database::new();
        let image = |name, company| {
            [Null, Value::Text(name), Value::Text("C:\\x"), Null, Int(10), Int(1_600_000_000), company]
        };
        let rows =
            [image("bam.sys", Null), image("netbt.sys", Value::Text("Example Ltd")), image("new.sys", Null)];
        let rows: Vec<&[Value<'_>]> = rows.iter().map(|row| &row[..]).collect();
        let columns = "upid name path file_version size_bytes time_date_stamp company";
        db.insert(table("image", columns, &rows));
        let made = make(&db, &Memory::default()).unwrap().remove(0);
        let vendors: Vec<_> = (0..3).map(|row| made.text(row, "vendor")).collect();
        assert_eq!(vendors, [Some("Microsoft"), Some("Example Ltd"), None]);
    }

    #[test]
    fn files_are_counted_once_and_known() {
        let (db, made) = made();
        assert_eq!(made.rows(), 5);
        let names: Vec<_> = (0..5).map(|r| made.text(r, "name").unwrap()).collect();
        assert_eq!(names, ["tedrdrv.sys", "a.exe", "Lib.dll", "lib.dll", "ntdll.dll"]);
        assert_eq!(made.text(0, "kind"), Some("kernel"));
        assert_eq!(made.text(0, "vendor"), Some("Palo Alto Networks"));
        assert_eq!(made.text(0, "altitudes"), Some("380430"));
        assert_eq!(made.text(0, "load_order_groups"), Some("FSFilter Activity Monitor"));
        assert_eq!(made.value(0, "security"), Value::Bool(true));
        assert_eq!(made.i64(0, "processes"), Some(0));
        assert_eq!(made.i64(1, "processes"), Some(3));
        assert_eq!(made.text(1, "process_names"), Some("a.exe, b.exe"));
        assert_eq!((made.text(1, "vendor"), made.text(1, "category")), (Some("Me"), None));
        assert_eq!((made.text(2, "category"), made.text(2, "confidence")), (Some("EDR"), Some("low")));
        assert_eq!(made.text(2, "category_basis"), Some("company"));
        assert_eq!(loaded_by(&db, &[false, true, false]), [false, true, false, true, false]);
    }

    #[test]
    fn time_goes_to_the_file_of_the_process() {
        let (_, made) = made();
        let cost = |row| (made.i64(row, "cpu_exclusive_ns"), made.i64(row, "cpu_inclusive_ns"));
        assert_eq!(cost(0), (Some(6), Some(52)));
        assert_eq!(cost(1), (Some(0), Some(0)));
        assert_eq!(cost(2), (Some(107), Some(108)));
        assert_eq!(cost(3), (Some(70), Some(80)));
    }

    #[test]
    fn only_what_can_be_a_date_is_one() {
        let (_, made) = made();
        let date = Some(1_600_000_000_000_000_000);
        assert_eq!(made.i64(0, "link_unix_ns"), date);
        assert_eq!(made.i64(2, "link_unix_ns"), None, "after the trace");
        assert_eq!(made.i64(3, "link_unix_ns"), date);
        assert_eq!(made.i64(4, "link_unix_ns"), None, "a Windows that is built reproducibly");
    }
}
