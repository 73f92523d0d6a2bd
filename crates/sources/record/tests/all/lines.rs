//! Command lines, read back: they must switch on what the profiles say, and nothing else.

use etwhy_record::{
    Recording, Session, Size, formats, keyword_of_flag, keywords_of, profiles, stack_of_flag,
};
use std::collections::BTreeSet;

fn lines(format: &str, recording: &Recording) -> Vec<String> {
    let format = formats().iter().find(|f| f.name == format).unwrap();
    (format.write)(recording).unwrap().lines().map(str::to_owned).collect()
}

fn recordings(session: Session) -> Vec<Recording> {
    profiles().iter().map(|p| Recording::from_profiles(&[p.name], session, Size::Usual).unwrap()).collect()
}

/// Commands without remarks.
fn commands(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).filter(|line| !line.starts_with("rem")).collect()
}

/// The word after an option.
fn after<'a>(line: &'a str, option: &str) -> Option<&'a str> {
    let mut words = line.split(' ').skip_while(|word| *word != option);
    words.next()?;
    words.next()
}

fn wpr_keywords(recording: &Recording) -> BTreeSet<&'static str> {
    recording.keywords.iter().map(|k| k.wpr).collect()
}

#[test]
fn xperf_lines_name_the_same_flags_and_stacks() {
    for session in [Session::NtKernelLogger, Session::Circular] {
        for recording in recordings(session) {
            let lines = lines("xperf", &recording);
            let start = *commands(&lines)
                .iter()
                .find(|line| line.starts_with("xperf") && line.contains(" -on "))
                .unwrap();
            let flags: BTreeSet<&str> = after(start, "-on")
                .unwrap()
                .split('+')
                .map(|flag| keyword_of_flag(flag).expect(flag).wpr)
                .collect();
            assert_eq!(flags, wpr_keywords(&recording), "{}", recording.name());
            let stacks: BTreeSet<&str> = after(start, "-stackwalk")
                .map(|list| list.split('+').map(|flag| stack_of_flag(flag).expect(flag).wpr).collect())
                .unwrap_or_default();
            assert_eq!(stacks, recording.stacks.iter().map(|s| s.wpr).collect(), "{}", recording.name());
            for provider in &recording.providers {
                let there =
                    commands(&lines).iter().any(|line| line.contains("-on") && line.contains(&provider.guid));
                assert!(there, "{}: {}", recording.name(), provider.name);
            }
            let named = start.contains("-start \"Circular Kernel Context Logger\"");
            assert_eq!(named, session == Session::Circular);
        }
    }
}

#[test]
fn logman_words_are_the_documented_flags() {
    for recording in recordings(Session::NtKernelLogger) {
        let lines = lines("logman", &recording);
        let start = *commands(&lines).iter().find(|line| line.contains("Windows Kernel Trace")).unwrap();
        let word = start.split("Trace\" 0x").nth(1).unwrap().split(' ').next().unwrap();
        let word = u32::from_str_radix(word, 16).unwrap();
        let on: BTreeSet<&str> = keywords_of(&[word]).iter().map(|k| k.wpr).collect();
        let text = lines.join("\n").replace("\nrem ", " ");
        for name in wpr_keywords(&recording) {
            // CpuConfig is always on.
            let told = text.split("cannot switch on ").nth(1).is_some_and(|rest| rest.contains(name));
            assert!(on.contains(name) || told || name == "CpuConfig", "{}: {name}\n{text}", recording.name());
        }
        assert!(on.is_subset(&wpr_keywords(&recording)), "{}", recording.name());
        assert_eq!(recording.stacks.is_empty(), !text.contains("records no stacks"));
    }
}

#[test]
fn known_lines() {
    let cpu = Recording::from_profiles(&["cpu"], Session::NtKernelLogger, Size::Usual).unwrap();
    // EVENT_TRACE_FLAG_PROFILE 0x1000000, DISPATCHER 0x800, INTERRUPT 0x40, DPC 0x20, CSWITCH 0x10, IMAGE_LOAD 4, THREAD 2,
    // PROCESS 1 (evntrace.h).
    assert!(lines("logman", &cpu).iter().any(|l| l.contains("-p \"Windows Kernel Trace\" 0x01000877 ")));
    assert_eq!(
        commands(&lines("xperf", &cpu)),
        [
            "xperf -on CPU_CONFIG+CSWITCH+DPC+INTERRUPT+LOADER+PROC_THREAD+DISPATCHER+PROFILE -stackwalk \
             CSwitch+Profile+ReadyThread -BufferSize 1024 -MinBuffers 128 -MaxBuffers 256 -f kernel.etl",
            "pause",
            "xperf -stop -d trace.etl"
        ]
    );
    assert_eq!(
        commands(&lines("wpr", &cpu)),
        ["wpr -start etwhy-cpu.wprp!cpu -filemode", "pause", "wpr -stop trace.etl"]
    );
    let said = lines("wpr", &cpu).join(" ").replace("rem ", "");
    for part in [
        "128 to 256 MiB of memory that is not paged",
        "Flight recorder: wpr -start",
        "wpr -boottrace -addboot etwhy-cpu.wprp!cpu",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let ui = Recording::from_profiles(&["ui"], Session::NtKernelLogger, Size::Usual).unwrap();
    assert!(
        lines("xperf", &ui)
            .iter()
            .any(|l| l.contains("8c416c79-d49b-4f01-a467-e56d3aa8234c:0x80000300002c2000:255:'stack'"))
    );
}

#[test]
fn large_machines_and_taken_sessions() {
    let size = Size::Large { processors: 256 };
    let dpc = Recording::from_profiles(&["dpc"], Session::Circular, size).unwrap();
    let wpr = lines("wpr", &dpc).join("\n");
    assert!(wpr.contains(
        "start /WAIT /HIGH /NODE 1 wpr -start etwhy-dpc.wprp!dpc -filemode -recordtempto D:\\traces"
    ));
    assert!(wpr.contains("wpr -disablepagingexecutive on"));
    assert!(wpr.contains("--when-taken=circular --large=256"));
    let xperf = lines("xperf", &dpc).join("\n");
    assert!(xperf.contains("-MinBuffers 1024 -MaxBuffers 2048"));
    assert!(xperf.contains("xperf -stop \"Circular Kernel Context Logger\" -d trace.etl"));
    let system = Recording::from_profiles(&["dpc"], Session::System, size).unwrap();
    let logman = lines("logman", &system).join("\n");
    assert!(logman.contains("tracelog -start \"etwhy kernel\""));
    for format in formats() {
        for line in lines(format.name, &system).iter().filter(|l| l.starts_with("rem")) {
            assert!(line.is_ascii() && line.len() <= 120, "{line}");
        }
    }
}

/// What no public profile shows is said wherever it is recorded, and nowhere else.
#[test]
fn unproven_keywords_are_marked_in_every_profile() {
    let mut marked = 0;
    for recording in recordings(Session::NtKernelLogger) {
        let unproven = recording.keywords.iter().any(|k| k.wpr == "Alpc" || k.wpr.starts_with("FilterIO"));
        for format in ["wprp", "wpr"] {
            let text = lines(format, &recording).join(" ");
            assert_eq!(text.contains("Not proven: "), unproven, "{format} {}", recording.name());
        }
        marked += usize::from(unproven);
    }
    assert!(marked >= 2, "{marked}");
}
