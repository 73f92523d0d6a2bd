//! The table of a run: what became of the causes of each kind, and the totals beside the goals.

use crate::machine::Cause;
use crate::score::{Score, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A cost that is this far off is wrong.
const COST_GOAL: f64 = 0.02;

/// Sums of a kind.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Machines on which one was planted that has to be named.
    pub due: u64,
    /// Of these, machines without another cause.
    pub alone: u64,
    /// Named first, on machines without another cause.
    pub first: u64,
    /// Named, with the right instance.
    pub named: u64,
    /// Named, without saying which of two processes with that name.
    pub unsaid: u64,
    /// Somebody else was named.
    pub wrong: u64,
    /// The report says that it cannot tell.
    pub cannot_tell: u64,
    /// Not named.
    pub missed: u64,
    /// So small that nothing must be said.
    pub silent: u64,
    /// Findings that accuse somebody, on machines with this cause only.
    pub accused: u64,
    /// The worst cost.
    pub worst_cost: f64,
    /// Costs that are further off than the goal allows.
    pub costs_wrong: u64,
    /// Seeds of causes that were not named rightly.
    pub seeds: Vec<u64>,
}

/// Sums of a run.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By kind; of machines without a cause under `none`.
    pub lines: BTreeMap<&'static str, Line>,
    /// Machines.
    pub machines: u64,
    /// Machines on which somebody innocent is accused.
    pub machines_accused: u64,
    /// Machines with several causes that have to be named.
    pub several: u64,
    /// Of these, all named.
    pub several_all: u64,
}

impl Table {
    /// Adds a machine.
    pub fn add(&mut self, seed: u64, causes: &[Cause], score: &Score) {
        self.machines += 1;
        self.machines_accused += u64::from(!score.accused.is_empty());
        let due =
            score.causes.iter().filter(|judged| !matches!(judged.verdict, Verdict::Silent | Verdict::Either));
        let (mut count, mut all) = (0, true);
        for judged in due {
            count += 1;
            all &= judged.verdict <= Verdict::Named;
        }
        self.several += u64::from(count > 1);
        self.several_all += u64::from(count > 1 && all);
        for (cause, judged) in causes.iter().zip(&score.causes) {
            let line = self.lines.entry(cause.kind.id).or_default();
            let alone = u64::from(causes.len() == 1);
            match judged.verdict {
                Verdict::Silent => line.silent += 1,
                Verdict::Either => {}
                verdict => {
                    line.due += 1;
                    line.alone += alone;
                    line.first += u64::from(verdict == Verdict::First);
                    line.named += u64::from(verdict <= Verdict::Named);
                    line.unsaid += u64::from(verdict == Verdict::Unsaid);
                    line.wrong += u64::from(verdict == Verdict::Wrong);
                    line.cannot_tell += u64::from(verdict == Verdict::CannotTell);
                    line.missed += u64::from(verdict == Verdict::Missed);
                    if verdict > Verdict::Named || (alone == 1 && verdict != Verdict::First) {
                        line.seeds.push(seed);
                    }
                }
            }
            if let Some(error) = judged.cost_error {
                line.worst_cost = line.worst_cost.max(error);
                line.costs_wrong += u64::from(error > COST_GOAL);
            }
            line.accused += alone * u64::from(!score.accused.is_empty());
        }
        if causes.is_empty() {
            self.lines.entry("none").or_default().accused += u64::from(!score.accused.is_empty());
        }
    }

    /// The sums as text, in Markdown.
    pub fn markdown(&self, title: &str) -> String {
        format!("{title}\n\n{}\n{}", self.by_kind(), figures(&[("measured", self)]))
    }

    /// What became of the causes of each kind.
    pub fn by_kind(&self) -> String {
        let mut out = "| kind | due | alone | first | named | which? | wrong | cannot tell | missed | below | accused | worst cost |\n".to_owned();
        out += "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
        for (kind, l) in &self.lines {
            let cost = if l.worst_cost > 0.0 { percent(l.worst_cost) } else { String::new() };
            let _ = writeln!(
                out,
                "| {kind} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {cost} |",
                l.due,
                l.alone,
                l.first,
                l.named,
                l.unsaid,
                l.wrong,
                l.cannot_tell,
                l.missed,
                l.silent,
                l.accused
            );
        }
        out
    }

    fn sum(&self, figure: impl Fn(&Line) -> u64) -> u64 {
        self.lines.values().map(figure).sum()
    }

    /// Totals, each with what the project wants.
    pub fn figures(&self) -> Vec<(&'static str, String, &'static str)> {
        let worst = self
            .lines
            .iter()
            .filter(|(_, line)| line.alone > 0)
            .map(|(kind, line)| (line.first as f64 / line.alone as f64, *kind))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        vec![
            ("culprit first, one cause", ratio(self.sum(|l| l.first), self.sum(|l| l.alone)), "≥ 99 %"),
            (
                "worst kind of cause, same figure",
                worst.map_or_else(String::new, |(share, kind)| format!("{} ({kind})", percent(share))),
                "≥ 95 %",
            ),
            ("all causes named, two or more causes", ratio(self.several_all, self.several), "≥ 97 %"),
            (
                "causes named",
                ratio(self.sum(|l| l.named), self.sum(|l| l.due)),
                "with 3 % loss ≥ 90 %, 10 % ≥ 75 %, 30 % ≥ 40 %",
            ),
            ("named, but not which instance", ratio(self.sum(|l| l.unsaid), self.sum(|l| l.due)), "0 %"),
            (
                "*cannot tell* for a planted cause",
                ratio(self.sum(|l| l.cannot_tell), self.sum(|l| l.due)),
                "≤ 1 % if nothing is missing",
            ),
            ("machines with an innocent accused", ratio(self.machines_accused, self.machines), "≤ 0.3 %"),
            (
                "costs off by more than 2 % from the intact truth",
                ratio(self.sum(|l| l.costs_wrong), self.sum(|l| l.named + l.unsaid)),
                "0 %",
            ),
        ]
    }

    /// The sums for programs.
    pub fn json(&self) -> Value {
        let lines: Vec<Value> = self
            .lines
            .iter()
            .map(|(kind, l)| {
                json!({ "kind": kind, "due": l.due, "alone": l.alone, "first": l.first, "named": l.named, "unsaid": l.unsaid,
                        "wrong": l.wrong, "cannot_tell": l.cannot_tell, "missed": l.missed, "silent": l.silent,
                        "accused": l.accused, "worst_cost": l.worst_cost, "costs_wrong": l.costs_wrong, "seeds": l.seeds })
            })
            .collect();
        json!({ "machines": self.machines, "machines_accused": self.machines_accused, "several": self.several,
                "several_all": self.several_all, "kinds": lines })
    }
}

/// Totals of several runs beside each other and beside the goals, in Markdown.
pub fn figures(runs: &[(&str, &Table)]) -> String {
    let mut out = "| figure |".to_owned();
    runs.iter().for_each(|(name, _)| out += &format!(" {name} |"));
    out += " goal |\n|---|---|";
    runs.iter().for_each(|_| out += "---|");
    out.push('\n');
    let all: Vec<_> = runs.iter().map(|(_, table)| table.figures()).collect();
    for (row, (name, _, goal)) in all.first().into_iter().flatten().enumerate() {
        let values: Vec<&str> =
            all.iter().filter_map(|figures| figures.get(row)).map(|(_, value, _)| value.as_str()).collect();
        let _ = writeln!(out, "| {name} | {} | {goal} |", values.join(" | "));
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn ratio(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "none".to_owned();
    }
    format!("{} ({part} of {whole})", percent(part as f64 / whole as f64))
}
