//! The trace itself: one row per file, with the machine, the session and the quality of the recording.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::MACHINES_DIFFER;
use crate::event::{Context, Event};
use crate::identity::Machine;
use crate::model::system::SystemFacts;
use etwhy_base::time::{filetime_text, unix_ns};
use etwhy_decode::kernel::keyword_names;
use etwhy_etl::read::{EtlFile, joint_trace_id};
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Files of the trace: session, machine, clock and losses.
    ///
    /// Machine facts come from system configuration events, which not every session records. They are the same in all rows, unless
    /// `--merge` read files of different machines together: then each row has what its own file says.
    pub table TRACE: TraceRow = "trace" {
        version: 2, evidence: Verified("an independent reader's headers for every trace of the corpus"),
        /// File as given.
        file: Sym [None, Path],
        /// Size of the file.
        size_bytes: i64 [Bytes, Bytes],
        /// Session name; `Relogger` for merged files.
        session: Sym [None, Name],
        /// Log file name as recorded.
        log_file: Sym [None, Path],
        /// Windows version and build.
        os: Sym [None, Name],
        /// Windows build number.
        os_build: i32 [None, Other],
        /// Build lab string.
        build_lab: Option<Sym> [None, Name],
        /// Product name.
        product: Option<Sym> [None, Name],
        /// Computer name.
        computer: Option<Sym> [None, Name],
        /// Manufacturer and model.
        platform: Option<Sym> [None, Name],
        /// Processor model.
        processor: Option<Sym> [None, Name],
        /// Logical processors, as the header says (1 for sessions without per-processor buffers).
        cpus: i32 [Count, Count],
        /// Processors that buffers of this file belong to.
        cpus_seen: i32 [Count, Count],
        /// Processor groups, where recorded.
        groups: Option<i32> [Count, Count],
        /// NUMA nodes, where recorded.
        numa_nodes: Option<i32> [Count, Count],
        /// Memory, where recorded.
        memory_bytes: Option<i64> [Bytes, Bytes],
        /// Nominal processor speed.
        cpu_mhz: i32 [MHz, Other],
        /// Disks, one per line.
        disks: Option<Sym> [None, Message],
        /// Network cards, one per line.
        nics: Option<Sym> [None, Message],
        /// Pointer size of the machine.
        pointer_size: i32 [Bytes, Other],
        /// Start, UTC.
        start_utc: Sym [None, Other],
        /// Start, nanoseconds since 1970 UTC.
        start_unix_ns: i64 [Ns, Other],
        /// Minutes: UTC = local time + bias.
        time_zone_bias_min: i32 [Min, Other],
        /// Boot, UTC.
        boot_utc: Sym [None, Other],
        /// From the first to the last event.
        duration_ns: i64 [Ns, Duration],
        /// Time of the first event.
        first_ns: i64 [Ns, Time],
        /// Time of the last event.
        last_ns: i64 [Ns, Time],
        /// qpc, system_time or cpu_cycle.
        clock: Sym [None, Kind],
        /// Ticks per second of the clock.
        clock_hz: i64 [None, Other],
        /// Bits of the log file mode, by name.
        log_mode: Sym [None, Flag],
        /// Output of a merge.
        merged: bool [None, Flag],
        /// Stopped properly.
        finalised: bool [None, Flag],
        /// Buffers in the file.
        buffers: i64 [Count, Count],
        /// Compressed buffers in the file.
        compressed_buffers: i64 [Count, Count],
        /// Nominal buffer size.
        buffer_size_bytes: i64 [Bytes, Bytes],
        /// Sessions in the file (more than one if sessions were appended).
        sessions: i32 [Count, Count],
        /// Events lost, as the header says.
        events_lost: i64 [Count, Count],
        /// Buffers lost, as the header says.
        buffers_lost: i64 [Count, Count],
        /// Kernel event groups that were enabled, by keyword; none if the file does not say.
        kernel_keywords: Option<Sym> [None, Flag],
        /// Interval of CPU samples, where recorded.
        sample_interval_ns: Option<i64> [Ns, Duration],
        /// Name of the content: equal files have the same wherever they are. Made from length and parts of the file.
        trace_id: Sym [None, Id],
        /// Name of all files that were read as one, whatever their order; of one file its `trace_id`.
        recording_id: Sym [None, Id],
        /// Name of the machine in this boot, made from all facts that its files tell: equal names mean the same machine. (A file read
        /// alone may know less, and then has another.)
        machine_id: Sym [None, Id],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&TRACE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Trace { rows: TableBuilder::new(memory) }),
};

struct Trace {
    rows: TableBuilder<TraceRow>,
}

impl Analysis for Trace {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let all = &end.model.system;
        let nothing = SystemFacts::default();
        let own = |n: usize| u16::try_from(n).ok().and_then(|n| all.by_file.get(&n)).unwrap_or(&nothing);
        let machines: Vec<Machine> = end
            .files
            .iter()
            .enumerate()
            .map(|(n, file)| Machine::from_header(file.header(), own(n)))
            .collect();
        let one = Machine::one_of(&machines);
        if one.is_none() {
            end.ledger.count(&MACHINES_DIFFER, end.files.len() as u64);
        }
        let ids: Vec<String> = end.files.iter().map(EtlFile::trace_id).collect();
        let recording = joint_trace_id(&ids);
        let lines = |set: &std::collections::BTreeSet<String>| {
            (!set.is_empty()).then(|| set.iter().cloned().collect::<Vec<_>>().join("\n"))
        };
        for (number, (file, machine)) in end.files.iter().zip(&machines).enumerate() {
            // What another machine says is no fact of this one.
            let facts = if one.is_some() { all } else { own(number) };
            let keywords = facts.group_masks_known.then(|| keyword_names(&facts.group_masks).join(" "));
            let header = file.header();
            let clock = file.clock();
            let cpus = file.cpus_seen();
            let mut text = |t: &str| end.strings.intern(t);
            let option = |t: &Option<String>| t.clone();
            let row = TraceRow {
                file: text(&file.shown().display().to_string()),
                size_bytes: file.len() as i64,
                session: text(&header.session_name),
                log_file: text(&header.log_file_name),
                os: text(&format!("{}.{}.{}", header.version[0], header.version[1], header.os_build)),
                os_build: header.os_build as i32,
                build_lab: option(&facts.build_lab).map(|t| text(&t)),
                product: option(&facts.product).map(|t| text(&t)),
                computer: option(&facts.computer_name).map(|t| text(&t)),
                platform: option(&facts.platform).map(|t| text(&t)),
                processor: option(&facts.processor).map(|t| text(&t)),
                cpus: header.processors as i32,
                cpus_seen: cpus.len() as i32,
                groups: facts.groups.map(|n| n as i32),
                numa_nodes: facts.numa_nodes.map(|n| n as i32),
                memory_bytes: facts.memory_mb.map(|mb| i64::from(mb) << 20),
                cpu_mhz: header.cpu_speed_mhz as i32,
                disks: lines(&facts.disks).map(|t| text(&t)),
                nics: lines(&facts.nics).map(|t| text(&t)),
                pointer_size: header.pointer_size as i32,
                start_utc: text(&filetime_text(header.start_time, 7)),
                start_unix_ns: unix_ns(header.start_time),
                time_zone_bias_min: header.time_zone.bias,
                boot_utc: text(&filetime_text(header.boot_time, 7)),
                duration_ns: end.span_ns.1.saturating_sub(end.span_ns.0),
                first_ns: end.span_ns.0,
                last_ns: end.span_ns.1,
                clock: text(clock.kind.name()),
                clock_hz: clock.frequency,
                log_mode: text(&header.mode_names().join(" ")),
                merged: header.is_merged(),
                finalised: header.buffers_written != 0 && header.end_time != 0,
                buffers: i64::try_from(file.buffers_found()).unwrap_or(i64::MAX),
                compressed_buffers: i64::try_from(file.compressed_buffers()).unwrap_or(i64::MAX),
                buffer_size_bytes: i64::from(header.buffer_size),
                sessions: file.segments().len() as i32,
                events_lost: i64::from(header.events_lost),
                buffers_lost: i64::from(header.buffers_lost),
                kernel_keywords: option(&keywords).map(|t| text(&t)),
                sample_interval_ns: facts.first_sample_interval,
                trace_id: text(ids.get(number).map_or("", String::as_str)),
                recording_id: text(&recording),
                machine_id: text(&one.as_ref().unwrap_or(machine).id()),
            };
            self.rows.push(row);
        }
        Ok(vec![self.rows.into()])
    }
}
