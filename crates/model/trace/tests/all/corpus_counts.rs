//! Every trace of the corpus: as many records of every kind as an independent container reader counted.

use crate::support::{ledger_count, number, pass, rows, table, text};
use etwhy_decode::schema::DecodedBy;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Kernel events: the independent reader's group and type names, with our hook ids. Only where its name is
/// not the one that stands in our table of layouts; see [`hook_of`].
const HOOKS: &[(&str, u16)] = &[
    ("EventTrace/Header", 0x0000),
    ("EventTrace/Extension", 0x0005),
    ("EventTrace/RDComplete", 0x0008),
    ("EventTrace/EndExtension", 0x0020),
    ("EventTrace/64", 0x0040),
    ("EventTrace/66", 0x0042),
    ("EventTrace/80", 0x0050),
    ("EventTrace/82", 0x0052),
    ("DiskIo/Read", 0x010A),
    ("DiskIo/Write", 0x010B),
    ("DiskIo/ReadInit", 0x010C),
    ("DiskIo/WriteInit", 0x010D),
    ("DiskIo/Flush", 0x010E),
    ("DiskIo/FlushInit", 0x010F),
    ("Memory/HardFault", 0x0220),
    ("Process/Start", 0x0301),
    ("Process/End", 0x0302),
    ("Process/DCStart", 0x0303),
    ("Process/DCEnd", 0x0304),
    ("Process/ImageLoad(hook 030A)", 0x030A),
    ("Process/Terminate", 0x030B),
    ("Process/PerfCtr", 0x0320),
    ("Process/PerfCtrRundown", 0x0321),
    ("Process/Defunct", 0x0327),
    ("FileIo/FileCreate(name)", 0x0420),
    ("FileIo/FileDelete(name)", 0x0423),
    ("FileIo/FileRundown(name)", 0x0424),
    ("Thread/Start", 0x0501),
    ("Thread/End", 0x0502),
    ("Thread/DCStart", 0x0503),
    ("Thread/DCEnd", 0x0504),
    ("Thread/SetName", 0x0548),
    ("TcpIp/SendV6", 0x061A),
    ("TcpIp/RecvV6", 0x061B),
    ("TcpIp/DisconnectV6", 0x061D),
    ("TcpIp/AcceptV6", 0x061F),
    ("TcpIp/CopyV6", 0x0622),
    ("UdpIp/Send", 0x080A),
    ("UdpIp/Recv", 0x080B),
    ("UdpIp/SendV6", 0x081A),
    ("UdpIp/RecvV6", 0x081B),
    ("SysConfig/CPU", 0x0B0A),
    ("SysConfig/PhysDisk", 0x0B0B),
    ("SysConfig/LogDisk", 0x0B0C),
    ("SysConfig/NIC", 0x0B0D),
    ("SysConfig/Video", 0x0B0E),
    ("SysConfig/Services", 0x0B0F),
    ("SysConfig/Power", 0x0B10),
    ("SysConfig/NetInfo", 0x0B11),
    ("SysConfig/18", 0x0B12),
    ("SysConfig/19", 0x0B13),
    ("SysConfig/IRQ", 0x0B15),
    ("SysConfig/PnP", 0x0B16),
    ("SysConfig/IDEChannel?", 0x0B17),
    ("SysConfig/24", 0x0B18),
    ("SysConfig/Platform", 0x0B19),
    ("SysConfig/ProcGroup", 0x0B1A),
    ("SysConfig/ProcNumber", 0x0B1B),
    ("SysConfig/DPI", 0x0B1C),
    ("SysConfig/CodeIntegrity", 0x0B1D),
    ("SysConfig/TelemetryInfo?", 0x0B1E),
    ("SysConfig/Defrag?", 0x0B1F),
    ("SysConfig/33", 0x0B21),
    ("SysConfig/34", 0x0B22),
    ("SysConfig/35", 0x0B23),
    ("SysConfig/36", 0x0B24),
    ("SysConfig/37", 0x0B25),
    ("PerfInfo/SampledProfile", 0x0F2E),
    ("PerfInfo/SampledProfileIntervalDCStart", 0x0F49),
    ("PerfInfo/SampledProfileIntervalDCEnd", 0x0F4A),
    ("Image/Unload", 0x1402),
    ("Image/DCStart", 0x1403),
    ("Image/DCEnd", 0x1404),
    ("Image/KernelImageBase", 0x1421),
    ("Image/HypercallPage", 0x1422),
    ("StackWalk/Stack", 0x1820),
    ("StackWalk/KeyDelete", 0x1823),
    ("StackWalk/KeyRundown", 0x1824),
    ("StackWalk/KeyKernel", 0x1825),
    ("StackWalk/KeyUser", 0x1826),
];

/// Classic events: the independent reader's class names.
const CLASSES: &[(&str, &str)] = &[
    ("KTC:ImageId", "b3e675d7-2554-4f18-830b-2762732560de"),
    ("KTC:SystemConfigEx", "9b79ee91-b5fd-41c0-a243-4248e266e9d0"),
    ("KTC:EventMetadata", "bbccf6c1-6cd1-48c4-80ff-839482e37671"),
    ("PerfInfo(MOF)", "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"),
    ("Image", "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"),
    ("Process", "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"),
    ("WinSAT-blob", "ed54dff8-c409-4cf6-bf83-05e1e61a09c4"),
];

/// Manifest and TraceLogging providers: the independent reader's short names, with the GUIDs. Names that are
/// GUIDs stand for themselves.
const PROVIDERS: &[(&str, &str)] = &[
    (".NET-Runtime", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"),
    (".NET-Rundown", "a669021c-c450-4609-a035-5af59af4df18"),
    (".NET-RuntimePrivate", "763fd754-7086-4dfe-95eb-c01a46faf4ca"),
    ("EbpfForWindowsProvider", "394f321c-5cf4-404c-aa34-4df1428a7f9c"),
    ("FrameworkEventSource", "8e9f5090-2d75-4d03-8a81-e5afbf85daf1"),
    ("Microsoft-Windows-DNS-Client", "1c95126e-7eea-49a9-a3fe-a378b03ddb4d"),
    ("Microsoft-Windows-HttpService", "dd5ef90a-6398-47a4-ad34-4dcecdef795f"),
    ("Microsoft-Windows-Kernel-EventTracing", "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2"),
    ("Microsoft-Windows-Kernel-File", "edd08927-9cc4-4e65-b970-c2560fb5c289"),
    ("Microsoft-Windows-Kernel-Network", "7dd42a49-5329-4832-8dfd-43d979153a88"),
    ("Microsoft-Windows-Kernel-Process", "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716"),
    ("Microsoft-Windows-PowerShell", "a0c1853b-5c40-4b15-8766-3cf1c58f985a"),
    ("Microsoft-Windows-RPC", "6ad52b32-d609-4be9-ae07-ce8dae937e39"),
    ("PerfViewLogger(EventSource)", "a8a71ac1-040f-54a2-07ca-00a89b5ab761"),
    ("TplEventSource", "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5"),
    ("WUTraceLogging", "0b7a6f19-47c4-454e-8c5c-e868d637e4d8"),
];

/// What identifies a kind of record, as the independent reader tells kinds apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Kernel record: hook id.
    Hook(u16),
    /// Classic record: class, opcode, version.
    Class(String, u8, u16),
    /// Manifest or TraceLogging record: provider.
    Provider(String),
    /// WPP message: message GUID.
    Message(String),
}

fn lookup<'t, T>(list: &'t [(&str, T)], name: &str) -> Option<&'t T> {
    list.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
}

/// `MOF:<class>/op<opcode>v<version>`.
fn class_of(name: &str) -> Option<Kind> {
    let (class, rest) = name.strip_prefix("MOF:")?.rsplit_once("/op")?;
    let (opcode, version) = rest.split_once('v')?;
    let guid = lookup(CLASSES, class)?;
    Some(Kind::Class((*guid).to_owned(), opcode.parse().ok()?, version.parse().ok()?))
}

fn provider_of(name: &str) -> Option<Kind> {
    if let Some(guid) = name.strip_prefix("WPP:") {
        return Some(Kind::Message(guid.to_owned()));
    }
    let guid = lookup(PROVIDERS, name).copied().unwrap_or(name);
    (guid.len() == 36).then(|| Kind::Provider(guid.to_owned()))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn object<'v>(counts: &'v Value, key: &str) -> &'v Map<String, Value> {
    counts[key].as_object().unwrap()
}

/// What the independent reader counted, by our kinds; and the kernel counts by version.
fn expected(counts: &Value) -> (BTreeMap<Kind, u64>, BTreeMap<(u16, u16), u64>) {
    let mut kinds = BTreeMap::new();
    for (name, n) in object(counts, "events") {
        if name == "WPP" {
            // The total over all messages; they stand one by one among the providers.
            let messages = object(counts, "providers").iter().filter(|(p, _)| p.starts_with("WPP:"));
            assert_eq!(messages.map(|(_, n)| count(n)).sum::<u64>(), count(n));
            continue;
        }
        let kind = lookup(HOOKS, name).map(|hook| Kind::Hook(*hook)).or_else(|| class_of(name));
        let kind = kind.unwrap_or_else(|| panic!("no mapping for event {name}"));
        *kinds.entry(kind).or_default() += count(n);
    }
    for (name, n) in object(counts, "providers") {
        let kind = provider_of(name).unwrap_or_else(|| panic!("no mapping for provider {name}"));
        *kinds.entry(kind).or_default() += count(n);
    }
    let mut versions = BTreeMap::new();
    for (name, n) in object(counts, "event_versions") {
        let (name, version) = name.rsplit_once(" v").unwrap();
        let hook = lookup(HOOKS, name).unwrap_or_else(|| panic!("no mapping for {name}"));
        *versions.entry((*hook, version.parse().unwrap())).or_default() += count(n);
    }
    (kinds, versions)
}

#[test]
fn every_event_type_is_counted_as_an_independent_reader_counts_it() {
    let (mut files, mut records, mut kinds, mut by_version) = (0, 0, 0, 0);
    for (path, counts) in etwhy_testkit::counted_traces() {
        let name = path.display();
        let output = pass(&path, "trace event_type ledger");
        let want_records = count(&counts["records"]);
        assert_eq!(output.stats.records, want_records, "{name}: records");

        let types = table(&output, "event_type");
        let (mut seen, mut versions) = (BTreeMap::new(), BTreeMap::new());
        for row in rows(types) {
            let n = u64::try_from(number(types, row, "count").unwrap()).unwrap();
            let small = |column| u16::try_from(number(types, row, column).unwrap()).unwrap();
            let guid = text(types, row, "guid").to_owned();
            let opcode = u8::try_from(small("opcode")).unwrap();
            let hook = small("id");
            let kernel = text(types, row, "provider") == "Windows Kernel";
            let kind = match text(types, row, "name") {
                name if name.starts_with("Message(") => Kind::Message(guid),
                // Kernel records have a hook id; the group's classic twins have the opcode only.
                _ if kernel && (hook != 0 || guid == etwhy_etl::abi::guids::EVENT_TRACE.to_string()) => {
                    *versions.entry((hook, small("version"))).or_default() += n;
                    Kind::Hook(hook)
                }
                _ if CLASSES.iter().any(|(_, g)| *g == guid) => Kind::Class(guid, opcode, small("version")),
                _ => Kind::Provider(guid),
            };
            *seen.entry(kind).or_default() += n;
        }
        let (want, want_versions) = expected(&counts);
        assert_eq!(seen, want, "{name}: event types");
        assert_eq!(versions, want_versions, "{name}: versions of kernel events");
        assert_eq!(seen.values().sum::<u64>(), want_records, "{name}: every record is of some type");

        let trace = table(&output, "trace");
        assert_eq!(trace.rows(), 1, "{name}");
        let header = &counts["header"];
        for (column, key) in [
            ("os_build", "build"),
            ("cpus", "cpus"),
            ("cpu_mhz", "mhz"),
            ("pointer_size", "ptr"),
            ("clock_hz", "freq"),
            ("events_lost", "lost"),
            ("buffers_lost", "buffers_lost"),
            ("buffer_size_bytes", "buffer_size"),
        ] {
            assert_eq!(number(trace, 0, column), header[key].as_i64(), "{name}: {column}");
        }
        assert_eq!(number(trace, 0, "size_bytes"), counts["bytes"].as_i64(), "{name}");
        assert_eq!(number(trace, 0, "buffers"), counts["buffers"].as_i64(), "{name}");
        assert_eq!(number(trace, 0, "compressed_buffers"), counts["compressed_buffers"].as_i64(), "{name}");
        assert_eq!(text(trace, 0, "session"), header["names"][0].as_str().unwrap(), "{name}");
        assert_eq!(text(trace, 0, "log_file"), header["names"][1].as_str().unwrap(), "{name}");

        // The ledger says that events were lost exactly where the header says so.
        let lost = count(&header["lost"]);
        assert_eq!(ledger_count(&output, "events_lost"), lost, "{name}: events lost");
        // And nothing else says so where the header does not.
        if lost == 0 {
            assert_eq!(ledger_count(&output, "last_dropped_times"), 0, "{name}: moments of loss");
        }
        let damage: Vec<_> = output
            .ledger
            .entries()
            .filter(|e| e.anomaly.severity == etwhy_etl::Severity::Error)
            .map(|e| (e.anomaly.name, e.count, e.first.clone()))
            .collect();
        assert!(damage.is_empty(), "{name}: {damage:?}");
        // An event type without a description is in the ledger, and the other way round.
        let raw = rows(types).filter(|r| text(types, *r, "decoded_by") == DecodedBy::None.name()).count();
        assert_eq!(ledger_count(&output, "event_types_undecoded"), raw as u64, "{name}: undecoded types");

        files += 1;
        records += want_records;
        kinds += want.len();
        by_version += want_versions.len();
    }
    println!("{files} traces, {records} records, {kinds} kinds and {by_version} kernel versions agree");
}
