//! Modules that are Windows itself: never the culprit, whatever stands in them.

use std::sync::LazyLock;

use crate::table::{compare_lower, file_name, find, rows};
use crate::{DriverFact, driver, is_host};

/// Kernel modules that come with Windows and are not in the table of drivers.
static INBOX: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| rows(include_str!("../data/inbox.tsv")).map(|[module, _source]| module).collect());

/// Libraries that a program calls to reach the system. The function by which it enters them is the API that it
/// uses; what they call among themselves is not.
const SYSTEM_LIBRARIES: &[&str] = &[
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "cfgmgr32.dll",
    "clbcatq.dll",
    "combase.dll",
    "coremessaging.dll",
    "crypt32.dll",
    "cryptbase.dll",
    "cryptsp.dll",
    "dbghelp.dll",
    "devobj.dll",
    "dnsapi.dll",
    "dwmapi.dll",
    "fltlib.dll",
    "gdi32.dll",
    "gdi32full.dll",
    "gdiplus.dll",
    "imm32.dll",
    "iphlpapi.dll",
    "kernel.appcore.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "mpr.dll",
    "msvcp140.dll",
    "msvcp_win.dll",
    "msvcrt.dll",
    "mswsock.dll",
    "ncrypt.dll",
    "netapi32.dll",
    "nsi.dll",
    "ntdll.dll",
    "ntmarta.dll",
    "ole32.dll",
    "oleaut32.dll",
    "pdh.dll",
    "powrprof.dll",
    "profapi.dll",
    "propsys.dll",
    "psapi.dll",
    "rpcrt4.dll",
    "schannel.dll",
    "sechost.dll",
    "secur32.dll",
    "setupapi.dll",
    "shcore.dll",
    "shell32.dll",
    "shlwapi.dll",
    "sspicli.dll",
    "ucrtbase.dll",
    "user32.dll",
    "userenv.dll",
    "uxtheme.dll",
    "vcruntime140.dll",
    "version.dll",
    "wevtapi.dll",
    "win32u.dll",
    "winhttp.dll",
    "wininet.dll",
    "winmm.dll",
    "winmmbase.dll",
    "winspool.drv",
    "wintrust.dll",
    "wow64.dll",
    "wow64base.dll",
    "wow64con.dll",
    "wow64cpu.dll",
    "wow64win.dll",
    "ws2_32.dll",
    "wtsapi32.dll",
];

/// Functions at the outer end of every thread: nobody called them.
const THREAD_STARTS: &[&str] = &[
    "RtlUserThreadStart",
    "_RtlUserThreadStart",
    "__RtlUserThreadStart",
    "BaseThreadInitThunk",
    "BaseThreadStart",
    "BaseProcessStart",
    "TppWorkerThread",
    "TppSimplepExecuteCallback",
    "TppWorkpExecuteCallback",
    "TppIopExecuteCallback",
    "TppAlpcpExecuteCallback",
    "TppTimerpExecuteCallback",
    "TppExecuteWaitCallback",
    "RtlpTpWorkCallback",
    "RtlpTpTimerCallback",
    "LdrInitializeThunk",
    "LdrpInitialize",
    "_LdrpInitialize",
];

/// Drivers of disks and volumes of Windows: what file systems hand requests to
/// (<https://learn.microsoft.com/windows-hardware/drivers/storage/storage-class-drivers>).
const DISK_DRIVERS: &[&str] = &[
    "ataport.sys",
    "cdrom.sys",
    "classpnp.sys",
    "disk.sys",
    "fvevol.sys",
    "iorate.sys",
    "partmgr.sys",
    "rdyboost.sys",
    "scsiport.sys",
    "spaceport.sys",
    "storport.sys",
    "usbstor.sys",
    "volmgr.sys",
    "volmgrx.sys",
    "volsnap.sys",
];

/// File systems of disks that come with Windows: they stand above all drivers of disks and volumes.
const FILE_SYSTEMS: &[&str] =
    &["cdfs.sys", "exfat.sys", "fastfat.sys", "ntfs.sys", "refs.sys", "refsv1.sys", "udfs.sys"];

/// True for file systems of disks that come with Windows.
pub fn is_file_system(module: &str) -> bool {
    find(FILE_SYSTEMS, |name| name, file_name(module)).is_some()
}

/// True for drivers of disks and volumes. A driver that hands requests to them is a file system or a driver of disks itself, not a filter of
/// files.
pub fn is_disk_driver(module: &str) -> bool {
    let name = file_name(module);
    find(DISK_DRIVERS, |name| name, name).is_some()
        || driver(name).is_some_and(|fact| fact.category == "storage")
}

/// True if a kernel module is Windows itself or a host of other modules' code: time in it belongs to whoever
/// called it. `company` is that of the version resource, empty if unknown; then names decide.
///
/// Microsoft's drivers for devices, its filters (Defender, BitLocker, Cloud Files) and modules without any
/// known name count as drivers of their own.
pub fn is_os_driver(module: &str, company: &str) -> bool {
    let name = file_name(module);
    if is_host(name) {
        return true;
    }
    match driver(name) {
        Some(fact) => is_os_fact(fact),
        None if !company.trim().is_empty() => {
            company.trim().get(..9).is_some_and(|c| c.eq_ignore_ascii_case("microsoft"))
        }
        None => INBOX.binary_search_by(|row| compare_lower(row, name)).is_ok(),
    }
}

fn is_os_fact(fact: &DriverFact) -> bool {
    match fact.category {
        "os" => true,
        // What the idle thread runs: it stands below DPCs that begin there, and calls none.
        "power" => fact.vendor == "Microsoft",
        // Hypercalls and the bus of virtual machines are called from anywhere in the kernel.
        "virtualisation" => matches!(fact.file, "winhv.sys" | "winhvr.sys" | "vmbus.sys" | "vmbkmcl.sys"),
        // In the list of abusable drivers by an old build only, and part of Windows.
        "third-party-utility" => {
            fact.vendor == "Microsoft" && matches!(fact.file, "csc.sys" | "termdd.sys" | "afd.sys")
        }
        _ => false,
    }
}

/// True for libraries of Windows that programs call, in any case, with or without a path.
pub fn is_system_library(module: &str) -> bool {
    find(SYSTEM_LIBRARIES, |name| name, file_name(module)).is_some()
}

/// True for functions at the outer end of a thread, which are no API that a program chose.
pub fn is_thread_start(function: &str) -> bool {
    THREAD_STARTS.contains(&function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(SYSTEM_LIBRARIES.is_sorted() && FILE_SYSTEMS.is_sorted() && DISK_DRIVERS.is_sorted());
        assert!(is_file_system(r"\SystemRoot\System32\drivers\Ntfs.sys") && !is_file_system("btr.sys"));
        assert!(INBOX.is_sorted_by(|a, b| a < b));
        assert!(INBOX.len() > 150);
        assert!(INBOX.iter().all(|module| driver(module).is_none()), "one fact in two tables");
    }

    #[test]
    fn windows_and_drivers() {
        for name in ["ntoskrnl.exe", r"\SystemRoot\System32\drivers\Ntfs.sys", "NDIS.SYS", "tcpip.sys"] {
            assert!(is_os_driver(name, ""), "{name}");
        }
        for name in ["hidclass.sys", "win32kfull.sys", "intelppm.sys", "netbt.sys", "winhvr.sys", "CSC.sys"] {
            assert!(is_os_driver(name, ""), "{name}");
        }
        // Defender, BitLocker, the NVMe driver: a Microsoft name is no acquittal.
        for name in ["WdFilter.sys", "fvevol.sys", "stornvme.sys", "tedrdrv.sys", "mssecflt.sys"] {
            assert!(!is_os_driver(name, "Microsoft Corporation"), "{name}");
        }
        assert!(!is_os_driver("new.sys", ""));
        assert!(is_os_driver("new.sys", "Microsoft Corporation"));
        assert!(!is_os_driver("hidclass2.sys", "Example Ltd"));
    }

    #[test]
    fn libraries_and_starts() {
        assert!(is_system_library(r"C:\Windows\System32\KernelBase.dll"));
        assert!(is_system_library("ntdll.dll"));
        assert!(!is_system_library("server.exe"));
        assert!(!is_system_library("libiomp5md.dll"));
        assert!(is_thread_start("RtlUserThreadStart") && !is_thread_start("SleepEx"));
    }
}
