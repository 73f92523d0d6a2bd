//! Values that the authors of the traces state themselves: in the programs that wrote them, or in the tests of
//! the projects that they come from.
#![allow(clippy::approx_constant)] // 3.14 is what the test program wrote

use crate::support::{corpus, number, pass, rows, table, text, walk};
use etwhy_decode::read::read;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// (name, fields) of all events of a provider.
fn events_of(path: &Path, provider: &str) -> Vec<(String, Value)> {
    let output = pass(path, "event");
    let events = table(&output, "event");
    rows(events)
        .filter(|row| text(events, *row, "provider") == provider)
        .map(|row| {
            let fields = serde_json::from_str(text(events, row, "fields")).unwrap();
            (text(events, row, "name").to_owned(), fields)
        })
        .collect()
}

/// `TraceLoggingTester/Program.cs` of Siemens-Healthineers/ETWAnalyzer: ten rounds of seven calls.
#[test]
fn events_of_trace_logging_tester() {
    let Some(corpus) = corpus() else { return };
    let path = corpus.join("Siemens-Healthineers+ETWAnalyzer/TraceLoggingTester.etl");
    let mut want = Vec::new();
    for i in 0..10 {
        for (name, fields) in [
            ("MarkString", json!({"input": "Hello, ETW!"})),
            ("MarkStringInteger", json!({"input": "Hello, ETW with number", "number1": 42})),
            (
                "MarkBoolByteCharDoubleInt16Int32Int64SByteUInt16UInt32UInt64",
                json!({
                    "boolean": true, "b": i, "c": "A", "d": 3.14, "i16": -32768, "i32": 2147483647,
                    "i64": 9223372036854775807i64, "sb": -128, "u16": 65535, "u32": 4294967295u32,
                    "u64": 18446744073709551615u64
                }),
            ),
            ("WriteIntList", json!({"numbers": [i, 2, 3, 4]})),
            ("WriteDateTime", json!({"dateTime": "2000-01-01T00:00:00.0000000Z"})),
            // TimeSpan.FromSeconds(42), in units of 100 ns.
            ("WriteTimeSpan", json!({"timeSpan": 420_000_000})),
            ("WriteGuid", json!({"guid": "00000000-0000-0000-0000-000000000001"})),
        ] {
            want.push((name.to_owned(), fields));
        }
    }
    assert_eq!(events_of(&path, "CSharpTraceLoggingEventSource"), want);

    // All by one thread of one process, all with a stack.
    let output = pass(&path, "event process");
    let (events, processes) = (table(&output, "event"), table(&output, "process"));
    let own = |row: &u32| text(events, *row, "provider") == "CSharpTraceLoggingEventSource";
    let mut threads = Vec::new();
    for row in rows(events).filter(own) {
        threads.push(number(events, row, "utid"));
        let process = number(events, row, "upid").unwrap() as u32;
        assert_eq!(text(processes, process, "name"), "TraceLoggingTester.exe");
        assert!(number(events, row, "stack_id").is_some(), "row {row}");
    }
    threads.dedup();
    assert_eq!(threads.len(), 1);
}

/// `Issue1618.cs` of microsoft/perfview.
#[test]
fn struct_of_self_describing_single_event() {
    let Some(corpus) = corpus() else { return };
    let path = corpus.join("microsoft+perfview/SelfDescribingSingleEvent.etl");
    let want = vec![("TestEvent".to_owned(), json!({"a": {"b": "Hello", "c": "World!"}}))];
    assert_eq!(events_of(&path, "MySource"), want);
}

/// Numbers that `PlaybackTest.cs` and `TypeStatisticsTest.cs` of microsoft/Tx expect of `HTTP_Server.etl`: Parse
/// (2) and Deliver (3) 291 times, FastResp (8) 289 times, 12 types, 2041 events.
#[test]
fn counts_of_http_server() {
    let Some(corpus) = corpus() else { return };
    let output = pass(&corpus.join("microsoft+Tx/HTTP_Server.etl"), "event_type");
    let types = table(&output, "event_type");
    let http = |row: &u32| text(types, *row, "provider") == "Microsoft-Windows-HttpService";
    let count = |id| {
        let mut of = rows(types).filter(http).filter(|row| number(types, *row, "id") == Some(id));
        number(types, of.next().unwrap(), "count")
    };
    assert_eq!((count(2), count(3), count(8)), (Some(291), Some(291), Some(289)));
    assert_eq!(rows(types).filter(http).count(), 12);
    assert_eq!(rows(types).filter(http).filter_map(|row| number(types, row, "count")).sum::<i64>(), 2041);
}

/// Bond: one manifest, then `Evt { Time, Message }` with "iteration 0" to "iteration 9" in Bond's compact
/// protocol: field 1 as string (0x29), field 2 as string (0x49), each a length and text, and 0 at the end.
#[test]
fn payloads_of_bond_samples() {
    let Some(corpus) = corpus() else { return };
    let samples =
        [("BondEtwSample.v1.etl", "string", "10/24/2015"), ("BondEtwSample.v2.etl", "datetime", "8/24/2015")];
    for (file, kind, day) in samples {
        let events = events_of(&corpus.join("microsoft+Tx").join(file), "MSOpenTech-Tx-BinaryEventSource");
        let names: Vec<&str> = events.iter().map(|e| e.0.as_str()).collect();
        assert_eq!(names[..2], ["ManifestData", "WriteManifestPayload"], "{file}");
        let bond = format!(
            "namespace BondEtwSample\r\n\r\nstruct Evt\r\n{{\r\n\t1: required {kind} Time;\r\n\t2: required \
             string Message;\r\n}};"
        );
        assert_eq!(events[1].1["manifestPayload"], *bond, "{file}");
        assert_eq!(events[1].1["inputProtocol"], "BondManifest", "{file}");
        assert_eq!(events.len(), 12, "{file}");
        for (i, (name, fields)) in events[2..].iter().enumerate() {
            let message = format!("iteration {i}");
            let mut payload = vec![0x29, day.len() as u8];
            payload.extend(day.as_bytes());
            payload.extend([0x49, message.len() as u8]);
            payload.extend(message.as_bytes());
            payload.push(0);
            let hex: String = payload.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(name, "WriteBinaryPayload", "{file}");
            assert_eq!(fields["eventPayload"], *hex, "{file}");
            assert_eq!(fields["eventPayloadLength"], payload.len(), "{file}");
            assert_eq!(fields["inputProtocol"], "BOND_V1", "{file}");
            assert_eq!(fields["manifestId"], events[1].1["manifestId"], "{file}");
        }
    }
}

/// Events of Microsoft-Windows-RPC by name, and arrays of structures as long as their count says.
#[test]
fn events_of_rpc_capture() {
    let Some(corpus) = corpus() else { return };
    let events = events_of(
        &corpus.join("trailofbits+RpcInvestigator/ms-rpc-capture-arrays.etl"),
        "Microsoft-Windows-RPC",
    );
    assert_eq!(events.len(), 32);
    let mut parameters = 0;
    for (name, fields) in &events {
        assert_eq!(name, "RpcClientCall/Stop");
        let list = fields["Params"].as_array().unwrap();
        assert_eq!(fields["NumberOfParameters"], list.len());
        assert!(list.iter().all(|p| p.as_object().unwrap().len() == 5), "{fields}");
        parameters += list.len();
        assert!(fields.get("_rest").is_none() && fields.get("_truncated").is_none());
    }
    assert!(parameters > 20, "{parameters}");
    // RPC_S_SERVER_UNAVAILABLE because the object \RPC Control\TermSrvApi was not found.
    let (_, call) = &events[1];
    assert_eq!(call["Status"], "0x6ba");
    assert_eq!(call["Params"][1]["UnicodeValue"], "\\RPC Control\\TermSrvApi");
}

/// Events of Windows PowerShell without any description in the trace: the names come from the shipped manifest.
#[test]
fn events_of_powershell() {
    let Some(corpus) = corpus() else { return };
    let events =
        events_of(&corpus.join("microsoft+krabsetw/powershell.a.etl"), "Microsoft-Windows-PowerShell");
    let count = |name: &str| events.iter().filter(|e| e.0 == name).count();
    assert_eq!(events.len(), 112);
    assert_eq!(
        (count("CommandLifecycle"), count("ProviderLifecycle"), count("EngineLifecycle")),
        (101, 6, 1)
    );
    assert_eq!((count("ConsoleStartup/Start"), count("ConsoleStartup/Stop")), (1, 1));
    for (name, fields) in events.iter().filter(|e| e.0 == "CommandLifecycle") {
        let context = fields["ContextInfo"].as_str().unwrap();
        assert!(context.contains("Host Name = ConsoleHost\r\n"), "{name} {context}");
        assert!(context.contains("Engine Version = 5.1.22621.436\r\n"), "{name} {context}");
    }
}

/// Modules of `kernel_log_unittest_data.cc` of google/syzygy: base, size, and what it calls image checksum and
/// time stamp.
const MODULES: [(u64, u64, u64, u64, &str); 24] = [
    (
        0x0116_0000,
        0x19E000,
        0x4BA2_6867,
        0xCAFE_BABE,
        "C:\\code\\sawbuck\\src\\sawbuck\\Debug\\test_program.exe",
    ),
    (0x76E1_0000, 0x127000, 0x4791_A7A6, 0x0013_5D86, "C:\\Windows\\system32\\ntdll.dll"),
    (0x7568_0000, 0x0DB000, 0x4995_3395, 0x000D_C23C, "C:\\Windows\\system32\\kernel32.dll"),
    (0x73CB_0000, 0x032000, 0x4791_A7B6, 0x0003_A724, "C:\\Windows\\system32\\WINMM.dll"),
    (0x76B0_0000, 0x0AA000, 0x4791_A727, 0x000A_F8AE, "C:\\Windows\\system32\\msvcrt.dll"),
    (0x76D7_0000, 0x09D000, 0x4791_A773, 0x000A_8708, "C:\\Windows\\system32\\USER32.dll"),
    (0x75E0_0000, 0x04B000, 0x48FD_6647, 0x0004_9D43, "C:\\Windows\\system32\\GDI32.dll"),
    (0x76CA_0000, 0x0C6000, 0x4791_A64B, 0x000C_31B1, "C:\\Windows\\system32\\ADVAPI32.dll"),
    (0x75CF_0000, 0x0C2000, 0x49F0_625F, 0x000C_344A, "C:\\Windows\\system32\\RPCRT4.dll"),
    (0x758E_0000, 0x144000, 0x4791_A74C, 0x0014_6AAD, "C:\\Windows\\system32\\ole32.dll"),
    (0x75E5_0000, 0x08D000, 0x4791_A74F, 0x0008_FA63, "C:\\Windows\\system32\\OLEAUT32.dll"),
    (0x73C7_0000, 0x039000, 0x4791_A74D, 0x0003_B647, "C:\\Windows\\system32\\OLEACC.dll"),
    (0x76F4_0000, 0x058000, 0x4791_A75C, 0x0005_74F3, "C:\\Windows\\system32\\SHLWAPI.dll"),
    (0x75EE_0000, 0xB10000, 0x4A57_3229, 0x00B0_EE79, "C:\\Windows\\system32\\SHELL32.dll"),
    (0x75A3_0000, 0x01E000, 0x4791_A715, 0x0002_55A7, "C:\\Windows\\system32\\IMM32.DLL"),
    (0x76FA_0000, 0x0C8000, 0x4791_A720, 0x000C_CB64, "C:\\Windows\\system32\\MSCTF.dll"),
    (0x76AA_0000, 0x009000, 0x4791_A6E9, 0x0000_A2B7, "C:\\Windows\\system32\\LPK.DLL"),
    (0x769F_0000, 0x07D000, 0x4791_A776, 0x0007_DC08, "C:\\Windows\\system32\\USP10.dll"),
    (0x6C2B_0000, 0x023000, 0x4AF0_FA99, 0x0002_647C, "C:\\PROGRA~1\\GOOGLE\\GO333C~1\\GOEC62~1.DLL"),
    (0x75DD_0000, 0x02D000, 0x4791_A798, 0x0002_E055, "C:\\Windows\\system32\\WS2_32.dll"),
    (0x75DC_0000, 0x006000, 0x4791_A7A4, 0x0000_74AE, "C:\\Windows\\system32\\NSI.dll"),
    (0x6FA0_0000, 0x03E000, 0x4AAA_262F, 0x0004_20DE, "C:\\PROGRA~1\\Sophos\\SOPHOS~1\\SOPHOS~1.DLL"),
    (0x7567_0000, 0x007000, 0x4549_BD99, 0x0000_9AC8, "C:\\Windows\\system32\\PSAPI.DLL"),
    (
        0x746A_0000,
        0x19E000,
        0x4791_A752,
        0x001A_2D0F,
        "C:\\Windows\\WinSxS\\x86_microsoft.windows.common-controls_6595b64144ccf1df_6.0.6001.18000_none_\
         5cdbaa5a083979cc\\comctl32.dll",
    ),
];

/// 64-bit image records of an early `make_test_data.cc` with 32-bit sizes: not a layout of Windows.
const EARLY: [&str; 4] = [
    "log_lib_image_data_64_v1.fd9f9ec.etl",
    "log_lib_image_data_64_v2.e09ad69.etl",
    "viewer_test_data_64_v1.5114990.etl",
    "viewer_test_data_64_v2.3fa70fa.etl",
];

fn syzygy(corpus: &Path, kind: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("google+syzygy"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".etl") && name.contains(kind) && !EARLY.contains(&name)
        })
        .collect();
    files.sort();
    files
}

/// (opcode, fields) of the classic records. They were written by a 32-bit program also where they imitate a
/// 64-bit kernel, so the file name says how long a pointer is.
fn classic(path: &Path) -> Vec<(u8, Value)> {
    let pointer = if path.to_str().unwrap().contains("_64_") { 8 } else { 4 };
    let mut out = Vec::new();
    walk(path, |record, _, decoded, _| {
        let Some((schema, _)) = decoded.filter(|_| record.kind.is_classic()) else { return };
        let decoded = read(schema, record.payload(), pointer);
        let mut json = String::new();
        etwhy_decode::format::to_json(&mut json, schema, &decoded);
        assert!(decoded.rest.is_empty() && !decoded.truncated, "{}: {json}", path.display());
        out.push((record.opcode(), serde_json::from_str(&json).unwrap()));
    });
    out
}

fn unsigned(fields: &Value, names: &[&str]) -> Option<u64> {
    let value = names.iter().find_map(|name| fields.get(*name))?;
    match value.as_str() {
        Some(hex) => u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok(),
        None => value.as_u64(),
    }
}

/// `kernel_log_consumer_unittest.cc` of google/syzygy, image events of versions 0 to 2 in both bitnesses.
#[test]
fn image_events_of_syzygy() {
    let Some(corpus) = corpus() else { return };
    let mut files = syzygy(&corpus, "image_data");
    files.extend(syzygy(&corpus, "viewer_test_data"));
    assert_eq!(files.len(), 8);
    for path in files {
        let name = path.display();
        let has_stamps = name.to_string().contains("_v2.");
        let events = classic(&path);
        // All are there at first, then the first is unloaded and loaded again.
        let mut want: Vec<(u8, usize)> = (0..24).map(|i| (3, i)).collect();
        want.extend([(2, 0), (10, 0)]);
        assert_eq!(events.len(), want.len(), "{name}");
        for ((opcode, fields), (want_opcode, module)) in events.iter().zip(want) {
            let (base, size, checksum, stamp, path) = MODULES[module];
            assert_eq!(*opcode, want_opcode, "{name}");
            assert_eq!(unsigned(fields, &["ImageBase", "BaseAddress"]), Some(base), "{name}: {fields}");
            assert_eq!(unsigned(fields, &["ImageSize", "ModuleSize"]), Some(size), "{name}: {fields}");
            let file = fields.get("FileName").or_else(|| fields.get("ImageFileName")).unwrap();
            assert_eq!(file, path, "{name}");
            let stamps = has_stamps.then_some((checksum, stamp));
            let got = unsigned(fields, &["ImageChecksum"]).zip(unsigned(fields, &["TimeDateStamp"]));
            assert_eq!(got, stamps, "{name}: {fields}");
        }
    }
}

/// The same events through the trackers, where the trace is of the bitness that it states.
#[test]
fn image_table_of_syzygy() {
    let Some(corpus) = corpus() else { return };
    let files = syzygy(&corpus, "_32_v");
    let files: Vec<_> = files.iter().filter(|f| !f.to_string_lossy().contains("process_data")).collect();
    assert_eq!(files.len(), 6);
    for path in files {
        let output = pass(path, "image");
        let images = table(&output, "image");
        let name = path.display();
        let got: Vec<(u64, u64, &str)> = rows(images)
            .map(|r| {
                let unsigned = |column| number(images, r, column).unwrap() as u64;
                (unsigned("base"), unsigned("size_bytes"), text(images, r, "path"))
            })
            .collect();
        let again = std::iter::once(&MODULES[0]);
        let want: Vec<(u64, u64, &str)> = MODULES.iter().chain(again).map(|m| (m.0, m.1, m.4)).collect();
        assert_eq!(got, want, "{name}");
        let life = |row| (number(images, row, "load_ns"), number(images, row, "unload_ns"));
        let (first, second) = (life(0), life(24));
        // The writer slept one second before each of the two.
        assert!(first.0.is_none() && second.1.is_none(), "{name}: {first:?} {second:?}");
        let pause = second.0.unwrap() - first.1.unwrap();
        assert!((1_000_000_000..1_100_000_000).contains(&pause), "{name}: {pause}");
        assert!((1..24).all(|row| life(row) == (None, None)), "{name}");
    }
}

/// Processes of `kernel_log_unittest_data.cc`: pid, parent, session, SID, image, command line. All but the last
/// run all the time; the last one starts and ends.
const PROCESSES: [(u64, u64, u32, &str, &str, &str); 4] = [
    (0, 0, u32::MAX, "S-1-5-18", "Idle", ""),
    (4, 0, u32::MAX, "S-1-5-18", "System", ""),
    (264, 4, u32::MAX, "S-1-5-18", "smss.exe", "\\SystemRoot\\System32\\smss.exe"),
    (
        1776,
        988,
        1,
        "S-1-5-21-753675414-103939432-3550797041-1000",
        "notepad.exe",
        "\"C:\\Windows\\system32\\notepad.exe\" ",
    ),
];

/// `kernel_log_consumer_unittest.cc` of google/syzygy, process events of versions 1 to 3 in both bitnesses.
#[test]
fn process_events_of_syzygy() {
    let Some(corpus) = corpus() else { return };
    let files = syzygy(&corpus, "process_data");
    assert_eq!(files.len(), 6);
    for path in files {
        let name = path.display();
        let version_1 = name.to_string().contains("_v1.");
        let events = classic(&path);
        let mut want = vec![(1, 3, 259), (2, 3, 0)];
        if !version_1 {
            want = [
                (3, 0, 259),
                (3, 1, 259),
                (3, 2, 259),
                (1, 3, 259),
                (2, 3, 0),
                (4, 0, 259),
                (4, 1, 259),
                (4, 2, 259),
            ]
            .to_vec();
        }
        assert_eq!(events.len(), want.len(), "{name}");
        for ((opcode, fields), (want_opcode, process, exit)) in events.iter().zip(want) {
            let (pid, parent, session, sid, image, command) = PROCESSES[process];
            assert_eq!(*opcode, want_opcode, "{name}");
            assert_eq!(fields["ProcessId"], pid, "{name}: {fields}");
            assert_eq!(fields["ParentId"], parent, "{name}");
            assert_eq!(fields["SessionId"], session, "{name}");
            assert_eq!(fields["ExitStatus"], exit, "{name}");
            assert_eq!(fields["UserSID"], sid, "{name}");
            assert_eq!(fields["ImageFileName"], image, "{name}");
            assert_eq!(fields.get("CommandLine").cloned(), (!version_1).then(|| json!(command)), "{name}");
        }
    }
}

/// The same through the trackers, where the trace is of the bitness that it states.
#[test]
fn process_table_of_syzygy() {
    let Some(corpus) = corpus() else { return };
    for path in syzygy(&corpus, "process_data_32") {
        let output = pass(&path, "process");
        let processes = table(&output, "process");
        let name = path.display();
        let version_1 = name.to_string().contains("_v1.");
        for (pid, parent, session, sid, image, command) in PROCESSES {
            let of_pid = |row: &u32| number(processes, *row, "pid") == Some(pid as i64);
            let all: Vec<u32> = rows(processes).filter(of_pid).collect();
            if version_1 && pid != 1776 {
                assert!(all.is_empty(), "{name}: {pid}");
                continue;
            }
            let [row] = all[..] else { panic!("{name}: {pid} is there {} times", all.len()) };
            assert_eq!(text(processes, row, "name"), image, "{name}");
            assert_eq!(number(processes, row, "parent_pid"), Some(parent as i64), "{name}");
            assert_eq!(number(processes, row, "session_id"), Some(i64::from(session as i32)), "{name}");
            assert_eq!(text(processes, row, "user_sid"), sid, "{name}");
            assert_eq!(text(processes, row, "command_line"), if version_1 { "" } else { command }, "{name}");
            let life = number(processes, row, "end_ns").zip(number(processes, row, "start_ns"));
            match life {
                Some((end, start)) => {
                    // It "ran" while the writer slept one second.
                    assert_eq!(pid, 1776, "{name}");
                    assert!((990_000_000..1_100_000_000).contains(&(end - start)), "{name}: {}", end - start);
                    assert_eq!(number(processes, row, "exit_status"), Some(0), "{name}");
                }
                None => assert_ne!(pid, 1776, "{name}"),
            }
        }
    }
}

/// The test program of the PerfView trace, from PerfView's lines about it (Process/Start, Process/Stop,
/// Thread/Start, Image/Load, Process/PerfCtr) and the runtime's.
#[test]
fn test_program_of_perfview() {
    let Some(corpus) = corpus() else { return };
    let output = pass(&corpus.join("microsoft+perfview/net.4.5.2.x64.etl"), "process image");
    let processes = table(&output, "process");
    let row = rows(processes).find(|row| number(processes, *row, "pid") == Some(3676)).unwrap();
    assert_eq!(text(processes, row, "name"), "Test.x64.exe");
    assert_eq!(text(processes, row, "command_line"), "Test.x64.exe");
    assert_eq!(number(processes, row, "parent_pid"), Some(3508));
    assert_eq!(number(processes, row, "session_id"), Some(1));
    assert_eq!(number(processes, row, "exit_status"), Some(0));
    assert_eq!(number(processes, row, "unique_key"), Some(0xfffffa8300cfb380u64 as i64));
    assert_eq!(number(processes, row, "wow64"), Some(0));
    let parent = number(processes, row, "parent_upid").unwrap() as u32;
    assert_eq!(text(processes, parent, "name"), "cmd.exe");
    assert_eq!(number(processes, row, "start_ns"), Some(2_733_175_800));
    let path = "\\\\clrmain\\public\\PerfInvestigations\\20-07-28.TestTraces\\Test.x64.exe";
    assert!(text(processes, row, "path").ends_with(&path[2..]), "{}", text(processes, row, "path"));

    // The images that it loads are unloaded at its end, and nothing stands twice at one place.
    let images = table(&output, "image");
    let own = |r: &u32| number(images, *r, "upid") == Some(i64::from(row));
    assert!(rows(images).filter(own).all(|r| number(images, r, "load_ns").is_some()));
    assert!(rows(images).filter(own).all(|r| number(images, r, "unload_ns").is_some()));
}
