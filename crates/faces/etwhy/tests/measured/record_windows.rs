//! `etwhy record` as an administrator of a Windows machine uses it, with a double in place of the functions of Windows.
//!
//! `scripts/test-windows` makes the double and what plays other programs (`crates/sources/record/tests/etw-double`) and names their
//! folder in `ETWHY_WINDOWS_DOUBLE`.
#![cfg(windows)]

use crate::ETWHY;
use etwhy_testkit::Run as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The program under a name for which Wine says that it is Windows 10: made once, since tests run at the same time.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_BIN_EXE_etwhy")).with_file_name("etwhy-recorder.exe");
    // One of an earlier build.
    let _ = std::fs::remove_file(&program);
    std::fs::hard_link(env!("CARGO_BIN_EXE_etwhy"), &program).unwrap();
    program
});

/// A machine of its own: journal, sessions, log of calls.
struct Machine {
    folder: tempfile::TempDir,
    tools: PathBuf,
    fail: &'static str,
}

impl Machine {
    fn new() -> Option<Machine> {
        let Some(tools) = std::env::var_os("ETWHY_WINDOWS_DOUBLE").map(PathBuf::from) else {
            etwhy_testkit::skipped("ETWHY_WINDOWS_DOUBLE names no folder with etwdouble.dll and others.exe");
            return None;
        };
        let machine = Machine { folder: tempfile::tempdir().unwrap(), tools, fail: "" };
        machine.will_record("kernel-source.etl", "0.05");
        machine.will_record("user-source.etl", "0.02");
        Some(machine)
    }

    /// What the double writes: so much of the demonstration.
    fn will_record(&self, name: &str, scale: &str) {
        let file = self.path(name);
        let made =
            ETWHY.output(&["synth", "--demo", "--scale", scale, "--quiet", "-o", file.to_str().unwrap()]);
        assert!(made.status.success(), "{made:?}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn with_double(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("ETWHY_ETW_DLL", self.tools.join("etwdouble.dll"))
            .env("ETWHY_RECORD", self.path("journal"))
            .env("ETWHY_DOUBLE_STATE", self.path("state"))
            .env("ETWHY_DOUBLE_LOG", self.path("calls.txt"))
            .env("ETWHY_DOUBLE_KERNEL", self.path("kernel-source.etl"))
            .env("ETWHY_DOUBLE_USER", self.path("user-source.etl"))
            .env("ETWHY_DOUBLE_FAIL", self.fail);
    }

    fn command(&self, line: &str) -> Command {
        self.etwhy(&format!("record {line}"))
    }

    fn etwhy(&self, line: &str) -> Command {
        let mut command = Command::new(&*PROGRAM);
        command.args(line.split(' ')).stdin(Stdio::null());
        self.with_double(&mut command);
        command
    }

    fn record(&self, line: &str) -> Output {
        self.command(line).outcome()
    }

    /// Runs a command that must succeed; what it printed.
    fn done(&self, line: &str) -> String {
        let output = self.record(line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn start(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).started()
    }

    /// What another program of the machine does.
    fn others(&self, words: &[&str]) -> String {
        let mut command = Command::new(self.tools.join("others.exe"));
        command.args(words);
        self.with_double(&mut command);
        let output = command.outcome();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Names of the sessions that run.
    fn sessions(&self) -> Vec<String> {
        let list = self.others(&["list"]);
        list.lines().filter_map(|line| line.split('|').next()).map(str::to_owned).collect()
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.path("calls.txt")).unwrap_or_default()
    }

    fn wait_for(&self, what: &str, is: impl Fn(&Machine) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{what}: {:?} {}",
                self.sessions(),
                self.calls()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_recording_goes_from_start_to_file() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    assert!(machine.done("status").contains("No recording"));
    machine.done("start cpu,file,network,dotnet,ui --no-wait");
    assert_eq!(machine.sessions().len(), 2);
    machine.done("mark slow-now");
    let status = machine.done("status --json");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["journal"]["phase"], "running", "{status}");
    assert!(status["live"].as_array().unwrap().iter().all(|live| live["runs"] == true), "{status}");
    let second = machine.record("start cpu --no-wait");
    assert!(second.status.code() == Some(2) && text(&second).contains("etwhy record stop"), "{second:?}");
    let files = machine.done("stop -o x.etl --no-merge");
    assert_eq!(files.lines().count(), 2, "{files}");
    // All that Windows wrote, byte for byte.
    assert_eq!(bytes(&machine.path("x.etl")), bytes(&machine.path("kernel-source.etl")));
    assert_eq!(bytes(&machine.path("x.user.etl")), bytes(&machine.path("user-source.etl")));
    assert!(machine.sessions().is_empty());
    assert!(machine.done("status").contains("No recording"));
    // What is there is not replaced; the parts become one file.
    let refused = machine.record("start cpu --no-wait -o x.etl");
    assert!(refused.status.code() == Some(2) && text(&refused).contains("is there already"), "{refused:?}");
    machine.done("start cpu --no-wait");
    let refused = machine.record("stop -o x.etl");
    assert!(refused.status.code() == Some(2) && text(&refused).contains("is there already"), "{refused:?}");
    let merged = machine.record("stop -o whole.etl");
    assert_eq!(String::from_utf8_lossy(&merged.stdout).lines().count(), 1, "{merged:?}");
    assert!(machine.path("whole.etl").exists() && !machine.path("whole.user.etl").exists());
    let calls = machine.calls();
    for call in [
        // PROC_THREAD, LOADER, CSWITCH, DPC, INTERRUPT, DISPATCHER, PROFILE, files and disks.
        "StartTraceW NT Kernel Logger mode=00000001 flags=07",
        "timer=1",
        "TraceSetInformation class=4 length=32 -> 0",
        "TraceSetInformation class=3 length=",
        // Win32k with stacks, TCPIP without some events, the state of .NET at the end.
        "EnableTraceEx2 8c416c79 control=1 level=255 any=80000300002c2000 stack=1 filters=0 -> 0",
        "EnableTraceEx2 2f07e2ee control=1 level=5 any=ffffffffffffffff stack=0 filters=1 -> 0",
        "EnableTraceEx2 e13c0d23 control=1 level=5 any=1c039 stack=1 filters=2 -> 0",
        "EnableTraceEx2 2f07e2ee control=2",
        "EnableTraceEx2 a669021c control=1 level=5 any=50138",
        "EtwSetMark slow-now",
        "EventWriteString level=4 keyword=0 slow-now",
        "ControlTraceW/stop NT Kernel Logger",
    ] {
        assert!(calls.contains(call), "{call}: {calls}");
    }
    assert!(!calls.contains("refused") && !calls.contains("-> 87"), "{calls}");
}

#[test]
fn providers_record_the_programs_that_were_asked_for() {
    let _turn = etwhy_testkit::alone();
    let Some(mut machine) = Machine::new() else { return };
    machine.done("start cpu,network --process outlook --process Teams.exe --no-wait");
    machine.done("cancel");
    let calls = machine.calls();
    assert!(calls.contains("filter outlook.exe;Teams.exe"), "{calls}");
    assert!(
        calls.contains(
            "EnableTraceEx2 2f07e2ee control=1 level=5 any=ffffffffffffffff stack=0 filters=2 -> 0"
        ),
        "{calls}"
    );
    // Marks are nobody's filter.
    assert!(
        calls.contains(
            "EnableTraceEx2 65747768 control=1 level=5 any=ffffffffffffffff stack=0 filters=0 -> 0"
        ),
        "{calls}"
    );
    for (line, why) in [
        ("start cpu --process C:\\x.exe --no-wait", "is an invalid program name"),
        (&*format!("start cpu --process {} --no-wait", "x".repeat(600)), "511 characters"),
    ] {
        let output = machine.record(line);
        assert!(output.status.code() == Some(2) && text(&output).contains(why), "{line}: {output:?}");
    }
    // What Windows refuses with and without filters is missing, and said.
    machine.fail = "EnableTraceEx2=87";
    let output = machine.record("start network --process outlook --no-wait");
    assert!(output.status.success() && text(&output).contains("is missing"), "{output:?}");
    machine.fail = "";
    machine.done("cancel");
}

#[test]
fn what_is_killed_is_found_and_ended() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    let mut child = machine.start("start cpu");
    machine.wait_for("running", |m| m.record("status").stdout.windows(7).any(|w| w == b"records"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(machine.sessions().len(), 2, "sessions outlive the program");
    assert!(machine.done("status").contains("cpu since"));
    machine.done("stop -o killed.etl --no-merge");
    assert!(machine.sessions().is_empty());
    assert_eq!(bytes(&machine.path("killed.etl")), bytes(&machine.path("kernel-source.etl")));
    // Another console ends what this one guards.
    let child = machine.start("start cpu");
    machine.wait_for("running", |m| m.calls().matches("EnableTraceEx2 65747768").count() == 2);
    machine.done("stop -o other.etl --no-merge");
    let guard = child.wait_with_output().unwrap();
    assert!(guard.status.success() && text(&guard).contains("ended by another command"), "{guard:?}");
    assert!(machine.path("other.etl").exists() && machine.path("other.user.etl").exists());
    // Without its journal too.
    machine.done("start cpu --no-wait --session private");
    std::fs::remove_file(machine.path("journal").join("journal.json")).unwrap();
    let refused = machine.record("start cpu --no-wait");
    assert!(text(&refused).contains("left over"), "{refused:?}");
    assert_eq!(machine.done("cancel").lines().count(), 2);
    assert!(machine.sessions().is_empty());
}

#[test]
fn a_session_that_is_taken_is_told_and_recording_goes_on() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    let child = machine.start("start cpu --for 8s -o taken.etl --no-merge");
    machine.wait_for("running", |m| m.calls().contains("EnableTraceEx2 65747768"));
    machine.others(&["lose", "NT Kernel Logger", "12"]);
    std::thread::sleep(Duration::from_millis(1500));
    machine.others(&["take", "NT Kernel Logger"]);
    let output = child.wait_with_output().unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for sentence in [
        "No Windows has run",
        "has lost 12 events",
        "lost: `NT Kernel Logger` belongs to another program: the file C:\\PaloNull, flags 0x00000080 (SYSCALL)",
        "recording goes on in a private kernel session",
        "the time is over",
    ] {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    // The other one records on, ours are gone, and its loss stands in the trace.
    assert_eq!(machine.sessions(), ["NT Kernel Logger"]);
    assert!(machine.calls().contains("EtwSetMark lost:"), "{}", machine.calls());
    assert!(machine.calls().contains("kernel-2 mode=02000001"), "{}", machine.calls());
    for file in ["taken.etl", "taken.kernel-2.etl", "taken.user.etl"] {
        assert!(machine.path(file).exists(), "{file}: {said}");
    }
    // Who else recorded lies beside it.
    let list = std::fs::read_to_string(machine.path("taken.loggers.txt")).unwrap();
    assert!(
        list.contains(": NT Kernel Logger\n") && list.contains("C:\\PaloNull") && list.contains(": SYSCALL"),
        "{list}"
    );
    // Taken from the start.
    machine.done("start cpu --no-wait");
    machine.done("cancel");
    assert_eq!(machine.sessions(), ["NT Kernel Logger"]);
    let refused = machine.record("start cpu --no-wait --session nt");
    assert!(text(&refused).contains("left alone"), "{refused:?}");
}

#[test]
fn errors_of_windows_say_what_to_do_and_leave_nothing() {
    let _turn = etwhy_testkit::alone();
    let Some(mut machine) = Machine::new() else { return };
    for (fail, sentence) in [
        ("StartTraceW=5", "administrator's console"),
        ("StartTraceW=87", "Windows refuses a parameter"),
        ("StartTraceW=1450", "no room for another session"),
        ("StartTraceW=112", "the disk is full"),
        ("StartTraceW=183", "there is a session of that name"),
        ("StartTraceW=31", "net helpmsg 31"),
        ("QueryAllTracesW=5", "administrator's console"),
    ] {
        machine.fail = fail;
        let output = machine.record("start cpu --no-wait");
        assert!(output.status.code() == Some(2) && text(&output).contains(sentence), "{fail}: {output:?}");
        machine.fail = "";
        assert!(machine.sessions().is_empty(), "{fail}");
        assert!(machine.done("status").contains("No recording"), "{fail}");
    }
    // What can be missing is missing, and said.
    machine.fail = "EnableTraceEx2=1450,TraceSetInformation=87";
    let output = machine.record("start cpu,network --no-wait");
    let said = text(&output);
    assert!(output.status.success() && said.contains("stacks of kernel events are missing"), "{said}");
    assert!(said.contains("Microsoft-Windows-TCPIP is missing"), "{said}");
    // A session that does not end can be ended later.
    machine.fail = "ControlTraceW/stop=1450";
    let output = machine.record("stop -o x.etl");
    assert!(output.status.code() == Some(2) && text(&output).contains("cannot be stopped"), "{output:?}");
    machine.fail = "";
    machine.done("stop -o x.etl");
    assert!(machine.sessions().is_empty());
    let folder = machine.record("start cpu --no-wait --folder Q:\\no\\such");
    assert!(folder.status.code() == Some(2), "{folder:?}");
}

#[test]
fn flight_recorders_and_rotating_files() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    machine.done("start cpu --ring 64MiB --no-wait");
    assert!(machine.calls().contains("mode=02000400"), "{}", machine.calls());
    // The kernel's events, those of providers, and who is who: one more session that begins and ends.
    assert_eq!(machine.done("save -o saved.etl --no-merge").lines().count(), 3);
    assert!(machine.path("saved.names.etl").exists());
    assert!(machine.calls().contains("names-1 mode=02000001 flags=00000"), "{}", machine.calls());
    assert_eq!(machine.sessions().len(), 2);
    assert_eq!(bytes(&machine.path("saved.etl")), bytes(&machine.path("kernel-source.etl")));
    machine.done("stop -o last.etl --no-merge");
    assert_eq!(bytes(&machine.path("last.etl")), bytes(&machine.path("kernel-source.etl")));
    assert!(machine.sessions().is_empty());

    let child = machine.start("start cpu --rotate 1s --keep 1GB --for 5s --folder segments");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let files = String::from_utf8_lossy(&output.stdout).lines().count();
    assert!((6..=14).contains(&files), "{output:?}");
    assert!(machine.sessions().is_empty());
}

/// Windows' own list of what begins with it.
const WMI: &str = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI";

/// Asks Wine's registry editor; whether it has done it.
fn registry(words: &[&str]) -> bool {
    Command::new("reg").args(words).outcome().status.success()
}

#[test]
fn a_start_of_windows_is_recorded() {
    let _turn = etwhy_testkit::alone();
    let Some(mut machine) = Machine::new() else { return };
    let global = format!("{WMI}\\GlobalLogger");
    // Of a run that was killed.
    registry(&["delete", &global, "/f"]);
    // Another program's is left alone.
    assert!(registry(&["add", &global, "/v", "Start", "/t", "REG_DWORD", "/d", "0", "/f"]));
    let refused = machine.record("start cpu --boot");
    assert!(refused.status.code() == Some(2) && text(&refused).contains("another program's"), "{refused:?}");
    assert!(machine.record("cancel").status.success());
    assert!(registry(&["query", &global, "/v", "Start"]), "it is gone");
    assert!(registry(&["delete", &global, "/f"]));

    let started = machine.record("start cpu,network,ui --boot -o boot.etl --no-merge");
    assert!(started.status.success() && text(&started).contains("restart"), "{started:?}");
    assert!(machine.sessions().is_empty(), "nothing records now");
    assert!(machine.done("status").contains("begins with the next start of Windows"));
    let early = machine.record("stop");
    assert!(early.status.code() == Some(2) && text(&early).contains("has not been restarted"), "{early:?}");
    machine.fail = "boot=112";
    machine.others(&["boot"]);
    machine.fail = "";
    let failed = machine.record("stop");
    assert!(failed.status.code() == Some(2) && text(&failed).contains("the disk is full"), "{failed:?}");
    machine.others(&["boot"]);
    assert_eq!(machine.sessions().len(), 2, "{}", machine.calls());
    let calls = machine.calls();
    for call in [
        // PROC_THREAD, LOADER, CSWITCH, DPC, INTERRUPT, DISPATCHER, PROFILE.
        "boot NT Kernel Logger mode=00000001 flags=",
        "boot provider 8c416c79 enabled=1 level=255 any=80000300002c2000 property=4 -> 0",
        "boot provider 1c95126e enabled=1 level=5 any=ffffffffffffffff property=0 -> 0",
        "boot provider 65747768 enabled=1 level=5 any=ffffffffffffffff property=0 -> 0",
    ] {
        assert!(calls.contains(call), "{call}: {calls}");
    }
    assert!(machine.done("status").contains("buffers written"));
    machine.done("stop");
    // What Windows wrote, and no further start is recorded.
    assert_eq!(bytes(&machine.path("boot.etl")), bytes(&machine.path("kernel-source.etl")));
    assert_eq!(bytes(&machine.path("boot.user.etl")), bytes(&machine.path("user-source.etl")));
    assert!(machine.sessions().is_empty() && !registry(&["query", &global]));
    machine.others(&["boot"]);
    assert!(machine.sessions().is_empty());

    // A program that takes the Global Logger over has it.
    machine.done("start cpu --boot");
    assert!(registry(&["add", &global, "/v", "FileName", "/d", "C:\\theirs.etl", "/f"]));
    machine.done("cancel");
    assert!(registry(&["query", &global, "/v", "FileName"]), "it is gone");
    assert!(registry(&["delete", &global, "/f"]));
    // Without its journal too.
    machine.done("start cpu --boot");
    std::fs::remove_file(machine.path("journal").join("journal.json")).unwrap();
    let refused = machine.record("start cpu --boot");
    assert!(text(&refused).contains("etwhy record cancel"), "{refused:?}");
    assert_eq!(machine.done("cancel").lines().count(), 2);
    assert!(!registry(&["query", &global]));
}

#[test]
fn triggers_end_a_recording() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    // A program of a name that nobody else has.
    let sleeper = machine.path("sleeper.exe");
    std::fs::copy(machine.tools.join("others.exe"), &sleeper).unwrap();
    for (trigger, sentence) in [("start:sleeper.exe", "has started"), ("exit:Sleeper.exe", "has ended")] {
        let child = machine.start(&format!("start cpu --stop-when {trigger} --for 60s -o x.etl --force"));
        machine.wait_for("running", |m| m.sessions().len() == 2);
        std::thread::sleep(Duration::from_secs(1));
        let slept = Command::new(&sleeper).args(["sleep", "2500"]).status().unwrap();
        assert!(slept.success());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && text(&output).contains(sentence), "{trigger}: {output:?}");
        assert!(machine.sessions().is_empty());
    }
    // What the files show while they are written. A window ends a second of the trace before its latest event.
    machine.will_record("kernel-source.etl", "0.25");
    for trigger in ["finding:security.first-open-penalty", "event:Windows Kernel/SystemConfig/CPU"] {
        let mut command = machine.command("start cpu --for 120s -o x.etl --force");
        let output = command.args(["--stop-when", trigger]).outcome();
        assert!(
            output.status.success() && text(&output).contains(&format!("{trigger}: ")),
            "{trigger}: {output:?}"
        );
        assert!(machine.sessions().is_empty());
    }
    // What cannot be watched is refused before anything is recorded. Wine has no event logs.
    for (trigger, why) in [
        ("finding:dpc.nothing", "there is no finding"),
        ("finding:dpc.over-limit --ring 64MiB", "--rotate"),
        ("log:System/41", "cannot be watched"),
        ("mood:bad", "there are counter:"),
    ] {
        let output = machine.record(&format!("start cpu --stop-when {trigger}"));
        assert!(output.status.code() == Some(2) && text(&output).contains(why), "{trigger}: {output:?}");
    }
    let counter =
        machine.command("start cpu").args(["--stop-when", "counter:\\No Such Object\\x>1"]).outcome();
    assert!(counter.status.code() == Some(2) && text(&counter).contains("cannot be watched"), "{counter:?}");
    assert!(machine.sessions().is_empty());
}

#[test]
fn a_machine_is_recorded_and_looked_at() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    machine.will_record("kernel-source.etl", "0.25");
    // What cannot be asked is refused before anything is recorded.
    for (line, why) in [
        ("live cpu --until-finding dpc.nothing", "there is no finding"),
        ("live cpu --save x.etl", "--save"),
        ("live nonsense", "nonsense"),
        ("live", "PROFILES"),
    ] {
        let output = machine.etwhy(line).outcome();
        assert!(output.status.code() == Some(2) && text(&output).contains(why), "{line}: {output:?}");
    }
    assert!(!machine.calls().contains("StartTraceW"), "{}", machine.calls());
    // One that has met its condition ends the recording, and what it saw is there.
    let output = machine.etwhy("live cpu --json --until-finding security.first-open-penalty").outcome();
    let said = text(&output);
    assert!(output.status.success() && said.contains("are kept"), "{output:?}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert!(last.to_string().contains("security.first-open-penalty"), "{lines}");
    assert!(machine.sessions().is_empty());
    assert!(machine.done("status").contains("No recording"));
    let kept =
        std::fs::read_dir(machine.path("journal")).unwrap().flatten().find(|entry| entry.path().is_dir());
    let kernel = std::fs::read_dir(kept.unwrap().path()).unwrap().flatten().map(|entry| entry.path());
    let kernel: Vec<PathBuf> = kernel.filter(|path| path.to_string_lossy().contains("kernel")).collect();
    assert!(kernel.iter().any(|path| bytes(path) == bytes(&machine.path("kernel-source.etl"))), "{kernel:?}");
    // Another console ends the recording: who looks at it may go on, and ends with it.
    let mut child = machine.etwhy("live cpu --json").stdout(Stdio::piped()).stderr(Stdio::piped()).started();
    machine.wait_for("running", |m| m.sessions().len() == 2);
    machine.done("cancel");
    assert!(machine.sessions().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_selftest_writes_a_bundle_and_does_not_agree_with_a_trace_of_something_else() {
    let _turn = etwhy_testkit::alone();
    let Some(machine) = Machine::new() else { return };
    let output = machine.record("selftest");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Where Wine has no desktop no window can hang: what is not compared is said.
    let words: Vec<&str> = report.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok()).unwrap();
    assert!(words.get(3) == Some(&"figures") && number(0) < number(2), "{report}");
    assert_eq!(10 - number(2), words.join(" ").matches("not done, and so not compared").count(), "{report}");
    let calls = machine.calls();
    for provider in ["EnableTraceEx2 1c95126e control=1", "EnableTraceEx2 8c416c79 control=1"] {
        assert!(calls.contains(provider), "{provider}: {calls}");
    }
    assert!(!report.contains("no answer"), "{report}");
    let zip = bytes(&machine.path("selftest.zip"));
    let has = |name: &str| zip.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(["truth.json", "report.txt", "selftest.etl", "selftest.user.etl"].iter().all(|name| has(name)));
    assert!(machine.sessions().is_empty());
    assert!(machine.done("status").contains("No recording"));
}
