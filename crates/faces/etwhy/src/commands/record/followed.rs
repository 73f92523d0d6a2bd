//! A recording that is followed while it is made: `etwhy live PROFILES`.

use super::start::{at_ctrl_c, guard_until, tell};
use crate::exit::Exit;
use anyhow::Context as _;
use etwhy_base::units::bytes;
use etwhy_record::run::{Here, Mode, NO_WINDOWS, Options, Watch};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Length of a file. Whole files are deleted when there are too many.
const SEGMENT_MS: u64 = 60_000;
/// How long a follower may take to end with its standard input.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records profiles into a new folder, with a process of its own that follows it, until that process ends or Ctrl-C comes. The newest `keep` bytes
/// stay on disk.
///
/// # Errors
/// If recording cannot begin or go on, or the process cannot be started. Nothing records then.
pub fn run(
    profiles: &[String],
    keep: u64,
    follower: impl FnOnce(&Path) -> anyhow::Result<Command>,
) -> anyhow::Result<Exit> {
    let mut here = Here::open()?;
    let mode = Mode::Rotate { every_ms: SEGMENT_MS, keep };
    let options = Options::new(profiles.to_vec(), mode, new_folder(here.folder()));
    let mut follower = follower(&options.folder)?;
    let said = here.step(|recorder| recorder.start(&options))?;
    tell(&said);
    say!("etwhy: {NO_WINDOWS}");
    let mut child = match at_ctrl_c().and_then(|interrupt| {
        let child = follower.stdin(Stdio::piped()).spawn();
        Ok((child.context("the process that follows cannot be started")?, interrupt))
    }) {
        Ok(child) => child,
        Err(error) => {
            here.step(|recorder| recorder.cancel())?;
            return Err(error);
        }
    };
    let (follows, interrupt) = (&mut child.0, &child.1);
    let over = || interrupt.is_set() || !matches!(follows.try_wait(), Ok(None));
    let ended = guard_until(&mut here, &mut Watch::new(Vec::new()), over);
    // Who looks at what was recorded may go on to, unless it ended because they did.
    let exit = end(&mut child.0, || child.1.is_set() || ended.is_err());
    let files = ended?.map_or_else(Vec::new, |ended| ended.files().to_vec());
    if !files.is_empty() {
        let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len());
        say!(
            "etwhy: {} of the recording are kept: `etwhy segments {folder}` lists them; delete the folder when you need them no more",
            bytes(i64::try_from(sizes.sum::<u64>()).unwrap_or(i64::MAX)),
            folder = options.folder.display()
        );
    }
    exit
}

/// A folder for this recording alone: who follows a folder reads all that is in it.
fn new_folder(parent: &Path) -> PathBuf {
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    parent.join(format!("live-{ms}"))
}

/// Waits for the end of a process, which ends with its standard input if it `must`.
fn end(child: &mut Child, must: impl Fn() -> bool) -> anyhow::Result<Exit> {
    let mut since = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.code() {
                Some(0) => Exit::Done,
                Some(2) => Exit::WrongUse,
                // Ended by Ctrl-C, as it is meant to be.
                _ if must() => Exit::Done,
                _ => Exit::InPart,
            });
        }
        if must() {
            drop(child.stdin.take());
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                child.kill()?;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
