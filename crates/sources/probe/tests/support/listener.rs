//! A file system in memory, and a fanotify listener that must allow each open on it and takes its time.
#![allow(dead_code)] // Each test uses a part of it.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What the listener takes for each answer.
pub const DELAY_US: u64 = 400;

/// A file system in memory that is gone afterwards.
pub struct Mount(tempfile::TempDir, pub PathBuf);

impl Mount {
    pub fn new() -> Result<Mount, String> {
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
pub struct Listener(pub Child, tempfile::TempDir, BufReader<ChildStdout>);

/// What the copy of this program is called, and the variable that makes it a listener.
pub const NAME: &str = "scan-stand-in";
pub const FOLDER: &str = "ETWHY_TEST_LISTENS_TO";

/// What makes that copy run [`listens_if_asked`] and nothing else.
pub fn arguments() -> [String; 3] {
    let path = concat!(module_path!(), "::listens_if_asked");
    let within = path.split_once("::").map_or(path, |(_, within)| within);
    ["--exact".to_owned(), within.to_owned(), "--nocapture".to_owned()]
}

impl Listener {
    pub fn start(folder: &Path) -> Result<Listener, String> {
        let place = tempfile::tempdir().unwrap();
        let program = place.path().join(NAME);
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut child = Command::new(&program)
            .args(arguments())
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
