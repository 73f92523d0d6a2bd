//! The state machine, one story each.

use crate::fake::Fake;
use etwhy_record::run::{
    Choice, Finder, Mode, NT_KERNEL_LOGGER, Options, Recorder, Refused, Tick, Trigger, Watch,
};
use std::path::{Path, PathBuf};

fn options(profile: &str) -> Options {
    Options::new(vec![profile.to_owned()], Mode::File, PathBuf::from("D:/traces"))
}

fn with<T>(fake: &Fake, act: impl FnOnce(&mut Recorder<'_>) -> T) -> T {
    let (mut sessions, mut machine) = (fake.clone(), fake.clone());
    act(&mut Recorder { sessions: &mut sessions, machine: &mut machine })
}

fn start(fake: &Fake, options: &Options) -> Result<Vec<String>, Refused> {
    with(fake, |r| r.start(options))
}

fn tick(fake: &Fake) -> Tick {
    fake.0.borrow_mut().now_ms += 1000;
    with(fake, |r| r.tick(&mut Watch::default())).unwrap()
}

fn said(tick: &Tick) -> String {
    match tick {
        Tick::Goes(said) | Tick::Ended(said) => said.join("\n"),
        Tick::Gone => panic!("gone"),
    }
}

#[test]
fn a_recording_begins_as_planned_and_ends_as_files() {
    let fake = Fake::new(1);
    let planned = with(&fake, |r| r.try_out(&options("all"))).unwrap();
    assert!(fake.0.borrow().starts.is_empty() && with(&fake, |r| r.status()).unwrap().is_none());
    assert_eq!(planned[0], "the session `NT Kernel Logger` would record: all");
    let said = start(&fake, &options("all")).unwrap();
    assert_eq!(said, planned[1..]);
    for (begun, sentence) in fake.0.borrow().starts.iter().zip(&said) {
        assert!(sentence.ends_with(&begun.buffers.described()), "{sentence}: {:?}", begun.buffers);
    }
    let share = "buffers take at most 640 MiB together: 3.9 % of 16,384 MiB of memory, 5.2 % of what non-paged pool may take";
    assert!(said[2].starts_with(share), "{said:?}");
    {
        let mut world = fake.0.borrow_mut();
        let kernel = world.named(NT_KERNEL_LOGGER).unwrap();
        assert!(kernel.live.flags & 0x10 != 0 && kernel.masks[0] == kernel.live.flags && kernel.stacks > 40);
        assert!(kernel.masks[4] != 0 && kernel.live.mode == 1);
        let user = world.sessions.iter().find(|s| s.live.name.contains("user")).unwrap();
        assert!(user.providers.iter().any(|p| p == "Microsoft-Windows-Win32k"));
        assert!(user.providers.iter().any(|p| p == "etwhy (marks)"));
        // What only tells its state at the end is not switched on before.
        assert!(!user.providers.iter().any(|p| p == "Microsoft-Windows-DotNETRuntimeRundown"));
        let bound = 16 << 10;
        let mebibytes: u32 = world.starts.iter().map(|b| b.buffers.mebibytes()[1]).sum();
        assert!(mebibytes * 20 <= bound, "{mebibytes}");
    }
    assert!(start(&fake, &options("cpu")).unwrap_err().0.contains("etwhy record stop"));
    with(&fake, |r| r.mark("slow now")).unwrap();
    assert_eq!(fake.0.borrow().marks, ["slow now"]);
    with(&fake, |r| r.stop()).unwrap();
    let files = with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap();
    assert_eq!(files, [PathBuf::from("x.etl"), PathBuf::from("x.user.etl")]);
    assert!(fake.0.borrow().sessions.is_empty());
    assert!(with(&fake, |r| r.status()).unwrap().is_none());
}

#[test]
fn each_obstacle_has_its_sentence() {
    type Change = fn(&mut crate::fake::World);
    type Ask = fn(&mut Options);
    let cases: [(Change, Ask, &str); 7] = [
        (|w| w.is_administrator = false, |_| {}, "administrator's console"),
        (|w| w.free = 1 << 20, |_| {}, "make room"),
        (
            |w| {
                w.take_kernel_logger();
                w.is_windows_8 = false;
            },
            |_| {},
            "belongs to another program",
        ),
        (|w| w.take_kernel_logger(), |o| o.kernel = Choice::NtKernelLogger, "left alone"),
        (|_| {}, |o| o.mode = Mode::Ring { mebibytes: 4096 }, "at most --ring 2048MB"),
        (|_| {}, |o| o.profiles = vec!["cpus".to_owned()], "no profile is called `cpus`"),
        (|w| w.is_windows_8 = false, |o| o.mode = Mode::Ring { mebibytes: 64 }, "Windows 8"),
    ];
    for (change, ask, sentence) in cases {
        let fake = Fake::new(2);
        change(&mut fake.0.borrow_mut());
        let mut options = options("cpu");
        ask(&mut options);
        let refused = start(&fake, &options).unwrap_err().0;
        assert!(refused.contains(sentence), "{sentence}: {refused}");
        assert_eq!(with(&fake, |r| r.try_out(&options)), Err(Refused(refused)));
        let world = fake.0.borrow();
        assert!(world.starts.is_empty() && world.journal.is_none(), "{sentence}");
    }
}

#[test]
fn a_taken_kernel_logger_is_told_and_a_private_session_records() {
    let fake = Fake::new(3);
    fake.0.borrow_mut().take_kernel_logger();
    let told = start(&fake, &options("cpu")).unwrap().join("\n");
    assert!(told.contains("C:\\other\\") && told.contains("SYSCALL") && told.contains("private"), "{told}");
    let world = fake.0.borrow();
    let kernel = world.starts.first().unwrap();
    assert!(kernel.name.starts_with("etwhy-") && kernel.mode == 0x0200_0001, "{kernel:?}");
}

#[test]
fn a_session_that_is_taken_over_is_noticed_at_the_next_step() {
    let fake = Fake::new(4);
    start(&fake, &options("cpu")).unwrap();
    assert_eq!(tick(&fake), Tick::Goes(Vec::new()));
    fake.0.borrow_mut().take_kernel_logger();
    let told = said(&tick(&fake));
    assert!(told.contains("lost: `NT Kernel Logger` belongs to another program"), "{told}");
    assert!(told.contains("goes on in a private kernel session"), "{told}");
    assert!(fake.0.borrow().marks.iter().any(|mark| mark.contains("lost:")), "in the trace too");
    assert_eq!(tick(&fake), Tick::Goes(Vec::new()), "said once");
    with(&fake, |r| r.stop()).unwrap();
    let files = with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    let world = fake.0.borrow();
    assert_eq!(world.sessions.len(), 1, "the other one records on");
    assert!(!world.sessions[0].is_ours);
}

#[test]
fn losses_and_changes_are_told_once_each() {
    let fake = Fake::new(5);
    start(&fake, &options("cpu")).unwrap();
    fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().live.events_lost = 10;
    assert!(said(&tick(&fake)).contains("has lost 10 events"));
    assert_eq!(said(&tick(&fake)), "");
    fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().live.events_lost = 21;
    assert!(said(&tick(&fake)).contains("has lost 21 events"));
    fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().live.flags = 0x80;
    assert!(
        said(&tick(&fake)).contains("somebody has changed what `NT Kernel Logger` records: flags 0x00000080")
    );
    assert_eq!(said(&tick(&fake)), "");
    // All of it is written down.
    let status = with(&fake, |r| r.status()).unwrap().unwrap();
    assert_eq!(status.journal.remarks.len(), 3);
}

#[test]
fn it_ends_by_itself() {
    let fake = Fake::new(6);
    start(&fake, &Options { for_ms: Some(2500), ..options("cpu") }).unwrap();
    assert_eq!(tick(&fake), Tick::Goes(Vec::new()));
    assert_eq!(tick(&fake), Tick::Goes(Vec::new()));
    assert_eq!(tick(&fake), Tick::Ended(vec!["the time is over".to_owned()]));
    assert!(fake.0.borrow().sessions.is_empty());
    assert_eq!(with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap().len(), 2);

    start(&fake, &options("cpu")).unwrap();
    fake.0.borrow_mut().free = 1 << 20;
    assert!(said(&tick(&fake)).contains("before the disk is full"));
}

#[test]
fn triggers_end_it() {
    let fake = Fake::new(7);
    let ask = |text: &str| {
        with(&fake, |r| drop(r.cancel()));
        start(&fake, &options("cpu")).unwrap();
        let mut watch = Watch::new(vec![text.parse().unwrap()]);
        assert_eq!(with(&fake, |r| r.tick(&mut watch)).unwrap(), Tick::Goes(Vec::new()), "{text}");
        watch
    };
    let ended = |watch: &mut Watch| with(&fake, |r| r.tick(watch)).unwrap();
    let mut watch = ask("start:Backup.exe");
    fake.0.borrow_mut().processes.push(("BACKUP.EXE".to_owned(), 7));
    assert!(said(&ended(&mut watch)).contains("Backup.exe has started"));
    let mut watch = ask("exit:backup.exe");
    fake.0.borrow_mut().processes.clear();
    assert!(said(&ended(&mut watch)).contains("has ended"));
    let mut watch = ask("counter:\\Processor(_Total)\\% DPC Time>20 for 2s");
    fake.0.borrow_mut().counter = 50.0;
    for _ in 0..2 {
        assert!(matches!(ended(&mut watch), Tick::Goes(_)));
        fake.0.borrow_mut().now_ms += 1000;
    }
    assert!(said(&ended(&mut watch)).contains("is 50.0, above 20"));
    let mut watch = ask("log:System/41");
    fake.0.borrow_mut().logged = vec![("Application".to_owned(), 41), ("System".to_owned(), 7)];
    assert_eq!(ended(&mut watch), Tick::Goes(Vec::new()));
    // Two triggers of one log see the same records.
    with(&fake, |r| drop(r.cancel()));
    start(&fake, &options("cpu")).unwrap();
    let both = ["log:System/7", "log:System/41"].map(|text| text.parse().unwrap());
    let mut watch = Watch::new(both.to_vec());
    fake.0.borrow_mut().logged = vec![("System".to_owned(), 41)];
    assert!(said(&ended(&mut watch)).contains("log:System/41: a record 41 was written to the log System"));
    let mut watch = ask("key:ctrl+alt+s");
    fake.0.borrow_mut().pressed = true;
    assert!(said(&ended(&mut watch)).contains("ctrl+alt+s was pressed"));
}

/// The guard takes a step each half second; a counter is above its number for as long as was asked.
#[test]
fn triggers_fire_within_two_seconds_of_their_cause() {
    type Cause = fn(&mut crate::fake::World);
    let cases: [(&str, Cause, u64); 5] = [
        ("start:backup.exe", |w| w.processes.push(("backup.exe".to_owned(), 7)), 0),
        ("exit:old.exe", |w| w.processes.clear(), 0),
        ("counter:\\Processor(_Total)\\% DPC Time>20 for 5s", |w| w.counter = 50.0, 5000),
        ("log:System/41", |w| w.logged.push(("System".to_owned(), 41)), 0),
        ("key:ctrl+alt+s", |w| w.pressed = true, 0),
    ];
    for (text, cause, lasts_ms) in cases {
        let fake = Fake::new(15);
        fake.0.borrow_mut().processes.push(("old.exe".to_owned(), 3));
        start(&fake, &options("cpu")).unwrap();
        let mut watch = Watch::new(vec![text.parse().unwrap()]);
        let mut step = || {
            fake.0.borrow_mut().now_ms += 500;
            with(&fake, |r| r.tick(&mut watch)).unwrap()
        };
        for _ in 0..6 {
            assert_eq!(step(), Tick::Goes(Vec::new()), "{text}");
        }
        let begun = fake.0.borrow().now_ms;
        cause(&mut fake.0.borrow_mut());
        let took_ms = loop {
            let tick = step();
            let now = fake.0.borrow().now_ms - begun;
            if matches!(tick, Tick::Ended(_)) {
                break now;
            }
            assert!(now <= 20_000, "{text}");
        };
        assert!((lasts_ms..=lasts_ms + 2000).contains(&took_ms), "{text}: {took_ms} ms");
    }
}

/// Events and findings are asked of whoever reads the trace.
#[test]
fn what_the_trace_shows_ends_it() {
    struct Reader;
    impl Finder for Reader {
        fn fired(&mut self, trigger: &Trigger) -> Option<String> {
            matches!(trigger, Trigger::Finding(id) if id == "dpc.over-limit")
                .then(|| "a driver is slow".to_owned())
        }
    }
    for (text, ends) in [("finding:dpc.over-limit", true), ("finding:ui.hang", false), ("event:P/1", false)] {
        let fake = Fake::new(9);
        start(&fake, &options("cpu")).unwrap();
        let mut watch = Watch::new(vec![text.parse().unwrap()]).with_finder(Box::new(Reader));
        let tick = with(&fake, |r| r.tick(&mut watch)).unwrap();
        assert_eq!(matches!(tick, Tick::Ended(_)), ends, "{text}: {tick:?}");
    }
}

/// A trigger that cannot be watched is refused before anything is recorded; one that cannot be watched any more is said once.
#[test]
fn triggers_that_cannot_be_watched_say_so() {
    let mut fake = Fake::new(10);
    let mut watch = Watch::new(vec!["counter:\\No Such Object\\x>1".parse().unwrap()]);
    let why = watch.prepare(&mut fake).unwrap_err();
    assert!(why.contains("cannot be watched: there is none"), "{why}");
    let mut watch = Watch::new(vec!["log:System/41".parse().unwrap()]);
    watch.prepare(&mut fake).unwrap();
    start(&fake, &options("cpu")).unwrap();
    let mut tick = || with(&fake, |r| r.tick(&mut watch)).unwrap();
    fake.0.borrow_mut().logs_answer = false;
    assert!(said(&tick()).contains("cannot be watched now: the service does not answer"));
    assert_eq!(tick(), Tick::Goes(Vec::new()));
    fake.0.borrow_mut().logs_answer = true;
    assert_eq!(tick(), Tick::Goes(Vec::new()));
    fake.0.borrow_mut().logs_answer = false;
    assert!(said(&tick()).contains("cannot be watched now"));
}

#[test]
fn rotation_keeps_the_newest_and_what_was_saved() {
    let fake = Fake::new(8);
    let rotate = Mode::Rotate { every_ms: 5000, keep: 600 };
    start(&fake, &Options { mode: rotate, ..options("all") }).unwrap();
    let files =
        |fake: &Fake| fake.0.borrow().files.keys().map(|f| f.display().to_string()).collect::<Vec<_>>();
    for _ in 0..24 {
        tick(&fake);
    }
    // Three kernel and three user files of 100 bytes.
    assert_eq!(files(&fake).len(), 6, "{:?}", files(&fake));
    let masks = fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().masks;
    assert!(masks[4] != 0, "the other masks come back after a change of files");
    let kept = with(&fake, |r| r.keep()).unwrap();
    for _ in 0..60 {
        tick(&fake);
    }
    let there = files(&fake);
    assert!(kept.iter().all(|file| there.contains(&file.display().to_string())), "{kept:?} {there:?}");
    // The newest within the bound, and what was saved beyond it.
    assert_eq!(there.len(), 6 + kept.len(), "{there:?}");
    with(&fake, |r| r.stop()).unwrap();
    let all = with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap();
    assert_eq!(all.len(), there.len());
}

#[test]
fn a_flight_recorder_is_written_when_asked_and_at_the_end() {
    let fake = Fake::new(9);
    start(&fake, &Options { mode: Mode::Ring { mebibytes: 256 }, ..options("network") }).unwrap();
    {
        let world = fake.0.borrow();
        let kernel = world.starts.first().unwrap();
        assert!(kernel.file.is_none() && kernel.mode == 0x0200_0400 && kernel.name != NT_KERNEL_LOGGER);
        let total: u32 = world.starts.iter().map(|b| b.buffers.mebibytes()[1]).sum();
        assert_eq!(total, 256);
    }
    assert_eq!(with(&fake, |r| r.keep()).unwrap().len(), 3);
    {
        // Who is who: in memory that was overwritten. A session that names it has begun and ended, behind what is in memory.
        let world = fake.0.borrow();
        let names = world.starts.last().unwrap();
        assert!(names.name.ends_with("-names-1") && names.mode == 0x0200_0001, "{names:?}");
        assert!(names.flags & 0x7 == 0x7 && names.flags & 0x10 == 0 && names.file.is_some(), "{names:?}");
        assert!(names.buffers.mebibytes()[1] <= 16);
        assert_eq!(world.sessions.len(), 2);
    }
    assert_eq!(with(&fake, |r| r.status()).unwrap().unwrap().live.len(), 2);
    with(&fake, |r| r.stop()).unwrap();
    let files = with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap();
    assert_eq!(files.len(), 6, "{files:?}");
    assert!(files.contains(&PathBuf::from("x.names.etl")), "{files:?}");
}

/// What is in memory is kept also where nobody tells who is who, and that is said.
#[test]
fn names_that_cannot_be_told_are_said() {
    let fake = Fake::new(14);
    start(&fake, &Options { mode: Mode::Ring { mebibytes: 64 }, ..options("cpu") }).unwrap();
    let number = with(&fake, |r| r.status()).unwrap().unwrap().journal.number();
    fake.0.borrow_mut().start_foreign(&format!("etwhy-{number}-names-1"), 0);
    assert_eq!(with(&fake, |r| r.keep()).unwrap().len(), 2);
    let remarks = |fake: &Fake| with(fake, |r| r.status()).unwrap().unwrap().journal.remarks;
    assert!(remarks(&fake).last().unwrap().text.starts_with("names of processes"), "{:?}", remarks(&fake));
    // At the end too, and somebody else's session stays.
    let mut watch = Watch::new(vec!["key:ctrl+alt+s".parse().unwrap()]);
    fake.0.borrow_mut().pressed = true;
    let ended = with(&fake, |r| r.tick(&mut watch)).unwrap();
    assert!(matches!(ended, Tick::Ended(_)) && said(&ended).contains("names of processes"), "{ended:?}");
    assert_eq!(with(&fake, |r| r.collect(Path::new("x.etl"), false)).unwrap().len(), 4);
    let world = fake.0.borrow();
    assert!(world.sessions.len() == 1 && !world.sessions[0].is_ours && world.violation.is_none());
}

#[test]
fn state_is_asked_for_before_the_end() {
    let fake = Fake::new(10);
    start(&fake, &options("dotnet")).unwrap();
    assert!(fake.0.borrow().states.is_empty());
    with(&fake, |r| r.stop()).unwrap();
    let world = fake.0.borrow();
    assert_eq!(world.states, [("Microsoft-Windows-DotNETRuntimeRundown".to_owned(), 0x50138)]);
    assert!(world.now_ms > 1_000_000, "it was given time");
}

fn keys(fake: &Fake) -> Vec<String> {
    fake.0.borrow().boots.keys().cloned().collect()
}

#[test]
fn the_next_start_of_windows_is_recorded() {
    let fake = Fake::new(12);
    // Who has `NT Kernel Logger` now has it no more then.
    fake.0.borrow_mut().take_kernel_logger();
    let profiles = vec!["cpu".to_owned(), "network".to_owned()];
    let boot = Options { boot: true, profiles, ..options("cpu") };
    let said = start(&fake, &boot).unwrap().join("\n");
    let small = "kernel session: 512 to 1,024 buffers of 512 KiB, 256 to 512 MiB of memory that is not paged";
    for sentence in
        ["stacks of kernel events are missing", "their filters are left out", "ends at 8192 MiB", small]
    {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    assert!(fake.0.borrow().starts.is_empty(), "nothing records now");
    {
        let world = fake.0.borrow();
        let [user, kernel] = world.boots.values().flatten().collect::<Vec<_>>()[..] else { panic!() };
        assert!(user.key.starts_with("Autologger\\etwhy-") && user.masks.is_none() && user.mode == 1);
        assert!(user.providers.iter().any(|p| p.name == "Microsoft-Windows-DNS-Client"));
        assert!(user.providers.iter().any(|p| p.guid == etwhy_record::MARKS));
        assert!(kernel.key == "GlobalLogger" && kernel.masks.unwrap()[0] & 0x10 != 0);
        // Buffers of less than a mebibyte, as the keys want them, and no more memory than without `--boot`.
        assert!(kernel.providers.is_empty() && kernel.buffers.size_kib == 512, "{kernel:?}");
        assert!([user, kernel].iter().map(|boot| boot.buffers.mebibytes()[1]).sum::<u32>() * 20 <= 16 << 10);
    }
    assert!(start(&fake, &options("cpu")).unwrap_err().0.contains("is there already"));
    let why = with(&fake, |r| r.stop()).unwrap_err().0;
    assert!(why.contains("has not been restarted") && why.contains("etwhy record cancel"), "{why}");
    assert_eq!(keys(&fake).len(), 2);
    // Windows says why it did not begin them.
    fake.0.borrow_mut().boot_status = Some(112);
    let why = with(&fake, |r| r.stop()).unwrap_err().0;
    assert!(why.contains("the disk is full"), "{why}");
    fake.0.borrow_mut().reboot();
    let status = with(&fake, |r| r.status()).unwrap().unwrap();
    assert!(status.live.iter().all(|(_, live)| live.is_some()), "{status:?}");
    with(&fake, |r| r.mark("logged on")).unwrap();
    // A second start, whose file Windows numbers.
    let first = fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().live.file.clone();
    fake.0.borrow_mut().named(NT_KERNEL_LOGGER).unwrap().live.file = format!("{first}.0001");
    fake.0.borrow_mut().files.insert(PathBuf::from(format!("{first}.0001")), 100);
    with(&fake, |r| r.stop()).unwrap();
    assert!(keys(&fake).is_empty() && fake.0.borrow().sessions.is_empty());
    let files = with(&fake, |r| r.collect(Path::new("boot.etl"), false)).unwrap();
    assert_eq!(files, ["boot.etl", "boot.kernel-2.etl", "boot.user.etl"].map(PathBuf::from));
}

#[test]
fn a_start_of_windows_that_others_record_is_left_to_them() {
    let fake = Fake::new(13);
    let boot = Options { boot: true, ..options("cpu") };
    fake.0.borrow_mut().boots.insert("GlobalLogger".to_owned(), None);
    assert!(start(&fake, &boot).unwrap_err().0.contains("another program's"));
    assert!(with(&fake, |r| r.status()).unwrap().is_none());
    assert!(with(&fake, |r| r.cancel()).unwrap().is_empty());
    assert_eq!(keys(&fake), ["GlobalLogger"]);
    fake.0.borrow_mut().boots.clear();
    // Taken over after ours was set: `cancel` takes back the rest.
    start(&fake, &boot).unwrap();
    fake.0.borrow_mut().boots.insert("GlobalLogger".to_owned(), None);
    with(&fake, |r| r.cancel()).unwrap();
    assert_eq!(keys(&fake), ["GlobalLogger"]);
    fake.0.borrow_mut().boots.clear();
    // Keys whose journal is gone.
    start(&fake, &boot).unwrap();
    fake.0.borrow_mut().journal = None;
    assert!(start(&fake, &boot).unwrap_err().0.contains("etwhy record cancel"));
    assert_eq!(with(&fake, |r| r.cancel()).unwrap().len(), 2);
    assert!(keys(&fake).is_empty());
}

#[test]
fn what_a_lost_journal_leaves_is_found_and_ended() {
    let fake = Fake::new(11);
    start(&fake, &Options { kernel: Choice::Private, ..options("cpu") }).unwrap();
    fake.0.borrow_mut().start_foreign("etwhy-0-kernel", 0);
    fake.0.borrow_mut().journal = None;
    let refused = start(&fake, &options("cpu")).unwrap_err().0;
    assert!(refused.contains("left over") && refused.contains("etwhy record cancel"), "{refused}");
    assert_eq!(with(&fake, |r| r.cancel()).unwrap().len(), 2);
    let world = fake.0.borrow();
    // One that only looks like ours stays.
    assert_eq!(world.sessions.iter().map(|s| &*s.live.name).collect::<Vec<_>>(), ["etwhy-0-kernel"]);
    assert!(world.violation.is_none());
}

#[test]
fn no_file_is_replaced_unless_that_is_wanted() {
    let fake = Fake::new(11);
    fake.0.borrow_mut().files.insert("D:/x.user.etl".into(), 7);
    let to = |replace| Options { output: Some("D:/x.etl".into()), replace, ..options("cpu") };
    // Before anything is recorded.
    let refused = start(&fake, &to(false)).unwrap_err().0;
    assert!(refused.contains("x.user.etl is there already") && refused.contains("--force"), "{refused}");
    assert!(fake.0.borrow().starts.is_empty());
    start(&fake, &to(true)).unwrap();
    with(&fake, |r| r.stop()).unwrap();
    // At the end, when nothing is lost either: another name can be given.
    let refused = with(&fake, |r| r.collect(Path::new("D:/x.etl"), false)).unwrap_err().0;
    assert!(refused.contains("x.user.etl is there already"), "{refused}");
    assert_eq!(fake.0.borrow().files[Path::new("D:/x.user.etl")], 7);
    assert_eq!(with(&fake, |r| r.collect(Path::new("D:/y.etl"), false)).unwrap().len(), 2);
    // A flight recorder's too.
    start(&fake, &Options { mode: Mode::Ring { mebibytes: 256 }, ..options("network") }).unwrap();
    let saved = with(&fake, |r| r.keep()).unwrap();
    assert!(with(&fake, |r| r.take(&saved, Path::new("D:/y.etl"), false)).is_err());
    assert_eq!(with(&fake, |r| r.take(&saved, Path::new("D:/y.etl"), true)).unwrap().len(), 3);
}
