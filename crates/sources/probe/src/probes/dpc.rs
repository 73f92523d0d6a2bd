//! What the network costs below all programs.

use crate::amount::digits;
use crate::clock::{Moment, Spent, nanos};
use crate::error::ProbeError;
use crate::interrupts::{Processor, Processors};
use crate::probe::{Contrast, Grows, Parameter, Probe, System};
use crate::run::Run;
use crate::sample::{Case, Laps, Sample};
use crate::summary::Figures;
use crate::words::time;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "dpc",
    about: "Time in softirqs (Linux) or DPCs (Windows) for each packet, while packets flood the loopback",
    manual: "Sends small UDP packets through 127.0.0.1 as fast as it can, with threads of its own that send and receive, and reads what the \
             processors did meanwhile below all programs: softirqs on Linux, DPCs and interrupts on Windows. The same without load \
             is there to compare with. Nothing leaves the machine.\n\n\
             Figures: the share of one processor that goes into softirqs or DPCs (above 100 % if several do), the same for the busiest \
             processor, and the time for each packet (Windows: for each DPC). Packet filters, inspection by security products, capturing \
             programs and virtual switches work there, on the packets of all programs, and no list of processes shows them. On a server \
             an inspection driver took four processors completely: 220 us for each DPC, and 90 us when it was uninstalled. 100 us is \
             what one DPC may take at most by Microsoft's advice.\n\n\
             How to read it: 1 to 3 us a packet is usual on Linux without filters. Compare with rules, capture or product on and off.\n\n\
             What fools it: /proc/stat has ticks of 10 ms that are sampled at timer interrupts, so it holds for seconds and not for less \
             (three of them at least tell something). On the loopback the packet is worked on in the softirq of the thread that sends it, so the \
             load shows on the senders' processors; network cards put it on the processors that take their interrupts (RSS). Other \
             traffic of the machine counts too. Windows serves its loopback in part without DPCs, so DPCs of real cards are not in it: use a trace for those. \
             In a container only the packets of its own network are counted, and times are of the whole machine.",
    systems: &[System::Linux, System::Windows],
    parameters: &[
        Parameter::number("seconds", "Length of each half: idle and under load", "s", (5, 2), (1, 600)),
        Parameter::number("senders", "Threads that send", "threads", (1, 1), (1, 256)),
        Parameter::number("bytes", "Size of a packet's content", "bytes", (64, 64), (1, 60_000)),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[Contrast {
        title: "under load against idle",
        dear: (SHARE, LOAD),
        cheap: (SHARE, IDLE),
        meaning: "What the packets cost below all programs, as a share of one processor.",
    }],
    run,
    child: None,
    conclude,
};

const WORD: &str = if cfg!(windows) { "DPC" } else { "softirq" };
const SHARE: &str = if cfg!(windows) { "DPC time, all processors" } else { "softirq time, all processors" };
const BUSIEST: &str =
    if cfg!(windows) { "DPC time, busiest processor" } else { "softirq time, busiest processor" };
const INTERRUPTS: &str = "interrupt time, all processors";
const EACH: &str = if cfg!(windows) { "a DPC" } else { "softirq time of a packet" };
const SEND: &str = "send a packet";
const LOAD: &str = "under load";
const IDLE: &str = "idle";
const PERCENT: &str = "% of a processor";

/// Length of a sample: long enough for ticks.
const SLICE: Duration = Duration::from_secs(1);

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    Processors::now().map_err(ProbeError::system(format!("times of processors in {WORD}s")))?;
    let seconds = run.number("seconds");
    let halves = if run.round().is_multiple_of(2) { [IDLE, LOAD] } else { [LOAD, IDLE] };
    for (half, variant) in halves.into_iter().enumerate() {
        let done = half as u64 * seconds;
        if variant == IDLE {
            slices(run, IDLE, seconds, done, None)?;
        } else {
            let bytes = usize::try_from(run.number("bytes")).unwrap_or(64);
            let flood = Flood::start(run.number("senders"), bytes)?;
            slices(run, LOAD, seconds, done, Some(&flood))?;
        }
    }
    Ok(())
}

/// Measures a half, second by second.
fn slices(
    run: &mut Run<'_>,
    variant: &str,
    seconds: u64,
    done: u64,
    flood: Option<&Flood>,
) -> Result<(), ProbeError> {
    let read = || Processors::now().map_err(ProbeError::system("times of processors"));
    for second in 0..seconds {
        run.progress(variant, done + second, seconds * 2);
        let start_ns = run.since_start();
        let (sent, moment) = (flood.map_or(0, Flood::sent), Moment::now());
        let before = read()?;
        let start = Instant::now();
        while start.elapsed() < SLICE {
            run.goes_on()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let wall_ns = nanos(start);
        let made = read()?.since(&before);
        let sent = flood.map_or(0, Flood::sent).saturating_sub(sent);
        let spent = Spent { wall_ns: moment.until_now().wall_ns, ..Spent::default() };
        let mut keep = |measure: &str, operations: u64, value: f64, unit: &str| {
            let case = Case::new(measure).when(variant);
            let sample = run.sample(case, start_ns, operations, &spent, &Laps::default());
            run.push(Sample { value, unit: unit.to_owned(), ..sample });
        };
        let percent = |ns: u64| ns as f64 / wall_ns.max(1) as f64 * 100.0;
        let sum = made.sum();
        let worked = sum.packets.unwrap_or(sum.turns);
        keep(SHARE, worked, percent(sum.deferred_ns), PERCENT);
        keep(INTERRUPTS, 1, percent(sum.interrupt_ns), PERCENT);
        if let Some(busiest) = made.busiest() {
            keep(BUSIEST, 1, percent(busiest.deferred_ns), PERCENT);
        }
        if flood.is_some() && worked > 0 {
            keep(EACH, worked, sum.deferred_ns as f64 / worked as f64, "ns");
        }
        if sent > 0 {
            keep(SEND, sent, wall_ns as f64 / sent as f64, "ns");
        }
        if flood.is_some() && second == 0 && run.round() == 0 {
            run.note(by_processor(&made, wall_ns));
            if let Some(dropped) = sum.dropped.filter(|&n| n > 0) {
                run.note(format!("{dropped} packets found the kernel's queue full in the first second"));
            }
        }
    }
    Ok(())
}

/// Processors that are named.
const MOST_NAMED: usize = 8;

fn by_processor(made: &Processors, wall_ns: u64) -> String {
    let mut all: Vec<Processor> = made.0.clone();
    all.sort_by_key(|p| std::cmp::Reverse(p.deferred_ns));
    let named: Vec<String> = all
        .iter()
        .take(MOST_NAMED)
        .map(|p| format!("{}: {:.0} %", p.number, p.deferred_ns as f64 / wall_ns.max(1) as f64 * 100.0))
        .collect();
    format!("{WORD} time by processor in the first second under load: {}", named.join(", "))
}

/// Threads that send packets to threads that take them, until their owner goes.
struct Flood {
    shared: std::sync::Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    sent: AtomicU64,
}

/// Packets between two looks at the wish to stop.
const BATCH: u64 = 128;

impl Flood {
    fn start(senders: u64, bytes: usize) -> Result<Flood, ProbeError> {
        let mut flood = Flood { shared: Default::default(), threads: Vec::new() };
        for _ in 0..senders {
            let open = || -> std::io::Result<(UdpSocket, UdpSocket)> {
                let (from, to) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
                to.set_read_timeout(Some(Duration::from_millis(100)))?;
                from.connect(to.local_addr()?)?;
                Ok((from, to))
            };
            let (from, to) = open().map_err(ProbeError::system("UDP through 127.0.0.1"))?;
            let shared = flood.shared.clone();
            flood.threads.push(std::thread::spawn(move || send(&shared, &from, bytes)));
            let shared = flood.shared.clone();
            flood.threads.push(std::thread::spawn(move || receive(&shared, &to)));
        }
        Ok(flood)
    }

    fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn send(shared: &Shared, socket: &UdpSocket, bytes: usize) {
    let packet = vec![0x65_u8; bytes];
    while !shared.stop.load(Ordering::Relaxed) {
        // A packet for which there is no room is not sent; the next one may be.
        let sent = (0..BATCH).filter(|_| socket.send(&packet).is_ok()).count();
        shared.sent.fetch_add(sent as u64, Ordering::Relaxed);
        if sent == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn receive(shared: &Shared, socket: &UdpSocket) {
    let mut room = vec![0_u8; 65_536];
    while !shared.stop.load(Ordering::Relaxed) {
        // With a time limit, so that it sees the wish to stop.
        let _ = socket.recv(&mut room);
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let typical = |measure: &str, variant: &str| figures.typical(measure, variant);
    let mut sentences = Vec::new();
    if let (Some(load), Some(idle), Some(send)) =
        (typical(SHARE, LOAD), typical(SHARE, IDLE), typical(SEND, LOAD))
    {
        sentences.push(format!(
            "With {} packets a second through the loopback {WORD}s took {} % of a processor, {} % without.",
            digits(1e9 / send.max(1.0)),
            digits(load),
            digits(idle)
        ));
    }
    if let Some(each) = typical(EACH, LOAD) {
        let per = if cfg!(windows) { "A DPC took" } else { "A packet took" };
        sentences.push(format!("{per} {} of {WORD} time on average.", time(each)));
    }
    if let Some(busiest) = typical(BUSIEST, LOAD) {
        sentences.push(format!("The busiest processor spent {} % of its time there.", digits(busiest)));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{made, options};

    #[test]
    #[cfg(any(target_os = "linux", windows))]
    fn packets_of_the_flood_are_counted_by_the_system_as_well() {
        let options = options(&std::env::temp_dir(), &[("seconds", "1")]);
        let made = made(&PROBE, &options);
        let operations = |measure: &str, variant: &str| {
            let of_case =
                made.samples.iter().find(|s| s.case.measure == measure && s.case.variant == variant);
            of_case.map_or(0, |s| s.operations)
        };
        let sent = operations(SEND, LOAD);
        assert!(sent > 100, "{sent} packets");
        if cfg!(target_os = "linux") {
            // What the kernel worked on is what we sent, and whatever else was under way; both ends are not read at once.
            let worked = operations(SHARE, LOAD);
            assert!(worked as f64 > sent as f64 * 0.8, "{sent} sent, {worked} worked on");
        }
        assert!(conclude(&made.samples).len() >= 2);
    }

    #[test]
    fn the_flood_ends_with_its_owner() {
        let flood = Flood::start(2, 10).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let shared = flood.shared.clone();
        drop(flood);
        let sent = shared.sent.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
        assert!(sent > 0 && shared.sent.load(Ordering::Relaxed) == sent);
    }
}
