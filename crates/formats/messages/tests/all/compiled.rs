//! Resources that are compiled here with mingw's `windmc` and `windres`: two languages, inserts, formats, parameters,
//! classic providers of a registry.

use crate::common;
use etwhy_messages::build::{BuildOptions, build_file};
use etwhy_messages::{EventKey, Messages, Options, lang};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Messages as a driver would have them. Expected texts stand in the tests, worked out by hand.
const EVENTS: &str = r#"MessageIdTypedef=DWORD
SeverityNames=(Success=0x0:SUCCESS
Informational=0x1:INFO
Warning=0x2:WARNING
Error=0x3:ERR)
FacilityNames=(Application=0x0:FACILITY_APPLICATION
Io=0x4:FACILITY_IO)
LanguageNames=(English=0x409:MSG00409)
LanguageNames=(German=0x407:MSG00407)

MessageId=7
Severity=Error
Facility=Io
SymbolicName=BAD_BLOCK
Language=English
The device, %1, has a bad block.
.
Language=German
Das Gerät %1 hat einen fehlerhaften Block.
.

MessageId=100
Severity=Warning
Facility=Application
SymbolicName=MANY
Language=English
%tSubject:%n%tName:%b%1%nStatus: %2!08X! (%2!u!)%n100%% of %3!5d!|%3!-5d!|%n%4%.%n
Enabled: %5 by %%1842%!
Next line of the file.
.

MessageId=101
Severity=Success
Facility=Application
SymbolicName=PROMPT
Language=English
Ends here%0
.

MessageId=102
Severity=Success
Facility=Application
SymbolicName=GERMAN
Language=German
Nur deutsch: %1
.
"#;

const PARAMETERS: &str = r#"MessageIdTypedef=DWORD
FacilityNames=(System=0x0:FACILITY_SYSTEM)
LanguageNames=(English=0x409:MSG00409)
LanguageNames=(German=0x407:MSG00407)

MessageId=1842
Severity=Success
Facility=System
SymbolicName=YES
Language=English
Yes
.
Language=German
Ja
.

MessageId=1843
SymbolicName=NO
Language=English
No, not %%1842
.
"#;

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a source into a DLL without code.
fn dll(folder: &Path, name: &str, source: &str) -> PathBuf {
    let stem = name.strip_suffix(".dll").unwrap();
    let work = folder.join(format!("work-{stem}"));
    std::fs::create_dir_all(&work).unwrap();
    // windmc asks the system's library for code pages; UTF-16 (without its mark, which it does not know) needs none.
    let wide: Vec<u8> = source.replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(work.join("m.mc"), wide).unwrap();
    run(&work, "x86_64-w64-mingw32-windmc", &["-u", "-U", "m.mc"]);
    // The preprocessor of this machine does as well as mingw's, which comes with a whole compiler.
    let preprocessor = [
        "--preprocessor=cc",
        "--preprocessor-arg=-E",
        "--preprocessor-arg=-xc",
        "--preprocessor-arg=-DRC_INVOKED",
    ];
    let [a, b, c, d] = preprocessor;
    run(&work, "x86_64-w64-mingw32-windres", &[a, b, c, d, "m.rc", "m.o"]);
    run(&work, "x86_64-w64-mingw32-ld", &["-shared", "--entry=0", "-o", "m.dll", "m.o"]);
    let to = folder.join(name);
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::rename(work.join("m.dll"), &to).unwrap();
    std::fs::remove_dir_all(work).unwrap();
    to
}

/// What `reg export` writes, in UTF-16, with a text with variables as it stands there.
fn registry(folder: &Path) {
    let hex = |text: &str| {
        let bytes: Vec<String> =
            text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).map(|b| format!("{b:02x}")).collect();
        let (first, second) = bytes.split_at(20);
        format!("hex(2):{},\\\r\n  {}", first.join(","), second.join(","))
    };
    let text = format!(
        "Windows Registry Editor Version 5.00\r\n\r\n\
         [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\EventLog]\r\n\r\n\
         [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\EventLog\\System]\r\n\"MaxSize\"=dword:01400000\r\n\r\n\
         [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\EventLog\\System\\disk]\r\n\
         \"EventMessageFile\"={}\r\n\"ParameterMessageFile\"=\"C:\\\\Windows\\\\System32\\\\params.dll\"\r\n\"TypesSupported\"=dword:00000007\r\n",
        hex("%SystemRoot%\\System32\\IoLogMsg.dll;%SystemRoot%\\System32\\drivers\\events.dll")
    );
    let wide: Vec<u8> =
        std::iter::once(0xfeffu16).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    std::fs::write(folder.join("eventlog.reg"), wide).unwrap();
}

fn render(messages: &Messages, key: &EventKey<'_>, values: &[&str]) -> String {
    let text = messages.event(key).unwrap_or_else(|| panic!("no text, wanted: {:?}", messages.wanted()));
    let mut out = String::new();
    text.render(values, &mut out);
    out
}

fn disk(event_id: u16, qualifiers: Option<u16>) -> EventKey<'static> {
    EventKey { provider: "DISK", event_id, qualifiers, channel: "System", ..EventKey::default() }
}

/// A folder as the collector makes it, with the registry of one classic provider.
fn machine(folder: &Path) {
    dll(folder, "drivers/events.dll", EVENTS);
    dll(folder, "params.dll", PARAMETERS);
    registry(folder);
}

#[test]
fn compiled_messages_are_written_out_exactly() {
    if !common::mingw() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let messages = Messages::open(&[folder.path().to_owned()], &Options::default()).unwrap();
    let values = ["Ann", "3221225578", "42", "x", "%%1843"];
    assert_eq!(
        render(&messages, &disk(100, Some(0x8000)), &values),
        "\tSubject:\n\tName: Ann\nStatus: C000006A (3221225578)\n100% of    42|42   |\nx.\n\nEnabled: No, not Yes by Yes!\nNext line of the file."
    );
    assert_eq!(render(&messages, &disk(101, Some(0)), &[]), "Ends here");
    let key = disk(7, Some(0xc004));
    assert_eq!(
        render(&messages, &key, &["\\Device\\Harddisk0\\DR0"]),
        "The device, \\Device\\Harddisk0\\DR0, has a bad block."
    );
    let text = messages.event(&key).unwrap();
    assert_eq!(
        (text.origin().file.as_str(), text.origin().message, text.origin().guessed),
        ("events.dll", 0xc004_0007, false)
    );
    // Another facility is another event: no text is better than a wrong one.
    assert!(messages.event(&disk(7, Some(0xc005))).is_none());
    let wanted = messages.wanted();
    assert_eq!(wanted.len(), 1);
    assert_eq!(
        (wanted[0].files.as_slice(), wanted[0].registered),
        (["iologmsg.dll".to_owned(), "events.dll".to_owned()].as_slice(), true)
    );
}

#[test]
fn languages_fall_back() {
    if !common::mingw() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let with = |language: &str| {
        let options = Options { languages: vec![lang::parse(language).unwrap()], ..Options::default() };
        Messages::open(&[folder.path().to_owned()], &options).unwrap()
    };
    let german = with("de-DE");
    assert_eq!(render(&german, &disk(7, Some(0xc004)), &["X"]), "Das Gerät X hat einen fehlerhaften Block.");
    assert_eq!(
        render(&german, &disk(100, Some(0x8000)), &["", "", "", "", "%%1842"]).lines().nth(6).unwrap(),
        "Enabled: Ja by Ja!"
    );
    // A text in another language is better than none.
    assert_eq!(render(&with("en-US"), &disk(102, Some(0)), &["X"]), "Nur deutsch: X");
    // Austrian is German, French is nothing that is there.
    assert_eq!(
        render(&with("de-AT"), &disk(7, Some(0xc004)), &["X"]),
        "Das Gerät X hat einen fehlerhaften Block."
    );
    assert_eq!(render(&with("fr-FR"), &disk(7, Some(0xc004)), &["X"]), "The device, X, has a bad block.");
}

#[test]
fn databases_and_archives_say_the_same_as_folders() {
    if !common::mingw() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let machine_folder = folder.path().join("machine");
    std::fs::create_dir(&machine_folder).unwrap();
    machine(&machine_folder);
    let mut sources = vec![machine_folder.clone()];
    // The same as an archive, with the collector's list instead of the registry.
    let archive = folder.path().join("pack.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&archive).unwrap());
    let plain = zip::write::SimpleFileOptions::default();
    for (name, path) in
        [("files\\0\\events.dll", "drivers/events.dll"), ("files\\1\\params.dll", "params.dll")]
    {
        zip.start_file(name, plain).unwrap();
        std::io::Write::write_all(&mut zip, &std::fs::read(machine_folder.join(path)).unwrap()).unwrap();
    }
    zip.start_file("providers.csv", plain).unwrap();
    let list = "\u{feff}\"kind\",\"name\",\"log\",\"guid\",\"resource\",\"message\",\"parameter\",\"category\"\r\n\
        \"classic\",\"disk\",\"System\",\"\",\"\",\"%SystemRoot%\\System32\\IoLogMsg.dll;%SystemRoot%\\System32\\drivers\\events.dll\",\"%SystemRoot%\\System32\\params.dll\",\"\"\r\n";
    std::io::Write::write_all(&mut zip, list.as_bytes()).unwrap();
    zip.finish().unwrap();
    sources.push(archive);
    for source in sources {
        let db = folder.path().join("messages.db");
        let report =
            build_file(std::slice::from_ref(&source), &db, &BuildOptions::default(), false, &mut |_| {})
                .unwrap();
        assert_eq!(
            (report.files_used, report.registered, report.failed.as_slice()),
            (2, 1, [].as_slice()),
            "{source:?}"
        );
        let messages = Messages::open(std::slice::from_ref(&db), &Options::default()).unwrap();
        assert_eq!(render(&messages, &disk(7, Some(0xc004)), &["X"]), "The device, X, has a bad block.");
        assert_eq!(
            render(&messages, &disk(100, Some(0x8000)), &["", "", "", "", "%%1842"]).lines().nth(6).unwrap(),
            "Enabled: Yes by Yes!"
        );
        let mut languages = messages.languages().unwrap();
        languages.sort_unstable();
        assert_eq!(languages, [(0x407, 3), (0x409, 5)]);
        // It does not overwrite.
        assert!(build_file(&[source], &db, &BuildOptions::default(), false, &mut |_| {}).is_err());
        std::fs::remove_file(db).unwrap();
    }
}

#[test]
fn without_a_registry_texts_are_guessed_and_say_so() {
    if !common::mingw() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let only = dll(folder.path(), "disk.dll", EVENTS);
    let messages = Messages::open(&[only], &Options::default()).unwrap();
    let text = messages.event(&disk(7, Some(0xc004))).unwrap();
    assert!(text.origin().guessed);
    // An id that stands in one file only, for a provider of which nothing is known.
    let key = EventKey { provider: "Unknown", event_id: 7, qualifiers: Some(0xc004), ..EventKey::default() };
    assert!(messages.event(&key).unwrap().origin().guessed);
    let key = EventKey { provider: "Unknown", event_id: 7, ..EventKey::default() };
    assert!(messages.event(&key).is_none());
}
