//! CPU time by process, module, function and stack, from samples.
//!
//! Exclusive time is that of the innermost frame; inclusive time counts a function once per sample however
//! often it stands on the stack. Samples without a stack count for the place of their instruction pointer.
//! Idle time is kept apart and is nobody's. Time in DPCs and ISRs is not the interrupted thread's either: it
//! stands under a process of its own, [`DPC_ISR`].

use super::{add, process_names};
use crate::derived::machine::MachineRow;
use etwhy_table::Database;
use etwhy_trace::catalog::{
    cpu_time::CpuRow,
    sample::SampleRow,
    stack::{FrameRow, StackFrameRow, StackRow},
    stack_cost::StackCostRow,
};
use foldhash::HashMap;
use foldhash::fast::FixedState;
use serde::Serialize;
use std::hash::BuildHasher;

/// Name under which DPC and ISR time stands, and its `upid`.
pub const DPC_ISR: (&str, i64) = ("[DPC and ISR]", -2);

/// Restricts an analysis to a part of the trace.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// First moment, ns.
    pub from_ns: Option<i64>,
    /// End, ns.
    pub to_ns: Option<i64>,
    /// Only these processes (`upid`), if given.
    pub processes: Option<Vec<i64>>,
}

/// CPU time of something that can stand on a stack.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cost {
    /// Its name: module, `module!function`.
    pub name: String,
    /// Nanoseconds with it on the stack.
    pub inclusive_ns: i64,
    /// Nanoseconds in itself.
    pub exclusive_ns: i64,
    /// Its module's category in the knowledge base, if known.
    pub category: Option<String>,
}

/// CPU time of a process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProcessCost {
    /// Instance (table `process`).
    pub upid: i64,
    /// Process id.
    pub pid: i64,
    /// Image name.
    pub name: String,
    /// Nanoseconds.
    pub cpu_ns: i64,
    /// Samples.
    pub samples: i64,
    /// Of these in the kernel.
    pub kernel_ns: i64,
    /// Modules, by exclusive time.
    pub modules: Vec<Cost>,
    /// Functions, by exclusive time.
    pub functions: Vec<Cost>,
}

/// CPU time of a stack.
#[derive(Clone, Debug, Serialize)]
pub struct StackCost {
    /// Stack (table `stack`).
    pub stack_id: i64,
    /// Image name of its process.
    pub process: String,
    /// Process id.
    pub pid: i64,
    /// Nanoseconds.
    pub cpu_ns: i64,
    /// Frames, innermost first.
    pub frames: Vec<String>,
}

/// Where the CPU went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cpu {
    /// Samples, idle ones included.
    pub samples: i64,
    /// CPU time of all processes.
    pub busy_ns: i64,
    /// Time of the idle threads.
    pub idle_ns: i64,
    /// Processors that samples came from.
    pub cpus: i64,
    /// Busy time of samples that have a stack.
    pub with_stack_ns: i64,
    /// Busy time whose innermost frame has a function name.
    pub named_ns: i64,
    /// Busy time in DPCs.
    pub dpc_ns: i64,
    /// Busy time in ISRs.
    pub isr_ns: i64,
    /// Processes by time.
    pub processes: Vec<ProcessCost>,
    /// Modules of all processes, by exclusive time.
    pub modules: Vec<Cost>,
    /// Functions of all processes, by exclusive time.
    pub functions: Vec<Cost>,
    /// Functions of all processes, by inclusive time.
    pub inclusive: Vec<Cost>,
    /// Stacks by time.
    pub stacks: Vec<StackCost>,
}

/// How many rows of each list to keep.
#[derive(Clone, Copy, Debug)]
pub struct Top {
    /// Processes.
    pub processes: usize,
    /// Modules and functions per process.
    pub per_process: usize,
    /// Modules, functions and stacks of all.
    pub overall: usize,
}

/// What is known of frames: dense numbers of their modules and functions.
#[derive(Default)]
struct Frames {
    module: Vec<u32>,
    function: Vec<u32>,
    named: Vec<bool>,
    modules: Vec<(String, Option<String>)>,
    functions: Vec<(String, Option<String>)>,
}

impl Frames {
    fn read(db: &Database) -> Frames {
        let mut out = Frames::default();
        let (mut modules, mut functions) = (HashMap::default(), HashMap::default());
        for row in &db.read_or_empty::<FrameRow>() {
            let category = row.category().map(str::to_owned);
            let module = row.module();
            let label = row.label();
            let number = |map: &mut HashMap<String, u32>, list: &mut Vec<_>, name: &str| {
                *map.entry(name.to_owned()).or_insert_with(|| {
                    list.push((name.to_owned(), category.clone()));
                    (list.len() - 1) as u32
                })
            };
            out.module.push(number(&mut modules, &mut out.modules, module));
            // Without a name every address would be its own function; the module stands for them.
            let named = row.function().is_some();
            let text = if named { label.to_owned() } else { format!("{module}!?") };
            out.function.push(number(&mut functions, &mut out.functions, &text));
            out.named.push(named);
        }
        out
    }
}

/// Sums of inclusive and exclusive time by number, with each number counted once per stack.
#[derive(Default)]
struct Sums {
    inclusive: Vec<i64>,
    exclusive: Vec<i64>,
    last: Vec<u32>,
}

impl Sums {
    fn new(n: usize) -> Sums {
        Sums { inclusive: vec![0; n], exclusive: vec![0; n], last: vec![u32::MAX; n] }
    }

    fn add(&mut self, number: u32, stack: u32, leaf: bool, weight: i64) {
        let at = number as usize;
        let (Some(inclusive), Some(exclusive), Some(last)) =
            (self.inclusive.get_mut(at), self.exclusive.get_mut(at), self.last.get_mut(at))
        else {
            return;
        };
        if *last != stack {
            *last = stack;
            add(inclusive, weight);
        }
        if leaf {
            add(exclusive, weight);
        }
    }

    /// The `n` largest by `key`.
    fn top(&self, names: &[(String, Option<String>)], n: usize, by_inclusive: bool) -> Vec<Cost> {
        let key = |i: usize| {
            let sums = if by_inclusive { &self.inclusive } else { &self.exclusive };
            sums.get(i).copied().unwrap_or(0)
        };
        let mut order: Vec<usize> = (0..names.len()).filter(|&i| key(i) > 0).collect();
        order.sort_by(|&a, &b| key(b).cmp(&key(a)).then_with(|| names.get(a).cmp(&names.get(b))));
        order
            .into_iter()
            .take(n)
            .filter_map(|i| {
                let (name, category) = names.get(i)?;
                Some(Cost {
                    name: name.clone(),
                    inclusive_ns: self.inclusive.get(i).copied().unwrap_or(0),
                    exclusive_ns: self.exclusive.get(i).copied().unwrap_or(0),
                    category: category.clone(),
                })
            })
            .collect()
    }
}

/// Time per process before it is broken down.
#[derive(Clone, Copy, Default)]
struct Flat {
    cpu_ns: i64,
    samples: i64,
    kernel_ns: i64,
}

/// Sampled time by process and stack, before frames are looked at.
#[derive(Default)]
struct Sampled {
    /// By process and stack.
    by_stack: HashMap<(i64, i64), i64>,
    flat: HashMap<i64, Flat>,
}

impl Sampled {
    fn add(&mut self, process: i64, stack: i64, samples: i64, weight: i64, kernel: i64) {
        let entry = self.flat.entry(process).or_default();
        add(&mut entry.cpu_ns, weight);
        add(&mut entry.samples, samples);
        add(&mut entry.kernel_ns, kernel);
        add(self.by_stack.entry((process, stack)).or_default(), weight);
    }
}

/// Computes where the CPU went: from `sample` if only a part of the time is asked about, else from the sums of
/// `stack_cost` and `cpu`, which say the same and are much smaller.
pub fn cpu(db: &Database, scope: &Scope, top: Top) -> Cpu {
    let names = process_names(db);
    let mut out = Cpu::default();
    let whole = scope.from_ns.is_none() && scope.to_ns.is_none();
    let sampled = if whole { of_sums(db, scope, &mut out) } else { of_samples(db, scope, &names, &mut out) };
    if whole && let Some(idle) = observed_idle(db) {
        out.idle_ns = idle;
    }
    fold_stacks(db, &names, &sampled.by_stack, &sampled.flat, top, &mut out);
    out
}

/// Idle time as `machine` says, so that all reports have the same shares; it knows sleeping processors, which samples leave out.
fn observed_idle(db: &Database) -> Option<i64> {
    let machine = db.read_or_empty::<MachineRow>();
    machine.first().and_then(|row| row.sampled_capacity_ns().and(row.idle_ns()))
}

fn of_sums(db: &Database, scope: &Scope, out: &mut Cpu) -> Sampled {
    let mut sampled = Sampled::default();
    for row in &db.read_or_empty::<CpuRow>() {
        let samples = row.samples();
        add(&mut out.samples, samples);
        add(&mut out.idle_ns, row.sampled_idle_ns());
        out.cpus += i64::from(samples > 0);
    }
    for row in &db.read_or_empty::<StackCostRow>() {
        let process = row.upid().unwrap_or(-1);
        if scope.processes.as_ref().is_some_and(|wanted| !wanted.contains(&process)) {
            continue;
        }
        let weight = row.weight_ns();
        add(&mut out.busy_ns, weight);
        let process = match row.class() {
            "dpc" => {
                add(&mut out.dpc_ns, weight);
                DPC_ISR.1
            }
            "isr" => {
                add(&mut out.isr_ns, weight);
                DPC_ISR.1
            }
            _ => process,
        };
        let stack = row.stack_id().unwrap_or(-1);
        let (samples, kernel) = (row.samples(), row.kernel_ns());
        sampled.add(process, stack, samples, weight, kernel);
    }
    sampled
}

fn of_samples(db: &Database, scope: &Scope, names: &[(String, i64)], out: &mut Cpu) -> Sampled {
    let idle: Vec<bool> = names.iter().map(|(_, pid)| *pid == 0).collect();
    let mut sampled = Sampled::default();
    let mut cpus = std::collections::BTreeSet::new();
    for row in &db.read_or_empty::<SampleRow>() {
        let at = row.ts_ns();
        if scope.from_ns.is_some_and(|from| at < from) || scope.to_ns.is_some_and(|to| at >= to) {
            continue;
        }
        let process = row.upid().unwrap_or(-1);
        let weight = row.weight_ns();
        out.samples += 1;
        cpus.insert(row.cpu());
        let (in_dpc, in_isr) = (row.in_dpc(), row.in_isr());
        let interrupt = in_dpc || in_isr;
        let is_idle = usize::try_from(process).ok().and_then(|p| idle.get(p)).copied().unwrap_or(false);
        if is_idle && !interrupt {
            add(&mut out.idle_ns, weight);
            continue;
        }
        if scope.processes.as_ref().is_some_and(|wanted| !wanted.contains(&process)) {
            continue;
        }
        let process = if interrupt { DPC_ISR.1 } else { process };
        add(&mut out.busy_ns, weight);
        if in_isr {
            add(&mut out.isr_ns, weight);
        } else if in_dpc {
            add(&mut out.dpc_ns, weight);
        }
        // Addresses of the kernel are negative as i64 (canonical high half).
        let kernel = if row.ip() < 0 { weight } else { 0 };
        sampled.add(process, row.stack_id().unwrap_or(-1), 1, weight, kernel);
    }
    out.cpus = cpus.len() as i64;
    sampled
}

/// Where each stack's rows are in `stack_frame`, and the frames.
pub(crate) struct StackFrames {
    starts: Vec<u32>,
    frames: Vec<u32>,
    leaf_only: Vec<bool>,
}

impl StackFrames {
    pub(crate) fn read(db: &Database) -> StackFrames {
        let mut out = StackFrames { starts: vec![0], frames: Vec::new(), leaf_only: Vec::new() };
        let mut total = 0u32;
        for row in &db.read_or_empty::<StackRow>() {
            total = total.saturating_add(u32::try_from(row.depth()).unwrap_or(0));
            out.starts.push(total);
            out.leaf_only.push(row.leaf_only());
        }
        out.frames.reserve(total as usize);
        for row in &db.read_or_empty::<StackFrameRow>() {
            out.frames.push(u32::try_from(row.frame_id()).unwrap_or(u32::MAX));
        }
        out
    }

    /// Frames of a stack, innermost first.
    pub(crate) fn of(&self, stack: i64) -> &[u32] {
        let Ok(stack) = usize::try_from(stack) else { return &[] };
        let (Some(&from), Some(&to)) = (self.starts.get(stack), self.starts.get(stack + 1)) else {
            return &[];
        };
        self.frames.get(from as usize..to as usize).unwrap_or(&[])
    }

    fn is_leaf_only(&self, stack: i64) -> bool {
        usize::try_from(stack).ok().and_then(|s| self.leaf_only.get(s)).copied().unwrap_or(true)
    }
}

fn fold_stacks(
    db: &Database,
    names: &[(String, i64)],
    by_stack: &HashMap<(i64, i64), i64>,
    flat: &HashMap<i64, Flat>,
    top: Top,
    out: &mut Cpu,
) {
    let frames = Frames::read(db);
    let stacks = StackFrames::read(db);
    let mut order: Vec<(i64, i64, i64)> = by_stack.iter().map(|(&(p, s), &w)| (p, s, w)).collect();
    order.sort_unstable();
    let mut modules = Sums::new(frames.modules.len());
    let mut functions = Sums::new(frames.functions.len());
    let mut ranked: Vec<(i64, Flat)> = flat.iter().map(|(&p, &f)| (p, f)).collect();
    ranked.sort_by(|a, b| b.1.cpu_ns.cmp(&a.1.cpu_ns).then(a.0.cmp(&b.0)));
    let shown: Vec<i64> = ranked.iter().take(top.processes).map(|r| r.0).collect();
    let mut details: HashMap<i64, (Vec<Cost>, Vec<Cost>)> = HashMap::default();
    let mut start = 0;
    while let Some(&(process, _, _)) = order.get(start) {
        let len = order.get(start..).unwrap_or(&[]).iter().take_while(|o| o.0 == process).count();
        let own = order.get(start..start + len).unwrap_or(&[]);
        let wanted = shown.contains(&process);
        let mut local = wanted.then(|| (Sums::new(frames.modules.len()), Sums::new(frames.functions.len())));
        for (number, &(_, stack, weight)) in own.iter().enumerate() {
            let unique = (start + number) as u32;
            let list = stacks.of(stack);
            if !list.is_empty() && !stacks.is_leaf_only(stack) {
                add(&mut out.with_stack_ns, weight);
            }
            for (position, &frame) in list.iter().enumerate() {
                let (Some(&module), Some(&function)) =
                    (frames.module.get(frame as usize), frames.function.get(frame as usize))
                else {
                    continue;
                };
                let leaf = position == 0;
                if leaf && frames.named.get(frame as usize) == Some(&true) {
                    add(&mut out.named_ns, weight);
                }
                modules.add(module, unique, leaf, weight);
                functions.add(function, unique, leaf, weight);
                if let Some((m, f)) = &mut local {
                    m.add(module, unique, leaf, weight);
                    f.add(function, unique, leaf, weight);
                }
            }
        }
        if let Some((m, f)) = local {
            let lists = (
                m.top(&frames.modules, top.per_process, false),
                f.top(&frames.functions, top.per_process, false),
            );
            details.insert(process, lists);
        }
        start += len.max(1);
    }
    let name = |process: i64| {
        if process == DPC_ISR.1 {
            return (DPC_ISR.0.to_owned(), -1);
        }
        let known = usize::try_from(process).ok().and_then(|p| names.get(p));
        known.cloned().unwrap_or(("[unknown]".to_owned(), -1))
    };
    out.processes = ranked
        .iter()
        .take(top.processes)
        .map(|&(process, f)| {
            let (modules, functions) = details.remove(&process).unwrap_or_default();
            let (name, pid) = name(process);
            ProcessCost {
                upid: process,
                pid,
                name,
                cpu_ns: f.cpu_ns,
                samples: f.samples,
                kernel_ns: f.kernel_ns,
                modules,
                functions,
            }
        })
        .collect();
    out.modules = modules.top(&frames.modules, top.overall, false);
    out.functions = functions.top(&frames.functions, top.overall, false);
    out.inclusive = functions.top(&frames.functions, top.overall, true);
    let labels = labels(db);
    order.retain(|o| o.1 >= 0 && !stacks.is_leaf_only(o.1));
    let mut order = same_functions(order, &stacks, &labels);
    order.sort_by(|a, b| b.2.cmp(&a.2).then(a.1.cmp(&b.1)));
    out.stacks = order
        .iter()
        .take(top.overall)
        .map(|&(process, stack, weight)| {
            let (name, pid) = name(process);
            let label = |f: &u32| labels.get(*f as usize).cloned().unwrap_or_default();
            let frames = stacks.of(stack).iter().map(label).collect();
            StackCost { stack_id: stack, process: name, pid, cpu_ns: weight, frames }
        })
        .collect();
}

/// Adds up stacks of one process that differ only in the places inside of functions: to people they are one. Each keeps
/// the number of the first of them.
fn same_functions(
    order: Vec<(i64, i64, i64)>,
    stacks: &StackFrames,
    labels: &[String],
) -> Vec<(i64, i64, i64)> {
    let mut numbers: HashMap<&str, u32> = HashMap::default();
    let label_numbers: Vec<u32> = labels
        .iter()
        .map(|label| {
            let next = numbers.len() as u32;
            *numbers.entry(label.as_str()).or_insert(next)
        })
        .collect();
    // Two hashes with different seeds stand for the functions: lists of all stacks would fill the memory.
    let hashers = [FixedState::with_seed(1), FixedState::with_seed(2)];
    let mut merged: HashMap<(i64, [u64; 2]), usize> = HashMap::default();
    let mut out: Vec<(i64, i64, i64)> = Vec::new();
    for (process, stack, weight) in order {
        let functions: Vec<Option<u32>> =
            stacks.of(stack).iter().map(|&f| label_numbers.get(f as usize).copied()).collect();
        let key = (process, hashers.each_ref().map(|h| h.hash_one(&functions)));
        match merged.get(&key).and_then(|&at| out.get_mut(at)) {
            Some(sum) => {
                sum.1 = sum.1.min(stack);
                add(&mut sum.2, weight);
            }
            None => {
                merged.insert(key, out.len());
                out.push((process, stack, weight));
            }
        }
    }
    out
}

fn labels(db: &Database) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(db.read_or_empty::<FrameRow>().iter().map(|row| row.label().to_owned()));
    out
}
