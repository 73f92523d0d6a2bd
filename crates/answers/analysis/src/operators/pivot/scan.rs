//! The pass over the rows.

use super::code::{Coder, CoderPlan, Pairs};
use super::condition::Selected;
use super::reference::{Joins, Reference};
use super::spark::{Spark, Sparks};
use super::sums::{Acc, Batch, Measure};
use super::{GiveUp, MOST_GROUPS, Pivot, PivotError, wrong};
use etwhy_table::{Matcher, Table, Value};
use std::ops::Range;

/// Below this many rows a second thread costs more than it gives.
const ROWS_PER_THREAD: usize = 250_000;

/// More threads than this wait for memory.
const THREADS: usize = 4;

/// More keys are no table that anybody reads.
const MOST_KEYS: usize = 12;

/// A question whose names are found.
pub(super) struct Question<'d, 'q> {
    pub table: &'d Table,
    pub keys: Vec<Reference<'d>>,
    coders: Vec<CoderPlan<'d>>,
    pub measures: Vec<Measure<'d>>,
    pub selected: Selected,
    /// Time column and how to divide it.
    spark: Option<(usize, &'q Spark)>,
    /// Which rows can fulfil the conditions.
    within: Range<u32>,
}

impl<'d, 'q> Question<'d, 'q> {
    pub fn new(
        joins: &mut Joins<'d>,
        ask: &Pivot,
        spark: Option<&'q Spark>,
    ) -> Result<Question<'d, 'q>, PivotError> {
        if ask.group.len() > MOST_KEYS || ask.values.len() > 4 * MOST_KEYS {
            return wrong("these are too many columns".to_owned());
        }
        let keys: Result<Vec<Reference<'d>>, _> = ask.group.iter().map(|key| joins.find(key)).collect();
        let keys = keys?;
        let mut measures = Vec::new();
        for value in &ask.values {
            let reference = value.column.as_deref().map(|name| joins.find(name)).transpose()?;
            measures.push(Measure::new(reference, value.function)?);
        }
        let selected = Selected::with(joins, &ask.conditions)?;
        let spark = match spark {
            Some(spark) => Some((joins.find(&spark.column)?.own, spark)),
            None => None,
        };
        let within = Matcher::new(joins.table, &selected.conditions).within();
        let coders = keys.iter().map(CoderPlan::new).collect();
        Ok(Question { table: joins.table, keys, coders, measures, selected, spark, within })
    }
}

/// What one thread found.
pub(super) struct Found<'d> {
    coders: Vec<Coder<'d>>,
    /// For each key but the first: pairs of a group of the keys before and a number of the key.
    pairs: Vec<Pairs>,
    counts: Vec<u64>,
    pub accs: Vec<Acc<'d>>,
    pub sparks: Option<Sparks>,
}

impl<'d> Found<'d> {
    fn new(question: &Question<'d, '_>) -> Found<'d> {
        let function = question.measures.first().map_or(super::Function::Count, |m| m.function);
        Found {
            coders: question.coders.iter().map(CoderPlan::coder).collect(),
            pairs: question.coders.iter().skip(1).map(|_| Pairs::new()).collect(),
            counts: Vec::new(),
            accs: question.measures.iter().map(Measure::acc).collect(),
            sparks: question.spark.map(|(_, spark)| Sparks::new(spark, function)),
        }
    }

    /// Groups that have rows.
    pub fn groups(&self) -> Vec<u32> {
        (0u32..).zip(&self.counts).filter(|(_, count)| **count > 0).map(|(group, _)| group).collect()
    }

    /// Rows in all.
    pub fn rows(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The keys of a group.
    pub fn keys(&self, group: u32) -> Vec<Value<'d>> {
        let mut out = vec![Value::Null; self.coders.len()];
        let mut at = group;
        for level in (0..self.coders.len()).rev() {
            let code = match level.checked_sub(1).and_then(|pairs| self.pairs.get(pairs)) {
                None => at,
                Some(pairs) => {
                    let (before, code) = pairs.all.get(at as usize).copied().unwrap_or((0, 0));
                    at = before;
                    code
                }
            };
            if let (Some(slot), Some(coder)) = (out.get_mut(level), self.coders.get(level)) {
                *slot = coder.cell(code);
            }
        }
        out
    }

    fn reserve(&mut self, groups: usize) -> Result<(), PivotError> {
        if groups <= self.counts.len() {
            return Ok(());
        }
        if groups > MOST_GROUPS {
            return wrong(format!(
                "more than {MOST_GROUPS} groups: group by something coarser, or filter first"
            ));
        }
        self.counts.resize(groups, 0);
        self.accs.iter_mut().for_each(|acc| acc.reserve(groups));
        if let Some(sparks) = &mut self.sparks {
            sparks.reserve(groups);
        }
        Ok(())
    }

    /// Goes through some batches.
    fn run(
        &mut self,
        question: &Question<'d, '_>,
        batches: Range<usize>,
        give_up: GiveUp<'_>,
    ) -> Result<(), PivotError> {
        let table = question.table;
        let mut matcher = Matcher::new(question.table, &question.selected.conditions);
        let (mut rows, mut groups, mut codes, mut parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for batch in batches {
            if give_up() {
                return Err(PivotError::GivenUp);
            }
            let view = |column: usize| table.view(batch, column);
            matcher.rows_of(batch, &question.within, &mut rows);
            if rows.is_empty() {
                continue;
            }
            groups.clear();
            for (level, coder) in self.coders.iter_mut().enumerate() {
                let view = view(coder.own);
                match level.checked_sub(1).and_then(|at| self.pairs.get_mut(at)) {
                    None => coder.encode(&view, &rows, &mut groups),
                    Some(pairs) => {
                        codes.clear();
                        coder.encode(&view, &rows, &mut codes);
                        groups
                            .iter_mut()
                            .zip(&codes)
                            .for_each(|(group, code)| *group = pairs.number_of(*group, *code));
                    }
                }
            }
            if self.coders.is_empty() {
                groups.resize(rows.len(), 0);
            }
            let most = groups.iter().copied().max().unwrap_or(0);
            self.reserve(most as usize + 1)?;
            for group in &groups {
                if let Some(count) = self.counts.get_mut(*group as usize) {
                    *count += 1;
                }
            }
            if let (Some((time, _)), Some(sparks)) = (question.spark, &self.sparks) {
                sparks.parts_of(&view(time), &rows, &mut parts);
            }
            let part = Batch { rows: &rows, groups: &groups, parts: &parts };
            for (at, (acc, measure)) in self.accs.iter_mut().zip(&question.measures).enumerate() {
                acc.add(measure, view, &part, self.sparks.as_mut().filter(|_| at == 0));
            }
        }
        Ok(())
    }

    /// Adds what another thread found.
    fn absorb(&mut self, other: Found<'d>) -> Result<(), PivotError> {
        let mut codes: Vec<Vec<u32>> = Vec::new();
        for (ours, theirs) in self.coders.iter_mut().zip(&other.coders) {
            codes.push(ours.absorb(theirs));
        }
        let mut codes = codes.into_iter();
        let mut groups = codes.next().unwrap_or_else(|| vec![0; other.counts.len()]);
        for ((ours, theirs), codes) in self.pairs.iter_mut().zip(&other.pairs).zip(codes) {
            let number = |(before, code): &(u32, u32)| {
                let before = groups.get(*before as usize).copied().unwrap_or(0);
                ours.number_of(before, codes.get(*code as usize).copied().unwrap_or(0))
            };
            groups = theirs.all.iter().map(number).collect();
        }
        // Numbers that no row of the other has may be beyond.
        groups.truncate(other.counts.len());
        let most = groups.iter().copied().max().map_or(0, |most| most as usize + 1);
        self.reserve(most)?;
        for (count, group) in other.counts.iter().zip(&groups) {
            if let Some(slot) = self.counts.get_mut(*group as usize) {
                *slot += count;
            }
        }
        for (ours, theirs) in self.accs.iter_mut().zip(other.accs) {
            ours.absorb(theirs, &groups);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.sparks, &other.sparks) {
            ours.absorb(theirs, &groups);
        }
        Ok(())
    }
}

/// Goes through all rows.
pub(super) fn scan<'d>(question: &Question<'d, '_>, give_up: GiveUp<'_>) -> Result<Found<'d>, PivotError> {
    let table = question.table;
    let starts = table.starts();
    let from = starts.partition_point(|start| *start <= question.within.start).saturating_sub(1);
    let to = starts.partition_point(|start| *start < question.within.end).max(from);
    let rows = question.within.len();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS).min(rows / ROWS_PER_THREAD + 1).min(to - from).max(1);
    let share = (to - from).div_ceil(threads).max(1);
    let parts: Vec<Range<usize>> =
        (0..threads).map(|n| (from + n * share).min(to)..(from + (n + 1) * share).min(to)).collect();
    let run = |batches: Range<usize>| {
        let mut found = Found::new(question);
        found.run(question, batches, give_up).map(|()| found)
    };
    let mut parts = parts.into_iter();
    let mine = parts.next().unwrap_or(0..0);
    let run = &run;
    std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        let mut found = run(mine)?;
        for other in others {
            match other.join() {
                Ok(theirs) => found.absorb(theirs?)?,
                Err(_) => return wrong("a thread ended early".to_owned()),
            }
        }
        Ok(found)
    })
}
