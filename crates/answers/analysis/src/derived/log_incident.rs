//! Records that say that something went wrong: services and programs that ended, restarts, disks, hardware, the clock, slow starts.
//!
//! # How it is computed
//!
//! Records of `log_record` by provider and event id, with the fields that name what it happened to. Event ids and fields: Microsoft's
//! pages "Service Control Manager" (events 7000 to 7034), "Event ID 41: the system has rebooted without cleanly shutting down first",
//! "Event ID 153", "Event ID 129", "WHEA-Logger", "4616(S): The system time was changed", and the classic message files of `disk`, `Ntfs`,
//! `Application Error` (1000), `.NET Runtime` (1026), `Windows Error Reporting` (1001), `EventLog` (6008). A row is one record.
//!
//! # What fools it
//!
//! One failure writes several records: a crash of a .NET program 1026, 1000 and 1001; a crash of Windows 41, 6008 and 1001. They
//! are rows of their own; the findings count them once.

use crate::derive::DerivedSpec;
use crate::fold::{freeze_plain, text};
use crate::logs::{base_name, pick};
use etwhy_base::time::parse_utc;
use etwhy_evtx::tables::LogRecordRow;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};

define_table! {
    /// Records of event logs that say that something went wrong, with what it happened to.
    pub table LOG_INCIDENT: LogIncidentRow = "log_incident" {
        sorted_by: "ts_ns", version: 1,
        /// When it was written.
        ts_ns: i64 [Ns, Time],
        /// The same since 1970 (UTC).
        utc_ns: i64 [Ns, Other],
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// Record id in its log.
        record_id: i64 [None, Other],
        /// Computer that wrote it.
        computer: Sym [None, Name],
        /// service_ended, service_not_started, service_timeout, app_crash, app_hang, reboot, disk, file_system, hardware,
        /// time_changed, slow_start, log_cleared.
        kind: Sym [None, Kind],
        /// Provider.
        provider: Sym [None, Name],
        /// Event id.
        event_id: i32 [None, Other],
        /// Level: 1 critical, 2 error, 3 warning, 4 information.
        level: i32 [None, Other],
        /// What it happened to: service, program, device, volume; null where the record does not say.
        subject: Option<Sym> [None, Name],
        /// Code or module that the record gives.
        code: Option<Sym> [None, Name],
        /// Duration of a slow start, or how far the clock was set (negative: back).
        amount_ns: Option<i64> [Ns, Other],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec =
    DerivedSpec { tables: &[&LOG_INCIDENT], reads: reads::<LogRecordRow>, on_demand: false, make };

/// What a record is, from what does not need its fields.
fn kind(provider: &str, id: i64, level: i64) -> Option<&'static str> {
    let is = |name: &str| provider.eq_ignore_ascii_case(name);
    let bad = (1..=3).contains(&level);
    Some(match id {
        7023 | 7024 | 7031 | 7034 if is("Service Control Manager") => "service_ended",
        7000 | 7001 if is("Service Control Manager") => "service_not_started",
        7009 | 7011 if is("Service Control Manager") => "service_timeout",
        1000 if is("Application Error") => "app_crash",
        1026 if is(".NET Runtime") => "app_crash",
        1001 if is("Windows Error Reporting") => "app_crash",
        1002 if is("Application Hang") => "app_hang",
        41 if is("Microsoft-Windows-Kernel-Power") => "reboot",
        6008 if is("EventLog") => "reboot",
        1001 if is("Microsoft-Windows-WER-SystemErrorReporting") || is("BugCheck") => "reboot",
        7 | 11 | 15 | 51 | 52 | 153 | 154 if is("disk") => "disk",
        // Ports and miniports: storahci, stornvme, iaStorAC, LSI_SAS, UASPStor, vhdmp, …; the time service has a 129 of its own.
        129 if bad && !is("Microsoft-Windows-Time-Service") && is_storage(provider) => "disk",
        55 | 98 | 130 | 137 if bad && (is("Ntfs") || is("Microsoft-Windows-Ntfs")) => "file_system",
        _ if bad && is("Microsoft-Windows-WHEA-Logger") => "hardware",
        1 if is("Microsoft-Windows-Kernel-General") => "time_changed",
        4616 if is("Microsoft-Windows-Security-Auditing") => "time_changed",
        100..=110 if is("Microsoft-Windows-Diagnostics-Performance") => "slow_start",
        1102 | 104 if is("Microsoft-Windows-Eventlog") => "log_cleared",
        _ => return None,
    })
}

fn is_storage(provider: &str) -> bool {
    let name = provider.to_ascii_lowercase();
    let starts = [
        "stor", "iastor", "lsi_", "uaspstor", "vhdmp", "megasas", "nvme", "amdsata", "ahci", "vsmraid",
        "pvscsi", "hpsa", "percsas", "elxstor", "ql", "vioscsi", "viostor", "secnvme", "mpio", "iscsiprt",
        "smartpqi", "arcsas", "3ware", "adp", "nvstor", "rcraid", "cht4sx", "bxois", "mvumis", "itsas35",
        "msiscsi",
    ];
    starts.iter().any(|start| name.starts_with(start))
}

/// What the fields say.
#[derive(Default)]
struct Said {
    subject: Option<String>,
    code: Option<String>,
    amount_ns: Option<i64>,
    /// It is nothing of that kind after all.
    not: bool,
}

fn said(kind: &str, provider: &str, id: i64, fields: &str) -> Said {
    let mut out = Said::default();
    match (kind, id) {
        // param1 is the time-out of 7009 and 7011; elsewhere it is the service.
        ("service_timeout", _) => {
            let [ms, service, old_ms, old_service] = pick(fields, ["param1", "param2", "Data1", "Data2"]);
            out.subject = service.or(old_service);
            out.amount_ns = milliseconds(ms.or(old_ms));
        }
        ("service_ended" | "service_not_started", _) => {
            let [service, code, old, old_code] = pick(fields, ["param1", "param2", "Data1", "Data2"]);
            out.subject = service.or(old);
            // Of 7031 and 7034 the second is how often, which counts since the last start of Windows.
            let code = code.or(old_code).filter(|_| !matches!(id, 7031 | 7034));
            // `%%1067` is the text of an error of Windows, or of the service's own (7024).
            out.code = code.map(|code| match code.strip_prefix("%%").map(str::parse::<u32>) {
                Some(Ok(number)) if number > 0xffff => format!("error 0x{number:08x}"),
                Some(Ok(number)) => format!("error {number}"),
                _ => code,
            });
        }
        ("app_crash", 1000) => {
            let [app, module, code, app1, module4, code7] =
                pick(fields, ["AppName", "ModuleName", "ExceptionCode", "Data1", "Data4", "Data7"]);
            out.subject = app.or(app1);
            let (module, code) = (module.or(module4), code.or(code7));
            out.code = match (module, code) {
                (Some(module), Some(code)) => Some(format!("{module}, 0x{}", code.trim_start_matches("0x"))),
                (module, code) => module.or(code),
            };
        }
        ("app_crash", 1026) => {
            let [message] = pick(fields, ["Data1"]);
            let line = message.as_deref().and_then(|m| m.lines().next().map(str::to_owned));
            out.subject = line.and_then(|l| l.rsplit(": ").next().map(|app| app.trim().to_owned()));
            let exception =
                message.as_deref().and_then(|m| m.lines().find_map(|l| l.split_once("Exception Info: ")));
            out.code = exception.map(|(_, e)| e.split([':', ' ']).next().unwrap_or(e).to_owned());
        }
        ("app_crash", _) => {
            let [event, app] = pick(fields, ["Data3", "Data6"]);
            let [named, named_app] = pick(fields, ["EventName", "P1"]);
            let event = named.or(event).unwrap_or_default();
            // The names of reports of crashes: "Windows Error Reporting event types".
            let crashes = ["APPCRASH", "BEX", "BEX64", "CLR20r3", "MoAppCrash", "InPageError"];
            out.not = !crashes.iter().any(|name| name.eq_ignore_ascii_case(&event));
            out.subject = named_app.or(app);
            out.code = Some(event);
        }
        ("app_hang", _) => {
            let [app, old] = pick(fields, ["AppName", "Data1"]);
            out.subject = app.or(old);
        }
        ("reboot", 41) => {
            let [code] = pick(fields, ["BugcheckCode"]);
            out.code = code.and_then(|c| number(&c)).filter(|c| *c != 0).map(|c| format!("0x{c:x}"));
        }
        ("reboot", 1001) => {
            let [code, old] = pick(fields, ["param1", "Data1"]);
            out.code = code.or(old);
        }
        ("disk" | "file_system", _) => {
            let names = ["DriveName", "VolumeName", "DeviceName", "Data1", "Data2", "param1"];
            let [drive, volume, device, first, second, param] = pick(fields, names);
            out.subject = drive.or(volume).or(device).or(first).or(param).or(second);
        }
        ("hardware", _) => {
            let [component, source, apic, bank] =
                pick(fields, ["PrimaryComponent", "ErrorSource", "ApicId", "MCABank"]);
            let part = |name: &str, value: Option<String>| value.map(|v| format!("{name} {v}"));
            out.subject = part("processor", apic).or_else(|| part("component", component));
            out.code = part("bank", bank).or_else(|| part("error source", source));
        }
        ("time_changed", _) => {
            let names = ["NewTime", "OldTime", "PreviousTime", "ProcessName", "Reason"];
            let [new, old, previous, process, reason] = pick(fields, names);
            let time = |text: Option<String>| text.and_then(|t| iso_ns(&t));
            out.amount_ns = time(new).zip(time(old.or(previous))).map(|(new, old)| new.saturating_sub(old));
            out.subject = process.map(|p| base_name(&p).to_owned());
            out.code = reason.map(|r| format!("reason {r}"));
        }
        ("slow_start", 100) => {
            let [boot] = pick(fields, ["BootTime"]);
            out.subject = Some("Windows".to_owned());
            out.amount_ns = milliseconds(boot);
        }
        ("slow_start", _) => {
            let [friendly, name, total] = pick(fields, ["FriendlyName", "Name", "TotalTime"]);
            out.subject = name.or(friendly);
            out.amount_ns = milliseconds(total);
        }
        ("log_cleared", _) => {
            let [who, channel] = pick(fields, ["SubjectUserName", "Channel"]);
            out.subject = channel.or_else(|| (id == 1102).then(|| "Security".to_owned()));
            out.code = who;
        }
        _ => {}
    }
    // Programs are named without their folders.
    if kind.starts_with("app_") {
        out.subject = out.subject.map(|path| base_name(&path).to_owned());
    }
    if kind == "disk" && out.subject.is_none() {
        out.subject = Some(provider.to_owned());
    }
    out
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn milliseconds(text: Option<String>) -> Option<i64> {
    number(&text?).and_then(|ms| ms.checked_mul(1_000_000))
}

/// Nanoseconds since 1970 of `2020-01-31T23:59:58.1234567Z`.
fn iso_ns(text: &str) -> Option<i64> {
    i64::try_from(parse_utc(text)?.as_nanosecond()).ok()
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut strings = Strings::new();
    let mut rows = TableBuilder::<LogIncidentRow>::new(memory);
    for row in &db.read_or_empty::<LogRecordRow>() {
        let name = row.provider();
        let Some(kind) = kind(name, row.event_id(), row.level()) else { continue };
        let said = said(kind, name, row.event_id(), row.fields().unwrap_or(""));
        if said.not {
            continue;
        }
        rows.push(LogIncidentRow {
            ts_ns: row.ts_ns(),
            utc_ns: row.utc_ns(),
            log: row.log() as i32,
            record_id: row.record_id(),
            computer: strings.intern(row.computer()),
            kind: strings.intern(kind),
            provider: strings.intern(name),
            event_id: row.event_id() as i32,
            level: row.level() as i32,
            subject: text(&mut strings, said.subject.as_deref().unwrap_or("")),
            code: text(&mut strings, said.code.as_deref().unwrap_or("")),
            amount_ns: said.amount_ns,
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        // `date -d 2020-02-29T23:59:58Z +%s`
        assert_eq!(iso_ns("2020-02-29T23:59:58.5Z"), Some(1_583_020_798_500_000_000));
        assert_eq!(iso_ns("1970-01-01T00:00:00.0000001Z"), Some(100));
        assert_eq!(iso_ns("2020-13-01T00:00:00Z"), None);
        assert_eq!(iso_ns("soon"), None);
    }

    #[test]
    fn what_records_say() {
        let of = |provider: &str, id, level, fields: &str| {
            let kind = kind(provider, id, level)?;
            let said = said(kind, provider, id, fields);
            let [subject, code] =
                [said.subject, said.code].map(|text| text.unwrap_or_else(|| "-".to_owned()));
            let amount = said.amount_ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
            Some((format!("{kind}: {subject}: {code}: {amount}"), said.not))
        };
        let says = |provider: &str, id, level, fields: &str, wanted: &str| {
            assert_eq!(of(provider, id, level, fields), Some((wanted.to_owned(), false)));
        };
        let scm = "Service Control Manager";
        says(scm, 7034, 2, r#"{"param1":"Spooler","param2":"3"}"#, "service_ended: Spooler: -: -");
        says(scm, 7024, 2, r#"{"param1":"X","param2":"%%5"}"#, "service_ended: X: error 5: -");
        says(
            scm,
            7023,
            2,
            r#"{"param1":"X","param2":"%%2147942405"}"#,
            "service_ended: X: error 0x80070005: -",
        );
        says(scm, 7009, 2, r#"{"param1":"30000","param2":"X"}"#, "service_timeout: X: -: 30000000000");
        assert_eq!(of(scm, 7036, 4, "{}"), None);
        says(
            "Application Error",
            1000,
            2,
            r#"{"Data1":"a.exe","Data2":"1","Data3":"2","Data4":"m.dll","Data5":"","Data6":"","Data7":"c0000005"}"#,
            "app_crash: a.exe: m.dll, 0xc0000005: -",
        );
        says(
            ".NET Runtime",
            1026,
            2,
            r#"{"Data1":"Application: b.exe\nFramework Version: v4\nException Info: System.IO.IOException: x"}"#,
            "app_crash: b.exe: System.IO.IOException: -",
        );
        let report = |event: &str| format!(r#"{{"Data1":"1","Data3":"{event}","Data6":"c.exe"}}"#);
        says("Windows Error Reporting", 1001, 4, &report("APPCRASH"), "app_crash: c.exe: APPCRASH: -");
        assert!(of("Windows Error Reporting", 1001, 4, &report("WindowsUpdateFailure3")).unwrap().1);
        says("Microsoft-Windows-Kernel-Power", 41, 1, r#"{"BugcheckCode":159}"#, "reboot: -: 0x9f: -");
        says("Microsoft-Windows-Kernel-Power", 41, 1, r#"{"BugcheckCode":0}"#, "reboot: -: -: -");
        says("disk", 7, 2, r#"{"Data1":"\\Device\\Harddisk1\\DR1"}"#, "disk: \\Device\\Harddisk1\\DR1: -: -");
        says("stornvme", 129, 3, r#"{"Data1":"\\Device\\RaidPort0"}"#, "disk: \\Device\\RaidPort0: -: -");
        assert_eq!(of("Microsoft-Windows-Time-Service", 129, 3, "{}"), None);
        assert_eq!(of("Microsoft-Windows-Ntfs", 98, 4, "{}"), None, "the volume is healthy");
        says(
            "Microsoft-Windows-Kernel-General",
            1,
            4,
            r#"{"NewTime":"2020-01-01T01:00:00.0000000Z","OldTime":"2020-01-01T02:00:00.0000000Z"}"#,
            "time_changed: -: -: -3600000000000",
        );
        says(
            "Microsoft-Windows-Diagnostics-Performance",
            100,
            3,
            r#"{"BootTime":90000}"#,
            "slow_start: Windows: -: 90000000000",
        );
    }
}
