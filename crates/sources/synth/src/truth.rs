//! What an analysis of the trace has to find.

use crate::json::Json;
use crate::model::TruthText;
use crate::tally::{Stated, Tally, findings_json, stated_json};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Samples of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    normal: u64,
    dpc: u64,
    isr: u64,
}

impl Samples {
    fn add(&mut self, flags: u8, n: u64) {
        match flags {
            0 => self.normal += n,
            2 | 3 => self.isr += n,
            _ => self.dpc += n,
        }
    }

    fn all(&self) -> u64 {
        self.normal + self.dpc + self.isr
    }
}

/// Counts while the trace is written.
pub(crate) struct Truth {
    threads: Vec<u64>,
    cpus: Vec<(u64, Samples)>,
    /// Per stack.
    stacks: Vec<Samples>,
    without_stack: u64,
    idle: u64,
    ran: HashMap<usize, (u64, i64)>,
    interrupts: [(u64, i64); 2],
    keys: BTreeSet<usize>,
    /// Interrupts that found no room.
    pub(crate) dropped: u64,
    /// Events for which no processor was free.
    pub(crate) homeless: u64,
    pub(crate) tally: Tally,
    pub(crate) uses_handles: bool,
}

impl Truth {
    pub(crate) fn new(w: &World) -> Truth {
        Truth {
            threads: vec![0; w.processes.threads.len()],
            cpus: vec![(0, Samples::default()); w.facts.cpus.into()],
            stacks: vec![Samples::default(); w.stacks.list.len()],
            without_stack: 0,
            idle: 0,
            ran: HashMap::new(),
            interrupts: [(0, 0); 2],
            keys: BTreeSet::new(),
            dropped: 0,
            homeless: 0,
            tally: Tally::default(),
            uses_handles: false,
        }
    }

    /// One sampling interval of a processor: flags 0 normal, 1 DPC, 2 ISR.
    pub(crate) fn sample(&mut self, cpu: u16, thread: usize, stack: Option<usize>, flags: u8) {
        let idle = thread == 0 && flags == 0;
        if let Some(c) = self.cpus.get_mut(usize::from(cpu)) {
            c.0 += u64::from(idle);
            if !idle {
                c.1.add(flags, 1);
            }
        }
        if idle {
            self.idle += 1;
            return;
        }
        match stack.and_then(|s| self.stacks.get_mut(s)) {
            Some(samples) => samples.add(flags, 1),
            None => self.without_stack += 1,
        }
        if let Some(n) = self.threads.get_mut(thread) {
            // Time in DPCs and ISRs is nobody's.
            *n += u64::from(flags == 0);
        }
    }

    /// A thread ran so long in one go, as an activity says.
    pub(crate) fn ran(&mut self, thread: usize, ns: i64) {
        let entry = self.ran.entry(thread).or_default();
        entry.0 += 1;
        entry.1 += ns;
    }

    /// A DPC or ISR of this duration.
    pub(crate) fn interrupt(&mut self, isr: bool, ns: i64) {
        let entry = &mut self.interrupts[usize::from(isr)];
        entry.0 += 1;
        entry.1 += ns;
    }

    /// A stack was named by a key.
    pub(crate) fn key_used(&mut self, stack: usize) {
        self.keys.insert(stack);
    }

    /// Stacks that were named by keys.
    pub(crate) fn keys_used(&self) -> Vec<usize> {
        self.keys.iter().copied().collect()
    }

    /// The truth file's text.
    pub(crate) fn json(
        &self,
        w: &World,
        counts: &BTreeMap<String, u64>,
        name: &str,
        (stated, text): (&Stated, &TruthText),
    ) -> String {
        let ms = w.facts.interval as f64 / 1e6;
        let mut json = Json::new();
        json.text("scenario", name);
        findings_json(&mut json, text);
        json.object("scale", |j| {
            j.number("counts", w.facts.counts);
            j.number("time", w.facts.stretch);
        });
        json.number("duration_ms", w.facts.duration as f64 / 1e6);
        json.whole("cpus", w.facts.cpus.into());
        json.number("sampling_interval_ms", ms);
        let all = self.cpus.iter().fold(Samples::default(), |mut sum, (_, s)| {
            (sum.normal, sum.dpc, sum.isr) = (sum.normal + s.normal, sum.dpc + s.dpc, sum.isr + s.isr);
            sum
        });
        json.object("cpu", |j| {
            j.number("busy_ms", all.all() as f64 * ms);
            j.number("idle_ms", self.idle as f64 * ms);
            j.number("thread_ms", all.normal as f64 * ms);
            j.number("dpc_ms", all.dpc as f64 * ms);
            j.number("isr_ms", all.isr as f64 * ms);
            j.whole("samples_without_stack", self.without_stack);
        });
        self.cpu_json(&mut json, w, ms);
        self.stack_json(&mut json, w, ms);
        json.object("activity", |j| {
            let mut list: Vec<_> = self.ran.iter().collect();
            list.sort_unstable_by_key(|(thread, _)| **thread);
            for (&thread, &(runs, ns)) in list {
                let t = w.processes.thread(thread);
                j.object(&format!("{}/{}", t.pid, t.tid), |j| {
                    j.text("thread", &t.name);
                    j.whole("runs", runs);
                    j.number("run_ms", ns as f64 / 1e6);
                });
            }
        });
        json.object("interrupts", |j| {
            for (name, (count, ns)) in ["dpc", "isr"].into_iter().zip(self.interrupts) {
                j.whole(&format!("{name}_count"), count);
                j.number(&format!("{name}_ms"), ns as f64 / 1e6);
            }
            j.whole("dropped", self.dropped);
        });
        json.object("stated", |j| stated_json(j, stated));
        json.object("tables", |j| self.tally.json(j));
        json.object("events", |j| counts.iter().for_each(|(name, n)| j.whole(name, *n)));
        json.finish()
    }

    /// Adds what the samples say to the tally: by process, thread, module and function.
    pub(crate) fn count_samples(&mut self, w: &World) {
        let interval = w.facts.interval;
        let mut tally = std::mem::take(&mut self.tally);
        let all: u64 = self.cpus.iter().map(|(_, s)| s.all()).sum();
        let dpc: u64 = self.cpus.iter().map(|(_, s)| s.dpc).sum();
        let (all, dpc) = (all as i64 * interval, dpc as i64 * interval);
        let idle = self.idle as i64 * interval;
        tally.add("cpu", "machine", &[("busy_ns", all), ("idle_ns", idle), ("dpc_ns", dpc)]);
        for (cpu, (_, s)) in self.cpus.iter().enumerate() {
            tally.add("cpu_processor", &cpu.to_string(), &[("busy_ns", s.all() as i64 * interval)]);
        }
        for (at, n) in self.threads.iter().enumerate().filter(|(_, n)| **n > 0) {
            let t = w.processes.thread(at);
            let name = w.processes.list.get(t.process).map_or("", |p| p.name.as_str());
            let ns = [("cpu_ns", *n as i64 * interval)];
            tally.add("cpu_process", name, &ns);
            tally.add("cpu_thread", &format!("{name}/{}", t.name), &ns);
        }
        for (stack, samples) in w.stacks.list.iter().zip(&self.stacks).filter(|(_, s)| s.all() > 0) {
            let ns = samples.all() as i64 * interval;
            let mut seen = BTreeSet::new();
            for (depth, frame) in stack.frames.iter().rev().enumerate() {
                let (module, function) = w.frame_names(Some(frame));
                for (table, name) in [("cpu_module", module), ("cpu_function", function)] {
                    if name.is_empty() {
                        continue;
                    }
                    if depth == 0 {
                        tally.add(table, &name, &[("exclusive_ns", ns)]);
                    }
                    if seen.insert((table, name.clone())) {
                        tally.add(table, &name, &[("inclusive_ns", ns), ("exclusive_ns", 0)]);
                    }
                }
            }
        }
        self.tally = tally;
    }

    fn cpu_json(&self, json: &mut Json, w: &World, ms: f64) {
        json.object("cpu_by_processor_ms", |j| {
            for (cpu, (_, s)) in self.cpus.iter().enumerate() {
                j.number(&cpu.to_string(), s.all() as f64 * ms);
            }
        });
        let mut processes: BTreeMap<String, u64> = BTreeMap::new();
        let mut threads: BTreeMap<String, u64> = BTreeMap::new();
        for (at, n) in self.threads.iter().enumerate().filter(|(_, n)| **n > 0) {
            let t = w.processes.thread(at);
            let name = w.processes.list.get(t.process).map_or("", |p| p.name.as_str());
            *processes.entry(format!("{name} ({})", t.pid)).or_default() += n;
            threads.insert(format!("{name} ({})/{} ({})", t.pid, t.name, t.tid), *n);
        }
        json.object("cpu_by_process_ms", |j| processes.iter().for_each(|(k, n)| j.number(k, *n as f64 * ms)));
        json.object("cpu_by_thread_ms", |j| threads.iter().for_each(|(k, n)| j.number(k, *n as f64 * ms)));
    }

    /// Modules and functions, exclusive (innermost frame) and inclusive (anywhere, once per sample).
    fn stack_json(&self, json: &mut Json, w: &World, ms: f64) {
        type Costs = BTreeMap<String, [u64; 2]>;
        let (mut modules, mut functions) = (Costs::new(), Costs::new());
        for (stack, samples) in w.stacks.list.iter().zip(&self.stacks).filter(|(_, s)| s.all() > 0) {
            let mut seen = (BTreeSet::new(), BTreeSet::new());
            for (depth, frame) in stack.frames.iter().rev().enumerate() {
                let (module, function) = w.frame_names(Some(frame));
                if module.is_empty() {
                    continue;
                }
                let full = (!function.is_empty()).then_some(function);
                for (map, seen, key) in
                    [(&mut modules, &mut seen.0, Some(module)), (&mut functions, &mut seen.1, full)]
                {
                    let Some(key) = key else { continue };
                    let entry = map.entry(key.clone()).or_default();
                    if depth == 0 {
                        entry[0] += samples.all();
                    }
                    if seen.insert(key) {
                        entry[1] += samples.all();
                    }
                }
            }
        }
        for (title, map) in [("cpu_by_module_ms", modules), ("cpu_by_function_ms", functions)] {
            json.object(title, |j| {
                for (name, [exclusive, inclusive]) in &map {
                    j.object(name, |j| {
                        j.number("exclusive", *exclusive as f64 * ms);
                        j.number("inclusive", *inclusive as f64 * ms);
                    });
                }
            });
        }
    }
}
