//! Time that processors spend on interrupts and on what they put off: softirqs on Linux, DPCs on Windows.
//!
//! Linux: `softirq` and `irq` of `/proc/stat` (proc_stat(5)), in ticks of 10 ms and, unless the kernel is built with
//! `IRQ_TIME_ACCOUNTING`, sampled at each timer interrupt: right over seconds, useless for less. Counts: `NET_RX` of
//! `/proc/softirqs` are turns, each of which may work on many packets; the first column of `/proc/net/softnet_stat` is packets.

use std::io;

/// A processor, since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Its number.
    pub number: usize,
    /// Time in softirqs or DPCs.
    pub deferred_ns: u64,
    /// Time in interrupt routines.
    pub interrupt_ns: u64,
    /// Turns of the network's softirq; DPCs on Windows.
    pub turns: u64,
    /// Packets that were worked on; absent on Windows.
    pub packets: Option<u64>,
    /// Packets that found no room in the queue; absent on Windows.
    pub dropped: Option<u64>,
}

/// What all processors have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors(pub Vec<Processor>);

impl Processors {
    /// As it is now.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::Unsupported`] where it does not tell.
    pub fn now() -> io::Result<Processors> {
        now()
    }

    /// What was done since then, processor by processor.
    pub fn since(&self, before: &Processors) -> Processors {
        let since = |now: &Processor| {
            let then = before.0.iter().find(|p| p.number == now.number).copied().unwrap_or_default();
            let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
            Processor {
                number: now.number,
                deferred_ns: now.deferred_ns.saturating_sub(then.deferred_ns),
                interrupt_ns: now.interrupt_ns.saturating_sub(then.interrupt_ns),
                turns: turns(now.turns, then.turns),
                packets: less(now.packets, then.packets),
                dropped: less(now.dropped, then.dropped),
            }
        };
        Processors(self.0.iter().map(since).collect())
    }

    /// All together.
    pub fn sum(&self) -> Processor {
        self.0.iter().fold(
            Processor { packets: Some(0), dropped: Some(0), ..Processor::default() },
            |sum, p| {
                let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
                Processor {
                    number: 0,
                    deferred_ns: sum.deferred_ns.saturating_add(p.deferred_ns),
                    interrupt_ns: sum.interrupt_ns.saturating_add(p.interrupt_ns),
                    turns: sum.turns.saturating_add(p.turns),
                    packets: add(sum.packets, p.packets),
                    dropped: add(sum.dropped, p.dropped),
                }
            },
        )
    }

    /// The one with most time in softirqs or DPCs.
    pub fn busiest(&self) -> Option<Processor> {
        self.0.iter().max_by_key(|p| p.deferred_ns).copied()
    }
}

/// Turns between two readings. Both systems count them in 32 bits: `unsigned int` of Linux (include/linux/kernel_stat.h), `ULONG` of Windows
/// (`SYSTEM_INTERRUPT_INFORMATION`). They begin anew at 0 without having stood still.
fn turns(now: u64, then: u64) -> u64 {
    (now as u32).wrapping_sub(then as u32).into()
}

#[cfg(target_os = "linux")]
fn now() -> io::Result<Processors> {
    let hz = rustix::param::clock_ticks_per_second();
    let mut all = from_stat(&std::fs::read_to_string("/proc/stat")?, hz);
    if all.0.is_empty() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "/proc/stat names no processors"));
    }
    if let Ok(text) = std::fs::read_to_string("/proc/softirqs") {
        add_turns(&mut all, &text);
    }
    if let Ok(text) = std::fs::read_to_string("/proc/net/softnet_stat") {
        add_packets(&mut all, &text);
    }
    Ok(all)
}

#[cfg(windows)]
fn now() -> io::Result<Processors> {
    let times = etwhy_os::calls::processor_times()?;
    let processor = |(number, t): (usize, &etwhy_os::calls::ProcessorTimes)| Processor {
        number,
        deferred_ns: t.dpc_ns,
        interrupt_ns: t.interrupt_ns,
        turns: u64::from(t.dpcs),
        packets: None,
        dropped: None,
    };
    Ok(Processors(times.iter().enumerate().map(processor).collect()))
}

#[cfg(not(any(target_os = "linux", windows)))]
fn now() -> io::Result<Processors> {
    Err(io::ErrorKind::Unsupported.into())
}

/// `/proc/stat`: `cpuN user nice system idle iowait irq softirq …`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn from_stat(text: &str, hz: u64) -> Processors {
    let tick = 1_000_000_000 / hz.max(1);
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let number = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
        let times: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        Some(Processor {
            number,
            interrupt_ns: times.get(5)?.saturating_mul(tick),
            deferred_ns: times.get(6)?.saturating_mul(tick),
            ..Processor::default()
        })
    };
    Processors(text.lines().filter_map(line).collect())
}

/// `/proc/softirqs`: a heading with the processors, then a line for each kind.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn add_turns(all: &mut Processors, text: &str) {
    let mut lines = text.lines();
    let heading: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let Some(counts) = lines.find_map(|line| line.trim().strip_prefix("NET_RX:")) else { return };
    for (number, count) in heading.iter().zip(counts.split_whitespace()) {
        if let Some(processor) = all.0.iter_mut().find(|p| p.number == *number) {
            processor.turns = count.parse().unwrap_or(0);
        }
    }
}

/// `/proc/net/softnet_stat`: a line for each processor that is on, hexadecimal; packets, dropped, …, and since Linux 5.10 the
/// number of the processor as 13th (net/core/net-procfs.c).
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn add_packets(all: &mut Processors, text: &str) {
    for (row, line) in text.lines().enumerate() {
        let fields: Vec<u64> =
            line.split_whitespace().filter_map(|field| u64::from_str_radix(field, 16).ok()).collect();
        let number = fields.get(12).and_then(|n| usize::try_from(*n).ok()).unwrap_or(row);
        if let Some(processor) = all.0.iter_mut().find(|p| p.number == number) {
            processor.packets = fields.first().copied();
            processor.dropped = fields.get(1).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_files_are_put_together() {
        let stat = "cpu  10 0 10 100 0 3 9 0 0 0\ncpu0 5 0 5 50 0 1 4 0 0 0\ncpu2 5 0 5 50 0 2 5 0 0 0\nintr 5\nctxt 7\n";
        let mut all = from_stat(stat, 100);
        add_turns(
            &mut all,
            "                    CPU0       CPU1       CPU2\n      NET_TX:     1 2 3\n      NET_RX:     70 80 90\n",
        );
        add_packets(
            &mut all,
            "000000ff 00000001 0 0 0 0 0 0 0 0 0 0 00000000 0 0\n00000010 00000000 0 0 0 0 0 0 0 0 0 0 00000002 0 0\n",
        );
        let cpu0 = Processor {
            number: 0,
            deferred_ns: 40_000_000,
            interrupt_ns: 10_000_000,
            turns: 70,
            packets: Some(255),
            dropped: Some(1),
        };
        let cpu2 = Processor {
            number: 2,
            deferred_ns: 50_000_000,
            interrupt_ns: 20_000_000,
            turns: 90,
            packets: Some(16),
            dropped: Some(0),
        };
        assert_eq!(all.0, [cpu0, cpu2]);
        assert_eq!(all.busiest(), Some(cpu2));
        assert_eq!(all.sum().packets, Some(271));
        assert_eq!(
            all.since(&all.clone()).sum(),
            Processor { packets: Some(0), dropped: Some(0), ..Processor::default() }
        );
    }

    #[test]
    fn counts_of_32_bits_begin_anew() {
        let of = |turns| Processors(vec![Processor { turns, ..Processor::default() }]);
        assert_eq!(of(5).since(&of(u64::from(u32::MAX) - 4)).sum().turns, 10);
        assert_eq!(of(1_000).since(&of(400)).sum().turns, 600);
    }

    #[test]
    fn strange_files_are_no_harm() {
        let mut all = from_stat("cpu0 1 2\ncpux 1 2 3 4 5 6 7\ncpu1 1 2 3 4 5 6 18446744073709551615\n", 0);
        add_turns(&mut all, "NET_RX: x\n");
        add_turns(&mut all, "CPU1 CPU99\nNET_RX: -1\n");
        add_packets(&mut all, "zz\n\nffffffffffffffffff 1\n");
        assert_eq!(all.0.len(), 1);
        assert_eq!(all.0[0].turns, 0);
    }

    #[test]
    #[cfg(any(target_os = "linux", windows))]
    fn this_machine_tells() {
        assert!(!Processors::now().unwrap().0.is_empty());
    }
}
