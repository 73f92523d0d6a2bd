//! `etwhy record` as users call it.

use crate::{ETWHY, Str as _};
use etwhy_testkit::text;
use std::process::Output;

fn record(arguments: &[&str]) -> Output {
    ETWHY.output(&[&["record"], arguments].concat())
}

#[test]
fn a_profile_goes_to_standard_output_or_a_file() {
    let output = record(&["--print", "cpu,registry"]);
    assert_eq!(output.status.code(), Some(0));
    let xml = text(&output.stdout);
    assert!(xml.starts_with("<?xml") && xml.contains("Name=\"cpu-registry\""), "{xml}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.wprp");
    let output = record(&["--print", "cpu", "--print", "registry", "-o", file.str()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(file).unwrap(), xml);
}

#[test]
fn options_reach_the_recording() {
    let lines = text(&record(&["--print", "dpc", "--format", "xperf", "--large=192", "--when-taken"]).stdout);
    assert!(
        lines.contains("-MaxBuffers 1536") && lines.contains("\"Circular Kernel Context Logger\""),
        "{lines}"
    );
    let xml = text(&record(&["--print", "dpc", "--large", "--when-taken=system"]).stdout);
    assert!(xml.contains("<Buffers Value=\"1024\"/>") && xml.contains("Name=\"etwhy kernel\""), "{xml}");
}

#[test]
fn wrong_use_is_told() {
    for (arguments, hint) in [
        (&["--print", "cpus"][..], "no profile is called `cpus`; there are cpu"),
        (&["--print", ""], "name a profile"),
        (&["--print", "cpu", "--format", "tracelog"], "wprp"),
        (&["--list", "--print", "cpu"], "--print"),
        (&["--print", "cpu", "--large=0"], "0"),
        (&["--print", "cpu", "-o", "/no/such/folder/x"], "/no/such/folder/x: cannot write"),
        (&[], "`etwhy record start PROFILES -o FILE.etl` records them"),
        (&["--format", "xperf"], "`etwhy record --list` names the profiles"),
        (&["start"], "`etwhy record --list` names the profiles"),
    ] {
        let output = record(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(hint), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn how_far_it_is_tested_is_told() {
    let output = record(&["--evidence"]);
    let said = text(&output.stdout);
    assert!(
        output.status.success() && said.contains("No Windows has run") && said.contains("not done"),
        "{said}"
    );
    assert!(text(&record(&["--help"]).stdout).contains("No Windows has run"));
}

#[test]
#[cfg(not(windows))]
fn other_systems_say_where_to_record() {
    for line in ["start cpu", "status", "mark x", "save", "stop -o x.etl", "cancel", "guard", "selftest"] {
        let output = record(&line.split(' ').collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{line}: {output:?}");
        for hint in ["recording needs Windows", "--on HOST", "--print"] {
            assert!(said.contains(hint), "{line}: {said}");
        }
    }
}

#[test]
fn commands_for_another_machine_are_printed() {
    let lines = |arguments: &[&str]| text(&record(&[&["start"], arguments].concat()).stdout);
    let timed = lines(&["cpu,dpc", "--for", "60s", "--on", "admin@server-1"]);
    assert!(
        timed.contains("ssh admin@server-1 etwhy record start cpu,dpc --for 60000ms -o etwhy-remote.etl"),
        "{timed}"
    );
    assert!(
        timed.contains("New-PSSession -ComputerName server-1 -Credential admin")
            && timed.contains("'cpu,dpc'"),
        "{timed}"
    );
    let open = lines(&["cpu", "--ring", "64MiB", "--on", "server"]);
    assert!(
        open.contains("start cpu --ring 67108864B --no-wait") && open.contains("record stop -o"),
        "{open}"
    );
    let trigger = "counter:\\Processor(_Total)\\% DPC Time>20 for 5s";
    let triggered = lines(&["dpc", "--stop-when", trigger, "--on", "server"]);
    assert!(triggered.contains(&format!("--stop-when '\"{trigger}\"'")), "{triggered}");
    for host in ["-oProxyCommand=x", "a b", "a;b", ""] {
        let output = record(&["start", "cpu", "--on", host]);
        assert_eq!(output.status.code(), Some(2), "{host}: {output:?}");
    }
    for (line, hint) in [
        ("start cpu --stop-when mood:bad", "there are counter:"),
        ("start cpu --stop-when key:s", "ctrl, alt or win"),
        ("start cpu --rotate 5m --ring 1GB", "--ring"),
        ("start cpu --no-wait --for 5s", "--for"),
        ("start cpu --keep 1GB", "--rotate"),
        ("start cpu --boot --rotate 5m", "--rotate"),
        ("start cpu --boot --session nt", "--session"),
        ("start", "PROFILES"),
    ] {
        let output = record(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
        assert!(text(&output.stderr).contains(hint), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn questions_of_the_selftest_have_answers() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.etl");
    assert!(
        ETWHY.output(&["synth", "--demo", "--scale", "0.05", "--quiet", "-o", trace.str()]).status.success()
    );
    let truth = etwhy_record::selftest::Truth {
        pid: 1234,
        cpu_ns: 1,
        waits: 1,
        waited_ns: 1,
        opens: 1,
        registry_reads: 1,
        allocations: 1,
        allocation_bytes: 1,
        lookups: 1,
        handles: 1,
        hung_ns: 1,
        not_done: Vec::new(),
    };
    for check in etwhy_record::selftest::checks(&truth) {
        let output = ETWHY.output(&["sql", trace.str(), "--quiet", "--format", "csv", "-c", &check.sql]);
        let said = text(&output.stdout);
        let number = said.lines().nth(1).and_then(|line| line.parse::<f64>().ok());
        assert!(number.is_some(), "{}: {said} {}", check.sql, text(&output.stderr));
    }
}

#[test]
fn the_list_of_sessions_is_read_as_it_was_written() {
    let session = |name: &str, events_lost| etwhy_record::run::Live {
        name: name.to_owned(),
        file: "C:\\PaloNull".to_owned(),
        flags: 0x80,
        mode: 1,
        events_lost,
        ..Default::default()
    };
    // A name that would begin a session of its own.
    let sessions = [session("NT Kernel Logger", 7), session("a\r\nLogger Name : b", 0)];
    let list = etwhy_record::run::loggers(&sessions);
    let found = etwhy_trace::logger_text::parse(list.as_bytes(), "slow.loggers.txt");
    let names: Vec<&str> = found.iter().map(|logger| logger.name.as_str()).collect();
    assert_eq!(names, ["NT Kernel Logger", "a  Logger Name : b"]);
    let kernel = &found[0];
    assert_eq!((kernel.kernel_flags.join("+").as_str(), kernel.events_lost), ("SYSCALL", Some(7)));
    assert_eq!(kernel.log_file.as_deref(), Some("C:\\PaloNull"));
    assert!(found[1].kernel_flags.is_empty(), "flags of others mean something else");
}

/// ssh and scp that play a machine whose home is the folder `there`; what they are asked is written down.
#[cfg(unix)]
fn machine_behind_ssh(folder: &std::path::Path) -> std::ffi::OsString {
    use std::os::unix::fs::PermissionsExt as _;
    let ssh = "#!/bin/sh\ncd \"$(dirname \"$0\")\"; echo \"ssh $*\" >> asked; cd there; case \"$2\" in\n\
               del*) rm \"${2#del }\";;\n\
               *fail*) exit 2;;\n\
               *) echo kernel > etwhy-remote.etl; echo user > etwhy-remote.user.etl; echo other > secret.etl\n\
               printf 'C:\\\\Users\\\\x\\\\etwhy-remote.etl\\r\\nC:\\\\Users\\\\x\\\\etwhy-remote.user.etl\\r\\n../secret.etl\\r\\n';;\nesac\n";
    let scp = "#!/bin/sh\necho \"scp $*\" >> \"$(dirname \"$0\")/asked\"; cp \"$(dirname \"$0\")/there/${2#*:}\" \"$3\"\n";
    std::fs::create_dir(folder.join("there")).unwrap();
    for (name, text) in [("ssh", ssh), ("scp", scp)] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap();
    std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

#[test]
#[cfg(unix)]
fn a_recording_of_another_machine_comes_back() {
    let (bin, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = machine_behind_ssh(bin.path());
    let run = |more: &[&str]| {
        let mut command =
            ETWHY.command(&["record", "start", "cpu", "--on", "admin@server-1", "-o", "slow.etl"]);
        command.args(more).env("PATH", &path).current_dir(here.path()).output().unwrap()
    };
    let output = run(&["--for", "5s"]);
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| std::fs::read_to_string(here.path().join(name)).unwrap();
    assert_eq!((read("slow.etl").as_str(), read("slow.user.etl").as_str()), ("kernel\n", "user\n"));
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 2, "nothing else is fetched");
    assert_eq!(text(&output.stdout).lines().count(), 2, "{output:?}");
    let asked = std::fs::read_to_string(bin.path().join("asked")).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    assert_eq!(
        asked[0],
        "ssh admin@server-1 etwhy record start cpu --for 5000ms -o etwhy-remote.etl --force"
    );
    assert!(asked.contains(&"ssh admin@server-1 del etwhy-remote.user.etl"), "{asked:?}");
    let open = run(&[]);
    assert!(open.status.code() == Some(2) && text(&open.stderr).contains("--for 60s"), "{open:?}");
    let failed = run(&["--stop-when", "start:fail", "--force"]);
    assert!(
        failed.status.code() == Some(2)
            && text(&failed.stderr).contains("the recording on the other machine failed")
    );
}
