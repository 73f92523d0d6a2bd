//! Drivers on the way of other programs' calls.

use crate::cause::{Kind, Limit, Planted, Target, Whom};
use crate::plan::Plan;

pub const KINDS: &[Kind] = &[
    Kind {
        id: "minifilter-delay",
        answers: &["security.minifilter-delay"],
        most: 40.0,
        alone: false,
        plant: minifilter_delay,
    },
    Kind {
        id: "driver-hot-path",
        answers: &["security.driver-hot-path"],
        most: 60.0,
        alone: false,
        plant: hot_path,
    },
    Kind {
        id: "network-filter",
        answers: &["security.network-filter"],
        most: 60.0,
        alone: false,
        plant: network_filter,
    },
    Kind {
        id: "rundown",
        answers: &["security.rundown-contention"],
        most: 60.0,
        alone: false,
        plant: rundown,
    },
    Kind {
        id: "process-notify",
        answers: &["security.process-start"],
        most: 60.0,
        alone: false,
        plant: process_notify,
    },
    Kind {
        id: "syscall-hook",
        answers: &["trace.syscall-tracing-cost"],
        most: 80.0,
        alone: false,
        plant: syscall_hook,
    },
    Kind {
        id: "injected-dll",
        answers: &["security.injected-dll"],
        most: 30.0,
        alone: false,
        plant: injected_dll,
    },
    Kind {
        id: "slow-opens",
        answers: &["security.first-open-penalty"],
        most: 30.0,
        alone: false,
        plant: slow_opens,
    },
    Kind { id: "full-scan", answers: &["security.full-scan"], most: 5.0, alone: false, plant: full_scan },
    Kind {
        id: "callback-waits",
        answers: &["security.callback-waits"],
        most: 4.0,
        alone: false,
        plant: callback_waits,
    },
    Kind {
        id: "two-scanners",
        answers: &["security.two-scanners"],
        most: 20.0,
        alone: false,
        plant: two_scanners,
    },
];

const SECURITY: [&str; 6] =
    ["csagent.sys", "SophosED.sys", "mfehidk.sys", "tedrdrv.sys", "SentinelMonitor.sys", "cyverak.sys"];
const OPEN: &str = "KernelBase.dll!CreateFileW;ntdll!NtCreateFile;nt!NtCreateFile;nt!IopCreateFile;nt!ObOpenObjectByNameEx;nt!IopParseDevice;nt!IofCallDriver;fltmgr.sys!FltpCreate;fltmgr.sys!FltpPassThroughInternal";

/// What a share of the busy time and at least so many seconds cost, at this multiple.
fn of_busy(plan: &Plan, multiple: f64, least: f64, share: f64) -> f64 {
    let multiple = plan.most(multiple, least);
    // The cost itself is busy time too, and so is what comes after it.
    let part = (multiple * share).min(0.6);
    (multiple * least).max((plan.busy + 0.4) * part / (1.0 - part)).min(plan.room())
}

/// A filter holds opens of files.
fn minifilter_delay(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("\"worker*8\"");
    let filter = plan.driver();
    // Callbacks take their time on a processor.
    let total = (multiple * 0.5).min(8.0 * plan.duration * 0.6).min(plan.room());
    plan.busy += total;
    let count = (total / 0.003).ceil().max(20.0);
    plan.cpu(
        &victim,
        "worker",
        0.05,
        &format!(
            "ntdll!RtlUserThreadStart;{}!Worker;{OPEN};fltmgr.sys!FltpPerformPreCallbacks;{filter}!PreCreate",
            victim.name
        ),
    );
    plan.table(
        "minifilter",
        &format!(
            "process = \"{}\"\nthread = \"worker\"\nroutine = \"{filter}!PreCreate\"\nfile = 'C:\\src\\main.cpp'\ncount = {count}\ntotal = \"{}us\"\nduration = {{ normal = [\"3ms\", \"0.2ms\"] }}\nto = \"{:.3}s\"",
            victim.pid,
            (total * 1e6).round(),
            plan.duration * 0.95
        ),
    );
    Planted::by(Target::thing(&filter))
        .needs(total, Limit::Fixed(0.5))
        .needs(total / count, Limit::Fixed(0.0005))
        .costs_s(total)
        .also(&["security.first-open-penalty", "security.driver-hot-path"])
}

/// A security product's driver looks at calls that duplicate handles.
fn hot_path(plan: &mut Plan, multiple: f64) -> Planted {
    // There are more of them than a machine ever has.
    let driver = plan.known(&SECURITY).unwrap_or_default();
    let cost = of_busy(plan, multiple, 0.3, 0.03).max(multiple * 0.005 * plan.capacity()).min(plan.room());
    let each = cost / 2.0;
    let queued = plan.random.chance(0.25);
    if queued {
        // It queues its work to threads of System, which is not to blame.
        let system = plan.system("\"work*16\"");
        let stack = "nt!PspSystemThreadStartup;nt!ExpWorkerThread;nt!IopProcessWorkItem";
        plan.cpu(&system, "work", each * 2.0, &format!("{stack};{driver}+0x2a3c10"));
        plan.cpu(&system, "work", 0.05, &format!("{stack};nt!ExQueueWorkItem"));
    }
    for _ in 0..if queued { 0 } else { 2 } {
        let victim = plan.program("\"worker*16\"");
        let stack = format!(
            "ntdll!RtlUserThreadStart;{}!Worker;ntdll!NtDuplicateObject;nt!NtDuplicateObject;nt!ObpCallPreOperationCallbacks",
            victim.name
        );
        plan.cpu(&victim, "worker", each, &format!("{stack};{driver}+0x2a3c10"));
        plan.cpu(&victim, "worker", 0.1, &stack);
    }
    plan.image(&driver, "");
    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.3))
        .needs(cost, Limit::OfBusy(0.03))
        .needs(cost, Limit::OfCapacity(0.005))
        .costs_cpu(each * 2.0, &[&driver])
}

/// A callout inspects packets; a filter before it only passes them on.
fn network_filter(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("\"worker*16\"");
    let (driver, passing) = (plan.driver(), plan.driver());
    let cost = of_busy(plan, multiple, 0.2, 0.03);
    let up = format!(
        "ntdll!RtlUserThreadStart;{}!Worker;ws2_32.dll!recv;mswsock.dll!WSPRecv;ntdll!NtDeviceIoControlFile;nt!NtDeviceIoControlFile;nt!IofCallDriver;{passing}+0x1010;nt!IofCallDriver;afd.sys!AfdReceive;tcpip.sys!TcpTlProviderReceive",
        victim.name
    );
    plan.cpu(
        &victim,
        "worker",
        cost,
        &format!("{up};netio.sys!KfdClassify;fwpkclnt.sys!FwppStreamInject;{driver}+0x31f00"),
    );
    plan.cpu(&victim, "worker", 0.2, &up);
    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.2))
        .needs(cost, Limit::OfBusy(0.03))
        .costs_cpu(cost, &[&driver])
}

/// A driver takes rundown protection for every call.
fn rundown(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("\"worker*16\"");
    let driver = plan.driver();
    let cost = of_busy(plan, multiple, 0.2, 0.02);
    let stack = format!(
        "ntdll!RtlUserThreadStart;{}!Worker;ntdll!NtDuplicateObject;nt!NtDuplicateObject;nt!ObpCallPreOperationCallbacks;{driver}+0x2340",
        victim.name
    );
    plan.cpu_stacks(
        &victim,
        "worker",
        cost,
        &[
            (1, &format!("{stack};nt!ExfAcquireRundownProtection")),
            (1, &format!("{stack};nt!ExfReleaseRundownProtection")),
        ],
    );
    plan.cpu(
        &victim,
        "worker",
        0.2,
        &format!("ntdll!RtlUserThreadStart;{}!Worker;{}!Serve", victim.name, victim.name),
    );
    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.2))
        .needs(cost, Limit::OfBusy(0.02))
        .costs_cpu(cost, &[&driver])
        .also(&["security.driver-hot-path"])
}

/// A driver works in the notification of each new process.
fn process_notify(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("\"worker*16\"");
    let driver = plan.driver();
    let cost = of_busy(plan, multiple, 0.2, 0.03);
    let stack = format!(
        "ntdll!RtlUserThreadStart;{}!Worker;KernelBase.dll!CreateProcessInternalW;ntdll!NtCreateUserProcess;nt!NtCreateUserProcess;nt!PspInsertThread",
        victim.name
    );
    plan.cpu(&victim, "worker", cost, &format!("{stack};nt!PspCallProcessNotifyRoutines;{driver}+0x1c4e20"));
    plan.cpu(&victim, "worker", 0.1, &stack);
    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.2))
        .needs(cost, Limit::OfBusy(0.03))
        // Whatever the machine does: most of that program's time is the driver's.
        .also(&["security.driver-hot-path"])
        .costs_cpu(cost, &[&driver])
}

/// A driver sits in the tracing of system calls.
fn syscall_hook(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("[\"calls\", \"worker*16\"]");
    let driver = match if plan.random.chance(0.5) { plan.known(&SECURITY) } else { None } {
        Some(known) => {
            plan.image(&known, "");
            known
        }
        None => plan.driver(),
    };
    let cost = of_busy(plan, multiple, 0.1, 0.01);
    let call = format!(
        "ntdll!RtlUserThreadStart;{}!Worker;KernelBase.dll!ReadFile;ntdll!NtReadFile;nt!KiSystemCall64;nt!KiSystemServiceExitPico",
        victim.name
    );
    let log = "nt!EtwTraceKernelEvent;nt!EtwpLogKernelEvent";
    plan.cpu_stacks(
        &victim,
        "worker",
        cost,
        &[
            (1, &format!("{call};nt!PerfInfoLogSysCallEntry;{log}")),
            (1, &format!("{call};nt!PerfInfoLogSysCallEntry;{log};{driver}+0x2340")),
            (1, &format!("{call};nt!PerfInfoLogSysCallExit;{log}")),
            (1, &format!("{call};nt!PerfInfoLogSysCallExit;{log};{driver}+0x2340")),
        ],
    );
    plan.cpu(
        &victim,
        "worker",
        0.3,
        &format!(
            "ntdll!RtlUserThreadStart;{}!Worker;KernelBase.dll!ReadFile;ntdll!NtReadFile;nt!NtReadFile",
            victim.name
        ),
    );
    plan.table("syscall", &format!("process = \"{}\"\nthread = \"calls\"\nfunction = \"NtReadFile\"\ncount = 3000\nduration = \"8us\"", victim.pid));

    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.1))
        .needs(cost, Limit::OfBusy(0.01))
        .costs_cpu(cost, &["ntoskrnl.exe!PerfInfoLogSysCallEntry", "ntoskrnl.exe!PerfInfoLogSysCallExit"])
        .also(&["security.driver-hot-path"])
        .also_of(&Whom::Anybody, &["trace.tracing-cost"])
}

/// A security product's library in many programs.
fn injected_dll(plan: &mut Plan, multiple: f64) -> Planted {
    let library = plan
        .known(&["umppc16510.dll", "umppc17309.dll", "umppc19009.dll"])
        .unwrap_or_else(|| "umppc.dll".to_owned());
    let cost = of_busy(plan, multiple, 0.1, 0.02);
    let processes = 14;
    let each = (cost / f64::from(processes) * 1000.0).round() / 1000.0;
    for _ in 0..processes {
        let victim = plan.program("\"worker*4\"");
        plan.cpu(
            &victim,
            "worker",
            each,
            &format!("ntdll!RtlUserThreadStart;{}!Worker;ntdll!LdrLoadDll;{library}+0x4a30", victim.name),
        );
        plan.cpu(
            &victim,
            "worker",
            0.02,
            &format!("ntdll!RtlUserThreadStart;{}!Worker;{}!Work", victim.name, victim.name),
        );
    }
    plan.image(&library, "company = \"CrowdStrike, Inc.\"");
    let cost = each * f64::from(processes);
    Planted::by(Target::thing(&library))
        .needs(cost, Limit::Fixed(0.1))
        .needs(cost, Limit::OfBusy(0.02))
        .costs_cpu(cost, &[&library])
}

/// A driver works in each open of a file.
fn slow_opens(plan: &mut Plan, multiple: f64) -> Planted {
    let victim = plan.program("[\"opens\", \"worker*16\"]");
    let driver = plan.driver();
    let cost = plan.most(multiple, 0.3) * 0.3;
    let stack =
        format!("ntdll!RtlUserThreadStart;{}!Worker;{OPEN};fltmgr.sys!FltpPerformPreCallbacks", victim.name);
    plan.cpu(&victim, "worker", cost, &format!("{stack};{driver}!PreCreate"));
    plan.table(
        "file_io",
        &format!("process = \"{}\"\nthread = \"opens\"\nop = [\"create\", \"cleanup\", \"close\"]\npattern = 'C:\\src\\unit{{n}}.cpp'\ncount = 150\nduration = \"12us\"", victim.pid),
    );
    Planted::by(Target::thing(&driver))
        .needs(cost, Limit::Fixed(0.3))
        .costs_cpu(cost, &[&driver])
        .also(&["security.driver-hot-path", "security.minifilter-delay"])
}

/// A security product reads the whole disk.
fn full_scan(plan: &mut Plan, multiple: f64) -> Planted {
    let name = plan
        .known(&["MsMpEng.exe", "CSFalconService.exe", "SophosFileScanner.exe"])
        .unwrap_or_else(|| "MsMpEng.exe".to_owned());
    let (actor, disk) = (plan.process(&name, "\"scan\"", "session = 0"), plan.disk());
    let count = (multiple * 400.0).round();
    let each = (0.0015f64).min(plan.duration * 0.9 / count);
    plan.cpu(
        &actor,
        "scan",
        0.1,
        &format!("ntdll!RtlUserThreadStart;{name}!ScanThread;mpengine.dll!ScanFile"),
    );
    plan.table(
        "disk_io",
        &format!("process = \"{}\"\nthread = \"scan\"\nop = \"read\"\ndisk = {disk}\nfile = 'D:\\pictures\\film.mkv'\ncount = {count}\nsize = \"256KiB\"\nduration = \"{}us\"\narrival = \"exact\"\nto = \"{:.3}s\"", actor.pid, (each * 1e6).round(), plan.duration * 0.97),
    );
    Planted::by(Target::process(&actor))
        .needs(count, Limit::Fixed(400.0))
        .needs(count * each, Limit::OfTrace(0.1))
        .costs("read_bytes", count * 262_144.0)
        .also(&["disk.saturated"])
}

/// A filter asks its service about each file, and the program waits for the answer.
fn callback_waits(plan: &mut Plan, multiple: f64) -> Planted {
    let (filter, victim) = (plan.driver(), plan.program("\"main\""));
    let service = plan.program("\"scan*2\"");
    let count =
        (multiple * (0.1 * plan.duration).max(0.5) / 0.04).min(plan.duration * 0.93 / 0.044).round().max(1.0);
    let from = plan.random.between(0.01, plan.duration * 0.96 - count * 0.044);
    let open = OPEN.replace("fltmgr.sys!FltpPassThroughInternal", "fltmgr.sys!FltpPerformPostCallbacks");
    plan.table(
        "thread_activity",
        &format!("thread = \"{p}/main\"\nrun = \"4ms\"\nwait = \"40ms\"\nfrom = \"{from:.3}s\"\nto = \"{:.3}s\"\nwait_reason = \"Executive\"\nreadied_by = \"{s}/scan\"\nstack = \"ntdll!RtlUserThreadStart;{v}!main;{v}!Compile\"\nwait_stack = \"ntdll!RtlUserThreadStart;{v}!main;{open};{filter}!PostCreate;fltmgr.sys!FltSendMessage;nt!KeWaitForSingleObject\"\nready_stack = \"ntdll!RtlUserThreadStart;{n}!ScanThread;fltlib.dll!FilterReplyMessage;fltmgr.sys!FltpReplyMessage;nt!KeSetEvent\"", from + count * 0.044, p = victim.pid, s = service.pid, v = victim.name, n = service.name),
    );
    plan.busy += count * 0.004;
    plan.cpu(
        &service,
        "scan",
        0.1 * plan.duration,
        &format!("ntdll!RtlUserThreadStart;{n}!ScanThread;{n}!Judge", n = service.name),
    );
    let total = (count - 1.0).max(0.0) * 0.04;
    Planted::by(Target::thing(&filter))
        .needs(total, Limit::Fixed(0.5))
        .needs(total, Limit::OfTrace(0.1))
        .needs(count, Limit::Fixed(5.0))
}

/// Two products judge the same opens.
fn two_scanners(plan: &mut Plan, multiple: f64) -> Planted {
    let one = plan.known(&["WdFilter.sys", "klif.sys"]).unwrap_or_default();
    let two = plan.known(&["SophosED.sys", "aswSP.sys", "mfehidk.sys", "csagent.sys"]).unwrap_or_default();
    let victim = plan.program("\"worker*16\"");
    let each = of_busy(plan, multiple, 0.15, 0.02).min(plan.room() / 2.2);
    let open = format!("ntdll!RtlUserThreadStart;{}!Worker;{OPEN}", victim.name);
    for driver in [&one, &two] {
        plan.cpu(
            &victim,
            "worker",
            each,
            &format!("{open};fltmgr.sys!FltpPerformPreCallbacks;{driver}+0x8a40"),
        );
        plan.image(driver, "");
    }
    plan.cpu(&victim, "worker", each / 5.0, &format!("{open};Ntfs.sys!NtfsFsdCreate"));
    Planted::by(Target { own: vec![one.clone(), two], shared: None, twin: Vec::new() })
        .needs(each, Limit::Fixed(0.15))
        .needs(each, Limit::OfBusy(0.02))
        .costs_cpu(each, &[&one])
        .also(&["security.driver-hot-path", "security.first-open-penalty"])
}
