//! Files and the registry.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind {
        id: "failing-opens",
        answers: &["file.failing-opens"],
        most: 12.0,
        alone: false,
        plant: failing_opens,
    },
    Kind {
        id: "directory-watch",
        answers: &["file.directory-watch"],
        most: 12.0,
        alone: false,
        plant: directory_watch,
    },
    Kind {
        id: "registry-storm",
        answers: &["registry.storm"],
        most: 3.0,
        alone: false,
        plant: registry_storm,
    },
    Kind {
        id: "repeated-reads",
        answers: &["registry.repeated-reads"],
        most: 8.0,
        alone: false,
        plant: repeated_reads,
    },
    Kind { id: "encryption", answers: &["file.encryption"], most: 60.0, alone: false, plant: encryption },
    Kind {
        id: "decompression",
        answers: &["file.decompression"],
        most: 60.0,
        alone: false,
        plant: decompression,
    },
    Kind {
        id: "code-integrity",
        answers: &["security.code-integrity"],
        most: 60.0,
        alone: false,
        plant: code_integrity,
    },
    Kind { id: "slow-share", answers: &["file.slow-share"], most: 2.0, alone: false, plant: slow_share },
];

const OPEN: &str = "KernelBase.dll!CreateFileW;ntdll!NtCreateFile;nt!NtCreateFile;nt!IopCreateFile;nt!ObOpenObjectByNameEx;nt!IopParseDevice;nt!IofCallDriver;fltmgr.sys!FltpCreate";

/// Nearly all opens of a program fail.
fn failing_opens(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let rate = 200.0 * plan.duration;
    let least = rate.max(1000.0);
    let count = (multiple * least).round();
    // Twice the 3 % of the trace that it has to waste at the limit, never more than half of the trace.
    let each = (0.06 * plan.duration / least).min((0.5 * plan.duration).min(plan.room()) / count);
    let micros = (each * 1e6).round();
    plan.busy += count * micros / 1e6;
    plan.table(
        "file_io",
        &format!(
            "process = \"{}\"\nthread = \"main\"\nop = \"create\"\npattern = 'C:\\lib\\part{{n}}.php'\ncount = {count}\nstatus = 0xC0000034\nduration = \"{micros}us\"\nto = \"{:.3}s\"\nstack = \"ntdll!RtlUserThreadStart;{}!main;{OPEN};Ntfs.sys!NtfsFsdCreate\"",
            actor.pid,
            plan.duration * 0.97,
            actor.name
        ),
    );
    let cost = count * micros / 1e6;
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(1000.0))
        .needs(count, Limit::OfTrace(200.0))
        .needs(cost, Limit::OfTrace(0.03))
        .costs_s(cost)
}

/// A program watches a folder with a large buffer; who writes there pays for it.
fn directory_watch(plan: &mut Plan, multiple: f64) -> Planted {
    let watcher = plan.suspect("\"main\"");
    // What is measured runs on a thread of its own: the durations of events are CPU time too.
    let writer = plan.program("[\"main\", \"files\"]");
    let cost = (plan.most(multiple, 0.1) * 0.1).min(plan.duration * 0.6);
    let changes = 120;
    let report = format!(
        "ntdll!RtlUserThreadStart;{}!main;ntdll!NtCreateFile;nt!NtCreateFile;Ntfs.sys!NtfsReportDirNotify;nt!FsRtlNotifyFilterReportChangeLiteEx",
        writer.name
    );
    let window = format!("to = \"{:.3}s\"", plan.duration * 0.95);
    plan.table(
        "pool",
        &format!(
            "process = \"{}\"\nthread = \"files\"\ntag = \"FSrN\"\npaged = true\ncount = {changes}\nsize = \"256KiB\"\nfree_after = \"400us\"\nfree_by = \"{}\"\nfree_stack = \"ntdll!RtlUserThreadStart;{}!main;ntdll!NtNotifyChangeDirectoryFile;nt!NtNotifyChangeDirectoryFile;nt!FsRtlNotifyCompleteIrp;nt!ExFreePoolWithTag\"\nstack = \"{report};nt!ExAllocatePoolWithTag\"\n{window}",
            writer.pid, watcher.pid, watcher.name
        ),
    );
    plan.table(
        "page_fault",
        &format!(
            "process = \"{}\"\nthread = \"files\"\nop = \"demand_zero\"\ncount = {}\nstack = \"{report};nt!memset\"\n{window}",
            writer.pid,
            changes * 64
        ),
    );
    plan.table("file_io", &format!("process = \"{}\"\nthread = \"files\"\nop = [\"create\", \"cleanup\", \"close\"]\npattern = 'C:\\watched\\file{{n}}.tmp'\ncount = {changes}\n{window}", writer.pid));
    plan.table(
        "file_io",
        &format!(
            "process = \"{}\"\nop = \"dir_notify\"\nfile = 'C:\\watched'\ncount = {changes}\n{window}",
            watcher.pid
        ),
    );
    plan.cpu(&writer, "main", cost, &format!("{report};nt!memset"));
    plan.cpu(
        &writer,
        "main",
        0.2,
        &format!("ntdll!RtlUserThreadStart;{}!main;{}!Write", writer.name, writer.name),
    );
    plan.cpu(&watcher, "main", 0.02, &format!("ntdll!RtlUserThreadStart;{}!main;ntdll!NtNotifyChangeDirectoryFile;nt!NtNotifyChangeDirectoryFile", watcher.name));
    Planted::by(Target::process(&watcher))
        .needs(cost, Limit::Fixed(0.1))
        .needs(cost / (cost + 0.2), Limit::Fixed(0.05))
        .costs_cpu(cost, &["ntoskrnl.exe!FsRtlNotifyFilterReportChangeLiteEx"])
        .also_of(&Whom::Named(writer.name.clone()), &["memory.demand-zero"])
}

/// Time of so many calls: this part of the trace, if there is room for it. On a full machine calls still take four microseconds: samples in calls without
/// time would be a trace that contradicts itself.
fn calls(plan: &Plan, part: f64, count: f64) -> f64 {
    (part * plan.duration).min(0.5 * plan.duration).min(plan.room()).max(count * 4e-6)
}

/// A program opens and closes keys without end.
fn registry_storm(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let least = (4000.0 * plan.duration).max(10_000.0);
    let count = (multiple * least / 2.0).round() * 2.0;
    // 6 % of the trace at the limit.
    let total = calls(plan, 0.06 * multiple, count);
    plan.busy += total;
    let keys: Vec<String> = (0..40)
        .map(|n| format!("'HKLM\\SOFTWARE\\Classes\\CLSID\\{{0000{n:04}-0000-0000-C000-000000000046}}'"))
        .collect();
    plan.table(
        "registry",
        &format!(
            "process = \"{}\"\nthread = \"main\"\nop = [\"open\", \"close\"]\nkey = [{}]\ncount = {count}\ntotal = \"{}us\"\nduration = \"10us\"\nto = \"{:.3}s\"\nstack_style = \"keys\"\nstack = \"ntdll!RtlUserThreadStart;{}!main;{}!Poll;KernelBase.dll!RegOpenKeyExW;ntdll!NtOpenKeyEx;nt!NtOpenKeyEx\"",
            actor.pid,
            keys.join(", "),
            (total * 1e6).round(),
            plan.duration * 0.97,
            actor.name,
            actor.name
        ),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(10_000.0))
        .needs(count, Limit::OfTrace(4000.0))
        .needs(total, Limit::OfTrace(0.03))
        .costs_s(total)
}

/// A program reads the same value again and again.
fn repeated_reads(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.suspect("\"main\"");
    let count = (multiple * 5000.0).round();
    let total = calls(plan, 0.02 * multiple, count);
    plan.busy += total;
    plan.table(
        "registry",
        &format!(
            "process = \"{}\"\nthread = \"main\"\nop = \"query_value\"\nkey = 'HKLM\\SYSTEM\\CurrentControlSet\\Control\\MUI\\UILanguages'\nvalue = \"Preferred\"\ncount = {count}\ntotal = \"{}us\"\nduration = \"10us\"\nto = \"{:.3}s\"\nstack_style = \"keys\"\nstack = \"ntdll!RtlUserThreadStart;{}!main;{}!Format;KernelBase.dll!RegQueryValueExW;ntdll!NtQueryValueKey;nt!NtQueryValueKey;nt!CmQueryValueKey\"",
            actor.pid,
            (total * 1e6).round(),
            plan.duration * 0.97,
            actor.name,
            actor.name
        ),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(5000.0))
        .needs(total, Limit::OfTrace(0.01))
        .needs(total, Limit::Fixed(0.03))
        .costs_s(total)
        .also(&["registry.storm"])
}

/// CPU time of a program's thread below a part of Windows that is not free.
fn below(plan: &mut Plan, multiple: f64, least: f64, share: f64, frames: &str, part: &str) -> Planted {
    let victim = plan.program("\"worker*16\"");
    let multiple = plan.most(multiple, least);
    let part_of_busy = (multiple * share).min(0.6);
    let cost =
        (multiple * least).max((plan.busy + 0.4) * part_of_busy / (1.0 - part_of_busy)).min(plan.room());
    plan.cpu(&victim, "worker", cost, &format!("ntdll!RtlUserThreadStart;{}!Worker;{frames}", victim.name));
    let own = 0.3;
    plan.cpu(
        &victim,
        "worker",
        own,
        &format!("ntdll!RtlUserThreadStart;{}!Worker;{}!Work", victim.name, victim.name),
    );
    // On a large machine what a single program pays: a fifth of its time, and a tenth of a processor.
    let of_program = (cost / (cost + own), Limit::Fixed(0.2));
    Planted::by(Target::thing(part))
        .needs(cost, Limit::Fixed(least))
        .needs(cost, Limit::OfBusy(share))
        .or_needs(vec![(cost, Limit::Fixed(least)), of_program, (cost, Limit::OfTrace(0.1))])
        .costs_cpu(cost, &[part])
}

fn encryption(plan: &mut Plan, multiple: f64) -> Planted {
    below(
        plan,
        multiple,
        0.15,
        0.05,
        "ntdll!NtReadFile;nt!NtReadFile;Ntfs.sys!NtfsCommonRead;fvevol.sys!FveFilterRundownRead;fvevol.sys!FvepDecrypt;cng.sys!SymCryptXtsAesDecrypt",
        "fvevol.sys",
    )
}

fn decompression(plan: &mut Plan, multiple: f64) -> Planted {
    below(
        plan,
        multiple,
        0.1,
        0.03,
        "nt!KiPageFault;nt!MmAccessFault;nt!MiIssueHardFault;nt!IoPageReadEx;wof.sys!FileProvReadCompressed;nt!RtlDecompressBufferXpressHuff",
        "wof.sys",
    )
}

fn code_integrity(plan: &mut Plan, multiple: f64) -> Planted {
    below(
        plan,
        multiple,
        0.1,
        0.03,
        "ntdll!LdrLoadDll;ntdll!NtCreateSection;nt!NtCreateSection;nt!MiValidateSectionCreate;nt!SeValidateImageHeader;ci.dll!CiValidateImageHeader;ci.dll!CipCalculateImageHash;ci.dll!SymCryptSha256AppendBlocks",
        "ci.dll",
    )
}

/// A file server answers late; its caller waits for each answer.
fn slow_share(plan: &mut Plan, multiple: f64) -> Planted {
    let actor = plan.program("\"main\"");
    let server = plan.word();
    let count = ((multiple * 2.0).min(plan.duration * 0.9) / 0.15).round().max(1.0);
    let total = count * 0.15;
    plan.table(
        "file_io",
        &format!("process = \"{}\"\nthread = \"main\"\nop = \"read\"\nfile = '\\Device\\Mup\\{server}\\data\\year.xlsx'\ncount = {count}\nfrom = \"0.02s\"\nto = \"{:.3}s\"\narrival = \"exact\"\nsize = \"64KB\"\nduration = \"150ms\"\nblocks = true\nstack = \"ntdll!RtlUserThreadStart;{n}!main;{n}!Load;KernelBase.dll!ReadFile;ntdll!NtReadFile;nt!NtReadFile\"", actor.pid, 0.02 + total * 1.02, n = actor.name),
    );
    Planted::by(Target::thing(&format!("\\\\{server}"))).needs(total, Limit::Fixed(2.0)).costs_s(total)
}
