//! A listener that must allow each open: `file-open` shows what it costs, and who it is. Without it nobody is accused.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use etwhy_probe::probes::ALL;
use etwhy_probe::run::{Made, Options, Run};
use etwhy_probe::who::{LIKELY, PROVEN, Seen, Watch};
use etwhy_probe::{Interrupt, Sample};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What the listener takes for each answer.
const DELAY_US: u64 = 400;

/// A file system in memory that is gone afterwards.
struct Mount(tempfile::TempDir, PathBuf);

impl Mount {
    fn new() -> Result<Mount, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mount");
        std::fs::create_dir(&path).unwrap();
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256m", "tmpfs"]).arg(&path).output();
        match done {
            Ok(output) if output.status.success() => Ok(Mount(folder, path)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("mount: {error}")),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.1).status();
        let _ = &self.0;
    }
}

/// The listener, which ends with its standard input: this program under another name, so that it has one of its own.
#[allow(dead_code)] // The folder of its program and its output, which must stay.
struct Listener(Child, tempfile::TempDir, BufReader<ChildStdout>);

/// What the copy of this program is called, and the variable that makes it a listener.
const NAME: &str = "scan-stand-in";
const FOLDER: &str = "ETWHY_TEST_LISTENS_TO";

impl Listener {
    fn start(folder: &Path) -> Result<Listener, String> {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join(NAME);
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut child = Command::new(&program)
            .args(["--exact", "listens_if_asked", "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let said = output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listener: ").map(str::to_owned));
        let listener = Listener(child, place, output);
        match said.as_deref() {
            Some("ready") => Ok(listener),
            other => Err(other.unwrap_or("it ended at once").to_owned()),
        }
    }
}

/// Must allow each open on a mount, and takes its time. Does nothing unless it is asked by [`Listener::start`].
#[test]
fn listens_if_asked() {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::fanotify::{
        EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
    };
    use std::os::unix::fs::MetadataExt;

    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    // A mark on a mount holds up everything on it: it must be our own.
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    assert_ne!(device(&folder), device(folder.parent().unwrap()), "{}: no mount point", folder.display());
    let init = InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
    let group = Fanotify::init(init, EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE).and_then(|group| {
        let mark = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_MOUNT;
        group.mark(mark, MaskFlags::FAN_OPEN_PERM, rustix::fs::CWD, Some(&folder)).map(|()| group)
    });
    let group = match group {
        Ok(group) => group,
        Err(error) => return println!("\nlistener: {error}"),
    };
    println!("\nlistener: ready");
    let input = std::io::stdin();
    loop {
        let mut wait =
            [PollFd::new(group.as_fd(), PollFlags::POLLIN), PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        poll(&mut wait, PollTimeout::NONE).unwrap();
        if wait[1].any().unwrap_or(true) {
            return;
        }
        for event in group.read_events().unwrap_or_default() {
            // Spinning, not sleeping: timers of busy machines are late.
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(DELAY_US) {
                std::hint::spin_loop();
            }
            if let Some(file) = event.fd() {
                let _ = group.write_response(FanotifyResponse::new(file, Response::FAN_ALLOW));
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn file_open(folder: &Path) -> (Made, Seen) {
    let probe = ALL.iter().find(|probe| probe.name == "file-open").copied().unwrap();
    let set = [("files", "400"), ("bytes", "4096"), ("operations", "open")];
    let options = Options {
        quick: true,
        rounds: 3,
        folder: folder.to_owned(),
        child: Vec::new(),
        set: set.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
    };
    let watch = Watch::start(folder);
    let made = Run::of(probe, &options, &Interrupt::new(), &mut |_, _, _| ()).unwrap();
    let seen = watch.finish();
    assert!(made.error.is_none(), "{:?}", made.error);
    (made, seen)
}

/// The middle of the rounds' medians.
fn p50(samples: &[Sample], variant: &str) -> u64 {
    let mut all: Vec<u64> = samples
        .iter()
        .filter(|s| s.case.measure == "open" && s.case.variant == variant)
        .filter_map(|s| s.p50_ns)
        .collect();
    assert_eq!(all.len(), 3);
    all.sort_unstable();
    all[1]
}

#[test]
fn a_listener_that_must_allow_opens() {
    let mount = match Mount::new() {
        Ok(mount) => mount,
        Err(why) => return println!("skipped: a file system in memory cannot be mounted: {why}"),
    };
    let (without, nobody) = file_open(&mount.1);
    let listener = match Listener::start(&mount.1) {
        Ok(listener) => listener,
        Err(why) => return println!("skipped: no fanotify listener that is asked for permission: {why}"),
    };
    let pid = listener.0.id();
    let (with, seen) = file_open(&mount.1);
    drop(listener);

    for variant in ["first run", "second run"] {
        let (off, on) = (p50(&without.samples, variant), p50(&with.samples, variant));
        let tax = on.saturating_sub(off);
        println!("{variant}: open p50 {off} ns without, {on} ns with the listener");
        assert!((DELAY_US * 1000..5 * DELAY_US * 1000).contains(&tax), "{variant}: {off} ns, then {on} ns");
    }
    // The listener remembers nothing: the second run is no cheaper.
    let suspect = &seen.suspects[0];
    println!("{suspect:#?}\n{:#?}", seen.notes);
    assert_eq!((suspect.name.as_str(), suspect.process), (NAME, Some(pid)));
    assert_eq!(suspect.kind, "fanotify listener");
    assert_eq!(suspect.confidence, PROVEN);
    // 3 rounds of 400 creations and 2 x 400 opens, each at least the delay: 1.44 s, of which looks must have seen half.
    let asked = 3 * 3 * 400 * DELAY_US * 1000;
    let blocked = suspect.blocked_ns.unwrap();
    assert!(blocked > asked / 2 && blocked < asked * 5, "{blocked} of {asked} ns");
    assert!(suspect.evidence[0].contains("/wchan"), "{:?}", suspect.evidence);
    assert!(suspect.evidence[1].contains("must allow opens"), "{:?}", suspect.evidence);

    let guilty: Vec<_> =
        nobody.suspects.iter().filter(|s| s.confidence == PROVEN || s.confidence == LIKELY).collect();
    assert!(guilty.is_empty(), "{guilty:#?}");
    let said = |made: &Made| {
        let probe = ALL.iter().find(|probe| probe.name == "file-open").unwrap();
        (probe.conclude)(&made.samples).join("\n")
    };
    println!("without:\n{}\nwith:\n{}", said(&without), said(&with));
}
