//! Innocents that have the shape of a cause and not its substance: what an average, a name or a neighbour would accuse.

use crate::plan::Plan;

type Shape = fn(&mut Plan);

const SHAPES: [Shape; 14] = [
    pool_without_work,
    condition_variables,
    passing_network_filters,
    memory_kept_from_start,
    handles_closed_late,
    dpcs_near_the_limit,
    rare_slow_reads,
    some_failing_opens,
    quiet_watcher,
    settings_reader,
    short_connections,
    caller_and_service,
    vendors_service,
    few_garbage_collections,
];

/// Writes some of them.
pub fn write(plan: &mut Plan) {
    let first = plan.random.below(SHAPES.len());
    // Steps of 3 visit all fourteen before one comes again.
    for step in 0..4 {
        if let Some(shape) = SHAPES.get((first + step * 3) % SHAPES.len()) {
            shape(plan);
        }
    }
}

/// Threads of a healthy pool wait for work nearly all the time.
fn pool_without_work(plan: &mut Plan) {
    let actor = plan.program("\"pool*12\"");
    let n = &actor.name;
    plan.table("thread_activity", &format!("thread = \"{}/pool\"\nrun = \"100us\"\nwait = {{ exponential = \"60ms\" }}\nwait_reason = \"WrQueue\"\nreadied_by = \"{}/pool\"\nstack = \"ntdll!RtlUserThreadStart;{n}!Worker\"\nwait_stack = \"ntdll!RtlUserThreadStart;{n}!Worker;ntdll!TppWorkerThread;ntdll!NtWaitForWorkViaWorkerFactory;nt!NtWaitForWorkViaWorkerFactory;nt!KeRemoveQueueEx\"\nready_stack = \"ntdll!RtlUserThreadStart;{n}!Worker;ntdll!TpPostWork\"", actor.pid, actor.pid));
    plan.busy += 12.0 * plan.duration * 0.1 / 60.1;
}

/// Threads sleep on a condition variable: nobody holds anything.
fn condition_variables(plan: &mut Plan) {
    let actor = plan.program("[\"producer\", \"consumer*4\"]");
    let n = &actor.name;
    plan.table("thread_activity", &format!("thread = \"{}/consumer\"\nrun = \"200us\"\nwait = \"8ms\"\nwait_reason = \"WrAlertByThreadId\"\nreadied_by = \"{}/producer\"\nstack = \"ntdll!RtlUserThreadStart;{n}!Consume\"\nwait_stack = \"ntdll!RtlUserThreadStart;{n}!Consume;KernelBase.dll!SleepConditionVariableSRW;ntdll!RtlSleepConditionVariableSRW;ntdll!NtWaitForAlertByThreadId;nt!NtWaitForAlertByThreadId;nt!KeWaitForAlertByThreadId\"\nready_stack = \"ntdll!RtlUserThreadStart;{n}!Produce;ntdll!RtlWakeConditionVariable;ntdll!NtAlertThreadByThreadId;nt!NtAlertThreadByThreadId\"", actor.pid, actor.pid));
    plan.busy += 4.0 * plan.duration * 0.2 / 8.2;
    plan.cpu(&actor, "producer", 0.02 * plan.duration, &format!("ntdll!RtlUserThreadStart;{n}!Produce"));
}

/// Filters pass packets up, one of them a known vendor's.
fn passing_network_filters(plan: &mut Plan) {
    let (first, second) = (plan.driver(), plan.known(&["epfwlwf.sys", "klim6.sys", "aswNetSec.sys"]));
    let second = second.unwrap_or_else(|| plan.driver());
    plan.image(&second, "");
    let miniport = plan.driver();
    let up = format!(
        "nt!KiRetireDpcList;nt!KiExecuteAllDpcs;ndis.sys!ndisInterruptDpc;{miniport}!Receive;ndis.sys!NdisMIndicateReceiveNetBufferLists;{first}+0x1a40;ndis.sys!NdisFIndicateReceiveNetBufferLists;{second}+0x2b10;ndis.sys!NdisFIndicateReceiveNetBufferLists;tcpip.sys!TcpReceive"
    );
    let total = (0.03 * plan.capacity()).min(0.4);
    plan.busy += total;
    plan.table("dpc", &format!("routine = \"{miniport}!Interrupt\"\ncount = {}\ntotal = \"{}us\"\nduration = {{ lognormal = [1, 0.15] }}\nstack = \"{up}\"", (total / 40e-6).round(), (total * 1e6).round()));
}

/// A program takes its memory at the start and keeps it.
fn memory_kept_from_start(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    let n = &actor.name;
    plan.table("virtual_alloc", &format!("process = \"{}\"\ncount = 60\nsize = \"3MiB\"\nflags = [\"reserve\", \"commit\"]\nto = \"{:.3}s\"\nstack = \"ntdll!RtlUserThreadStart;{n}!main;{n}!Start;KernelBase.dll!VirtualAlloc;ntdll!NtAllocateVirtualMemory;nt!NtAllocateVirtualMemory\"", actor.pid, plan.duration * 0.2));
}

/// Many handles, all closed before the end.
fn handles_closed_late(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    plan.table("handle", &format!("process = \"{}\"\nobject_type = \"File\"\ncount = 1500\nclose_after = \"{:.3}s\"\nto = \"{:.3}s\"", actor.pid, plan.duration * 0.15, plan.duration * 0.8));
}

/// DPCs of two thirds of their limit.
fn dpcs_near_the_limit(plan: &mut Plan) {
    let driver = plan.driver();
    plan.busy += 0.03;
    plan.table(
        "dpc",
        &format!("routine = \"{driver}!Dpc\"\ncount = 450\nduration = {{ uniform = [\"50us\", \"75us\"] }}"),
    );
}

/// A few reads of a second disk are slow, most are not.
fn rare_slow_reads(plan: &mut Plan) {
    let (actor, disk) = (plan.program("\"main*2\""), plan.disk());
    plan.table("disk_io", &format!("process = \"{}\"\nop = \"read\"\ndisk = {disk}\nfile = 'D:\\media\\film.mkv'\ncount = 250\nsize = \"256KB\"\nduration = \"900us\"", actor.pid));
    plan.table("disk_io", &format!("process = \"{}\"\nop = \"read\"\ndisk = {disk}\nfile = 'D:\\media\\film.mkv'\ncount = 6\nsize = \"256KB\"\nduration = \"70ms\"", actor.pid));
}

/// A third of the opens of a program fail, as those of every search path.
fn some_failing_opens(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    plan.table("file_io", &format!("process = \"{}\"\nop = \"create\"\npattern = 'C:\\path\\one{{n}}.dll'\ncount = 300\nstatus = 0xC0000034\nduration = \"20us\"", actor.pid));
    plan.table("file_io", &format!("process = \"{}\"\nop = [\"create\", \"read\", \"cleanup\", \"close\"]\npattern = 'C:\\path\\two{{n}}.dll'\ncount = 600\nduration = \"20us\"", actor.pid));
    plan.busy += 0.05;
}

/// A program watches a folder with a small buffer.
fn quiet_watcher(plan: &mut Plan) {
    let (writer, watcher) = (plan.program("\"main\""), plan.program("\"main\""));
    let end = format!("to = \"{:.3}s\"", plan.duration * 0.95);
    plan.table("pool", &format!("process = \"{}\"\ntag = \"FSrN\"\npaged = true\ncount = 100\nsize = 4096\nfree_after = \"400us\"\nfree_by = \"{}\"\n{end}", writer.pid, watcher.pid));
    plan.table("file_io", &format!("process = \"{}\"\nop = [\"create\", \"cleanup\", \"close\"]\npattern = 'C:\\spool\\job{{n}}.tmp'\ncount = 100\nduration = \"20us\"\n{end}", writer.pid));
    plan.table("file_io", &format!("process = \"{}\"\nop = \"dir_notify\"\nfile = 'C:\\spool'\ncount = 100\nduration = \"5us\"\n{end}", watcher.pid));
    plan.cpu(&writer, "main", 0.1, &format!("ntdll!RtlUserThreadStart;{n}!main;{n}!Write", n = writer.name));
    plan.cpu(&writer, "main", 0.003, &format!("ntdll!RtlUserThreadStart;{}!main;ntdll!NtCreateFile;nt!NtCreateFile;Ntfs.sys!NtfsReportDirNotify;nt!FsRtlNotifyFilterReportChangeLiteEx", writer.name));
}

/// A program reads its settings: many keys, each once or twice.
fn settings_reader(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    plan.table("registry", &format!("process = \"{}\"\nop = [\"open\", \"query_value\", \"close\"]\nkey = ['HKCU\\Software\\Example\\One', 'HKCU\\Software\\Example\\Two', 'HKCU\\Software\\Example\\Three', 'HKLM\\SOFTWARE\\Example\\Four']\nvalue = [\"Left\", \"Top\", \"Width\", \"Height\"]\ncount = 2400\nduration = \"4us\"", actor.pid));
    plan.busy += 0.01;
}

/// Some connections, half of what is too many.
fn short_connections(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    plan.table("network", &format!("process = \"{}\"\nop = [\"connect\", \"send\", \"receive\", \"disconnect\"]\nremote = \"10.0.0.31:443\"\nsize = 600\ncount = {}", actor.pid, (40.0 * plan.duration).round()));
    plan.table(
        "network",
        &format!(
            "process = \"{}\"\nop = \"retransmit\"\nremote = \"10.0.0.31:443\"\nsize = 600\ncount = 3",
            actor.pid
        ),
    );
}

/// A caller waits for a service, as it should.
fn caller_and_service(plan: &mut Plan) {
    let actor = plan.program("\"main\"");
    let service = plan.process("svchost.exe", "\"rpc\"", "session = 0\nservices = [\"Dnscache\"]");
    plan.table("alpc", &format!("process = \"{}\"\nservers = [\"{}/rpc\"]\nservice = [\"120us\"]\nport = '\\RPC Control\\resolver'\ncount = 200\nto = \"{:.3}s\"\nstack = \"ntdll!RtlUserThreadStart;{}!main;rpcrt4.dll!NdrClientCall3;ntdll!NtAlpcSendWaitReceivePort\"", actor.pid, service.pid, plan.duration * 0.95, actor.name));
    plan.busy += 0.03;
}

/// A security product's service works a little, for itself.
fn vendors_service(plan: &mut Plan) {
    if let Some(name) = plan.known(&["MsMpEng.exe", "CSFalconService.exe", "SophosFileScanner.exe"]) {
        let actor = plan.process(&name, "\"scan*2\"", "session = 0");
        plan.cpu(
            &actor,
            "scan",
            0.04 * plan.duration,
            &format!("ntdll!RtlUserThreadStart;{name}!ScanThread;{name}!Look"),
        );
        plan.table("disk_io", &format!("process = \"{}\"\nop = \"read\"\nfile = 'C:\\Windows\\explorer.exe'\ncount = 20\nsize = \"64KB\"\nduration = \"100us\"", actor.pid));
    }
}

/// A .NET program collects garbage now and then.
fn few_garbage_collections(plan: &mut Plan) {
    let actor = plan.program("[\"main\", \"pool*2\"]");
    plan.cpu(
        &actor,
        "main",
        0.02 * plan.duration,
        &format!("ntdll!RtlUserThreadStart;{}!wmain;coreclr.dll!RunMain;jit!Shop.Program.Main", actor.name),
    );
    plan.table("gc", &format!("process = \"{}\"\nthread = \"main\"\ncount = 5\npause = \"14ms\"\ngeneration = 2\nheap = \"512MiB\"\narrival = \"exact\"", actor.pid));
    plan.table(
        "exception",
        &format!(
            "process = \"{}\"\nthread = \"pool\"\nkind = \"System.IO.IOException\"\ncount = {}",
            actor.pid,
            (40.0 * plan.duration).round()
        ),
    );
    plan.table(
        "contention",
        &format!("process = \"{}\"\nthread = \"pool\"\ncount = 60\nduration = \"1ms\"", actor.pid),
    );
}
