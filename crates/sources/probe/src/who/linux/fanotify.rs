//! Who listens to file accesses: `/proc/*/fd` has `anon_inode:[fanotify]`, `/proc/*/fdinfo` says what is marked.

use super::processes;
use super::tracers::Tracers;
use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

// include/uapi/linux/fanotify.h
const OPEN: u64 = 0x20;
const ACCESS: u64 = 0x1;
const OPEN_EXEC: u64 = 0x1000;
const CLOSE: u64 = 0x8 | 0x10;
const OPEN_PERM: u64 = 0x1_0000;
const ACCESS_PERM: u64 = 0x2_0000;
const OPEN_EXEC_PERM: u64 = 0x4_0000;
const PRE_ACCESS: u64 = 0x10_0000;
const PERMISSIONS: u64 = OPEN_PERM | ACCESS_PERM | OPEN_EXEC_PERM | PRE_ACCESS;

/// Most marks of one listener that are read: products that mark each folder have many.
const MOST_MARKS: usize = 100_000;

/// What a mark is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// A file or folder: its number and the device of its file system, as the kernel writes it.
    Inode(u64, u64),
    /// A mount.
    Mount(u64),
    /// A whole file system.
    FileSystem(u64),
}

/// One mark of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it is on.
    pub on: On,
    /// Events.
    pub mask: u64,
}

impl Mark {
    /// Whether the listener must allow something before it goes on.
    pub fn permits(self) -> bool {
        self.mask & PERMISSIONS != 0
    }

    /// What it is told, or asked.
    pub fn words(self) -> String {
        let all: [(u64, &str); 7] = [
            (OPEN_PERM, "must allow opens"),
            (ACCESS_PERM | PRE_ACCESS, "must allow reads"),
            (OPEN_EXEC_PERM, "must allow starts"),
            (OPEN, "is notified of opens"),
            (ACCESS, "is notified of reads"),
            (OPEN_EXEC, "is notified of starts"),
            (CLOSE, "is notified of closes"),
        ];
        let words: Vec<&str> =
            all.iter().filter(|(bits, _)| self.mask & bits != 0).map(|(_, words)| *words).collect();
        if words.is_empty() { "is notified of other events".to_owned() } else { words.join(", ") }
    }
}

/// The lines of an fdinfo file that are marks (fs/notify/fdinfo.c); `None` if it is no fanotify listener's.
pub fn marks(text: &str) -> Option<Vec<Mark>> {
    let mut found = Vec::new();
    let mut is_listener = false;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("fanotify ") else { continue };
        is_listener = true;
        let field = |name: &str| {
            let word = rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
            u64::from_str_radix(word, 16).ok()
        };
        // mnt_id is printed in hexadecimal too (show_mark_fhandle and its neighbours use %x).
        let on = match (field("ino"), field("sdev"), field("mnt_id")) {
            (Some(inode), Some(device), _) => On::Inode(inode, device),
            (None, _, Some(mount)) => On::Mount(mount),
            (None, Some(device), None) if !rest.contains("ino:") => On::FileSystem(device),
            _ => continue,
        };
        if found.len() < MOST_MARKS {
            found.push(Mark { on, mask: field("mask").unwrap_or(0) });
        }
    }
    is_listener.then_some(found)
}

/// The place that a probe works in, as the kernel names it.
#[derive(Clone, Debug, Default)]
pub struct Target {
    folder: PathBuf,
    mount: Option<u64>,
    device: Option<u64>,
    inodes: HashSet<u64>,
    /// Mount and file system of this program: what it starts is there, as a rule.
    program: (Option<u64>, Option<u64>),
}

impl Target {
    /// The folder, and what is below it and ours.
    pub fn for_folder(folder: &Path) -> Target {
        let (mount, device) = place(folder);
        let program = std::env::current_exe().map(|path| place(&path)).unwrap_or_default();
        let mut target = Target { folder: folder.to_owned(), mount, device, inodes: HashSet::new(), program };
        target.look();
        target
    }

    /// Looks for new folders: the probe makes its own while it runs.
    pub fn look(&mut self) {
        /// Folders whose numbers are kept.
        const MOST: usize = 1000;
        let mut open = vec![(self.folder.clone(), 0)];
        while let Some((path, depth)) = open.pop() {
            let Ok(facts) = std::fs::symlink_metadata(&path) else { continue };
            if !facts.is_dir() || self.inodes.len() >= MOST {
                continue;
            }
            self.inodes.insert(facts.ino());
            let ours =
                |name: &str| depth > 0 || name.starts_with(&format!("etwhy-probe-{}-", std::process::id()));
            // Two levels: what lies in the folders of a probe are thousands of files.
            if depth < 2 {
                let below = std::fs::read_dir(&path).into_iter().flatten().flatten().take(200);
                open.extend(
                    below
                        .filter(|e| {
                            e.file_type().is_ok_and(|t| t.is_dir())
                                && e.file_name().to_str().is_some_and(ours)
                        })
                        .map(|e| (e.path(), depth + 1)),
                );
            }
        }
    }

    /// Whether a mark sees what the probe does there; how, in words.
    pub fn covered_by(&self, mark: Mark) -> Option<&'static str> {
        match mark.on {
            On::Mount(mount) if Some(mount) == self.mount => Some("the mount of the probe's folder"),
            On::FileSystem(device) if Some(device) == self.device => {
                Some("the file system of the probe's folder")
            }
            On::Inode(inode, device) if Some(device) == self.device && self.inodes.contains(&inode) => {
                Some("the probe's folder")
            }
            On::Mount(mount)
                if Some(mount) == self.program.0 && mark.mask & (OPEN_EXEC_PERM | OPEN_PERM) != 0 =>
            {
                Some("the mount of the programs that it starts")
            }
            On::FileSystem(device)
                if Some(device) == self.program.1 && mark.mask & (OPEN_EXEC_PERM | OPEN_PERM) != 0 =>
            {
                Some("the file system of the programs that it starts")
            }
            _ => None,
        }
    }
}

/// Mount and device of a path. The path is not opened for it: nobody is asked, and nobody is told.
fn place(path: &Path) -> (Option<u64>, Option<u64>) {
    use rustix::fs::{Mode, OFlags};
    let mount = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok().and_then(|file| {
        let text = super::files::small(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd()))?;
        text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
    });
    // What stat says differs from the kernel's own number on Btrfs; mountinfo has that.
    let mounts = super::files::up_to(4 << 20, "/proc/self/mountinfo").unwrap_or_default();
    let device = mount.and_then(|mount: u64| {
        let line = mounts.lines().find(|line| line.split(' ').next() == Some(&mount.to_string()))?;
        let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
        // include/linux/kdev_t.h: MKDEV with 20 bits for the minor number.
        Some((major.parse::<u64>().ok()? << 20) | minor.parse::<u64>().ok()?)
    });
    (mount, device)
}

/// What a listener was seen to do.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// Name of its program.
    pub name: String,
    /// Marks when it was last read.
    pub marks: usize,
    /// Whether one of its marks is a question.
    pub permits: bool,
    /// The most telling mark that covers the probe's place, and how.
    pub covers: Option<(Mark, &'static str)>,
}

/// All listeners that were found, by process and number of the file.
#[derive(Debug, Default)]
pub struct Listeners {
    /// What was found.
    pub found: BTreeMap<(u32, i32), Listener>,
    /// Processes whose files this user may not see.
    pub hidden: usize,
}

impl Listeners {
    /// Searches the open files of all processes; programs of eBPF are handed to `tracers`.
    pub fn search(&mut self, tracers: &mut Tracers) {
        self.hidden = 0;
        let own = std::process::id();
        for pid in processes::numbers().filter(|pid| *pid != own) {
            let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
                self.hidden += usize::from(Path::new(&format!("/proc/{pid}")).exists());
                continue;
            };
            for entry in entries.flatten() {
                let Ok(target) = std::fs::read_link(entry.path()) else { continue };
                let Some(kind) = target.to_str().and_then(|text| text.strip_prefix("anon_inode:")) else {
                    continue;
                };
                let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                    continue;
                };
                if kind == "[fanotify]" {
                    self.found.entry((pid, fd)).or_insert_with(|| {
                        let comm = super::files::small(format!("/proc/{pid}/comm")).unwrap_or_default();
                        Listener { name: processes::name(pid, comm.trim_end()), ..Listener::default() }
                    });
                } else if kind == "bpf-prog" || kind == "bpf_link" {
                    tracers.ebpf(pid, fd);
                }
            }
        }
    }

    /// Reads the marks of those that are known.
    pub fn look(&mut self, target: &Target) {
        for ((pid, fd), listener) in &mut self.found {
            let Some(marks) = super::files::up_to(16 << 20, format!("/proc/{pid}/fdinfo/{fd}"))
                .and_then(|text| marks(&text))
            else {
                continue;
            };
            listener.marks = marks.len();
            listener.permits |= marks.iter().any(|mark| mark.permits());
            for mark in marks {
                let better = listener.covers.is_none_or(|(known, _)| mark.permits() && !known.permits());
                if let Some(how) = target.covered_by(mark).filter(|_| better) {
                    listener.covers = Some((mark, how));
                }
            }
        }
    }
}
