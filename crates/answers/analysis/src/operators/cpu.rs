//! CPU time by process, module, function and stack, from samples.
//!
//! Exclusive time is that of the innermost frame; inclusive time counts a function once per sample however
//! often it stands on the stack. Samples without a stack count for the place of their instruction pointer.
//! Idle time is kept apart and is nobody's. Time in DPCs and ISRs is not the interrupted thread's either: it
//! stands under a process of its own, [`DPC_ISR`].

use super::stacks::{FrameName, Frames};
use super::{add, process_names};
use crate::derived::machine::MachineRow;
use crate::fold::{Cell, Class, Stacks, Sums};
use etwhy_table::{Database, Rows};
use etwhy_trace::catalog::{cpu_time::CpuRow, sample::SampleRow, stack::FrameRow, stack_cost::StackCostRow};
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

impl Cpu {
    /// Who is charged with sampled time, which is added if it is that of DPCs or ISRs.
    fn owner(&mut self, class: Class, process: i64, weight: i64) -> i64 {
        match class {
            Class::Thread => return process,
            Class::Dpc => add(&mut self.dpc_ns, weight),
            Class::Isr => add(&mut self.isr_ns, weight),
        }
        DPC_ISR.1
    }
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

/// The `n` things with most time, by one of their sums. `name` gives a thing's name and category.
fn top<'n>(
    sums: &[(u32, Cell)],
    name: impl Fn(u32) -> (&'n str, &'n str),
    n: usize,
    by: fn(&Cell) -> i64,
) -> Vec<Cost> {
    let mut order: Vec<&(u32, Cell)> = sums.iter().filter(|(_, cell)| by(cell) > 0).collect();
    order.sort_by(|a, b| by(&b.1).cmp(&by(&a.1)).then_with(|| name(a.0).cmp(&name(b.0))));
    let cost = |(number, cell): &(u32, Cell)| {
        let (name, category) = name(*number);
        Cost {
            name: name.to_owned(),
            inclusive_ns: cell.inclusive,
            exclusive_ns: cell.exclusive,
            category: (!category.is_empty()).then(|| category.to_owned()),
        }
    };
    order.into_iter().take(n).map(cost).collect()
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
        let process = out.owner(Class::named(row.class()), process, weight);
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
        let class = Class::of_sample(row.in_dpc(), row.in_isr());
        let is_idle = usize::try_from(process).ok().and_then(|p| idle.get(p)).copied().unwrap_or(false);
        if is_idle && class == Class::Thread {
            add(&mut out.idle_ns, weight);
            continue;
        }
        if scope.processes.as_ref().is_some_and(|wanted| !wanted.contains(&process)) {
            continue;
        }
        add(&mut out.busy_ns, weight);
        let process = out.owner(class, process, weight);
        // Addresses of the kernel are negative as i64 (canonical high half).
        let kernel = if row.ip() < 0 { weight } else { 0 };
        sampled.add(process, row.stack_id().unwrap_or(-1), 1, weight, kernel);
    }
    out.cpus = cpus.len() as i64;
    sampled
}

/// Inclusive and exclusive sums by module and by function.
struct ByCode {
    modules: Sums,
    functions: Sums,
}

impl ByCode {
    fn new(code: &Code<'_>) -> ByCode {
        let functions = Sums::new(code.module_of.len());
        ByCode { modules: Sums::new(code.modules.len()), functions }
    }

    /// Adds the time of a stack, given as functions, innermost first.
    fn add(&mut self, stack: impl Iterator<Item = Option<u32>>, weight: i64, code: &Code<'_>) {
        self.modules.next();
        self.functions.next();
        for (position, function) in stack.enumerate() {
            let Some(function) = function else { continue };
            let Some(&module) = code.module_of.get(function as usize) else { continue };
            for (sums, number) in [(&mut self.modules, module), (&mut self.functions, function)] {
                sums.on_stack(number, 0, weight);
                if position == 0
                    && let Some(cell) = sums.cell(number)
                {
                    add(&mut cell.exclusive, weight);
                }
            }
        }
    }
}

/// Functions and modules by number.
struct Code<'f> {
    frames: &'f Frames,
    /// Number of each function's module.
    module_of: Vec<u32>,
    /// Names and categories.
    modules: Vec<(&'f str, &'f str)>,
}

impl<'f> Code<'f> {
    fn new(frames: &'f Frames) -> Code<'f> {
        let mut modules = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::default();
        let number = |name: &'f FrameName| {
            *numbers.entry(&name.module).or_insert_with(|| {
                modules.push((name.module.as_str(), name.category.as_str()));
                (modules.len() - 1) as u32
            })
        };
        let module_of = frames.names().iter().map(number).collect();
        Code { frames, module_of, modules }
    }

    fn module(&self, number: u32) -> (&'f str, &'f str) {
        self.modules.get(number as usize).copied().unwrap_or_default()
    }

    fn function(&self, number: u32) -> (&'f str, &'f str) {
        self.frames.name(number).map_or(("", ""), |name| (&name.label, &name.category))
    }
}

fn fold_stacks(
    db: &Database,
    names: &[(String, i64)],
    by_stack: &HashMap<(i64, i64), i64>,
    flat: &HashMap<i64, Flat>,
    limit: Top,
    out: &mut Cpu,
) {
    let frames = Frames::read(db);
    let (code, stacks) = (Code::new(&frames), frames.stacks());
    let mut order: Vec<(i64, i64, i64)> = by_stack.iter().map(|(&(p, s), &w)| (p, s, w)).collect();
    order.sort_unstable();
    let mut ranked: Vec<(i64, Flat)> = flat.iter().map(|(&p, &f)| (p, f)).collect();
    ranked.sort_by(|a, b| b.1.cpu_ns.cmp(&a.1.cpu_ns).then(a.0.cmp(&b.0)));
    let shown: Vec<i64> = ranked.iter().take(limit.processes).map(|r| r.0).collect();
    let mut details: HashMap<i64, (Vec<Cost>, Vec<Cost>)> = HashMap::default();
    // Of all processes, and of one at a time.
    let (mut all, mut one) = (ByCode::new(&code), ByCode::new(&code));
    let (module, function) = (|n| code.module(n), |n| code.function(n));
    for own in order.chunk_by(|a, b| a.0 == b.0) {
        let process = own.first().map_or(-1, |stack| stack.0);
        let wanted = shown.contains(&process);
        for &(_, stack, weight) in own {
            let found = stacks.frames(stack);
            if !found.is_empty() && !stacks.is_leaf_only(stack) {
                add(&mut out.with_stack_ns, weight);
            }
            let functions = found.iter().map(|&frame| frames.name_of(frame));
            let leaf = functions.clone().next().flatten().and_then(|n| frames.name(n));
            if leaf.is_some_and(|name| name.function.is_some()) {
                add(&mut out.named_ns, weight);
            }
            all.add(functions.clone(), weight, &code);
            if wanted {
                one.add(functions, weight, &code);
            }
        }
        if wanted {
            let exclusive = |cell: &Cell| cell.exclusive;
            let modules = top(&one.modules.take(), module, limit.per_process, exclusive);
            let functions = top(&one.functions.take(), function, limit.per_process, exclusive);
            details.insert(process, (modules, functions));
        }
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
        .take(limit.processes)
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
    let (modules, functions) = (all.modules.take(), all.functions.take());
    out.modules = top(&modules, module, limit.overall, |cell| cell.exclusive);
    out.functions = top(&functions, function, limit.overall, |cell| cell.exclusive);
    out.inclusive = top(&functions, function, limit.overall, |cell| cell.inclusive);
    order.retain(|o| o.1 >= 0 && !stacks.is_leaf_only(o.1));
    let rows = db.read_or_empty::<FrameRow>();
    let mut order = same_functions(order, stacks, &rows);
    order.sort_by(|a, b| b.2.cmp(&a.2).then(a.1.cmp(&b.1)));
    let label = |&frame: &u32| rows.get(frame).map_or("", |row| row.label()).to_owned();
    out.stacks = order
        .iter()
        .take(limit.overall)
        .map(|&(process, stack, weight)| {
            let (name, pid) = name(process);
            let frames = stacks.frames(stack).iter().map(label).collect();
            StackCost { stack_id: stack, process: name, pid, cpu_ns: weight, frames }
        })
        .collect();
}

/// Adds up stacks of one process that differ only in the places inside of functions: to people they are one. Each keeps
/// the number of the first of them.
fn same_functions(
    order: Vec<(i64, i64, i64)>,
    stacks: &Stacks,
    frames: &Rows<'_, FrameRow>,
) -> Vec<(i64, i64, i64)> {
    let mut numbers: HashMap<&str, u32> = HashMap::default();
    let mut label_numbers: Vec<u32> = Vec::with_capacity(frames.len());
    for row in frames {
        let next = numbers.len() as u32;
        label_numbers.push(*numbers.entry(row.label()).or_insert(next));
    }
    // Two hashes with different seeds stand for the functions: lists of all stacks would fill the memory.
    let hashers = [FixedState::with_seed(1), FixedState::with_seed(2)];
    let mut merged: HashMap<(i64, [u64; 2]), usize> = HashMap::default();
    let mut out: Vec<(i64, i64, i64)> = Vec::new();
    for (process, stack, weight) in order {
        let functions: Vec<Option<u32>> =
            stacks.frames(stack).iter().map(|&f| label_numbers.get(f as usize).copied()).collect();
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
