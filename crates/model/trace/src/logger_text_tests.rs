use super::*;

/// As `xperf -loggers` prints it, with a foreign session that took the kernel logger.
const XPERF: &str = "Logger Name           : NT Kernel Logger\r\n\
Logger Id             : ffff\r\nLogger Thread Id      : 0000000000001F40\r\nBuffer Size           : 64\r\n\
Maximum Buffers       : 118\r\nMinimum Buffers       : 96\r\nNumber of Buffers     : 96\r\n\
Free Buffers          : 92\r\nBuffers Written       : 183221\r\nEvents Lost           : 4711\r\n\
Log Buffers Lost      : 2\r\nReal Time Buffers Lost: 3\r\nFlush Timer           : 1\r\n\
Age Limit             : 15\r\nReal Time Mode        : Enabled\r\nLog File Mode         : Secure\r\n\
Maximum File Size     : 0\r\nLog Filename          : PaloNull\r\nTrace Flags           : SYSCALL\r\n\r\n\
Logger Name           : EventLog-Application\r\nLogger Id             : 9\r\nBuffer Size           : 64\r\n\
Log File Mode         : Secure PersistOnHybridShutdown\r\nLog Filename          : \r\n\
Trace Flags           : \"Microsoft-Windows-SenseIR\":0x8000000000000000:0xff+\
\"Microsoft-Windows-Winlogon\":0x20:0x4+\r\n{1c95126e-7eea-49a9-a3fe-a378b03ddb4d}:0x0:0x5\r\n";

/// As `logman query -ets` and `logman query NAME -ets` print it.
const LOGMAN: &str = "\nData Collector Set                      Type                          Status\n\
-------------------------------------------------------------------------------\n\
Circular Kernel Context Logger          Trace                         Running\n\
NT Kernel Logger                        Trace                         Running\n\n\
The command completed successfully.\n\n\n\
Name:                 EventLog-System\nStatus:               Running\n\
Root Path:            %systemdrive%\\PerfLogs\\Admin\nSegment:              Off\n\n\
Name:                 EventLog-System\\EventLog-System\nType:                 Trace\n\
Buffer Size:          64\nBuffers Lost:         1\nBuffers Written:      47\n\
Clock Type:           System\nFile Mode:            Real-time\n\n\
Provider:\nName:                 Microsoft-Windows-Kernel-General\n\
Provider Guid:        {A68CA8B7-004F-D7B6-A698-07E2DE0F1F5D}\nLevel:                255\n\
KeywordsAll:          0x0\nKeywordsAny:          0x8000000000000000 (System)\n\
Properties:           65\nFilter Type:          0\n\n\
Provider:\nName:                 Microsoft-Windows-DNS-Client\n\
Provider Guid:        {1C95126E-7EEA-49A9-A3FE-A378B03DDB4D}\n\
Level:                4 (win:Informational)\nKeywordsAll:          0x0\n\
KeywordsAny:          0xffffffffffffffff\n\n\
Name:                 NT Kernel Logger\nStatus:               Running\n\n\
Name:                 NT Kernel Logger\\NT Kernel Logger\nType:                 Trace\n\
Output Location:      C:\\kernel.etl\n\n\
Provider:\nName:                 Windows Kernel Trace\n\
Provider Guid:        {9E814AAD-3204-11D2-9A82-006008A86939}\nLevel:                0\n\
KeywordsAll:          0x0\nKeywordsAny:          0x237f (process,thread,img,cswitch)\n\n\
The command completed successfully.\n";

/// As `wpr -status collectors -details` prints it.
const WPR: &str = "WPR recording is in progress...\n\nTime since start        : 00:04:27\n\
Dropped event           : 0\nLogging mode            : Memory\n\n\
Actively recording collectors:\n\n\
Collector Name          : NT Kernel Logger\nBuffer Size (KB)        : 1024\nEvents Lost             : 7\n\
System Keywords\n\tCSwitch\n\tProcessThread\nSystem Stacks\n\tCSwitch\n\n\
Collector Name          : WPR_initiated_WPR Event Collector\nBuffer Size (KB)        : 512\n\
Providers\n        Microsoft-Windows-Shell-Core: 0x1000000000000: 0x04\n\
\x20       Microsoft-Windows-Win32k: 0x1000000402000: 0xff : Stack\n\
CaptureState Providers on Save\n\x20       Microsoft-Windows-Win32k: 0x80000: 0xff\n";

#[test]
fn xperf() {
    let found = parse(XPERF.as_bytes(), "loggers.txt");
    assert_eq!(found.len(), 2);
    let kernel = &found[0];
    assert_eq!((kernel.name.as_str(), kernel.id, kernel.tool), ("NT Kernel Logger", Some(0xFFFF), "xperf"));
    assert_eq!(kernel.log_file.as_deref(), Some("PaloNull"));
    assert_eq!(kernel.kernel_flags, ["SYSCALL"]);
    assert_eq!((kernel.events_lost, kernel.buffers_lost), (Some(4711), Some(5)));
    assert_eq!((kernel.buffer_bytes, kernel.minimum_buffers), (Some(65_536), Some(96)));
    let user = &found[1];
    assert_eq!((user.id, user.log_file.as_deref()), (Some(9), None));
    let names: Vec<&str> = user.providers.iter().map(|p| p.name.as_str()).collect();
    let dns = "{1c95126e-7eea-49a9-a3fe-a378b03ddb4d}";
    assert_eq!(names, ["Microsoft-Windows-SenseIR", "Microsoft-Windows-Winlogon", dns]);
    assert_eq!((user.providers[1].keyword_any, user.providers[1].level), (Some(0x20), Some(4)));
    assert!(user.providers[2].guid.is_some() && user.providers[1].guid.is_none());
}

#[test]
fn logman() {
    let found = parse(LOGMAN.as_bytes(), "loggers.txt");
    let names: Vec<&str> = found.iter().map(|l| l.name.as_str()).collect();
    let kernel = "NT Kernel Logger";
    assert_eq!(names, ["Circular Kernel Context Logger", kernel, "EventLog-System", kernel]);
    assert_eq!((found[1].status.as_deref(), found[1].tool), (Some("Running"), "logman"));
    let log = &found[2];
    assert_eq!((log.buffer_bytes, log.buffers_written, log.buffers_lost), (Some(65_536), Some(47), Some(1)));
    assert_eq!(log.mode.as_deref(), Some("Real-time"));
    assert_eq!(log.providers.len(), 2);
    assert_eq!((log.providers[1].level, log.providers[1].keyword_any), (Some(4), Some(u64::MAX)));
    assert_eq!(log.providers[0].keyword_any, Some(1 << 63));
    assert_eq!(found[3].log_file.as_deref(), Some("C:\\kernel.etl"));
    assert_eq!(found[3].kernel_flags, ["process", "thread", "img", "cswitch"]);
}

#[test]
fn wpr() {
    let found = parse(WPR.as_bytes(), "status.txt");
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kernel_flags, ["CSwitch", "ProcessThread"]);
    assert_eq!((found[0].events_lost, found[0].buffer_bytes), (Some(7), Some(1 << 20)));
    assert_eq!(found[1].providers.len(), 2);
    assert_eq!(
        (found[1].providers[1].keyword_any, found[1].providers[1].level),
        (Some(0x1000000402000), Some(255))
    );
}

#[test]
fn tracelog() {
    let text = "Operation Status:       0L      The operation completed successfully.\n\n    \
                Logger Name:            iistrace\n    Logger Id:              0x9\n    \
                Buffer Size:            8 Kb\n    Log Mode:               Sequential\n    \
                Enabled tracing:        0x00000002\n    Log Filename:           C:\\temp\\out.etl\n";
    let found = parse(text.as_bytes(), "x");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id, found[0].tool, found[0].buffer_bytes), (Some(9), "tracelog", Some(8192)));
    assert_eq!(found[0].kernel_flags, ["0x00000002"]);
    assert_eq!(found[0].log_file.as_deref(), Some("C:\\temp\\out.etl"));
}

#[test]
fn every_encoding_says_the_same() {
    let wanted = parse(XPERF.as_bytes(), "x");
    let units: Vec<u16> = XPERF.encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|u| u.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|u| u.to_be_bytes()).collect();
    assert_eq!(parse(&[b"\xFF\xFE", little.as_slice()].concat(), "x"), wanted);
    assert_eq!(parse(&[b"\xFE\xFF", big.as_slice()].concat(), "x"), wanted);
    assert_eq!(parse(&little, "x"), wanted);
    assert_eq!(parse(&[b"\xEF\xBB\xBF", XPERF.as_bytes()].concat(), "x"), wanted);
}

#[test]
fn nonsense_says_nothing() {
    for text in
        ["", "hello", ":::::", "Provider:\nName: x", "----------------------------\n a  b", "\u{fffd}\u{0}"]
    {
        let found = parse(text.as_bytes(), "x");
        assert!(found.iter().all(|l| l.providers.is_empty()), "{text:?}: {found:?}");
    }
}

#[test]
fn a_line_of_commas_is_no_list_of_flags() {
    let commas = ",".repeat(100_000);
    let text = format!("Name: a\nProvider:\nName: Windows Kernel Trace\nKeywordsAny: 0x1 ({commas})\n");
    let found = parse(text.as_bytes(), "x.txt");
    assert_eq!(found[0].kernel_flags.len(), MAX_FLAGS);
}
