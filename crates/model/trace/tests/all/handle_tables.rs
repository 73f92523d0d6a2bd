//! Tables of handles, of user interfaces and of messages, on traces written record by record: every number here is
//! counted by hand.

use crate::support::written::{Written, shown};
use crate::support::{Are, assert_ledger, ledger_count, sorted};

fn handle_call(t: &mut Written, us: i64, who: (u32, u32), op: u16, object: u64, handle: u32, ty: u16) {
    t.system(us, who, 0x1100 | op, |r| r.ptr(object).u32(handle).u16(ty));
}

#[test]
fn handles_are_followed_from_open_to_close() {
    let mut t = Written::new();
    let (a, b, system) = ((100, 101), (200, 201), (4, 8));
    t.process(1, 3, 100, 101, "a.exe").process(1, 3, 200, 201, "b.exe").process(1, 3, 4, 8, "System");
    let rundown = |t: &mut Written, us, op: u16, object, pid, handle, ty, name: &str| {
        t.system(us, (4, 8), 0x1100 | op, |r| r.ptr(object).u32(pid).u32(handle).u16(ty).utf16z(name));
    };
    rundown(&mut t, 2, 38, 0xE100, 100, 0x10, 37, "\\Device\\old");
    handle_call(&mut t, 10, a, 32, 0xE200, 0x20, 16);
    // The same value in another process.
    handle_call(&mut t, 11, b, 32, 0xE300, 0x20, 37);
    handle_call(&mut t, 12, a, 33, 0xE200, 0x20, 16);
    // The value is used again, and its close was not recorded.
    handle_call(&mut t, 13, a, 32, 0xE400, 0x20, 37);
    handle_call(&mut t, 14, a, 32, 0xE500, 0x20, 37);
    // b duplicates its file into a.
    t.system(20, b, 0x1122, |r| r.ptr(0xE300).u32(0x20).u32(0x30).u32(100).u16(37).u32(200));
    // A handle of the kernel, opened by a and closed by a thread of System.
    handle_call(&mut t, 30, a, 32, 0xE600, 0x8000_1234, 37);
    handle_call(&mut t, 40, system, 33, 0xE600, 0x8000_1234, 37);
    // Opened before the trace.
    handle_call(&mut t, 50, a, 33, 0xE700, 0x44, 16);
    handle_call(&mut t, 51, a, 33, 0xE100, 0x10, 37);
    // A record that ends too early, and one that names its object.
    t.system(55, a, 0x1120, |r| r.ptr(0xE800).u32(0x50));
    t.system(56, a, 0x1120, |r| r.ptr(0xE900).u32(0x54).u16(16).utf16z("Ready"));
    t.process(60, 2, 200, 201, "b.exe");
    // Windows closes what the ended process had.
    handle_call(&mut t, 61, b, 33, 0xE300, 0x20, 37);
    rundown(&mut t, 70, 39, 0xE500, 100, 0x20, 37, "\\Device\\new");
    for (number, name) in [(16u16, "Event"), (37, "File")] {
        t.system(80, system, 0x1125, |r| r.u16(number).u16(0).utf16z(name));
    }
    t.stack(13, 12, a, &[0xFFFF_F800_0000_1000]);
    t.stack(14, 14, a, &[0xFFFF_F800_0000_2000]);
    let output = t.pass("handle handle_leak process thread stack");
    let columns = "ts_ns close_ns dur_ns opened_by closed_by upid utid closed_by_utid object_type name from_upid \
                   stack_id close_stack_id";
    shown(&output, "handle", columns).are(&[
        "2 51 49 rundown close 100 - 101 File \\Device\\old - - -",
        "10 12 2 create close 100 101 101 Event - - - 0",
        "11 60 49 create exit 200 201 - File - - - -",
        "13 - - create unseen 100 101 - File - - - -",
        "14 - - create - 100 101 - File \\Device\\new - 1 -",
        "20 - - duplicate - 100 201 - File - 200 - -",
        "30 40 10 create close 4 101 8 File - - - -",
        "56 - - create - 100 101 - Event Ready - - -",
    ]);
    let columns = "upid object_type open_at_start creates closes closed_by_exit outstanding peak";
    sorted(shown(&output, "handle_leak", columns)).are(&[
        // 0x44 was open before and closed; 0x20 came and went; 0x54 is there.
        "100 Event 1 2 2 0 1 2",
        // 0x10 was open before and closed; 0x20 twice, the first ended unseen; 0x30.
        "100 File 1 3 1 0 2 3",
        "200 File 0 1 0 1 0 1",
        "4 File 0 1 1 0 0 1",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("frees_unseen", 1), ("payload_too_short", 1)]);
}

#[test]
fn a_leak_has_a_slope() {
    let mut t = Written::new();
    t.process(0, 3, 100, 101, "leaker.exe").process(0, 3, 200, 201, "busy.exe");
    // Ten a second for ten seconds stay open; of the other process all are closed after a millisecond.
    for n in 0..100u32 {
        let us = i64::from(n) * 100_000 + 50_000;
        handle_call(&mut t, us, (100, 101), 32, 0xE000 + u64::from(n), 4 * n, 16);
        handle_call(&mut t, us, (200, 201), 32, 0xF000 + u64::from(n), 4 * n, 16);
        handle_call(&mut t, us + 1000, (200, 201), 33, 0xF000 + u64::from(n), 4 * n, 16);
    }
    t.process(10_000_000, 4, 4, 8, "System");
    let output = t.pass("handle_leak process thread");
    let table = output.db.get("handle_leak").unwrap();
    let cell = |row, column| table.f64(row, column).unwrap();
    shown(&output, "handle_leak", "upid outstanding peak").are(&["100 100 100", "200 0 1"]);
    assert!((cell(0, "leak_slope_per_second") - 10.0).abs() < 0.01, "{}", cell(0, "leak_slope_per_second"));
    assert!(cell(0, "leak_r2") > 0.999);
    assert!(cell(1, "leak_slope_per_second").abs() < 0.01 && cell(1, "leak_r2") < 0.01);
}

const WIN32K: &str = "8c416c79-d49b-4f01-a467-e56d3aa8234c";

#[test]
fn delays_of_user_interfaces() {
    let mut t = Written::new();
    let (app, other, dwm) = ((100, 101), (200, 201), (4, 8));
    t.process(0, 3, 100, 101, "app.exe").process(0, 3, 200, 201, "other.exe");
    t.thread(0, 3, 100, 101).thread(0, 3, 200, 201);
    let check = |t: &mut Written, us, who, ms: u32| {
        t.event(us, who, WIN32K, 38, |r| {
            r.u32(1).u32(ms).u32(30).u32(20).utf16z("Edit").utf16z("Frame").utf16z("C:\\app.exe");
            r.u32(0x111).u64(0)
        });
    };
    // 6 s until 10 s; then one of 1 s, told of twice.
    check(&mut t, 10_000_000, app, 6000);
    check(&mut t, 12_000_000, app, 700);
    check(&mut t, 12_300_000, app, 1000);
    t.event(13_000_000, other, WIN32K, 37, |r| {
        r.u32(0).u32(250).u32(400).utf16z("A").utf16z("B").utf16z("C:\\o.exe").u32(0xF).u64(1)
    });
    t.event(13_100_000, other, WIN32K, 173, |r| {
        r.u32(0).u32(4999).u32(1).u32(0).utf16z("A").utf16z("B").utf16z("pkg").utf16z("aumid").u32(1).u64(1)
    });
    t.event(13_200_000, dwm, WIN32K, 35, |r| r.u32(201).u32(200).u32(1).u32(0).u32(300));
    let info = |t: &mut Written, us, id, tid: u32, check: u32, oldest: u32| {
        t.event(us, (4, 8), WIN32K, id, |r| r.u32(tid).u32(0).u32(check).u32(0).u32(oldest));
    };
    // Hangs while input waits; has not looked for messages, but has none.
    info(&mut t, 14_000_000, 36, 201, 7000, 6500);
    info(&mut t, 14_000_000, 36, 101, 9000, 0);
    info(&mut t, 14_100_000, 45, 201, 10, 5);
    // Its payload ends in the delay.
    t.event(14_200_000, app, WIN32K, 38, |r| r.u32(1).u16(0));
    let output = t.pass("ui_delay process thread stack");
    let columns = "start_ns dur_ns fresh_ns kind upid utid unresponsive pending window_class image_path message \
                   oldest_input_ns";
    shown(&output, "ui_delay", columns).are(&[
        "4000000 6000000 6000000 MessageCheckDelay 100 101 1 0 Edit C:\\app.exe WM_COMMAND 20000",
        "11300000 700000 700000 MessageCheckDelay 100 101 0 0 Edit C:\\app.exe WM_COMMAND 20000",
        "11300000 1000000 300000 MessageCheckDelay 100 101 0 0 Edit C:\\app.exe WM_COMMAND 20000",
        "12750000 250000 250000 InputProcessDelay 200 201 - 0 A C:\\o.exe WM_PAINT 400000",
        "8101000 4999000 4999000 ImmersiveMessageCheckDelay 200 201 0 0 A pkg WM_CREATE 0",
        "12900000 300000 300000 WaitCursor 200 201 - 0 - - - -",
        "7000000 7000000 7000000 ThreadInfoRundown 200 201 1 1 - - - 6500000",
        "14090000 10000 10000 ThreadExit 200 201 0 1 - - - 5000",
    ]);
    assert_eq!(ledger_count(&output, "payload_too_short"), 1);
}

#[test]
fn who_has_the_focus() {
    let mut t = Written::new();
    for (pid, tid) in [(100, 101), (200, 201), (300, 301)] {
        t.process(0, 3, pid, tid, "app.exe").thread(0, 3, pid, tid);
    }
    let change = |t: &mut Written, us, old: u32, new: u32| {
        t.event(us, (4, 8), WIN32K, 2, |r| r.u32(old).u32(new));
    };
    change(&mut t, 100, 101, 201);
    change(&mut t, 300, 201, 101);
    // Somebody else had it in between, and nobody has it for a while.
    change(&mut t, 700, 301, 0);
    change(&mut t, 900, 0, 201);
    let process = |t: &mut Written, us, session: u32, old: u32, new: u32| {
        t.event(us, (4, 8), WIN32K, 26, |r| r.u32(session).u32(old).u32(new));
    };
    process(&mut t, 150, 1, 100, 200);
    process(&mut t, 160, 2, 300, 100);
    process(&mut t, 450, 1, 200, 300);
    let output = t.pass("focus process thread");
    let columns = "kind start_ns end_ns dur_ns session_id upid utid from_upid from_utid";
    shown(&output, "focus", columns).are(&[
        "thread - 100 - - 100 101 - -",
        "process - 150 - 1 100 - - -",
        "process - 160 - 2 300 - - -",
        "thread 100 300 200 - 200 201 100 101",
        "process 150 450 300 1 200 - 100 -",
        "thread 300 - - - 100 101 200 201",
        "thread - 700 - - 300 301 - -",
        "thread 900 - - - 200 201 - -",
        "process 450 - - 1 300 - 200 -",
        "process 160 - - 2 100 - 300 -",
    ]);
}

#[test]
fn gdi_and_user_handles_have_owners() {
    let mut t = Written::new();
    t.process(0, 3, 100, 101, "a.exe").process(0, 3, 200, 201, "b.exe");
    t.thread(0, 3, 100, 101).thread(0, 3, 200, 201);
    let call = |t: &mut Written, us, id, handle: u64, ty: u32, session: u32, pid: u32| {
        t.event(us, (100, 101), WIN32K, id, |r| r.ptr(handle).u32(ty).u32(session).u32(pid));
    };
    // A bitmap of a that lives, a pen that is destroyed; the same value in another session.
    call(&mut t, 10, 455, 0x1005, 5, 1, 100);
    call(&mut t, 11, 455, 0x1030, 0x30, 1, 100);
    call(&mut t, 12, 455, 0x1005, 5, 2, 200);
    call(&mut t, 13, 456, 0x1030, 0x30, 1, 100);
    // A window with the value of the bitmap is another handle.
    call(&mut t, 14, 452, 0x1005, 1, 1, 100);
    // It is given to b, which ends.
    call(&mut t, 15, 454, 0x1005, 1, 1, 200);
    // A bitmap gets another handle, under which it is destroyed.
    call(&mut t, 16, 455, 0x2005, 5, 1, 100);
    t.event(17, (100, 101), WIN32K, 458, |r| r.ptr(0x2005).ptr(0x3005).u32(5).u32(1).u32(100));
    call(&mut t, 18, 456, 0x3005, 5, 1, 100);
    // Used again without a destruction; destroyed without a creation; a code that nobody knows.
    call(&mut t, 19, 455, 0x1005, 5, 1, 100);
    call(&mut t, 20, 453, 0x9999, 2, 1, 100);
    call(&mut t, 21, 452, 0x8888, 77, 1, 100);
    t.event(22, (100, 101), WIN32K, 452, |r| r.ptr(0x1).u32(1).u32(1));
    t.process(30, 2, 200, 201, "b.exe");
    call(&mut t, 31, 456, 0x1005, 5, 2, 200);
    let output = t.pass("gdi_user_handle gdi_user_leak process thread stack");
    let columns = "ts_ns close_ns dur_ns closed_by kind object_type session_id upid first_upid utid";
    shown(&output, "gdi_user_handle", columns).are(&[
        "10 - - unseen GDI Bitmap 1 100 - 101",
        "11 13 2 destroy GDI Pen 1 100 - 101",
        "12 30 18 exit GDI Bitmap 2 200 - 101",
        "14 30 16 exit USER Window 1 200 100 101",
        "16 18 2 destroy GDI Bitmap 1 100 - 101",
        "19 - - - GDI Bitmap 1 100 - 101",
        "21 - - - USER - 1 100 - 101",
    ]);
    let columns = "upid kind object_type open_at_start creates closes closed_by_exit outstanding peak";
    sorted(shown(&output, "gdi_user_leak", columns)).are(&[
        "100 GDI Bitmap 0 3 1 0 1 2",
        "100 GDI Pen 0 1 1 0 0 1",
        "100 USER - 0 1 0 0 1 1",
        "100 USER Menu 1 0 1 0 0 1",
        "100 USER Window 0 1 1 0 0 1",
        "200 GDI Bitmap 0 1 0 1 0 1",
        "200 USER Window 0 1 0 1 0 1",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("frees_unseen", 1), ("payload_too_short", 1)]);
}

#[test]
fn alpc_joins_client_and_server() {
    let mut t = Written::new();
    let (client, server, other) = ((100, 101), (200, 201), (200, 202));
    t.process(0, 3, 100, 101, "client.exe").process(0, 3, 200, 201, "server.exe");
    t.thread(0, 3, 100, 101).thread(0, 3, 200, 201).thread(0, 3, 200, 202);
    let call = |t: &mut Written, us, who, op: u16, id: u32| {
        t.system(us, who, 0x1A00 | op, |r| r.u32(id));
    };
    // The server waits on a port.
    t.system(5, server, 0x1A24, |r| r.u32(1).utf16z("\\RPC Control\\service"));
    // Request and reply.
    call(&mut t, 10, client, 33, 7);
    call(&mut t, 12, client, 35, 7);
    call(&mut t, 15, server, 34, 7);
    call(&mut t, 40, server, 33, 7);
    call(&mut t, 43, client, 34, 7);
    // The id is used again: a datagram, then one of which the receive was not seen.
    call(&mut t, 50, client, 33, 7);
    call(&mut t, 58, other, 34, 7);
    call(&mut t, 60, client, 33, 7);
    // A call that is cancelled: its wait ends without a reply.
    call(&mut t, 70, client, 33, 8);
    call(&mut t, 71, client, 35, 8);
    call(&mut t, 79, client, 37, 0xC000_0120);
    // Received, but never seen sent; replied.
    call(&mut t, 80, server, 34, 9);
    call(&mut t, 85, server, 33, 9);
    // Sent and received by nobody that is known: no thread runs on that processor.
    t.perf(90, 1, 0x1A21, |r| r.u32(10));
    t.perf(95, 1, 0x1A22, |r| r.u32(10));
    t.system(96, client, 0x1A21, |r| r.u16(1));
    t.stack(11, 10, client, &[0xFFFF_F800_0000_1000]);
    let output = t.pass("alpc process thread stack");
    let columns = "message_id send_ns receive_ns reply_ns reply_receive_ns latency_ns server_ns round_trip_ns wait_ns \
                   client_upid client_utid server_utid stack_id port";
    shown(&output, "alpc", columns).are(&[
        "7 10 15 40 43 5 25 33 31 100 101 201 0 \\RPC Control\\service",
        "7 50 58 - - 8 - - - 100 101 202 - -",
        "7 60 - - - - - - - 100 101 - - -",
        "8 70 - - - - - - 8 100 101 - - -",
        "9 - 80 85 - - 5 - - - - 201 - \\RPC Control\\service",
        "10 90 95 - - 5 - - - - - - - -",
    ]);
    assert_eq!(ledger_count(&output, "payload_too_short"), 1);
}
