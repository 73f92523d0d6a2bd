//! A machine while it is being written: who is on it, what has been planned, how much of the processors is taken.

use crate::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How much of the processors all that is planned may take. Above that innocents wait for a processor, which is a cause that nobody planted, and
/// the writer drops work.
const FULL: f64 = 0.55;
/// The same of machines with four processors or fewer.
const FULL_SMALL: f64 = 0.42;
const PARTS: [&str; 24] = [
    "ba", "cor", "dex", "fan", "gil", "hum", "jor", "ka", "lim", "mor", "nu", "pel", "qua", "rin", "sol",
    "tav", "ul", "ver", "wex", "xan", "yol", "zem", "bri", "dro",
];

/// How the table of a process says which one of that name it is.
type Role = fn(&str) -> String;

/// A process.
#[derive(Clone, Debug)]
pub struct Actor {
    /// File name.
    pub name: String,
    /// Process id, by which tables of the scenario name it.
    pub pid: u32,
    /// Names that mean this process and no other one.
    pub own: Vec<String>,
    /// Names that mean its twin: another process with the same file name.
    pub twin: Vec<String>,
}

impl Actor {
    /// The process and its id, as the writer's truth names it.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }
}

/// A machine being planned.
pub struct Plan {
    /// Where numbers come from.
    pub random: Random,
    /// Logical processors.
    pub cpus: u32,
    /// Seconds.
    pub duration: f64,
    /// A 32-bit Windows.
    pub small: bool,
    /// CPU time planned so far, in seconds.
    pub busy: f64,
    /// No busy innocents: the cause is only one if the rest is quiet.
    pub quiet: bool,
    /// The kinds of causes that come.
    pub kinds: Vec<&'static str>,
    /// When the whole machine stands still, and how long, in seconds.
    pub stall: Option<(f64, f64)>,
    text: String,
    names: BTreeSet<String>,
    last_pid: u32,
    disks: u32,
}

impl Plan {
    /// An empty machine.
    pub fn new(random: Random, cpus: u32, duration: f64, small: bool) -> Plan {
        Plan {
            random,
            cpus,
            duration,
            small,
            busy: 0.0,
            quiet: false,
            kinds: Vec::new(),
            stall: None,
            text: String::new(),
            names: BTreeSet::new(),
            last_pid: 2000,
            disks: 0,
        }
    }

    /// The scenario so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// CPU time of all processors, in seconds.
    pub fn capacity(&self) -> f64 {
        f64::from(self.cpus) * self.duration
    }

    /// CPU time that may still be planned, in seconds.
    pub fn room(&self) -> f64 {
        let full = if self.cpus <= 4 { FULL_SMALL } else { FULL };
        (self.capacity() * full - self.busy).max(0.0)
    }

    /// Adds a table with these lines.
    pub fn table(&mut self, kind: &str, lines: &str) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "\n[[{kind}]]\n{}\n", lines.trim());
    }

    /// A name that nothing on this machine has, and nobody knows.
    pub fn word(&mut self) -> String {
        loop {
            let count = 3 + self.random.below(2);
            let word: String = (0..count).map(|_| *self.random.pick(&PARTS)).collect();
            if self.names.insert(word.clone()) {
                return word;
            }
        }
    }

    /// A driver that nobody knows.
    pub fn driver(&mut self) -> String {
        let name = format!("{}.sys", self.word());
        self.image(&name, "");
        name
    }

    /// An image that is large enough for every address that stacks name.
    pub fn image(&mut self, name: &str, more: &str) {
        self.table("image", &format!("name = \"{name}\"\nsize = \"0x400000\"\n{more}"));
    }

    /// One of these names, unless all are taken: then one that nobody knows.
    pub fn known(&mut self, list: &[&str]) -> Option<String> {
        let free: Vec<&&str> = list.iter().filter(|name| !self.names.contains(**name)).collect();
        if free.is_empty() {
            return None;
        }
        let name = (*free[self.random.below(free.len())]).to_owned();
        self.names.insert(name.clone());
        Some(name)
    }

    /// A disk on which nothing else happens.
    pub fn disk(&mut self) -> u32 {
        self.disks += 1;
        self.disks
    }

    /// A process id that is free.
    pub fn pid(&mut self) -> u32 {
        // Thread ids come from the same numbers; the writer gives them from elsewhere.
        self.last_pid += 40 + 4 * self.random.below(20) as u32;
        self.last_pid
    }

    /// A process of this name. `more` are further lines of its table.
    pub fn process(&mut self, name: &str, threads: &str, more: &str) -> Actor {
        let pid = self.pid();
        self.table("process", &format!("name = \"{name}\"\npid = {pid}\nthreads = {threads}\n{more}"));
        Actor {
            name: name.to_owned(),
            pid,
            own: vec![name.to_owned(), format!("{name} ({pid})")],
            twin: Vec::new(),
        }
    }

    /// System, with more threads.
    pub fn system(&mut self, threads: &str) -> Actor {
        self.table("process", &format!("name = \"System\"\nthreads = {threads}"));
        Actor { name: "System".to_owned(), pid: 4, own: vec!["System".to_owned()], twin: Vec::new() }
    }

    /// A process whose name nobody knows.
    pub fn program(&mut self, threads: &str) -> Actor {
        let name = format!("{}.exe", self.word());
        self.process(&name, threads, "")
    }

    /// A process that may be guilty. Half of them have a twin that is busy with something harmless.
    pub fn suspect(&mut self, threads: &str) -> Actor {
        if self.random.chance(0.5) {
            return self.program(threads);
        }
        let (name, roles): (String, Option<Role>) = match self.random.below(3) {
            0 => ("svchost.exe".to_owned(), Some(|role| format!("session = 0\nservices = [\"{role}\"]"))),
            1 => (
                "w3wp.exe".to_owned(),
                Some(|role| format!("session = 0\ncommand_line = 'w3wp.exe -ap \"{role}\" -v \"v4.0\"'")),
            ),
            _ => (format!("{}.exe", self.word()), None),
        };
        let mut pair = Vec::new();
        for _ in 0..2 {
            let role = self.word();
            let more = roles.map(|write| write(&role)).unwrap_or_default();
            let mut actor = self.process(&name, threads, &more);
            actor.own.remove(0);
            actor.own.push(format!("{name} ({role})"));
            pair.push(actor);
        }
        // Either comes first.
        let guilty = pair.remove(self.random.below(2));
        let innocent = pair.remove(0);
        let busy = if self.quiet {
            0.02
        } else {
            self.random.between(0.05, 0.3).min(self.room() / self.duration / 4.0)
        };
        let stack = format!("ntdll!RtlUserThreadStart;{name}!Run;{name}!Serve");
        self.cpu(&innocent, "*", busy * self.duration, &stack);
        self.table("file_io", &format!("process = \"{}\"\nop = [\"create\", \"read\", \"cleanup\", \"close\"]\npattern = 'C:\\data\\item{{n}}.txt'\ncount = 40\nduration = \"15us\"", innocent.pid));
        Actor { twin: innocent.own, ..guilty }
    }

    /// CPU time of a thread of a process, in seconds, exactly.
    pub fn cpu(&mut self, actor: &Actor, thread: &str, seconds: f64, stack: &str) {
        self.cpu_stacks(actor, thread, seconds, &[(1, stack)]);
    }

    /// CPU time of a thread of a process, in seconds, shared exactly by these stacks.
    pub fn cpu_stacks(&mut self, actor: &Actor, thread: &str, seconds: f64, stacks: &[(u32, &str)]) {
        let milliseconds = (seconds * 1000.0).round().max(1.0);
        self.busy += milliseconds / 1000.0;
        let list: Vec<String> = stacks
            .iter()
            .map(|(weight, frames)| format!("{{ weight = {weight}, frames = \"{frames}\" }}"))
            .collect();
        self.table(
            "samples",
            &format!(
                "process = \"{}\"\nthread = \"{thread}\"\ncpu_time = \"{milliseconds}ms\"\narrival = \"exact\"\nstacks = [{}]",
                actor.pid,
                list.join(", ")
            ),
        );
    }

    /// The largest multiple of a cost that leaves room on the processors, where one limit costs `seconds` of CPU time.
    pub fn most(&self, multiple: f64, seconds: f64) -> f64 {
        multiple.min(self.room() / seconds.max(1e-9)).max(0.0)
    }
}
