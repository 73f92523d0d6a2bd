//! Creating and deleting files in a folder that is watched.

use crate::clock::nanos;
use crate::content::Random;
use crate::error::ProbeError;
use crate::probe::{Grows, Parameter, Probe, System};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::{Figures, Series};
use crate::watchers::{By, Watchers};
use crate::words::time;
use std::fs::{self, File};
use std::time::Instant;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "dir-watch",
    about: "Create and delete files in a folder that others watch: what each watcher, or a larger buffer of one, costs the writer",
    manual: "Creates an empty file and deletes it, many times, in a folder that is watched: by 0, 1, 10, 50 and 100 inotify instances and, as \
             root, fanotify groups (Linux), or by one ReadDirectoryChangesW with a buffer of 16 KB to 2 MB (Windows). The order is random \
             in each round, each sample has a folder of its own, and a thread drains the watchers. The figure is one creation with its deletion, \
             against the number of watchers or the bytes of the buffer.\n\n\
             What it shows: who watches makes others pay. Each event is put into each watcher's queue by the thread that writes; on \
             Windows the system clears the whole buffer each time that it hands one over, so a buffer of 2 MB costs far more than one of \
             16 KB.\n\n\
             What fools it: on few processors the thread that drains takes time from the writer; look at CPU time and waiting, which \
             are apart. fs.inotify.max_user_instances limits how many watchers a user may have (128 as a rule): what cannot be had is left out \
             and said.\n\n\
             Compared with: on Windows a buffer of 2 MB made creating and deleting 10 times slower than one of 16 KB; on Linux each inotify \
             watcher added 1.2 us, so 100 of them made it 10 times slower.",
    systems: &[System::Linux, System::Windows],
    parameters: &[Parameter::number(
        "files",
        "Files that are created and deleted for each sample",
        "files",
        (1000, 300),
        (50, 100_000),
    )],
    grows: Grows::Total,
    n_is: if cfg!(windows) { "bytes of the buffer" } else { "watchers" },
    contrasts: &[],
    run,
    child: None,
    conclude,
};

const MEASURE: &str = "create and delete";

/// All states: what watches, its name, its size.
fn states() -> Vec<(Option<By>, &'static str, usize)> {
    if cfg!(windows) {
        let sizes = [16_usize, 64, 256, 1024, 2048].map(|kb| kb << 10);
        let watched =
            sizes.map(|bytes| (Some(By::ReadDirectoryChanges(bytes)), "ReadDirectoryChangesW", bytes));
        return [(None, "unwatched", 0)].into_iter().chain(watched).collect();
    }
    let mut all = vec![(None, "unwatched", 0)];
    for count in [1_usize, 10, 50, 100] {
        all.push((Some(By::Inotify(count)), "inotify", count));
        all.push((Some(By::Fanotify(count)), "fanotify", count));
    }
    all
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let files = run.number("files");
    let states = states();
    let order = Random::new()?.order(states.len());
    for (done, index) in order.iter().enumerate() {
        let Some((by, name, size)) = states.get(*index) else { continue };
        run.goes_on()?;
        run.progress(name, done as u64, states.len() as u64);
        let scratch = run.scratch(1 << 20)?;
        let folder = scratch.folder("watched")?;
        let watchers = match by.map(|by| Watchers::start(&folder, by)).transpose() {
            Ok(watchers) => watchers,
            Err(error) => {
                run.note(left_out(name, *size, &error));
                scratch.remove()?;
                continue;
            }
        };
        let case = Case::new(MEASURE).when(*name).at(*size as f64);
        run.measure(case, |run, laps| {
            for number in 0..files {
                run.goes_on()?;
                let path = folder.join(format!("file{number}"));
                let start = Instant::now();
                drop(File::create_new(&path).map_err(ProbeError::file(&path, "create"))?);
                fs::remove_file(&path).map_err(ProbeError::file(&path, "remove"))?;
                laps.push(nanos(start));
            }
            Ok((files, 0))
        })?;
        if watchers.is_some_and(|watchers| watchers.finish() == 0) {
            run.note(format!(
                "{name}: the watchers received no notifications, so their figures mean nothing"
            ));
        }
        scratch.remove()?;
    }
    Ok(())
}

fn left_out(name: &str, size: usize, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let hint = match (name, error.kind()) {
        ("fanotify", ErrorKind::PermissionDenied) => "that needs root",
        ("inotify", _) => "see fs.inotify.max_user_instances and the limit of open files",
        _ => "the system does not grant it",
    };
    // One note for all sizes where the right is missing.
    let which = if error.kind() == ErrorKind::PermissionDenied {
        name.to_owned()
    } else {
        format!("{size} x {name}")
    };
    format!("{which} left out: {hint} ({error})")
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let plain = figures.all().iter().find(|one| one.key.measure == MEASURE && one.key.variant == "unwatched");
    let Some(plain) = plain.map(|one| one.median) else { return Vec::new() };
    let mut said =
        vec![format!("Creating and deleting a file took {} in a folder that nobody watches.", time(plain))];
    for name in ["inotify", "fanotify", "ReadDirectoryChangesW"] {
        let sizes = figures.by_size(MEASURE, name);
        let (Some(least), Some(most)) = (sizes.first(), sizes.last()) else { continue };
        let words = |n: f64| {
            if name == "ReadDirectoryChangesW" {
                format!("{name} with {:.0} KB", n / 1024.0)
            } else {
                format!("{n:.0} {name} watcher{}", if n == 1.0 { "" } else { "s" })
            }
        };
        let n = |one: &Series| one.key.n.unwrap_or(0.0);
        let mut text = format!("With {} it took {}", words(n(least)), time(least.median));
        if n(most) > n(least) {
            text.push_str(&format!(", with {} {}", words(n(most)), time(most.median)));
        }
        said.push(text + ".");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{made, options};

    #[test]
    #[cfg(any(target_os = "linux", windows))]
    fn all_states_are_measured_and_watchers_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), &[("files", "60")]);
        let made = made(&PROBE, &options);
        assert!(!made.notes.iter().any(|note| note.contains("told of nothing")), "{:?}", made.notes);
        // What is missing is said.
        assert!(made.samples.len() + made.notes.len() >= 6, "{:?}", made.notes);
        assert!(made.samples.iter().all(|s| s.operations == 60));
        assert!(conclude(&made.samples).len() >= 2);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
