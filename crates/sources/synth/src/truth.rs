//! What an analysis of the trace has to find.

use crate::model::TruthText;
use crate::tally::{Stated, Tally, findings, number, object};
use crate::world::World;
use serde_json::json;
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
        let interval = w.facts.interval as f64 / 1e6;
        let ms = |samples: u64| number(samples as f64 * interval);
        let all = self.cpus.iter().fold(Samples::default(), |mut sum, (_, s)| {
            (sum.normal, sum.dpc, sum.isr) = (sum.normal + s.normal, sum.dpc + s.dpc, sum.isr + s.isr);
            sum
        });
        let by_cpu = object(self.cpus.iter().enumerate().map(|(cpu, (_, s))| (cpu.to_string(), ms(s.all()))));
        let [by_process, by_thread] = self.by_process(w);
        let [by_module, by_function] = self.by_module(w);
        let by_name = |map: BTreeMap<String, u64>| object(map.into_iter().map(|(name, n)| (name, ms(n))));
        let by_place = |map: BTreeMap<String, [u64; 2]>| {
            let costs = |[exclusive, inclusive]: [u64; 2]| json!({ "exclusive": ms(exclusive), "inclusive": ms(inclusive) });
            object(map.into_iter().map(|(name, n)| (name, costs(n))))
        };
        let ran: BTreeMap<_, _> = self.ran.iter().collect();
        let activity = object(ran.into_iter().map(|(&thread, &(runs, ns))| {
            let t = w.processes.thread(thread);
            let ran = json!({ "thread": t.name, "runs": runs, "run_ms": number(ns as f64 / 1e6) });
            (format!("{}/{}", t.pid, t.tid), ran)
        }));
        let [(dpcs, dpc_ns), (isrs, isr_ns)] = self.interrupts;
        let stated = stated.iter().map(|(table, names)| {
            let figures =
                |figures: &BTreeMap<String, f64>| object(figures.iter().map(|(f, n)| (f, number(*n))));
            (table, object(names.iter().map(|(name, all)| (name, figures(all)))))
        });
        let value = json!({
            "scenario": name,
            "finding": findings(text),
            "scale": { "counts": number(w.facts.counts), "time": number(w.facts.stretch) },
            "duration_ms": number(w.facts.duration as f64 / 1e6),
            "cpus": w.facts.cpus,
            "sampling_interval_ms": number(interval),
            "cpu": {
                "busy_ms": ms(all.all()),
                "idle_ms": ms(self.idle),
                "thread_ms": ms(all.normal),
                "dpc_ms": ms(all.dpc),
                "isr_ms": ms(all.isr),
                "samples_without_stack": self.without_stack,
            },
            "cpu_by_processor_ms": by_cpu,
            "cpu_by_process_ms": by_name(by_process),
            "cpu_by_thread_ms": by_name(by_thread),
            "cpu_by_module_ms": by_place(by_module),
            "cpu_by_function_ms": by_place(by_function),
            "activity": activity,
            "interrupts": {
                "dpc_count": dpcs,
                "dpc_ms": number(dpc_ns as f64 / 1e6),
                "isr_count": isrs,
                "isr_ms": number(isr_ns as f64 / 1e6),
                "dropped": self.dropped,
            },
            "stated": object(stated),
            "tables": self.tally.json(),
            "events": counts,
        });
        format!("{value:#}\n")
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

    /// Samples by process and by thread.
    fn by_process(&self, w: &World) -> [BTreeMap<String, u64>; 2] {
        let [mut processes, mut threads] = [BTreeMap::new(), BTreeMap::new()];
        for (at, n) in self.threads.iter().enumerate().filter(|(_, n)| **n > 0) {
            let t = w.processes.thread(at);
            let name = w.processes.list.get(t.process).map_or("", |p| p.name.as_str());
            *processes.entry(format!("{name} ({})", t.pid)).or_default() += n;
            threads.insert(format!("{name} ({})/{} ({})", t.pid, t.name, t.tid), *n);
        }
        [processes, threads]
    }

    /// Samples by module and by function: exclusive (innermost frame) and inclusive (anywhere, once per sample).
    fn by_module(&self, w: &World) -> [BTreeMap<String, [u64; 2]>; 2] {
        let mut costs = [BTreeMap::<String, [u64; 2]>::new(), BTreeMap::new()];
        for (stack, samples) in w.stacks.list.iter().zip(&self.stacks).filter(|(_, s)| s.all() > 0) {
            let mut seen = [BTreeSet::new(), BTreeSet::new()];
            for (depth, frame) in stack.frames.iter().rev().enumerate() {
                let (module, function) = w.frame_names(Some(frame));
                if module.is_empty() {
                    continue;
                }
                for ((map, seen), key) in costs.iter_mut().zip(&mut seen).zip([module, function]) {
                    if key.is_empty() {
                        continue;
                    }
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
        costs
    }
}
