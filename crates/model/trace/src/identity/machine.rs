//! The machine that a file was recorded on, and what tells two machines apart.

use crate::model::system::SystemFacts;
use etwhy_base::time::filetime_text;
use etwhy_base::units::{bytes, thousands};
use etwhy_etl::abi::logfile::MODE_NO_PER_PROCESSOR_BUFFERING;
use etwhy_etl::read::{LogFileHeader, short_id};

/// A machine and its boot. `None`: the file does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Computer name.
    pub computer: Option<String>,
    /// FILETIME of the boot.
    pub boot: Option<i64>,
    /// Windows version and build.
    pub windows: Option<(u8, u8, u32)>,
    /// Logical processors.
    pub processors: Option<u32>,
    /// Memory in MB.
    pub memory_mb: Option<u32>,
    /// Ticks per second of the performance counter, which is chosen at boot.
    pub counter_hz: Option<i64>,
}

/// A fact in which two files differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub fact: &'static str,
    /// What the one file says and what the other.
    pub values: [String; 2],
    /// The whole in words.
    pub text: String,
}

impl Difference {
    fn new(fact: &'static str, a: impl ToString, b: impl ToString) -> Difference {
        let values = [a.to_string(), b.to_string()];
        let text = format!("{fact} {} and {}", values[0], values[1]);
        Difference { fact, values, text }
    }

    /// A difference that is no pair of values.
    pub(super) fn stated(fact: &'static str, text: String) -> Difference {
        Difference { fact, values: Default::default(), text }
    }
}

/// Boot times that differ by less are one boot: Windows moves the boot time when the clock is set, and no machine records, restarts
/// and records again within this time. 100 ns.
const SAME_BOOT: u64 = 30 * 10_000_000;
/// The unit in which a boot time goes into [`Machine::id`].
const MINUTE: i64 = 60 * 10_000_000;

impl Machine {
    /// What header and configuration records say.
    pub fn from_header(header: &LogFileHeader, facts: &SystemFacts) -> Machine {
        let [major, minor, ..] = header.version;
        // A session whose processors share their buffers says 1, whatever the machine has.
        let shared = header.log_file_mode & MODE_NO_PER_PROCESSOR_BUFFERING != 0;
        Machine {
            computer: facts.computer_name.clone(),
            boot: Some(header.boot_time).filter(|boot| *boot > 0),
            windows: Some((major, minor, header.os_build)).filter(|w| w.2 > 0),
            processors: Some(header.processors).filter(|n| *n > 0 && !shared),
            memory_mb: facts.memory_mb,
            counter_hz: Some(header.perf_freq).filter(|hz| *hz > 0),
        }
    }

    /// Name of the machine in this boot, made from all facts that are known: equal names mean the same machine. Different ones do not mean
    /// different machines, since a file may know less than another; [`Machine::differences`] tells that.
    pub fn id(&self) -> String {
        let boot = self.boot.map(|boot| boot.saturating_add(MINUTE / 2).div_euclid(MINUTE));
        let computer = self.computer.as_ref().map(|name| name.to_uppercase());
        let facts = (computer, boot, self.windows, self.processors, self.memory_mb, self.counter_hz);
        short_id(&format!("{facts:?}"))
    }

    /// In which facts the machines differ. None: they may be one.
    pub fn differences(&self, other: &Machine) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut same_name = false;
        if let (Some(a), Some(b)) = (&self.computer, &other.computer) {
            same_name = a.eq_ignore_ascii_case(b);
            if !same_name {
                found.push(Difference::new("computer", a, b));
            }
        }
        let mut same_boot = false;
        if let (Some(a), Some(b)) = (self.boot, other.boot) {
            same_boot = a.abs_diff(b) < SAME_BOOT;
            if !same_boot {
                found.push(Difference::new("boot time", utc(a), utc(b)));
            }
        }
        if let (Some(a), Some(b)) = (self.windows, other.windows)
            && a != b
        {
            let text = |(major, minor, build): (u8, u8, u32)| format!("{major}.{minor}.{build}");
            found.push(Difference::new("Windows build", text(a), text(b)));
        }
        if let (Some(a), Some(b)) = (self.processors, other.processors)
            && a != b
        {
            found.push(Difference::new("processors", a, b));
        }
        if let (Some(a), Some(b)) = (self.memory_mb, other.memory_mb)
            && a != b
            // A virtual machine gets and gives memory while it runs.
            && !(same_name && same_boot)
        {
            let size = |mb: u32| bytes(i64::from(mb) << 20);
            let exact = |mb: u32| format!("{} MiB", thousands(mb.into()));
            // What differs must not look alike.
            let text = |mb: u32| if size(a) == size(b) { exact(mb) } else { size(mb) };
            found.push(Difference::new("memory", text(a), text(b)));
        }
        if let (Some(a), Some(b)) = (self.counter_hz, other.counter_hz)
            && a != b
        {
            let hz = |hz: i64| format!("{} Hz", thousands(hz.into()));
            found.push(Difference::new("clock", hz(a), hz(b)));
        }
        found
    }

    /// Adds what another file of the same machine knows.
    pub fn learn(&mut self, other: &Machine) {
        let Machine { computer, boot, windows, processors, memory_mb, counter_hz } = other;
        self.computer = self.computer.take().or_else(|| computer.clone());
        self.boot = self.boot.or(*boot);
        self.windows = self.windows.or(*windows);
        self.processors = self.processors.or(*processors);
        self.memory_mb = self.memory_mb.or(*memory_mb);
        self.counter_hz = self.counter_hz.or(*counter_hz);
    }

    /// All machines as one, if none differs from another.
    pub fn one_of<'m>(machines: impl IntoIterator<Item = &'m Machine>) -> Option<Machine> {
        let mut all = Machine::default();
        for machine in machines {
            if !all.differences(machine).is_empty() {
                return None;
            }
            all.learn(machine);
        }
        Some(all)
    }
}

/// A FILETIME to the second.
pub(super) fn utc(filetime: i64) -> String {
    format!("{} UTC", filetime_text(filetime, 0))
}
