//! The computer and the session, with defaults filled in.

use super::stack_style::Style;
use crate::model::Machine;
use crate::value::Dist;
use etwhy_base::time::{UNIX_EPOCH, parse_filetime};
use etwhy_decode::kernel::keywords::{keyword, keywords as all_keywords};
use etwhy_etl::write::{Clock, TraceSetup};

/// How much larger or smaller than its text a scenario is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factors {
    /// To a size: everything grows alike.
    pub(crate) stretch: f64,
    /// `--scale`.
    pub(crate) scale: f64,
}

impl Factors {
    pub(crate) fn counts(self) -> f64 {
        self.stretch * self.scale
    }

    /// Work that grows with the square of its counts needs the square of the time.
    pub(crate) fn time(self, m: &Machine) -> f64 {
        self.stretch * self.scale.powf(m.time_power.unwrap_or(1.0))
    }
}

/// `[machine]` with defaults.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) domain: String,
    pub(crate) cpus: u16,
    pub(crate) numa_nodes: u16,
    pub(crate) groups: u16,
    pub(crate) memory: u64,
    pub(crate) cpu_name: String,
    pub(crate) build_lab: String,
    pub(crate) product: String,
    pub(crate) pointer_size: u8,
    /// Nanoseconds.
    pub(crate) duration: i64,
    pub(crate) merged: bool,
    /// Nanoseconds.
    pub(crate) interval: i64,
    pub(crate) idle_samples: bool,
    pub(crate) samples: bool,
    pub(crate) context_switches: Option<bool>,
    pub(crate) switch_stacks: bool,
    pub(crate) style: Style,
    pub(crate) user_stack_delay: Dist,
    /// NT path and DOS path, both with a backslash at the end.
    pub(crate) volumes: Vec<(String, String)>,
    /// Descriptions of network cards.
    pub(crate) nics: Vec<String>,
    /// Manufacturer and model.
    pub(crate) platform: Option<[String; 2]>,
    pub(crate) rundown_start: bool,
    pub(crate) rundown_end: bool,
    pub(crate) seed: u64,
    /// Nothing happens from the first moment until the second.
    pub(crate) stall: Option<(i64, i64)>,
    /// Processors that are not sampled.
    pub(crate) unsampled: Vec<u16>,
    /// Mask and bits that are set beside those of what is in the scenario.
    pub(crate) keywords: Vec<(usize, u32)>,
    /// Factor of all moments and windows.
    pub(crate) stretch: f64,
    /// Factor of all counts.
    pub(crate) counts: f64,
    /// Kernel events stop here: another has taken the session.
    pub(crate) silent_from: i64,
    /// From the first moment on, the clock shows so much more.
    pub(crate) clock_jump: Option<(i64, i64)>,
    /// When records are lost.
    pub(crate) losses: Vec<LossRange>,
    pub(crate) setup: TraceSetup,
}

/// A time range in which the records of some processors are lost.
#[derive(Clone, Debug)]
pub(crate) struct LossRange {
    /// Nanoseconds.
    pub(crate) from: i64,
    /// Nanoseconds.
    pub(crate) to: i64,
    /// All if empty.
    pub(crate) cpus: Vec<u16>,
    /// Whole buffers; else single records that found no room.
    pub(crate) buffers: bool,
}

impl LossRange {
    /// Whether a record of then and there is lost.
    pub(crate) fn covers(&self, cpu: u16, ns: i64) -> bool {
        (self.from..self.to).contains(&ns) && (self.cpus.is_empty() || self.cpus.contains(&cpu))
    }
}

impl Facts {
    /// Fills in defaults; the message says what is wrong.
    pub(crate) fn new(m: &Machine, factors: Factors) -> Result<Facts, String> {
        let stretch = factors.time(m);
        let cpus = m.cpus.unwrap_or(8);
        if !(1..=2048).contains(&cpus) {
            return Err(format!("cpus = {cpus}: allowed are 1 to 2048"));
        }
        let pointer_size = m.pointer_size.unwrap_or(8);
        if !matches!(pointer_size, 4 | 8) {
            return Err(format!("pointer_size = {pointer_size}: allowed are 4 and 8"));
        }
        let duration = m.duration.map_or(10.0, |t| t.0) * stretch;
        if !(1e-4..=1e7).contains(&duration) {
            return Err(format!("duration = {duration} s: allowed are 0.1 ms to 10,000,000 s"));
        }
        let interval = m.sampling_interval.map_or(1_000_000, |t| t.ns());
        if !(10_000..=1_000_000_000).contains(&interval) {
            return Err("sampling_interval: allowed are 10us to 1s (Windows allows 0.1221 ms to 1 s)".into());
        }
        let volume = || vec![("\\Device\\HarddiskVolume3\\".to_string(), "C:\\".to_string())];
        let slash = |t: String| if t.is_empty() || t.ends_with('\\') { t } else { t + "\\" };
        let volumes = m
            .volumes
            .clone()
            .map_or_else(volume, |v| v.into_iter().map(|(nt, dos)| (slash(nt), slash(dos))).collect());
        let name = m.name.clone().unwrap_or_else(|| "SYNTH-PC".into());
        let merged = m.merged.unwrap_or(true);
        let build = m.build.unwrap_or(19045);
        Ok(Facts {
            domain: m.domain.clone().unwrap_or_else(|| "WORKGROUP".into()),
            cpus,
            numa_nodes: m.numa_nodes.unwrap_or(1).clamp(1, cpus),
            groups: m.groups.unwrap_or(cpus.div_ceil(64)).clamp(1, cpus),
            memory: m.memory.as_ref().and_then(Dist::as_constant).map_or(16 << 30, |n| n as u64),
            cpu_name: m.cpu_name.clone().unwrap_or_else(|| "Synthetic CPU @ 3.00GHz".into()),
            build_lab: m.build_lab.clone().unwrap_or_else(|| format!("{build}.1.amd64fre.synth.000101-0000")),
            product: m.product.clone().unwrap_or_else(|| "Windows 10 Pro".into()),
            pointer_size,
            duration: (duration * 1e9) as i64,
            merged,
            interval,
            idle_samples: m.idle_samples.unwrap_or(true),
            samples: m.samples.unwrap_or(true),
            context_switches: m.context_switches,
            switch_stacks: m.switch_stacks.unwrap_or(true),
            style: Style::parse(m.stack_style.as_deref())?,
            user_stack_delay: match &m.user_stack_delay {
                Some(dist) => dist.clone(),
                None => Dist::from_value(&toml::Value::Table(
                    [("lognormal".to_string(), toml::Value::from(vec![12e-6, 1.0]))].into_iter().collect(),
                ))?,
            },
            volumes,
            nics: m.nics.clone().unwrap_or_default(),
            platform: m.platform.clone(),
            rundown_start: m.rundown_start.unwrap_or(true),
            rundown_end: m.rundown_end.unwrap_or(true),
            seed: m.seed.unwrap_or(1),
            stall: m.stall.map(|s| {
                let from = (s.at.0 * stretch * 1e9) as i64;
                (from, from + s.length.ns())
            }),
            unsampled: m.unsampled_cpus.clone().unwrap_or_default().0,
            keywords: keywords(&m.keywords)?,
            stretch,
            counts: factors.counts(),
            silent_from: m.silent_from.map_or(i64::MAX, |t| (t.0 * stretch * 1e9) as i64),
            clock_jump: match m.clock_jump {
                Some(_) if m.clock.as_deref() != Some("system") => {
                    return Err("clock_jump: only clock = \"system\" jumps".into());
                }
                jump => jump.map(|j| ((j.at.0 * stretch * 1e9) as i64, j.by.ns())),
            },
            losses: losses(m, stretch, (duration * 1e9) as i64, cpus)?,
            setup: setup(m, name.clone(), cpus, pointer_size, build, merged)?,
            name,
        })
    }

    /// The end of the time in which nothing happens, for a moment in it.
    pub(crate) fn stalled_until(&self, ns: i64) -> Option<i64> {
        self.stall.filter(|(from, to)| (*from..*to).contains(&ns)).map(|(_, to)| to)
    }

    /// Path as the kernel writes it: a DOS path is turned into a device path.
    pub(crate) fn nt_path(&self, path: &str) -> String {
        for (nt, dos) in &self.volumes {
            if let (Some(head), false) = (path.get(..dos.len()), dos.is_empty())
                && head.eq_ignore_ascii_case(dos)
            {
                return format!("{nt}{}", path.get(dos.len()..).unwrap_or(""));
            }
        }
        path.to_string()
    }
}

fn setup(
    m: &Machine,
    name: String,
    cpus: u16,
    pointer: u8,
    build: u32,
    merged: bool,
) -> Result<TraceSetup, String> {
    let clock = match m.clock.as_deref().unwrap_or("qpc") {
        "qpc" => Clock::Qpc,
        "system" => Clock::SystemTime,
        "cpu" => Clock::CpuCycle,
        other => return Err(format!("clock = {other:?}: allowed are qpc, system and cpu")),
    };
    let os = m.os.as_deref().unwrap_or("10.0");
    let os_version = os.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let os_version = os_version.ok_or(format!("os = {os:?}: write it like \"10.0\""))?;
    let start = file_time(m.start.as_deref().unwrap_or("2025-03-01T08:00:00"))?;
    let uptime = m.uptime.map_or(36_000.0, |t| t.0);
    let boot = match &m.boot {
        Some(text) => file_time(text)?,
        None => start - (uptime * 1e7) as i64,
    };
    let perf_freq = m.perf_freq.as_ref().and_then(Dist::as_constant).map_or(10_000_000, |f| f as i64);
    if perf_freq < 1000 {
        return Err(format!("perf_freq = {perf_freq}: allowed are 1000 and more ticks per second"));
    }
    let mhz = m.mhz.unwrap_or(3000).max(1);
    let rate = if clock == Clock::CpuCycle { i64::from(mhz) * 1_000_000 } else { perf_freq };
    let buffer = m.buffer_size.as_ref().and_then(Dist::as_constant).unwrap_or(65536.0);
    let session = if merged { "Relogger" } else { "NT Kernel Logger" };
    let file = if merged { "[multiple files]".to_string() } else { format!("C:\\traces\\{name}.etl") };
    Ok(TraceSetup {
        buffer_size: buffer as u32,
        processors: u32::from(cpus),
        pointer_size: pointer,
        os_version,
        os_build: build,
        start_time: start,
        boot_time: boot,
        // The counter's zero is near the boot, as on real machines.
        start_ticks: ((start - boot) as f64 / 1e7 * rate as f64) as i64,
        perf_freq,
        clock,
        cpu_mhz: mhz,
        session_name: m.session.clone().unwrap_or_else(|| session.into()),
        log_file_name: m.log_file.clone().unwrap_or(file),
        time_zone_bias: m.time_zone_bias.unwrap_or(-60),
        log_file_mode: if merged { 0x1_0001 } else { 1 },
        logger_id: if merged { 0 } else { 2 },
        events_lost: m.events_lost.unwrap_or(0),
        buffers_lost: m.buffers_lost.unwrap_or(0),
        compressed: m.compressed.unwrap_or(false),
        unfinalised: m.unfinalised.unwrap_or(false),
        circular_buffers: m.circular_buffers,
        ..TraceSetup::default()
    })
}

/// Each burst of each loss is a range of its own.
fn losses(m: &Machine, stretch: f64, end: i64, cpus: u16) -> Result<Vec<LossRange>, String> {
    let mut ranges = Vec::new();
    for loss in &m.losses {
        let scaled = |t: crate::value::Time| (t.0 * stretch * 1e9) as i64;
        let (from, to) = (loss.from.map_or(0, scaled), loss.to.map_or(end, scaled).min(end));
        let buffers = match loss.kind.as_deref().unwrap_or("buffers") {
            "buffers" => true,
            "events" => false,
            other => return Err(format!("losses: kind = {other:?}: allowed are buffers and events")),
        };
        let list = loss.cpus.clone().unwrap_or_default().0;
        if let Some(wrong) = list.iter().find(|c| **c >= cpus) {
            return Err(format!("losses: cpu {wrong}: the machine has {cpus}"));
        }
        let (on, off) = loss.burst.map_or((to - from, 0), |b| (b.on.ns(), b.off.ns()));
        if on <= 0 || off < 0 {
            return Err("losses: `to` lies behind `from`, and `on` is longer than 0".into());
        }
        let starts = (0..100_000).map(|n| from + n * (on + off)).take_while(|start| *start < to);
        ranges.extend(starts.map(|start| LossRange {
            from: start,
            to: (start + on).min(to),
            cpus: list.clone(),
            buffers,
        }));
    }
    Ok(ranges)
}

/// Kernel flags by xperf's names.
fn keywords(names: &[String]) -> Result<Vec<(usize, u32)>, String> {
    let find = |name: &String| {
        let found = keyword(&name.to_uppercase());
        found.map(|k| (k.mask, k.bits)).ok_or_else(|| {
            let known = crate::error::one_of(all_keywords().iter().map(|k| k.name));
            format!("keywords: {name:?} is none; there are {known}")
        })
    };
    names.iter().map(find).collect()
}

/// FILETIME of `2025-03-01T08:00:00` (UTC; `Z`, fractions and a blank for `T` are allowed).
fn file_time(text: &str) -> Result<i64, String> {
    let after_1970 = parse_filetime(text).filter(|ticks| *ticks >= UNIX_EPOCH);
    after_1970.ok_or_else(|| format!("{text:?} is no time; write UTC like \"2025-03-01T08:00:00\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_file_times() {
        assert_eq!(file_time("1970-01-01"), Ok(UNIX_EPOCH));
        assert_eq!(file_time("2025-03-01T08:00:00Z"), Ok(UNIX_EPOCH + 1_740_816_000 * 10_000_000));
        assert!(file_time("yesterday").is_err());
    }
}
