//! Disk transfers by file and process.

use super::{add, process_names};
use etwhy_table::Database;
use etwhy_trace::catalog::{disk_io::DiskIoRow, file::FileRow};
use foldhash::HashMap;
use serde::Serialize;

/// Transfers of one key.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskCost {
    /// File path or process.
    pub name: String,
    /// Reads.
    pub reads: i64,
    /// Writes.
    pub writes: i64,
    /// Bytes read.
    pub read_bytes: i64,
    /// Bytes written.
    pub write_bytes: i64,
    /// Time in which the disk worked for it alone.
    pub service_ns: i64,
    /// Longest response.
    pub longest_ns: i64,
}

/// Disk transfers of the trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Disk {
    /// Everything.
    pub total: DiskCost,
    /// By process, by service time.
    pub processes: Vec<DiskCost>,
    /// By file, by service time.
    pub files: Vec<DiskCost>,
}

/// Sums disk transfers; lists keep the `top` largest.
pub fn disk(db: &Database, top: usize) -> Disk {
    let mut total = DiskCost { name: "all".to_owned(), ..DiskCost::default() };
    let mut by_process: HashMap<i64, DiskCost> = HashMap::default();
    let mut by_file: HashMap<i64, DiskCost> = HashMap::default();
    for row in &db.read_or_empty::<DiskIoRow>() {
        let read = row.op() == "read";
        let write = row.op() == "write";
        let (size, service) = (row.size_bytes(), row.service_ns());
        let dur = row.dur_ns();
        let keys = [
            Some(&mut total),
            Some(by_process.entry(row.upid().unwrap_or(-1)).or_default()),
            Some(by_file.entry(row.file_id().unwrap_or(-1)).or_default()),
        ];
        for cost in keys.into_iter().flatten() {
            cost.reads += i64::from(read);
            cost.writes += i64::from(write);
            add(&mut cost.read_bytes, if read { size } else { 0 });
            add(&mut cost.write_bytes, if write { size } else { 0 });
            add(&mut cost.service_ns, service);
            cost.longest_ns = cost.longest_ns.max(dur);
        }
    }
    let names = process_names(db);
    let mut paths: HashMap<i64, String> = HashMap::default();
    for row in &db.read_or_empty::<FileRow>() {
        if let Some(path) = row.path() {
            paths.insert(row.file_id(), path.to_owned());
        }
    }
    // Files with several keys are one file.
    let mut merged: HashMap<String, DiskCost> = HashMap::default();
    for (id, cost) in by_file {
        let name = paths.get(&id).cloned().unwrap_or_else(|| "[no name recorded]".to_owned());
        let sum = merged.entry(name).or_default();
        add(&mut sum.reads, cost.reads);
        add(&mut sum.writes, cost.writes);
        add(&mut sum.read_bytes, cost.read_bytes);
        add(&mut sum.write_bytes, cost.write_bytes);
        add(&mut sum.service_ns, cost.service_ns);
        sum.longest_ns = sum.longest_ns.max(cost.longest_ns);
    }
    let processes = by_process.into_iter().map(|(upid, cost)| {
        let known = usize::try_from(upid).ok().and_then(|u| names.get(u));
        let name = known.map_or("[unknown]".to_owned(), |(name, pid)| format!("{name} ({pid})"));
        DiskCost { name, ..cost }
    });
    let ranked = |mut list: Vec<DiskCost>| {
        list.sort_by(|a, b| b.service_ns.cmp(&a.service_ns).then_with(|| a.name.cmp(&b.name)));
        list.truncate(top);
        list
    };
    Disk {
        total,
        processes: ranked(processes.collect()),
        files: ranked(merged.into_iter().map(|(name, cost)| DiskCost { name, ..cost }).collect()),
    }
}
