use super::fanotify::{Mark, On, marks};
use super::processes::{Snapshot, parse};
use super::waits::{For, frames};
use super::*;
use crate::who::{self, Suspect};

#[test]
fn marks_of_listeners() {
    // Documentation/filesystems/proc.rst, and what clamonacc 1.4.6 shows on Linux 6.18.
    let text = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1\nfanotify flags:10 event-flags:0\n\
                fanotify mnt_id:12 mflags:40 mask:38 ignored_mask:40000003\n\
                fanotify ino:4f969 sdev:800013 mflags:0 mask:3b ignored_mask:40000000 fhandle-bytes:8 fhandle-type:1 f_handle:69f90400c275b5b4\n\
                fanotify sdev:700000 mflags:0 mask:8030000 ignored_mask:0\n";
    let found = marks(text).unwrap();
    assert_eq!(
        found.iter().map(|mark| (mark.on, mark.mask)).collect::<Vec<_>>(),
        [
            (On::Mount(0x12), 0x38),
            (On::Inode(0x4f969, 0x80_0013), 0x3b),
            (On::FileSystem(0x70_0000), 0x803_0000)
        ]
    );
    assert_eq!(found.iter().map(|mark| mark.permits()).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(found[2].words(), "must allow opens, must allow reads");
    assert_eq!(found[0].words(), "is notified of opens, is notified of closes");
    assert_eq!(marks("pos:\t0\ninotify wd:1 ino:2 sdev:3 mask:4\n"), None);
    assert_eq!(marks("fanotify ino:zz sdev:1 mask:1\nfanotify\nfanotify mask:10000\n"), Some(vec![]));
}

#[test]
fn marks_cover_folders_their_mounts_and_file_systems_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::for_folder(folder.path());
    use std::os::unix::fs::MetadataExt;
    let facts = std::fs::metadata(folder.path()).unwrap();
    let (major, minor) = (rustix::fs::major(facts.dev()), rustix::fs::minor(facts.dev()));
    let device = (u64::from(major) << 20) | u64::from(minor);
    let mask = 0x1_0000;
    let own = target.covered_by(Mark { on: On::Inode(facts.ino(), device), mask });
    assert_eq!(own, Some("the probe's folder"));
    assert!(target.covered_by(Mark { on: On::FileSystem(device), mask }).is_some());
    assert!(target.covered_by(Mark { on: On::FileSystem(device + 1), mask }).is_none());
    assert!(target.covered_by(Mark { on: On::Inode(facts.ino() + 1_000_000, device), mask }).is_none());
    assert!(target.covered_by(Mark { on: On::Mount(u64::MAX), mask }).is_none());
}

#[test]
fn processes_whatever_their_name() {
    // proc_pid_stat(5): utime 14, stime 15, starttime 22; the name has blanks and parentheses.
    let line = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 12345 1 1\n";
    let found = parse(line, 10_000_000).unwrap();
    assert_eq!(
        (found.name.as_str(), found.parent, found.cpu_ns, found.start),
        ("a) b (c)", 7, 2_000_000_000, 12345)
    );
    assert!(!found.kernel);
    assert!(parse("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0", 1).unwrap().kernel);
    for bad in ["", "1 (x", "1 )x(", "1 (x) S 1"] {
        assert_eq!(parse(bad, 1), None, "{bad}");
    }
    let own = std::process::id();
    let all = Snapshot::take();
    assert!(all.0.contains_key(&own) && all.descends(own, own) && !all.descends(1, own));
}

#[test]
fn kernel_functions_and_what_they_wait_for() {
    // fs/notify/fanotify, kernel/signal.c, fs/fuse/dev.c, net/sunrpc/sched.c, mm/filemap.c
    let all = [
        "fanotify_handle_event",
        "ptrace_stop",
        "request_wait_answer",
        "rpc_wait_bit_killable",
        "folio_wait_bit",
        "do_sys_poll",
    ];
    assert_eq!(
        all.map(For::from_function),
        [For::Listener, For::Tracer, For::Fuse, For::Server, For::Disk, For::Other]
    );
    let stack = "[<0>] fanotify_handle_event+0x1c5/0x2a0\n[<0>] fsnotify+0x1/0x2\n\n";
    assert_eq!(frames(stack), ["fanotify_handle_event", "fsnotify"]);
}

#[test]
fn versions_of_packages() {
    let list = "Package: a\nStatus: install ok installed\nVersion: 1.2\n\nPackage: b\nStatus: deinstall ok config-files\nVersion: 3\n";
    assert_eq!(products::version(list, "a"), Some("1.2"));
    assert_eq!(products::version(list, "b"), None);
    assert_eq!(products::version(list, ""), None);
}

#[test]
fn kinds_of_ebpf_programs() {
    // include/uapi/linux/bpf.h: BPF_PROG_TYPE_LSM is 29, BPF_PROG_TYPE_CGROUP_SKB 8.
    assert_eq!(tracers::kind("pos:\t0\nprog_type:\t29\nprog_jited:\t1\n"), Some("LSM"));
    assert_eq!(tracers::kind("prog_type:\t8\n"), None);
}

fn suspect(name: &str, confidence: &str, blocked_ns: Option<u64>, cpu_ns: Option<u64>) -> Suspect {
    Suspect {
        name: name.into(),
        process: None,
        kind: "process".into(),
        evidence: Vec::new(),
        cpu_ns,
        blocked_ns,
        confidence: confidence.into(),
    }
}

#[test]
fn the_surest_comes_first() {
    let mut all = vec![
        suspect("busy", who::POSSIBLE, None, Some(9)),
        suspect("scanner", who::LIKELY, None, Some(5)),
        suspect("asked", who::LIKELY, Some(1), None),
        suspect("seen", who::PROVEN, Some(1), None),
    ];
    who::rank(&mut all);
    assert_eq!(all.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["seen", "asked", "scanner", "busy"]);
}

#[test]
fn watching_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let ours = Arc::clone(&stop);
    let probe = rustix::thread::gettid().as_raw_nonzero().get();
    let path = folder.path().to_owned();
    let thread = std::thread::spawn(move || watch(&path, probe, &ours));
    std::thread::sleep(Duration::from_secs(3));
    stop.store(true, Ordering::Relaxed);
    let watched = thread.join().unwrap();
    let share = watched.cost_ns.unwrap() as f64 / watched.took.as_nanos() as f64;
    println!("{:.2} % of a processor, {} looks in {:?}", share * 100.0, watched.waits.looks(), watched.took);
    // 1 % is the aim; the search of all processes at the start comes on top in such a short run.
    assert!(share < 0.03, "{share}");
    assert!(watched.waits.looks() > 50, "{}", watched.waits.looks());
}

#[test]
fn where_a_thread_waits_is_told_and_sleeping_is_nobodys_fault() {
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::start(folder.path());
    std::thread::sleep(Duration::from_millis(800));
    let seen = watch.finish();
    assert!(!seen.suspects.iter().any(|s| s.confidence == who::PROVEN), "{:?}", seen.suspects);
    let said = seen.notes.join("\n");
    assert!(said.contains("nanosleep") || said.contains("never told"), "{said}");
}

#[test]
fn a_suspect_of_several_rounds_is_one() {
    let mut all = Vec::new();
    let seen = |confidence: &str, process: u32, words: &str| Suspect {
        process: Some(process),
        evidence: vec![words.to_owned()],
        ..suspect("scanner", confidence, Some(5), Some(7))
    };
    who::join(&mut all, [seen(who::LIKELY, 1, "asked")]);
    assert_eq!(all[0].evidence, ["asked"]);
    who::join(&mut all, [seen(who::PROVEN, 2, "seen"), seen(who::POSSIBLE, 3, "busy")]);
    who::join(&mut all, [suspect("first", who::PROVEN, Some(100), None)]);
    let [first, one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(first.name, "first");
    assert_eq!((one.cpu_ns, one.blocked_ns, one.process), (Some(21), Some(15), Some(2)));
    assert_eq!((one.confidence.as_str(), one.evidence[0].as_str()), (who::PROVEN, "seen"));
    assert_eq!(one.evidence[1..], [who::ONE_OF_SEVERAL]);
}
