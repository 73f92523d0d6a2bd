//! Windows, as the state machine sees it.

use super::system::{Armed, Begin, Boot, Code, Live, Machine, Provided, Sessions};
use super::{Journal, Keys, autologger};
use crate::Enabled;
use crate::vocabulary::{EventClass, MASKS};
use etwhy_base::Guid;
use etwhy_os::windows::counter::Counter;
use etwhy_os::windows::etw::{Control, Enable, Etw, Running, Start};
use etwhy_os::windows::event_log::EventLog;
use etwhy_os::windows::hot_key::HotKey;
use etwhy_os::windows::{disk, machine, processes};
use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Seconds after which a buffer is written although it is not full: what happened a second ago is on disk.
const FLUSH_S: u32 = 1;
/// `ERROR_GEN_FAILURE`, for errors without a number.
const NO_NUMBER: u32 = 31;

fn code(error: &io::Error) -> Code {
    Code(error.raw_os_error().and_then(|n| u32::try_from(n).ok()).unwrap_or(NO_NUMBER))
}

fn live(running: Running) -> Live {
    Live {
        handle: running.handle,
        name: running.name,
        file: running.file,
        guid: Guid(running.guid),
        mode: running.mode,
        flags: running.flags,
        events_lost: running.events_lost,
        buffers_lost: running.buffers_lost,
        buffers_written: running.buffers_written,
    }
}

/// Trace sessions of this machine.
pub struct Windows(Etw);

impl Windows {
    /// Looks the functions up.
    ///
    /// # Errors
    /// The system's.
    pub fn load() -> io::Result<Windows> {
        Etw::load().map(Windows)
    }
}

impl Sessions for Windows {
    fn start(&mut self, begin: &Begin) -> Result<u64, Code> {
        let start = Start {
            name: &begin.name,
            guid: begin.guid.0,
            file: begin.file.as_deref(),
            buffer_kib: begin.buffers.size_kib,
            min_buffers: begin.buffers.min,
            max_buffers: begin.buffers.max,
            mode: begin.mode,
            flush_s: if begin.file.is_some() { FLUSH_S } else { 0 },
            flags: begin.flags,
        };
        self.0.start(&start).map_err(|e| code(&e))
    }

    fn query(&mut self, name: &str) -> Result<Live, Code> {
        self.0.query(name).map(live).map_err(|e| code(&e))
    }

    fn list(&mut self) -> Result<Vec<Live>, Code> {
        self.0.all().map(|all| all.into_iter().map(live).collect()).map_err(|e| code(&e))
    }

    fn stop(&mut self, handle: u64) -> Result<(), Code> {
        self.0.control(handle, Control::Stop, None, 0).map(drop).map_err(|e| code(&e))
    }

    fn flush(&mut self, handle: u64, file: Option<&Path>) -> Result<(), Code> {
        self.0.control(handle, Control::Flush, file, 0).map(drop).map_err(|e| code(&e))
    }

    fn change_file(&mut self, handle: u64, file: &Path, flags: u32) -> Result<(), Code> {
        self.0.control(handle, Control::Update, Some(file), flags).map(drop).map_err(|e| code(&e))
    }

    fn set_masks(&mut self, handle: u64, masks: [u32; MASKS]) -> Result<(), Code> {
        self.0.set_masks(handle, masks).map_err(|e| code(&e))
    }

    fn set_stacks(&mut self, handle: u64, stacks: &[EventClass]) -> Result<(), Code> {
        let events: Vec<([u8; 16], u8)> = stacks.iter().map(|e| (e.class.0, e.kind)).collect();
        self.0.set_stacks(handle, &events).map_err(|e| code(&e))
    }

    fn enable(&mut self, handle: u64, provider: &Enabled, what: Provided) -> Result<(), Code> {
        let events = Enable {
            guid: provider.guid.0,
            code: 1,
            level: provider.level,
            keywords: provider.keywords,
            stack: provider.stack,
            stack_of: &provider.stack_of,
            without: &provider.without,
            programs: &provider.programs,
        };
        let enable = match what {
            Provided::Events => events,
            // Asked for its state, a provider tells all of it; one that is there for that only tells it when it is switched on.
            Provided::State(keywords) => {
                let code = if provider.only_at_stop { 1 } else { 2 };
                Enable { code, keywords, stack: false, stack_of: &[], without: &[], programs: "", ..events }
            }
        };
        self.0.enable(handle, &enable).map_err(|e| code(&e))
    }

    fn mark(&mut self, text: &str) -> Result<(), Code> {
        // The kernel's mark fills the table `mark`; the event reaches the session of providers where that call is missing.
        let kernel = self.0.kernel_mark(text);
        let event = self.0.write_text(crate::MARKS.0, text);
        kernel.or(event).map_err(|e| code(&e))
    }
}

/// This machine, with the journal in a folder.
pub struct ThisMachine {
    folder: PathBuf,
    counters: HashMap<String, Counter>,
    /// Logs that are watched, each with its newest record.
    logs: Option<EventLog>,
    newest: HashMap<String, u64>,
    keys: Vec<(Keys, HotKey)>,
}

impl ThisMachine {
    /// With the journal in this folder.
    pub fn new(folder: PathBuf) -> ThisMachine {
        ThisMachine { folder, counters: HashMap::new(), logs: None, newest: HashMap::new(), keys: Vec::new() }
    }

    fn journal(&self) -> PathBuf {
        self.folder.join("journal.json")
    }

    fn write(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let next = self.folder.join("journal.next");
        let mut file = fs::File::create(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(&next, self.journal())
    }
}

fn text(error: io::Error) -> String {
    error.to_string()
}

impl Machine for ThisMachine {
    fn now_ms(&mut self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn pause(&mut self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }

    fn token(&mut self) -> u32 {
        (RandomState::new().hash_one(std::process::id()) & 0xFFFF_FFFF) as u32
    }

    fn is_administrator(&mut self) -> bool {
        // Where that cannot be told, the start tells.
        machine::is_elevated().unwrap_or(true)
    }

    fn has_private_kernel_sessions(&mut self) -> bool {
        // Windows 8 is 6.2.
        machine::version().is_none_or(|(major, minor, _)| (major, minor) >= (6, 2))
    }

    fn size(&mut self) -> (u32, u32) {
        // A machine that does not tell counts as a small one.
        let memory = machine::memory_bytes().unwrap_or(2 << 30) >> 20;
        (machine::processors(), u32::try_from(memory).unwrap_or(u32::MAX))
    }

    fn free_bytes(&mut self, folder: &Path) -> Option<u64> {
        // The folder itself may not be there yet.
        folder.ancestors().find_map(|part| disk::free_bytes(part).ok())
    }

    fn make_folder(&mut self, folder: &Path) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(text)
    }

    fn file_bytes(&mut self, file: &Path) -> Option<u64> {
        fs::metadata(file).ok().map(|m| m.len())
    }

    fn remove(&mut self, file: &Path) -> Result<(), String> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(text(error)),
            _ => Ok(()),
        }
    }

    fn move_file(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        if fs::rename(from, to).is_ok() {
            return Ok(());
        }
        fs::copy(from, to).and_then(|_| fs::remove_file(from)).map_err(text)
    }

    fn load(&mut self) -> Result<Option<Journal>, String> {
        let path = self.journal();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let journal: Journal = serde_json::from_slice(&bytes).map_err(|error| {
            format!(
                "{}: is no journal of this version of etwhy ({error}): delete it, then `etwhy record cancel` ends what still runs",
                path.display()
            )
        })?;
        if journal.version == Journal::VERSION {
            Ok(Some(journal))
        } else {
            Err(format!(
                "{}: was written by another version of etwhy: end the recording with that one",
                path.display()
            ))
        }
    }

    fn save(&mut self, journal: &Journal) -> Result<(), String> {
        let json = serde_json::to_string_pretty(journal).map_err(|error| error.to_string())?;
        self.write(&json).map_err(|error| format!("{}: {error}", self.folder.display()))
    }

    fn clear(&mut self) -> Result<(), String> {
        let path = self.journal();
        self.remove(&path)
    }

    fn set_boot(&mut self, boot: &Boot) -> Result<(), String> {
        autologger::set(boot)
    }

    fn clear_boot(&mut self, key: &str) -> Result<(), String> {
        autologger::clear(key).map_err(text)
    }

    fn boots(&mut self) -> Result<Vec<Armed>, String> {
        autologger::all().map_err(text)
    }

    fn processes(&mut self) -> Vec<(String, u64)> {
        let all = processes::all().unwrap_or_default();
        all.into_iter().map(|p| (p.name, p.created ^ u64::from(p.id))).collect()
    }

    fn has_counter(&mut self, path: &str) -> Result<(), String> {
        if !self.counters.contains_key(path) {
            self.counters.insert(path.to_owned(), Counter::open(path).map_err(text)?);
        }
        Ok(())
    }

    fn logged(&mut self, channel: &str) -> Result<Vec<u32>, String> {
        if self.logs.is_none() {
            self.logs = Some(EventLog::load().map_err(text)?);
        }
        let log = self.logs.as_ref().ok_or_else(|| "no event log".to_owned())?;
        let after = self.newest.get(channel).copied();
        let (newest, ids) = log.newer(channel, after).map_err(text)?;
        self.newest.insert(channel.to_owned(), newest);
        Ok(ids)
    }

    fn pressed(&mut self, keys: &Keys) -> Result<bool, String> {
        if let Some((_, key)) = self.keys.iter().find(|(known, _)| known == keys) {
            return Ok(key.was_pressed());
        }
        let number = i32::try_from(self.keys.len()).unwrap_or(i32::MAX);
        let key = HotKey::register(number, keys.modifiers, keys.key).map_err(text)?;
        self.keys.push((keys.clone(), key));
        Ok(false)
    }

    fn counter(&mut self, path: &str) -> Result<f64, String> {
        self.has_counter(path)?;
        let counter = self.counters.get_mut(path).ok_or_else(|| "no counter".to_owned())?;
        counter.value().map_err(text)
    }
}
