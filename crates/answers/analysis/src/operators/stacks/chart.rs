//! One thread (or processor) over time: which functions stood on its stack when, and when it waited.
//!
//! # How it is computed
//!
//! A sample stands for the time before it, as long as its weight. Samples that follow each other without a gap are laid side by
//! side, the outermost frame at the top; a frame that adjacent samples share from the top on is one box (speedscope's Time
//! Order). Where more than one sample falls into a pixel, the heaviest stack of it stands for all, and the box says for how many.
//! Waits come from context switches: from the moment the thread left its processor until it was readied.
//!
//! # What fools it
//!
//! Between samples nothing is known: a function that returned and was called again is one box. A box is as exact as the interval
//! of samples.

use super::frames::Frames;
use super::tree::{NodeKind, NodeName};
use super::{Class, WeightedStack};
use etwhy_table::Database;
use etwhy_trace::catalog::cswitch::CSwitchRow;

/// Whose time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A thread (`utid`).
    Thread(i64),
    /// A logical processor.
    Cpu(i64),
}

/// A box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartBox {
    /// Begin, ns.
    pub from_ns: i64,
    /// End, ns.
    pub to_ns: i64,
    /// Levels below the top.
    pub depth: u32,
    /// Place in [`Chart::names`].
    pub name: u32,
    /// Samples in it, those that other stacks of its pixels stand for included.
    pub samples: i64,
    /// CPU time of these.
    pub weight: i64,
}

/// Boxes of a lane.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Names of boxes.
    pub names: Vec<NodeName>,
    /// Boxes, by begin.
    pub boxes: Vec<ChartBox>,
    /// Samples in the range.
    pub samples: i64,
    /// Their CPU time.
    pub weight: i64,
    /// Stacks of samples that another one of their pixel stands for.
    pub hidden: i64,
    /// Boxes that were too many.
    pub left_out: u64,
    /// Deepest level.
    pub levels: u32,
}

/// Hands over samples.
pub type Samples<'a> = &'a dyn Fn(&mut dyn FnMut(WeightedStack));

/// Most boxes of an answer.
pub const MOST_BOXES: usize = 40_000;

/// What is drawn of one stretch of time.
#[derive(Default)]
struct Slot {
    from: i64,
    to: i64,
    /// Each stack in it with weight and samples.
    stacks: Vec<(WeightedStack, i64, i64)>,
}

struct Drawing<'f> {
    frames: &'f Frames,
    out: Chart,
    numbers: foldhash::HashMap<(NodeKind, String), u32>,
    /// Boxes that the next slot may continue, by depth, as places in `out.boxes`.
    open: Vec<usize>,
    end: i64,
    pixel: i64,
}

/// The boxes of a lane in a range; what is shorter than `pixel_ns` is added up. `samples` hands over those of metric `busy` in the order
/// of time. Nothing if `go_on` says no.
pub fn chart(
    db: &Database,
    frames: &Frames,
    samples: Samples<'_>,
    lane: Lane,
    range: (i64, i64),
    pixel_ns: i64,
    go_on: &dyn Fn() -> bool,
) -> Option<Chart> {
    let (from, to) = range;
    let pixel = pixel_ns.max(1);
    let mut drawing = Drawing {
        frames,
        out: Chart::default(),
        numbers: Default::default(),
        open: Vec::new(),
        end: i64::MIN,
        pixel,
    };
    let mut slot = Slot::default();
    let mut stopped = false;
    samples(&mut |sample| {
        let (Some(at), false) = (sample.ts_ns, stopped) else { return };
        let mine = match lane {
            // What interrupted the thread is not the thread's.
            Lane::Thread(wanted) => sample.utid == Some(wanted) && sample.class == Class::Thread,
            Lane::Cpu(wanted) => sample.cpu == Some(wanted),
        };
        if at < from || at >= to || !mine {
            return;
        }
        stopped |= drawing.out.samples % 4096 == 0 && !go_on();
        let length = sample.weight.max(0);
        let one = WeightedStack {
            class: sample.class,
            upid: sample.upid,
            stack: sample.stack,
            ..WeightedStack::default()
        };
        drawing.out.samples += 1;
        drawing.out.weight = drawing.out.weight.saturating_add(length);
        let begin = at.saturating_sub(length).max(from);
        // Room for a pixel, or the sample begins a slot of its own.
        if !slot.stacks.is_empty()
            && at.saturating_sub(slot.from) <= pixel
            && begin <= slot.to.saturating_add(pixel)
        {
            slot.to = slot.to.max(at);
        } else {
            drawing.draw(std::mem::take(&mut slot));
            slot = Slot { from: begin, to: at, stacks: Vec::new() };
        }
        match slot.stacks.iter_mut().find(|(known, ..)| *known == one) {
            Some((_, weight, samples)) => {
                *weight = weight.saturating_add(length);
                *samples += 1;
            }
            None => slot.stacks.push((one, length, 1)),
        }
    });
    drawing.draw(slot);
    if let Lane::Thread(utid) = lane
        && !stopped
    {
        stopped = !drawing.waits(db, utid, range, pixel, go_on);
    }
    let mut out = drawing.out;
    out.boxes.sort_by_key(|b| (b.from_ns, b.depth));
    out.levels = out.boxes.iter().map(|b| b.depth + 1).max().unwrap_or(0);
    (!stopped).then_some(out)
}

impl Drawing<'_> {
    fn name(&mut self, name: NodeName) -> u32 {
        let (kind, label) = (name.kind, name.label.clone());
        *self.numbers.entry((kind, label)).or_insert_with(|| {
            self.out.names.push(name);
            (self.out.names.len() - 1) as u32
        })
    }

    fn draw(&mut self, slot: Slot) {
        let Some((best, ..)) = slot.stacks.iter().max_by_key(|(_, weight, _)| *weight) else { return };
        let best = *best;
        let samples: i64 = slot.stacks.iter().map(|(.., n)| n).sum();
        let weight = slot.stacks.iter().fold(0i64, |sum, (_, w, _)| sum.saturating_add(*w));
        let shown: i64 = slot.stacks.iter().filter(|(s, ..)| *s == best).map(|(.., n)| n).sum();
        self.out.hidden += samples - shown;
        let mut numbers: Vec<u32> =
            self.frames.frames_of(&best).filter_map(|frame| self.frames.name_of(frame)).collect();
        // Addresses without a name in one module are one place, as in trees.
        numbers.dedup_by(|a, b| a == b && self.frames.name(*a).is_some_and(|name| name.function.is_none()));
        let mut path: Vec<NodeName> =
            numbers.into_iter().filter_map(|number| self.frames.name(number)).map(NodeName::from).collect();
        match best.class {
            Class::Thread if path.is_empty() => path.push(NodeName::named("[no stack]", NodeKind::NoStack)),
            Class::Thread => {}
            Class::Dpc => path.push(NodeName::named("[DPC]", NodeKind::Interrupt)),
            Class::Isr => path.push(NodeName::named("[ISR]", NodeKind::Interrupt)),
        }
        // Half an interval of samples is their jitter, no gap.
        let length = weight / samples.max(1);
        let joined = slot.from <= self.end.saturating_add((length / 2).max(self.pixel));
        let from = if joined { self.end } else { slot.from };
        if !joined {
            self.open.clear();
        }
        for (depth, name) in path.into_iter().rev().enumerate() {
            let name = self.name(name);
            let same = self
                .open
                .get(depth)
                .copied()
                .filter(|&b| self.out.boxes.get(b).is_some_and(|b| b.name == name));
            if let Some(open) = same.and_then(|at| self.out.boxes.get_mut(at)) {
                open.to_ns = slot.to;
                open.samples += samples;
                open.weight = open.weight.saturating_add(weight);
                continue;
            }
            self.open.truncate(depth);
            if self.out.boxes.len() >= MOST_BOXES {
                self.out.left_out += 1;
                break;
            }
            self.open.push(self.out.boxes.len());
            let made = ChartBox { from_ns: from, to_ns: slot.to, depth: depth as u32, name, samples, weight };
            self.out.boxes.push(made);
        }
        let levels = self.open.len();
        // What was deeper ended before this slot.
        let depth = self
            .open
            .iter()
            .take_while(|&&b| self.out.boxes.get(b).is_some_and(|b| b.to_ns == slot.to))
            .count();
        self.open.truncate(depth.min(levels));
        self.end = slot.to;
    }

    /// Waits and ready time of a thread that are at least a pixel long; false if it was stopped.
    fn waits(
        &mut self,
        db: &Database,
        utid: i64,
        (from, to): (i64, i64),
        pixel: i64,
        go_on: &dyn Fn() -> bool,
    ) -> bool {
        let switches = db.read_or_empty::<CSwitchRow>();
        for batch in switches.batches() {
            if !go_on() {
                return false;
            }
            for row in batch.filter(|row| row.new_utid() == utid) {
                let at = row.ts_ns();
                let ready = row.ready_ns().unwrap_or(0).max(0);
                let wait = row.wait_ns().unwrap_or(0).max(0);
                let readied = at.saturating_sub(ready);
                let text = row.prev_wait_reason().or(row.prev_state()).unwrap_or("unknown reason");
                let waited = (readied.saturating_sub(wait), readied);
                self.gap(format!("waits: {text}"), waited, (from, to), pixel);
                self.gap("ready, no processor".to_owned(), (readied, at), (from, to), pixel);
            }
        }
        true
    }

    fn gap(&mut self, label: String, (begin, end): (i64, i64), (from, to): (i64, i64), pixel: i64) {
        let (begin, end) = (begin.max(from), end.min(to));
        if end.saturating_sub(begin) < pixel {
            return;
        }
        if self.out.boxes.len() >= MOST_BOXES {
            self.out.left_out += 1;
            return;
        }
        let name = self.name(NodeName::named(label, NodeKind::Group));
        self.out.boxes.push(ChartBox { from_ns: begin, to_ns: end, name, ..ChartBox::default() });
    }
}
