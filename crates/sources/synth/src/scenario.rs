//! From text to trace: the crate's public face.

use crate::degrade::lose_buffers;
use crate::engine::{Engine, Sampler, Source, activity, interrupts};
use crate::error::{Result, ScenarioError, SourceText};
use crate::events::{self, Lifecycle, Site, rundown_end, rundown_start};
use crate::model::{Common, Frames, Step, Text, choose, has_cause, parse};
use crate::output::{Output, Sink};
use crate::symbols::write_symbols;
use crate::tally::{Scaled, Stated, check_findings};
use crate::without::Without;
use crate::world::{Factors, World};
use etwhy_base::rng::mix;
use etwhy_etl::write::{TraceSetup, Written};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The scenario that ships with the program.
pub const DEMO: &str = include_str!("demo.toml");

/// Size of the second trial of [`Scenario::scale_to_bytes`]: long enough to tell a rate.
const TRIAL_BYTES: f64 = 40e6;

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// As it is to be written: with the planted cause, or without it.
    text: Text,
    /// With the tables of both.
    all: Text,
    cause: bool,
    without: Without,
    place: SourceText,
    factors: Factors,
}

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Size of the trace in bytes.
    pub bytes: u64,
    /// Records in it.
    pub records: u64,
    /// Buffers in it.
    pub buffers: u64,
    /// The trace's length in seconds.
    pub duration_s: f64,
    /// Records by type, named as in the truth file.
    pub events: BTreeMap<String, u64>,
    /// Folder of the symbol files.
    pub symbols: PathBuf,
    /// Number of symbol files.
    pub symbol_files: usize,
    /// The truth file.
    pub truth: PathBuf,
}

impl Scenario {
    /// Reads a scenario. `name` stands in error messages and in the truth file.
    ///
    /// # Errors
    /// [`ScenarioError::Text`] with line, column and what is allowed there.
    pub fn parse(text: &str, name: &str) -> Result<Scenario> {
        let place = SourceText { name: name.into(), text: text.into() };
        let all = parse(&place)?;
        let scenario = Scenario {
            text: choose(&all, &place, true)?,
            all,
            cause: true,
            without: Without::default(),
            place,
            factors: Factors { stretch: 1.0, scale: 1.0 },
        };
        check_findings(&scenario.text.truth, &scenario.place)?;
        // Building everything finds the mistakes that no grammar finds.
        scenario.build()?;
        Ok(scenario)
    }

    /// True if something in it is marked as the planted cause.
    pub fn has_cause(&self) -> bool {
        has_cause(&self.all)
    }

    /// Leaves out what is marked as the planted cause, and with it the stated truth: what an analysis finds in the
    /// scenario it must not find then. What the session recorded stays the same.
    ///
    /// # Errors
    /// When nothing is marked, or the rest is no scenario.
    pub fn without_cause(&mut self) -> Result<()> {
        if !self.has_cause() {
            let message = "nothing says `cause = true`: there is no cause to leave out";
            return Err(self.place.error(None, message));
        }
        self.text = choose(&self.all, &self.place, false)?;
        self.cause = false;
        self.text.truth.clear();
        self.build().map(|_| ())
    }

    /// Leaves out kinds of events, as if they had not been recorded: names of events, groups, kernel keywords and
    /// providers. What the truth file says is what happened, not what was recorded of it.
    ///
    /// # Errors
    /// When a name means nothing.
    pub fn without_events(&mut self, names: &[String]) -> Result<()> {
        let own = self.all.tracelogging.iter().map(|t| {
            let t = t.get_ref();
            (crate::events::provider_guid(&t.guid, &t.provider), t.provider.clone())
        });
        let own = own.filter_map(|(guid, name)| Some((guid.ok()?, name))).collect();
        self.without = Without::new(names, own).map_err(|e| self.place.error(None, e))?;
        Ok(())
    }

    /// Length of the trace in seconds.
    pub fn duration_s(&self) -> f64 {
        let machine = self.text.machine.as_ref().map(toml::Spanned::get_ref).cloned().unwrap_or_default();
        machine.duration.map_or(10.0, |t| t.0) * self.factors.time(&machine)
    }

    /// Stretches all times (and counts) by a factor; rates and shares stay as they are.
    pub fn stretch(&mut self, factor: f64) {
        self.factors.stretch *= factor;
    }

    /// Writes a part of the story (or a multiple): counts and totals times this factor, and time with it, so
    /// that rates, shares and averages stay what they are. Stated figures scale alike.
    ///
    /// # Errors
    /// When the factor is no positive number, or the scenario cannot be so small or large.
    pub fn scale(&mut self, factor: f64) -> Result<()> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(self
                .place
                .error(None, format!("--scale {factor}: write a number above 0, e.g. 0.01")));
        }
        self.factors.scale *= factor;
        self.build().map(|_| ())
    }

    /// Stretches the scenario so that its trace gets about this large. Two short traces are simulated
    /// without a file to find out by how much.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn scale_to_bytes(&mut self, bytes: u64) -> Result<()> {
        let size_at = |stretch: f64| {
            let trial = Scenario { factors: Factors { stretch, ..self.factors }, ..self.clone() };
            trial.size_of_trial().map(|n| n as f64)
        };
        // Rundown and header do not grow with the length: two trials tell the fixed part from the rate.
        let (target, first) = (bytes as f64, self.factors.stretch);
        let small = size_at(first)?;
        let second = first * (target.min(TRIAL_BYTES) / small.max(1.0)).clamp(2.0, 100.0);
        let large = size_at(second)?;
        let rate = (large - small) / (second - first);
        if rate > 0.0 {
            let shortest = 1e-3 / self.duration_s() * first;
            self.factors.stretch = ((target - (small - rate * first)) / rate).max(shortest);
        }
        Ok(())
    }

    fn size_of_trial(&self) -> Result<u64> {
        let nothing = Nothing::default();
        let (written, ..) =
            self.run(Box::new(nothing), &mut |_| ()).map_err(|e| self.io(e, Path::new("trial")))?;
        Ok(written.bytes)
    }

    fn io(&self, source: io::Error, file: &Path) -> ScenarioError {
        let source = match source.downcast::<ScenarioError>() {
            Ok(error) => return error,
            Err(source) => source,
        };
        if source.kind() == io::ErrorKind::InvalidInput || source.kind() == io::ErrorKind::Other {
            return self.place.error(None, source.to_string());
        }
        ScenarioError::Io { file: file.into(), source }
    }

    /// Resolves all names and makes all sources.
    fn build(&self) -> Result<Built> {
        let mut w = World::build(&self.text, &self.place, self.factors)?;
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        let mut loads = Vec::new();
        let mut number = w.facts.seed;
        let mut seed = || {
            number = mix(number);
            number
        };
        let t = &self.text;
        for table in &t.samples {
            loads.push(crate::engine::Load::new(table, &mut w)?);
        }
        for table in &t.thread_activity {
            sources.extend(activity(table, &mut w, &mut loads, seed())?);
        }
        for (list, isr) in [(&t.dpc, false), (&t.isr, true)] {
            for table in list {
                sources.push(interrupts(table, isr, &mut w, seed())?);
            }
        }
        macro_rules! tables {
            ($($field:ident),*) => { $(
                for table in &t.$field {
                    let common: Common = table.get_ref().common();
                    let site = Site { common, span: table.span(), seed: seed() };
                    sources.push(events::$field(table.get_ref(), &site, &mut w)?);
                }
            )* };
        }
        tables!(
            syscall,
            alpc,
            disk_io,
            hard_fault,
            page_fault,
            virtual_alloc,
            file_io,
            minifilter,
            registry,
            network,
            pool
        );
        tables!(handle, mark, gc, exception, contention, jit, tracelogging, manifest_event);
        for table in &t.event {
            let site = Site { common: table.get_ref().common(), span: table.span(), seed: seed() };
            sources.push(events::generic(table.get_ref(), &site, &mut w)?);
        }
        tables!(task, working_set);
        for table in &t.files {
            for name in &table.get_ref().names {
                let path = w.facts.nt_path(name);
                w.files.intern(&path);
            }
        }
        let idle = Frames(vec!["ntoskrnl.exe!PpmIdleExecuteTransition+0x57".into()]);
        let idle = w.stacks.intern(&idle, 1, &mut w.images, &mut w.processes);
        let idle = idle.map_err(|e| self.place.error(None, e))?;
        // A thread that nothing is said of is sampled somewhere in its process's image.
        for at in 1..w.processes.list.len() {
            let image = w.processes.list.get(at).and_then(|p| w.images.modules.get(p.images.first()?.0));
            let frame = format!("{}+0x800", image.map_or("ntoskrnl.exe", |m| m.name.as_str()));
            let stack = w.stacks.intern(&Frames(vec![frame]), at, &mut w.images, &mut w.processes);
            let stack = stack.map_err(|e| self.place.error(None, e))?;
            if let Some(process) = w.processes.list.get_mut(at) {
                process.somewhere = Some(stack);
            }
        }
        w.settle()?;
        let idle_ip = w.stacks.list.get(idle).and_then(|s| s.kernel.first()).copied().unwrap_or(0);
        let scheduled = !self.all.thread_activity.is_empty() || !self.all.task.is_empty();
        let switches = w.facts.context_switches.unwrap_or(scheduled);
        if w.facts.samples || switches {
            sources.push(Box::new(Sampler::new(loads, &w, idle_ip)));
        }
        sources.push(Box::new(Lifecycle::new(&w)));
        Ok(Built { world: w, sources, switches })
    }

    /// The group masks of the session: the kernel flags that go with what is in the scenario.
    fn masks(&self, w: &World, switches: bool) -> [u32; 8] {
        let t = &self.all;
        let mut masks = [0u32; 8];
        let mut low = 0x1 | 0x2 | 0x4;
        let steps = |does: fn(&Step) -> bool| t.task.iter().any(|t| t.get_ref().steps.iter().any(does));
        let (files, faults) = (steps(Step::is_file), steps(|s| s.fault.is_some()));
        for (present, flag) in [
            (w.facts.samples, 0x0100_0000),
            (switches, 0x10 | 0x800),
            (!t.dpc.is_empty(), 0x20),
            (!t.isr.is_empty(), 0x40),
            (!t.syscall.is_empty(), 0x80),
            (!t.disk_io.is_empty() || files || faults, 0x100 | 0x200 | 0x400),
            (!t.page_fault.is_empty(), 0x1000),
            (!t.hard_fault.is_empty() || faults, 0x2000),
            (!t.virtual_alloc.is_empty(), 0x4000),
            (!t.network.is_empty(), 0x10000),
            (!t.alpc.is_empty(), 0x0010_0000),
            (!t.registry.is_empty(), 0x20000),
            (!t.file_io.is_empty() || files, 0x0200_0000 | 0x0400_0000),
        ] {
            if present {
                low |= flag;
            }
        }
        masks[0] = low;
        masks[1] = if t.pool.is_empty() { 0 } else { 0x40 };
        masks[1] |= if t.working_set.is_empty() { 0 } else { 0x0080_0000 };
        masks[4] = if t.handle.is_empty() { 0 } else { 0x40 };
        for (mask, bits) in &w.facts.keywords {
            if let Some(m) = masks.get_mut(*mask) {
                *m |= bits;
            }
        }
        self.without.clear(&mut masks);
        masks
    }

    fn run(
        &self,
        sink: Box<dyn Sink>,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<(Written, String, Finished)> {
        let Built { world, mut sources, switches } = self.build().map_err(io::Error::other)?;
        let setup: TraceSetup = world.facts.setup.clone();
        let end = world.facts.duration;
        let masks = self.masks(&world, switches);
        let mut engine = Engine::new(&world, Output::new(sink, setup)?, switches);
        engine.out.silent_from = world.facts.silent_from;
        engine.out.stall = world.facts.stall;
        engine.out.clock_jump = world.facts.clock_jump;
        engine.out.losses = world.facts.losses.clone();
        engine.out.without = self.without.clone();
        engine.truth.uses_handles = !self.text.handle.is_empty();
        rundown_start(&mut engine, &masks)?;
        engine.run(&mut sources, end, progress)?;
        // What is still on its way (late stacks, completions) comes before the rundown.
        engine.now = engine.now.max(engine.out.last_due());
        engine.out.advance(engine.now)?;
        let cpus = world.facts.cpus;
        let mut rng = engine.rng.clone();
        engine.out.lose(cpus, &mut rng);
        // The ends of sessions are written by whoever stops them.
        engine.out.silent_from = i64::MAX;
        rundown_end(&mut engine, &masks)?;
        let Engine { out, mut truth, .. } = engine;
        let (written, counts) = out.finish()?;
        let counts = counts.named();
        truth.count_samples(&world);
        let note = match truth.dropped {
            0 => String::new(),
            n => format!("; {n} interrupts found no room on their processors"),
        };
        let sample_ms = world.facts.interval as f64 / 1e6;
        let samples = f64::from(world.facts.cpus) + 20.0;
        let scaled =
            Scaled { samples, counts: world.facts.counts, time: world.facts.stretch, sample_ms, note };
        let stated = match self.cause {
            true => truth.tally.check(&self.text.truth, &scaled, &self.place).map_err(io::Error::other)?,
            false => Stated::new(),
        };
        let json = truth.json(&world, &counts, &self.place.name, (&stated, &self.text.truth));
        Ok((written, json, Finished { counts, world }))
    }
}

/// A scenario with all names resolved.
struct Built {
    world: World,
    sources: Vec<Box<dyn Source>>,
    /// Whether context switches are recorded.
    switches: bool,
}

/// What is left when the trace is written.
struct Finished {
    counts: BTreeMap<String, u64>,
    world: World,
}

/// Writes a scenario: the trace at `out`, `<out without extension>.truth.json` and a `symbols` folder beside
/// it. `progress` is called now and then with the bytes of records so far. A trace that cannot be written to its end is removed.
///
/// # Errors
/// [`ScenarioError::Io`] when a file cannot be written, [`ScenarioError::Text`] when an event of the
/// scenario cannot be laid out.
pub fn write(scenario: &Scenario, out: &Path, progress: &mut dyn FnMut(u64)) -> Result<Report> {
    let at = |file: &Path| {
        let file = file.to_path_buf();
        move |source| ScenarioError::Io { file, source }
    };
    let file = File::create(out).map_err(at(out))?;
    let sink: Box<dyn Sink> = Box::new(BufWriter::with_capacity(1 << 20, file));
    let run = scenario.run(sink, progress).map_err(|e| scenario.io(e, out)).inspect_err(|_| {
        // Not a device that stands there.
        if out.is_file() {
            let _ = std::fs::remove_file(out);
        }
    });
    let (written, truth, finished) = run?;
    let facts = &finished.world.facts;
    if facts.losses.iter().any(|l| l.buffers) {
        let ticks = |ns: i64| facts.setup.ticks_at(ns);
        let lost = |cpu: u16, at: i64| {
            let whole = facts.losses.iter().filter(|l| l.buffers && l.covers(cpu, l.from));
            whole.clone().any(|l| (ticks(l.from)..ticks(l.to)).contains(&at))
        };
        lose_buffers(out, lost).map_err(at(out))?;
    }
    let truth_file = out.with_extension("truth.json");
    std::fs::write(&truth_file, truth).map_err(at(&truth_file))?;
    if let Some(loggers) = &scenario.text.loggers {
        let file = out.with_extension("loggers.txt");
        std::fs::write(&file, &loggers.text).map_err(at(&file))?;
    }
    let symbols = out.parent().unwrap_or(Path::new(".")).join("symbols");
    let symbol_files = write_symbols(&finished.world.images, &symbols).map_err(at(&symbols))?;
    Ok(Report {
        bytes: std::fs::metadata(out).map_or(written.bytes, |m| m.len()),
        records: written.records,
        buffers: written.buffers,
        duration_s: finished.world.facts.duration as f64 / 1e9,
        events: finished.counts,
        symbols,
        symbol_files,
        truth: truth_file,
    })
}

/// A file that only has a size.
#[derive(Default)]
struct Nothing {
    at: u64,
    end: u64,
}

impl Write for Nothing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.at += bytes.len() as u64;
        self.end = self.end.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Nothing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(n) => n,
            SeekFrom::End(n) => self.end.saturating_add_signed(n),
            SeekFrom::Current(n) => self.at.saturating_add_signed(n),
        };
        Ok(self.at)
    }
}
