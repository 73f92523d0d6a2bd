//! Who is on every machine and did nothing wrong: programs that do a little of everything, so that every class of events is
//! recorded, and decoys that look guilty.

use crate::plan::Plan;
use crate::shapes;

/// Drivers of well-known vendors, on the way of calls without guilt.
const VENDORS: [&str; 8] = [
    "WdFilter.sys",
    "csagent.sys",
    "SophosED.sys",
    "mfehidk.sys",
    "SentinelMonitor.sys",
    "epfwlwf.sys",
    "symefasi64.sys",
    "cyverak.sys",
];

/// Writes all of them.
pub fn write(plan: &mut Plan) {
    ordinary(plan);
    decoys(plan);
    if !plan.quiet {
        shapes::write(plan);
    }
}

/// A little of every class, far below every limit.
fn ordinary(plan: &mut Plan) {
    let share = if plan.quiet { 0.01 } else { 0.04 };
    let shell = plan.process("explorer.exe", "[\"main\", \"worker*2\"]", "");
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(plan.program("[\"main\", \"worker*2\"]"));
    }
    let net = plan.program("[\"main\", \"pool*2\"]");
    for actor in others.iter().chain([&shell]) {
        let window = format!(
            "ntdll!RtlUserThreadStart;{n}!wWinMain;user32.dll!DispatchMessageW;{n}!WndProc",
            n = actor.name
        );
        plan.cpu(actor, "main", share * plan.duration, &window);
        plan.table("thread_activity", &format!("thread = \"{}/worker\"\nrun = \"300us\"\nwait = {{ exponential = \"20ms\" }}\nwait_reason = \"WrQueue\"\nstack = \"ntdll!RtlUserThreadStart;{n}!Worker\"\nwait_stack = \"ntdll!RtlUserThreadStart;{n}!Worker;ntdll!NtRemoveIoCompletion;nt!IoRemoveIoCompletion;nt!KeRemoveQueueEx\"", actor.pid, n = actor.name));
        plan.busy += 2.0 * plan.duration * 0.3 / 20.3;
    }
    let net_main = format!(
        "ntdll!RtlUserThreadStart;{}!wmain;coreclr.dll!RunMain;jit!Mail.Program.Main;jit!Mail.Box.Sync",
        net.name
    );
    plan.cpu(&net, "main", share * plan.duration, &net_main);
    let (first, second) = (others[0].pid, others[1].pid);
    // A machine has one amount of free memory.
    let memory = if plan.kinds.contains(&"memory-low") { "" } else { "event" };
    let end = format!("to = \"{:.3}s\"", plan.duration * 0.95);
    let tables: &[(&str, String)] = &[
        ("dpc", "routine = \"storport.sys!RaidpAdapterDpcRoutine\"\ncount = 400\nduration = { lognormal = [\"8us\", 0.3], max = \"30us\" }".into()),
        ("isr", "routine = \"storport.sys!RaidpAdapterInterruptRoutine\"\nkind = \"msi\"\ncount = 400\nduration = { lognormal = [\"2us\", 0.3], max = \"8us\" }".into()),
        ("disk_io", format!("process = \"{first}\"\nop = \"read\"\nfile = 'C:\\Users\\me\\Documents\\page1.docx'\ncount = 60\nsize = \"64KB\"\nduration = {{ lognormal = [\"90us\", 0.3] }}")),
        ("file_io", format!("process = \"{first}\"\nop = [\"create\", \"read\", \"cleanup\", \"close\"]\npattern = 'C:\\Users\\me\\Documents\\page{{n}}.docx'\ncount = 60\nduration = {{ lognormal = [\"15us\", 0.3] }}")),
        ("minifilter", format!("process = \"{first}\"\nroutine = \"FileInfo.sys!FIPreCreateCallback\"\ncount = 60\nduration = \"3us\"")),
        ("hard_fault", format!("process = \"{second}\"\nfile = 'C:\\Program Files\\app\\lib.dll'\ncount = 10\nduration = \"300us\"")),
        ("registry", format!("process = \"{}\"\nthread = \"main\"\nop = [\"open\", \"query_value\", \"close\"]\nkey = ['HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Explorer', 'HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion']\nvalue = [\"ShellState\", \"ProductName\"]\ncount = 60", shell.pid)),
        ("network", format!("process = \"{second}\"\nop = [\"connect\", \"send\", \"receive\", \"disconnect\"]\nremote = \"10.0.0.20:443\"\nsize = 1200\ncount = 40")),
        ("page_fault", format!("process = \"{second}\"\nop = \"demand_zero\"\ncount = 300")),
        ("virtual_alloc", format!("process = \"{first}\"\ncount = 100\nsize = \"256KiB\"\nflags = [\"reserve\", \"commit\"]\nfree_after = \"10ms\"\n{end}")),
        ("pool", format!("process = \"{first}\"\ntag = \"Irp \"\npaged = false\ncount = 100\nsize = 512\nfree_after = \"2ms\"\n{end}")),
        ("handle", format!("process = \"{second}\"\nobject_type = \"Event\"\ncount = 200\nclose_after = \"5ms\"\n{end}")),
        ("syscall", format!("process = \"{second}\"\nfunction = [\"NtQueryInformationProcess\", \"NtReadFile\"]\ncount = 100\nduration = \"3us\"")),
        ("gc", format!("process = \"{}\"\nthread = \"main\"\ncount = 8\npause = \"1ms\"\ngeneration = 0\nheap = \"64MiB\"", net.pid)),
        ("exception", format!("process = \"{}\"\nthread = \"pool\"\nkind = \"System.TimeoutException\"\ncount = 4", net.pid)),
        ("contention", format!("process = \"{}\"\nthread = \"pool\"\ncount = 10\nduration = \"20us\"", net.pid)),
        ("jit", format!("process = \"{}\"\nthread = \"main\"\nstarted = true\nmethods = [\"Mail.Box.Open\", \"Mail.Box.Close\"]", net.pid)),
        ("process", format!("name = \"conhost.exe\"\nparent = \"{}\"\nstart = \"200ms\"\ncount = 2\nlife = \"30ms\"\nevery = \"900ms\"", shell.pid)),
        (memory, "type = \"PageFault/MemInfo\"\nevery = \"500ms\"\nfields = { ZeroPageCount = 0, FreePageCount = 2000000, ModifiedPageCount = 4000, CommitPageCount = 900000 }".into()),
        ("manifest_event", "process = \"System\"\nprovider = \"331c3b3a-2005-44c2-ac5e-77220c37d6b4\"\nid = 96\nat = [0.01]\nfields = [{ type = \"u32\", value = 156250 }, { type = \"u32\", value = 5000 }, { type = \"u32\", value = 156250 }, { type = \"u32\", value = 0 }, { type = \"u32\", value = 0 }]".into()),
        ("manifest_event", format!("process = \"{}\"\nthread = \"main\"\nprovider = \"8c416c79-d49b-4f01-a467-e56d3aa8234c\"\nid = 26\ncount = 4\nkeyword = \"0x20000\"\nfields = [{{ type = \"u32\", value = 1 }}, {{ type = \"u32\", value = [{first}, {second}] }}, {{ type = \"u32\", value = [{second}, {first}] }}]", shell.pid)),
    ];
    for (kind, lines) in tables.iter().filter(|(kind, _)| !kind.is_empty()) {
        plan.table(kind, lines);
    }
    plan.busy += 0.01;
}

/// A busy innocent, layers that pass on what they get, and a vendor's driver that costs next to nothing.
fn decoys(plan: &mut Plan) {
    let vendor = plan.known(&VENDORS).unwrap_or_default();
    let passing = plan.driver();
    let reader = plan.program("\"worker*6\"");
    let n = &reader.name;
    let call = format!(
        "ntdll!RtlUserThreadStart;{n}!Worker;KernelBase.dll!ReadFile;ntdll!NtReadFile;nt!NtReadFile;nt!IopSynchronousServiceTail;nt!IofCallDriver;{passing}+0x1200;nt!IofCallDriver"
    );
    let own = if plan.quiet { 0.02 } else { 0.05 };
    let below = if plan.quiet { 0.04 } else { (0.1 * plan.duration).min(0.5) };
    // Three quarters of its time are the file system's, below a layer that only passes the calls on.
    plan.cpu(&reader, "worker", below, &format!("{call};Ntfs.sys!NtfsFsdRead;Ntfs.sys!NtfsCommonRead"));
    plan.cpu(&reader, "worker", own, &format!("ntdll!RtlUserThreadStart;{n}!Worker;{n}!Parse"));
    plan.cpu(&reader, "worker", 0.004, &format!("{call};{vendor}+0x2f10"));
    plan.cpu(
        &reader,
        "worker",
        below,
        &format!("{call};{vendor}+0x2f80;nt!IofCallDriver;Ntfs.sys!NtfsFsdRead"),
    );
    plan.table(
        "minifilter",
        &format!(
            "process = \"{}\"\nroutine = \"{vendor}!PreCreate\"\ncount = 60\nduration = \"6us\"",
            reader.pid
        ),
    );
    plan.image(&vendor, "");
    if plan.quiet {
        return;
    }
    let innocent = plan.program("\"worker*24\"");
    let n = &innocent.name;
    let share = plan.random.between(0.05, 0.2);
    plan.cpu_stacks(
        &innocent,
        "worker",
        share * plan.capacity().min(24.0 * plan.duration),
        &[
            (4, &format!("ntdll!RtlUserThreadStart;{n}!Worker;{n}!Compile;{n}!Optimize")),
            (3, &format!("ntdll!RtlUserThreadStart;{n}!Worker;{n}!Compile;{n}!Parse")),
            (1, &format!("ntdll!RtlUserThreadStart;{n}!Worker;ntdll!NtReadFile;nt!NtReadFile;Ntfs.sys!NtfsCopyReadA")),
        ],
    );
}
