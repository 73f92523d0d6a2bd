//! The next start of Windows, recorded by Windows itself.
//!
//! Keys of the registry have Windows begin sessions long before a program could: the Global Logger takes the kernel's events, under the
//! name `NT Kernel Logger`, and an autologger those of providers. Both are written down in the journal before they are made, and taken
//! away again as soon as the recording is ended, so that one start is recorded, not all.

use super::explain::explain;
use super::journal::{Entry, Journal, Kind, Phase, State, without_prefix};
use super::start::SEQUENTIAL;
use super::system::{Boot, Code, Refused};
use super::{RESERVE, Recorder};
use crate::{Buffers, Plan};
use std::path::PathBuf;

/// Most mebibytes of a file: nobody looks after the disk while Windows starts.
const MOST_MIB: u64 = 8 << 10;

/// Starts of Windows whose files are looked for.
const MOST_STARTS: u32 = 64;

impl Recorder<'_> {
    /// Whether the next start of Windows can be recorded.
    pub(super) fn is_not_armed(&mut self) -> Result<(), Refused> {
        let left = self.machine.boots().map_err(Refused)?;
        if left.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = left.into_iter().map(|armed| armed.key).collect();
        Err(Refused(format!(
            "a recording of etwhy whose journal is gone has left keys of the registry ({}): `etwhy record cancel` removes them",
            keys.join(", ")
        )))
    }

    /// Has the next start of Windows recorded. Gives sentences that the user should know.
    pub(super) fn arm(
        &mut self,
        mut journal: Journal,
        plan: &Plan,
        mut said: Vec<String>,
    ) -> Result<Vec<String>, Refused> {
        // Each of the two files gets at most half of what may be used.
        let free = self.machine.free_bytes(&journal.folder);
        let most = free.map_or(MOST_MIB, |free| (free.saturating_sub(RESERVE) >> 21).clamp(1, MOST_MIB));
        let most_mib = u32::try_from(most).unwrap_or(u32::MAX);
        let mut set = |kind: Kind| -> Result<(), Refused> {
            let entry = journal.next_entry(kind, kind == Kind::User);
            let boot = boot_of(&entry, plan, most_mib);
            journal.sessions.push(entry);
            self.save(&journal)?;
            self.machine.set_boot(&boot).map_err(Refused)
        };
        if let Err(why) = set(Kind::Kernel).and_then(|()| set(Kind::User)) {
            return Err(match self.disarm(&journal) {
                Ok(()) => {
                    let _ = self.machine.clear();
                    why
                }
                Err(left) => Refused(format!("{why}. And {left}")),
            });
        }
        if !plan.stacks.is_empty() {
            said.push("stacks of kernel events are missing: Windows documents no key for them".to_owned());
        }
        if plan.providers.iter().any(|p| !p.without.is_empty() || !p.stack_of.is_empty()) {
            said.push("providers record all of their events: their filters are left out".to_owned());
        }
        said.push(format!("each file ends at {most_mib} MiB"));
        let ms = self.machine.now_ms();
        said.iter().for_each(|text| journal.remark(ms, text));
        self.save(&journal)?;
        Ok(said)
    }

    /// Takes back what [`Recorder::arm`] did; sessions that Windows has begun go on.
    pub(super) fn disarm(&mut self, journal: &Journal) -> Result<(), Refused> {
        journal.sessions.iter().try_for_each(|entry| self.remove_key(&key_of(entry)))
    }

    pub(super) fn remove_key(&mut self, key: &str) -> Result<(), Refused> {
        let done = self.machine.clear_boot(key);
        done.map_err(|why| {
            Refused(format!("the key {key} is still there, so that each start of Windows is recorded: {why}"))
        })
    }

    /// Makes a recording that waited for a start of Windows one that runs. No further start is recorded.
    ///
    /// # Errors
    /// If Windows has not begun it.
    pub(super) fn booted(&mut self, journal: &mut Journal) -> Result<(), Refused> {
        let mut has_begun = false;
        for entry in &mut journal.sessions {
            let live =
                self.ours(entry).map_err(|code| Refused(format!("`{}`: {}", entry.name, explain(code))))?;
            has_begun |=
                live.is_some() || entry.files.iter().any(|file| self.machine.file_bytes(file).is_some());
            if let Some(live) = live {
                entry.state = State::Running;
                entry.flags = live.flags;
                // Windows has started more than once, and kept the first file.
                let file = without_prefix(&live.file).to_lowercase();
                if !file.is_empty()
                    && entry.files.iter().all(|known| known.to_string_lossy().to_lowercase() != file)
                {
                    entry.files.push(PathBuf::from(without_prefix(&live.file)));
                }
            }
            self.find_numbered(entry);
        }
        if !has_begun {
            return Err(self.not_begun());
        }
        self.disarm(journal)?;
        journal.phase = Phase::Running;
        self.save(journal)
    }

    /// Adds the files of further starts, which Windows numbers: they lie beside the first one.
    pub(super) fn find_numbered(&mut self, entry: &mut Entry) {
        let Some(first) = entry.files.first().map(|file| file.as_os_str().to_owned()) else { return };
        for number in 1..=MOST_STARTS {
            let mut file = first.clone();
            file.push(format!(".{number:04}"));
            let file = PathBuf::from(file);
            if !entry.files.contains(&file) && self.machine.file_bytes(&file).is_some() {
                entry.files.push(file);
            }
        }
    }

    /// Why there is nothing of a start of Windows.
    fn not_begun(&mut self) -> Refused {
        let failed = self.machine.boots().unwrap_or_default().into_iter().find_map(|armed| {
            let code = armed.status.filter(|code| *code != 0)?;
            Some(format!(
                "Windows could not begin the session of the key {}: {}",
                armed.key,
                explain(Code(code))
            ))
        });
        let why = failed.unwrap_or_else(|| {
            "Windows has not been restarted since (to shut it down and switch it on again is no restart)"
                .to_owned()
        });
        Refused(format!("{why}; `etwhy record cancel` takes the recording back"))
    }
}

/// The key of a session. The Global Logger's becomes `NT Kernel Logger` when it begins.
fn key_of(entry: &Entry) -> String {
    if entry.has_shared_name() { "GlobalLogger".to_owned() } else { format!("Autologger\\{}", entry.name) }
}

/// The same memory in buffers of less than a mebibyte, which both keys want.
pub(super) fn small(buffers: Buffers) -> Buffers {
    const MOST_KIB: u32 = 512;
    if buffers.size_kib <= MOST_KIB {
        return buffers;
    }
    let times = buffers.size_kib / MOST_KIB;
    Buffers {
        size_kib: MOST_KIB,
        min: buffers.min.saturating_mul(times),
        max: buffers.max.saturating_mul(times),
    }
}

fn boot_of(entry: &Entry, plan: &Plan, most_mib: u32) -> Boot {
    let (buffers, masks, providers) = match entry.kind {
        Kind::Kernel => (plan.kernel_buffers, Some(plan.masks), Vec::new()),
        Kind::User | Kind::Names => (plan.user_buffers, None, plan.enabled()),
    };
    Boot {
        key: key_of(entry),
        guid: entry.guid(),
        file: entry.files.last().cloned().unwrap_or_default(),
        most_mib,
        buffers: small(buffers),
        mode: SEQUENTIAL,
        masks,
        providers,
    }
}
