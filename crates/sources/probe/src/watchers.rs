//! Watchers of a folder, which are drained by a thread until their owner goes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
#[cfg(any(target_os = "linux", windows))]
use std::time::Duration;

/// How a folder is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Linux: inotify; so many instances.
    Inotify(usize),
    /// Linux: fanotify groups that are told of opens and closes; so many. Needs `CAP_SYS_ADMIN`.
    Fanotify(usize),
    /// Windows: `ReadDirectoryChangesW` with a buffer of so many bytes.
    ReadDirectoryChanges(usize),
}

/// Watchers at work.
#[derive(Debug)]
pub struct Watchers {
    stop: Arc<AtomicBool>,
    told: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
    /// A file that ends a wait for changes (Windows).
    #[cfg(windows)]
    nudge: std::path::PathBuf,
    /// What was told of that file before all began (Windows).
    #[cfg(windows)]
    before: u64,
}

impl Watchers {
    /// Begins to watch.
    ///
    /// # Errors
    /// The system's, for instance if it grants no more watchers; [`io::ErrorKind::Unsupported`] where there is no such thing.
    pub fn start(folder: &Path, by: By) -> io::Result<Watchers> {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut drain = system::begin(folder, by)?;
        let (ours, counts) = (Arc::clone(&stop), Arc::clone(&told));
        let thread = std::thread::Builder::new().name("etwhy-watchers".to_owned()).spawn(move || {
            while !ours.load(Ordering::Relaxed) {
                counts.fetch_add(drain(), Ordering::Relaxed);
                // So that events come in lots, as to programs that do something with each of them.
                #[cfg(target_os = "linux")]
                std::thread::sleep(Duration::from_millis(2));
            }
            counts.fetch_add(drain_last(&mut drain), Ordering::Relaxed);
        })?;
        #[cfg_attr(not(windows), allow(unused_mut))]
        let mut watchers = Watchers {
            stop,
            told,
            thread: Some(thread),
            #[cfg(windows)]
            nudge: folder.join("nudge"),
            #[cfg(windows)]
            before: 0,
        };
        #[cfg(windows)]
        watchers.see_the_first()?;
        Ok(watchers)
    }

    /// Changes files until one is told: Windows begins to watch with the thread's first call, not with the opening of the folder.
    #[cfg(windows)]
    fn see_the_first(&mut self) -> io::Result<()> {
        for turn in 0_u32..500 {
            std::fs::write(&self.nudge, turn.to_string())?;
            std::thread::sleep(Duration::from_millis(10));
            if self.told.load(Ordering::Relaxed) > 0 {
                std::fs::remove_file(&self.nudge)?;
                // What is told late of this file must not pass for news of what is measured.
                std::thread::sleep(Duration::from_millis(50));
                self.before = self.told.load(Ordering::Relaxed);
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the system told of no change within 5 seconds"))
    }

    /// What was told of the changes that were measured. The file that ends the wait does not count.
    #[cfg(windows)]
    fn told_since(&self) -> u64 {
        for _ in 0..50 {
            if self.told.load(Ordering::Relaxed) > self.before {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.told.load(Ordering::Relaxed).saturating_sub(self.before)
    }

    /// Ends it, and says how many bytes (inotify, Windows) or events (fanotify) came in.
    pub fn finish(mut self) -> u64 {
        #[cfg(windows)]
        let told = self.told_since();
        self.end();
        #[cfg(not(windows))]
        let told = self.told.load(Ordering::Relaxed);
        told
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread may look at `stop` and begin to wait only afterwards: one change may come too early to end its wait.
        #[cfg(windows)]
        for turn in 0_u32..500 {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            let _ = std::fs::write(&self.nudge, turn.to_string());
            std::thread::sleep(Duration::from_millis(10));
        }
        // Where nothing can be written nothing ends the wait: the thread goes with the process then.
        #[cfg(windows)]
        drop(self.thread.take_if(|thread| !thread.is_finished()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        #[cfg(windows)]
        let _ = std::fs::remove_file(&self.nudge);
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.end();
    }
}

/// What came in since the last look; on Windows looking waits for something.
fn drain_last(drain: &mut Drain) -> u64 {
    if cfg!(windows) { 0 } else { drain() }
}

/// Takes what has come in, and says how much it was.
type Drain = Box<dyn FnMut() -> u64 + Send>;

#[cfg(target_os = "linux")]
mod system {
    use super::{By, Drain};
    use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
    use rustix::fs::inotify;
    use std::io;
    use std::path::Path;

    pub fn begin(folder: &Path, by: By) -> io::Result<Drain> {
        match by {
            By::Inotify(count) => {
                let mut all = Vec::new();
                for _ in 0..count {
                    let file = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
                    let what = inotify::WatchFlags::CREATE
                        | inotify::WatchFlags::DELETE
                        | inotify::WatchFlags::CLOSE_WRITE
                        | inotify::WatchFlags::MODIFY;
                    inotify::add_watch(&file, folder, what)?;
                    all.push(file);
                }
                let mut buffer = vec![0_u8; 64 << 10];
                Ok(Box::new(move || {
                    let mut bytes = 0_u64;
                    for file in &all {
                        while let Ok(read) = rustix::io::read(file, &mut buffer[..]) {
                            if read == 0 {
                                break;
                            }
                            bytes = bytes.saturating_add(read as u64);
                        }
                    }
                    bytes
                }))
            }
            By::Fanotify(count) => {
                let mut all = Vec::new();
                for _ in 0..count {
                    let init = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
                    let group = Fanotify::init(init, EventFFlags::O_RDONLY)?;
                    let mask = MaskFlags::FAN_OPEN | MaskFlags::FAN_CLOSE | MaskFlags::FAN_EVENT_ON_CHILD;
                    group.mark(MarkFlags::FAN_MARK_ADD, mask, rustix::fs::CWD, Some(folder))?;
                    all.push(group);
                }
                Ok(Box::new(move || {
                    let mut events = 0_u64;
                    for group in &all {
                        while let Ok(some) = group.read_events() {
                            if some.is_empty() {
                                break;
                            }
                            events = events.saturating_add(some.len() as u64);
                        }
                    }
                    events
                }))
            }
            By::ReadDirectoryChanges(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(windows)]
mod system {
    use super::{By, Drain};
    use etwhy_os::windows::changes::Folder;
    use std::io;
    use std::path::Path;

    pub fn begin(folder: &Path, by: By) -> io::Result<Drain> {
        let By::ReadDirectoryChanges(bytes) = by else { return Err(io::ErrorKind::Unsupported.into()) };
        let folder = Folder::open(folder)?;
        let mut buffer = vec![0_u32; bytes / 4];
        // No bytes: there were more changes than the buffer holds (`ReadDirectoryChangesW`, "lpBytesReturned"). Told they were.
        Ok(Box::new(move || match folder.wait(&mut buffer) {
            Ok(bytes) => u64::from(bytes).max(1),
            // Asking on and on would cost what is measured.
            Err(_) => {
                std::thread::sleep(std::time::Duration::from_millis(10));
                0
            }
        }))
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
mod system {
    use super::{By, Drain};
    use std::io;
    use std::path::Path;

    pub fn begin(_: &Path, _: By) -> io::Result<Drain> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
