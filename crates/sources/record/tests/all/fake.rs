//! A machine that is made up: sessions of ours and of others, a clock, a disk, faults, crashes.

use etwhy_base::Guid;
use etwhy_base::rng::Rng;
use etwhy_record::run::{
    Armed, Begin, Boot, Code, Journal, Keys, Live, Machine, NT_KERNEL_LOGGER, Provided, Sessions,
};
use etwhy_record::{Enabled, EventClass};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What a crash panics with.
pub struct Crash;

/// A session of the machine.
#[derive(Clone, Debug)]
pub struct Session {
    pub live: Live,
    pub is_ours: bool,
    pub masks: [u32; 8],
    pub stacks: usize,
    pub providers: Vec<String>,
}

/// The machine.
pub struct World {
    pub rng: Rng,
    pub sessions: Vec<Session>,
    pub files: BTreeMap<PathBuf, u64>,
    pub journal: Option<String>,
    pub now_ms: u64,
    pub free: u64,
    pub memory_mib: u32,
    pub is_administrator: bool,
    pub is_windows_8: bool,
    pub marks: Vec<String>,
    /// Providers that were asked for their state, with the keywords.
    pub states: Vec<(String, u64)>,
    pub processes: Vec<(String, u64)>,
    pub counter: f64,
    /// Records that were written to event logs: channel and id.
    pub logged: Vec<(String, u32)>,
    pub logs_answer: bool,
    pub pressed: bool,
    pub starts: Vec<Begin>,
    /// Keys with which Windows begins sessions when it starts; those of others have nothing to see.
    pub boots: BTreeMap<String, Option<Boot>>,
    /// What Windows says of the last start.
    pub boot_status: Option<u32>,
    /// Calls until the program is killed.
    pub crash_in: Option<u32>,
    /// One call in so many fails, or meets somebody else between it and the one before; 0 for never.
    pub trouble: u64,
    /// What must never happen, and did.
    pub violation: Option<String>,
    next: u64,
}

/// The handle that both traits are implemented for.
#[derive(Clone)]
pub struct Fake(pub Rc<RefCell<World>>);

impl Fake {
    pub fn new(seed: u64) -> Fake {
        Fake(Rc::new(RefCell::new(World {
            rng: Rng::new(seed),
            sessions: Vec::new(),
            files: BTreeMap::new(),
            journal: None,
            now_ms: 1_000_000,
            free: 100 << 30,
            memory_mib: 16 << 10,
            is_administrator: true,
            is_windows_8: true,
            marks: Vec::new(),
            states: Vec::new(),
            processes: Vec::new(),
            counter: 0.0,
            logged: Vec::new(),
            logs_answer: true,
            pressed: false,
            starts: Vec::new(),
            boots: BTreeMap::new(),
            boot_status: None,
            crash_in: None,
            trouble: 0,
            violation: None,
            next: 1,
        })))
    }

    /// Every call comes through here: the program may be killed, others may act, the call may fail.
    fn call(&self) -> Result<(), Code> {
        let mut world = self.0.borrow_mut();
        if let Some(left) = &mut world.crash_in {
            if *left == 0 {
                drop(world);
                std::panic::panic_any(Crash);
            }
            *left -= 1;
        }
        let trouble = world.trouble;
        if trouble > 0 && world.rng.below(trouble) == 0 {
            world.others();
        }
        if trouble > 0 && world.rng.below(trouble * 2) == 0 {
            let codes = [5, 87, 1450, 112, 1314];
            return Err(Code(*world.rng.pick(&codes).unwrap()));
        }
        Ok(())
    }
}

impl World {
    /// Starts a session of somebody else.
    pub fn start_foreign(&mut self, name: &str, flags: u32) {
        let handle = self.handle();
        let live = Live {
            handle,
            name: name.to_owned(),
            file: format!("C:\\other\\{handle}.etl"),
            guid: Guid::new(0x1234_5678, 1, 2, handle.to_be_bytes()),
            flags,
            ..Live::default()
        };
        self.files.insert(PathBuf::from(&live.file), 1);
        self.sessions.push(Session { live, is_ours: false, masks: [0; 8], stacks: 0, providers: Vec::new() });
    }

    /// Somebody takes `NT Kernel Logger`.
    pub fn take_kernel_logger(&mut self) {
        self.sessions.retain(|s| s.live.name != NT_KERNEL_LOGGER);
        self.start_foreign(NT_KERNEL_LOGGER, 0x80);
    }

    /// Windows starts again: all sessions are gone, and those of the keys begin.
    pub fn reboot(&mut self) {
        self.sessions.clear();
        for (key, boot) in self.boots.clone() {
            let Some(boot) = boot else {
                self.start_foreign(NT_KERNEL_LOGGER, 1);
                continue;
            };
            let live = Live {
                handle: self.handle(),
                name: key.strip_prefix("Autologger\\").unwrap_or(NT_KERNEL_LOGGER).to_owned(),
                file: boot.file.to_string_lossy().to_uppercase(),
                guid: boot.guid,
                mode: boot.mode,
                flags: boot.masks.map_or(0, |masks| masks[0]),
                ..Live::default()
            };
            self.files.insert(boot.file, 100);
            let providers = boot.providers.into_iter().map(|p| p.name).collect();
            let masks = boot.masks.unwrap_or_default();
            self.sessions.push(Session { live, is_ours: true, masks, stacks: 0, providers });
        }
    }

    /// Somebody else does something.
    fn others(&mut self) {
        match self.rng.below(8) {
            0 | 1 => self.take_kernel_logger(),
            2 => {
                let ours: Vec<u64> =
                    self.sessions.iter().filter(|s| s.is_ours).map(|s| s.live.handle).collect();
                if let Some(handle) = self.rng.pick(&ours).copied() {
                    let name =
                        self.sessions.iter().find(|s| s.live.handle == handle).unwrap().live.name.clone();
                    self.sessions.retain(|s| s.live.handle != handle);
                    // Under the name of ours.
                    if self.rng.below(2) == 0 {
                        self.start_foreign(&name, 1);
                    }
                }
            }
            3 => {
                let name = format!("other {}", self.next);
                self.start_foreign(&name, 0);
            }
            4 => {
                let foreign: Vec<u64> =
                    self.sessions.iter().filter(|s| !s.is_ours).map(|s| s.live.handle).collect();
                if let Some(handle) = self.rng.pick(&foreign).copied() {
                    self.sessions.retain(|s| s.live.handle != handle);
                }
            }
            5 => {
                let flags = self.rng.below(1 << 20) as u32;
                if let Some(s) = self.sessions.iter_mut().find(|s| s.live.name == NT_KERNEL_LOGGER) {
                    s.live.flags = flags;
                }
            }
            6 => self.free = if self.rng.below(2) == 0 { 100 << 20 } else { 100 << 30 },
            _ => self.now_ms += self.rng.below(400_000),
        }
    }

    fn handle(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn named(&mut self, name: &str) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|s| s.live.name.eq_ignore_ascii_case(name))
    }

    /// A session of ours, or the error; using one of somebody else is a violation.
    fn ours(&mut self, handle: u64, what: &str) -> Result<&mut Session, Code> {
        match self.sessions.iter().position(|s| s.live.handle == handle) {
            None => Err(Code::NO_SUCH_SESSION),
            Some(at) => {
                if !self.sessions[at].is_ours {
                    self.violation =
                        Some(format!("{what} of `{}`, somebody else's", self.sessions[at].live.name));
                }
                Ok(&mut self.sessions[at])
            }
        }
    }

    pub fn count_ours(&self, word: &str) -> usize {
        let is = |s: &&Session| {
            s.is_ours && (s.live.name.contains(word) || (word == "kernel" && s.live.name == NT_KERNEL_LOGGER))
        };
        self.sessions.iter().filter(is).count()
    }
}

impl Sessions for Fake {
    fn start(&mut self, begin: &Begin) -> Result<u64, Code> {
        self.call()?;
        let mut world = self.0.borrow_mut();
        let taken = |s: &Session| s.live.name.eq_ignore_ascii_case(&begin.name) || s.live.guid == begin.guid;
        if world.sessions.iter().any(taken) {
            return Err(Code::ALREADY_EXISTS);
        }
        let handle = world.handle();
        let live = Live {
            handle,
            name: begin.name.clone(),
            file: begin.file.as_ref().map(|f| f.to_string_lossy().to_uppercase()).unwrap_or_default(),
            guid: begin.guid,
            mode: begin.mode,
            flags: begin.flags,
            ..Live::default()
        };
        if let Some(file) = &begin.file {
            world.files.insert(file.clone(), 100);
        }
        world.starts.push(begin.clone());
        world.sessions.push(Session { live, is_ours: true, masks: [0; 8], stacks: 0, providers: Vec::new() });
        drop(world);
        // It runs; what is killed here does not know it.
        let _ = self.call();
        Ok(handle)
    }

    fn query(&mut self, name: &str) -> Result<Live, Code> {
        self.call()?;
        self.0.borrow_mut().named(name).map(|s| s.live.clone()).ok_or(Code::NO_SUCH_SESSION)
    }

    fn list(&mut self) -> Result<Vec<Live>, Code> {
        self.call()?;
        Ok(self.0.borrow().sessions.iter().map(|s| s.live.clone()).collect())
    }

    fn stop(&mut self, handle: u64) -> Result<(), Code> {
        self.call()?;
        let mut world = self.0.borrow_mut();
        world.ours(handle, "stop")?;
        world.sessions.retain(|s| s.live.handle != handle);
        Ok(())
    }

    fn flush(&mut self, handle: u64, file: Option<&Path>) -> Result<(), Code> {
        self.call()?;
        let mut world = self.0.borrow_mut();
        world.ours(handle, "flush")?;
        if let Some(file) = file {
            world.files.insert(file.to_path_buf(), 100);
        }
        Ok(())
    }

    fn change_file(&mut self, handle: u64, file: &Path, flags: u32) -> Result<(), Code> {
        self.call()?;
        let mut world = self.0.borrow_mut();
        let session = world.ours(handle, "change")?;
        session.live.file = file.to_string_lossy().into_owned();
        session.live.flags = flags;
        session.masks = [0; 8];
        world.files.insert(file.to_path_buf(), 100);
        Ok(())
    }

    fn set_masks(&mut self, handle: u64, masks: [u32; 8]) -> Result<(), Code> {
        self.call()?;
        self.0.borrow_mut().ours(handle, "masks")?.masks = masks;
        Ok(())
    }

    fn set_stacks(&mut self, handle: u64, stacks: &[EventClass]) -> Result<(), Code> {
        self.call()?;
        self.0.borrow_mut().ours(handle, "stacks")?.stacks = stacks.len();
        Ok(())
    }

    fn enable(&mut self, handle: u64, provider: &Enabled, what: Provided) -> Result<(), Code> {
        self.call()?;
        let mut world = self.0.borrow_mut();
        let session = world.ours(handle, "enable")?;
        match what {
            Provided::Events => session.providers.push(provider.name.clone()),
            Provided::State(keywords) => world.states.push((provider.name.clone(), keywords)),
        }
        Ok(())
    }

    fn mark(&mut self, text: &str) -> Result<(), Code> {
        self.call()?;
        self.0.borrow_mut().marks.push(text.to_owned());
        Ok(())
    }
}

impl Machine for Fake {
    fn now_ms(&mut self) -> u64 {
        self.0.borrow().now_ms
    }

    fn pause(&mut self, ms: u64) {
        self.0.borrow_mut().now_ms += ms;
    }

    fn token(&mut self) -> u32 {
        self.0.borrow_mut().rng.bits() as u32
    }

    fn is_administrator(&mut self) -> bool {
        self.0.borrow().is_administrator
    }

    fn has_private_kernel_sessions(&mut self) -> bool {
        self.0.borrow().is_windows_8
    }

    fn size(&mut self) -> (u32, u32) {
        (8, self.0.borrow().memory_mib)
    }

    fn free_bytes(&mut self, _: &Path) -> Option<u64> {
        Some(self.0.borrow().free)
    }

    fn make_folder(&mut self, _: &Path) -> Result<(), String> {
        Ok(())
    }

    fn file_bytes(&mut self, file: &Path) -> Option<u64> {
        self.0.borrow().files.get(file).copied()
    }

    fn remove(&mut self, file: &Path) -> Result<(), String> {
        let mut world = self.0.borrow_mut();
        if file.starts_with("C:\\other") || file.to_string_lossy().contains("other") {
            world.violation = Some(format!("{} deleted", file.display()));
        }
        world.files.remove(file);
        Ok(())
    }

    fn move_file(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let mut world = self.0.borrow_mut();
        let bytes = world.files.remove(from).ok_or("no such file")?;
        world.files.insert(to.to_path_buf(), bytes);
        Ok(())
    }

    fn load(&mut self) -> Result<Option<Journal>, String> {
        let world = self.0.borrow();
        world.journal.as_deref().map(|text| serde_json::from_str(text).map_err(|e| e.to_string())).transpose()
    }

    fn save(&mut self, journal: &Journal) -> Result<(), String> {
        self.call().map_err(|code| format!("error {}", code.0))?;
        self.0.borrow_mut().journal = Some(serde_json::to_string(journal).unwrap());
        // Killed between this and the next step.
        let _ = self.call();
        Ok(())
    }

    fn clear(&mut self) -> Result<(), String> {
        self.0.borrow_mut().journal = None;
        Ok(())
    }

    fn set_boot(&mut self, boot: &Boot) -> Result<(), String> {
        self.call().map_err(|code| format!("error {}", code.0))?;
        let mut world = self.0.borrow_mut();
        if world.boots.contains_key(&boot.key) {
            return Err(format!("the key {} is another program's", boot.key));
        }
        world.boots.insert(boot.key.clone(), Some(boot.clone()));
        drop(world);
        // Killed between this and the next step.
        let _ = self.call();
        Ok(())
    }

    fn clear_boot(&mut self, key: &str) -> Result<(), String> {
        self.call().map_err(|code| format!("error {}", code.0))?;
        let mut world = self.0.borrow_mut();
        if world.boots.get(key).is_some_and(Option::is_some) {
            world.boots.remove(key);
        }
        Ok(())
    }

    fn boots(&mut self) -> Result<Vec<Armed>, String> {
        self.call().map_err(|code| format!("error {}", code.0))?;
        let world = self.0.borrow();
        let ours = world.boots.iter().filter(|(_, boot)| boot.is_some());
        Ok(ours.map(|(key, _)| Armed { key: key.clone(), status: world.boot_status }).collect())
    }

    fn processes(&mut self) -> Vec<(String, u64)> {
        self.0.borrow().processes.clone()
    }

    fn counter(&mut self, _: &str) -> Result<f64, String> {
        Ok(self.0.borrow().counter)
    }

    fn has_counter(&mut self, path: &str) -> Result<(), String> {
        if path.contains("No Such") { Err("there is none".to_owned()) } else { Ok(()) }
    }

    fn logged(&mut self, channel: &str) -> Result<Vec<u32>, String> {
        let mut world = self.0.borrow_mut();
        let new = world.logged.iter().filter(|(log, _)| log == channel).map(|(_, id)| *id).collect();
        world.logged.retain(|(log, _)| log != channel);
        if world.logs_answer { Ok(new) } else { Err("the service does not answer".to_owned()) }
    }

    fn pressed(&mut self, _: &Keys) -> Result<bool, String> {
        Ok(std::mem::take(&mut self.0.borrow_mut().pressed))
    }
}
