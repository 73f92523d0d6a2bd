//! Which table of ours holds which figure of a truth file.

use super::Row;
use crate::Json as _;

/// Truth table, our table, names of a row, its figures.
pub(crate) struct Source {
    pub(crate) truth: &'static str,
    pub(crate) table: &'static str,
    pub(crate) names: fn(&Row) -> Vec<String>,
    pub(crate) figures: fn(&Row) -> Vec<(&'static str, f64)>,
}

pub(crate) const SOURCES: &[Source] = &[
    Source { truth: "dpc", table: "dpc", names: interrupt, figures: interrupt_times },
    Source { truth: "isr", table: "isr", names: interrupt, figures: interrupt_times },
    Source { truth: "dpc", table: "interrupt_cost", names: |r| cost_of("dpc", r), figures: cost_times },
    Source { truth: "isr", table: "interrupt_cost", names: |r| cost_of("isr", r), figures: cost_times },
    Source {
        truth: "syscall",
        table: "syscall",
        names: |r| returned(r, text(r, "function").rsplit('!').next().unwrap().into()),
        figures: counted_time,
    },
    Source {
        truth: "syscall_process",
        table: "syscall",
        names: |r| returned(r, process(r)),
        figures: counted_time,
    },
    Source {
        truth: "alpc",
        table: "alpc",
        // What a server asks the next one belongs to the call that it serves.
        names: |r| if SERVERS.contains(&&*process(r)) { vec![] } else { vec![process(r)] },
        figures: |r| vec![("count", 1.0), ("total_ms", ms(r, "round_trip_ns"))],
    },
    Source {
        truth: "file_io",
        table: "file_io",
        names: |r| vec![format!("{}/{}", process(r), snake(r, "op"))],
        figures: |r| {
            let failed = r["status"].int() < 0;
            let moved = matches!(text(r, "op"), "Read" | "Write");
            let bytes = if moved { number(r, "size_bytes") } else { 0.0 };
            let (count, total) = (1.0, ms(r, "dur_ns"));
            vec![
                ("count", count),
                ("total_ms", total),
                ("bytes", bytes),
                ("failed", f64::from(u8::from(failed))),
            ]
        },
    },
    Source {
        truth: "disk_io",
        table: "disk_io",
        names: |r| vec![format!("{}/{}", process(r), text(r, "op"))],
        figures: |r| vec![("count", 1.0), ("total_ms", ms(r, "dur_ns")), ("bytes", number(r, "size_bytes"))],
    },
    Source {
        truth: "minifilter",
        table: "minifilter",
        names: |r| vec![text(r, "routine").into()],
        figures: counted_time,
    },
    Source { truth: "registry", table: "registry", names: registry, figures: counted_time },
    Source {
        truth: "registry",
        table: "registry_usage",
        names: registry,
        figures: |r| vec![("count", number(r, "count")), ("total_ms", ms(r, "total_ns"))],
    },
    Source {
        truth: "page_fault",
        table: "page_fault",
        names: fault,
        figures: |r| vec![("count", 1.0), ("bytes", number(r, "size_bytes"))],
    },
    Source {
        truth: "page_fault",
        table: "page_fault_cost",
        names: fault,
        figures: |r| vec![("count", number(r, "count")), ("bytes", number(r, "size_bytes"))],
    },
    Source {
        truth: "hard_fault",
        table: "hard_fault",
        names: |r| vec![process(r)],
        figures: |r| vec![("count", 1.0), ("bytes", number(r, "size_bytes")), ("total_ms", ms(r, "dur_ns"))],
    },
    Source {
        truth: "virtual_alloc",
        table: "virtual_alloc",
        names: |r| vec![process(r)],
        figures: |r| match text(r, "op") {
            "release" => vec![("freed", 1.0), ("freed_bytes", number(r, "size_bytes"))],
            "decommit" => vec![("decommitted_bytes", number(r, "freed_bytes"))],
            _ => vec![
                ("count", 1.0),
                ("bytes", number(r, "size_bytes")),
                ("outstanding_commit_bytes", number(r, "outstanding_bytes")),
            ],
        },
    },
    Source {
        truth: "virtual_alloc",
        table: "memory_outstanding",
        names: |r| vec![process(r)],
        figures: |r| vec![("outstanding_commit_bytes", number(r, "outstanding_bytes"))],
    },
    Source {
        truth: "pool",
        table: "pool",
        names: |r| vec![text(r, "tag").into()],
        figures: |r| {
            let (size, freed) = (number(r, "size_bytes"), f64::from(u8::from(!r["freed_ns"].is_null())));
            vec![("count", 1.0), ("bytes", size), ("freed", freed), ("freed_bytes", freed * size)]
        },
    },
    Source {
        truth: "pool",
        table: "pool_tag",
        names: |r| vec![text(r, "tag").into()],
        figures: |r| {
            let (total, left) = (number(r, "total_bytes"), number(r, "outstanding_bytes"));
            vec![
                ("count", number(r, "allocs")),
                ("freed", number(r, "frees")),
                ("bytes", total),
                ("freed_bytes", total - left),
            ]
        },
    },
    Source {
        truth: "pool_free",
        table: "pool",
        names: |r| r["freed_by_process"].as_str().map(bare).into_iter().collect(),
        figures: |r| vec![("count", 1.0), ("bytes", number(r, "size_bytes"))],
    },
    Source {
        truth: "handle",
        table: "handle",
        names: |r| vec![format!("{}/{}", process(r), text(r, "object_type"))],
        figures: |r| {
            let closed = r["closed_by"].as_str() == Some("close");
            vec![("count", 1.0), ("closed", f64::from(u8::from(closed)))]
        },
    },
    Source {
        truth: "handle",
        table: "handle_leak",
        names: |r| vec![format!("{}/{}", process(r), text(r, "object_type"))],
        figures: |r| vec![("count", number(r, "creates")), ("closed", number(r, "closes"))],
    },
    Source {
        truth: "network",
        table: "network",
        names: |r| vec![format!("{}/{}", process(r), text(r, "op"))],
        figures: |r| vec![("count", 1.0), ("bytes", number(r, "size_bytes"))],
    },
    Source {
        truth: "process",
        table: "process",
        names: |r| if r["start_ns"].is_null() { vec![] } else { vec![text(r, "name").into()] },
        figures: |_| vec![("count", 1.0)],
    },
    Source {
        truth: "process",
        table: "process_start",
        names: |r| vec![text(r, "name").into()],
        figures: |_| vec![("count", 1.0)],
    },
    Source {
        truth: "mark",
        table: "mark",
        names: |r| vec![text(r, "text").into()],
        figures: |_| vec![("count", 1.0)],
    },
];

/// Processes that serve the calls of others in the scenarios, and call further ones.
const SERVERS: [&str; 2] = ["svchost.exe", "WmiPrvSE.exe"];

pub(crate) fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    row.get(column).unwrap_or_else(|| panic!("no column {column}")).as_str().unwrap_or("?")
}

/// Unknown is nothing.
pub(crate) fn number(row: &Row, column: &str) -> f64 {
    row.get(column).unwrap_or_else(|| panic!("no column {column}")).as_f64().unwrap_or(0.0)
}

pub(crate) fn ms(row: &Row, column: &str) -> f64 {
    number(row, column) / 1e6
}

/// `app.exe` of `app.exe (1004)`.
fn bare(process: &str) -> String {
    process.rsplit_once(" (").map_or(process, |(name, _)| name).into()
}

pub(crate) fn process(row: &Row) -> String {
    bare(row.get("process").or(row.get("client_process")).unwrap().as_str().unwrap_or("?"))
}

/// `query_value` of `QueryValue`; `EnumerateKey` is `enum_key` in scenarios.
fn snake(row: &Row, column: &str) -> String {
    let name = text(row, column).replace("EnumerateValueKey", "EnumValue").replace("Enumerate", "Enum");
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn counted_time(row: &Row) -> Vec<(&'static str, f64)> {
    vec![("count", 1.0), ("total_ms", ms(row, "dur_ns"))]
}

fn interrupt(row: &Row) -> Vec<String> {
    vec![text(row, "module").into(), text(row, "routine").into(), format!("cpu {}", row["cpu"])]
}

fn interrupt_times(row: &Row) -> Vec<(&'static str, f64)> {
    vec![("count", 1.0), ("total_ms", ms(row, "dur_ns")), ("exclusive_ms", ms(row, "exclusive_ns"))]
}

fn cost_of(class: &str, row: &Row) -> Vec<String> {
    match text(row, "level") {
        _ if text(row, "class") != class => vec![],
        "cpu" => vec![format!("cpu {}", row["cpu"])],
        level @ ("module" | "routine") => vec![text(row, level).into()],
        _ => vec![],
    }
}

fn cost_times(row: &Row) -> Vec<(&'static str, f64)> {
    let times = ("total_ms", ms(row, "total_ns"));
    vec![("count", number(row, "count")), times, ("exclusive_ms", ms(row, "exclusive_ns"))]
}

/// The truth counts calls when they return.
fn returned(row: &Row, name: String) -> Vec<String> {
    if text(row, "outcome") == "returned" { vec![name] } else { vec![] }
}

fn registry(row: &Row) -> Vec<String> {
    vec![process(row), format!("{}/{}", process(row), snake(row, "op"))]
}

fn fault(row: &Row) -> Vec<String> {
    let kind = snake(row, "kind");
    vec![format!("{}/{}", process(row), kind.trim_end_matches("_fault"))]
}
