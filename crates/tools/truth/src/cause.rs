//! What a kind of cause is, and what is known of one that was planted.

use crate::plan::{Actor, Plan};
use serde_json::Value;

/// Below this multiple of its limit a cause must not be named above info.
pub const SILENT: f64 = 0.8;
/// From this multiple on it must be named; between the two either answer is right.
pub const DUE: f64 = 1.2;

/// A kind of cause.
pub struct Kind {
    /// Its name in tables.
    pub id: &'static str,
    /// Findings that answer it.
    pub answers: &'static [&'static str],
    /// Greatest multiple of its limit that a machine of a few seconds can show.
    pub most: f64,
    /// Only on machines with nothing else on them: it takes all of them, or needs them quiet.
    pub alone: bool,
    /// Writes it so that it costs this multiple of its limit, or less if there is no room.
    pub plant: fn(&mut Plan, f64) -> Planted,
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Itself.
    Fixed(f64),
    /// This share of the trace's seconds.
    OfTrace(f64),
    /// This share of the seconds that processors were busy.
    OfBusy(f64),
    /// This share of the seconds of all processors.
    OfCapacity(f64),
}

/// A machine's sums when it is complete, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// The trace.
    pub duration: f64,
    /// Busy time of processors.
    pub busy: f64,
    /// Time of processors.
    pub capacity: f64,
}

impl Limit {
    fn value(self, sums: &Sums) -> f64 {
        match self {
            Limit::Fixed(value) => value,
            Limit::OfTrace(share) => share * sums.duration,
            Limit::OfBusy(share) => share * sums.busy,
            Limit::OfCapacity(share) => share * sums.capacity,
        }
    }
}

/// Who it was.
#[derive(Clone, Debug)]
pub struct Target {
    /// Texts that name it and nobody else.
    pub own: Vec<String>,
    /// A text that names it and its twin alike.
    pub shared: Option<String>,
    /// Texts that name the twin.
    pub twin: Vec<String>,
}

/// How a text names a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// It and nobody else.
    It,
    /// It or its twin.
    ItOrTwin,
    /// Its twin.
    Twin,
    /// Somebody else.
    Other,
}

impl Target {
    /// Who it is does not matter: nobody is to blame.
    pub fn unknown() -> Target {
        Target { own: Vec::new(), shared: None, twin: Vec::new() }
    }

    /// Its clearest name.
    pub fn text(&self) -> &str {
        self.own.last().map_or("nobody in particular", String::as_str)
    }

    /// How a text names it.
    pub fn named_by(&self, text: &str) -> Names {
        let is = |name: &String| name.eq_ignore_ascii_case(text);
        if self.own.is_empty() || self.own.iter().any(is) {
            Names::It
        } else if self.shared.as_ref().is_some_and(is) {
            Names::ItOrTwin
        } else if self.twin.iter().any(is) {
            Names::Twin
        } else {
            Names::Other
        }
    }

    /// A driver, a disk or something else that exists once.
    pub fn thing(name: &str) -> Target {
        Target { own: vec![name.to_owned()], shared: None, twin: Vec::new() }
    }

    /// A process.
    pub fn process(actor: &Actor) -> Target {
        let shared = (!actor.twin.is_empty()).then(|| actor.name.clone());
        Target { own: actor.own.clone(), shared, twin: actor.twin.clone() }
    }
}

/// A figure of the finding that is known exactly.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The column.
    pub column: &'static str,
    /// What it should be.
    pub value: f64,
}

/// A cause that was planted.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Who.
    pub target: Target,
    /// Figures and what they have to reach, all of them. Those of all but one are planned so that they do not decide.
    pub conditions: Vec<(f64, Limit)>,
    /// Other ways to be reported, each with all that it takes.
    pub alternatives: Vec<Vec<(f64, Limit)>>,
    /// What it cost.
    pub figure: Option<Figure>,
    /// Functions, modules or processes whose CPU time is that cost. The writer drops a little work where several threads want one processor;
    /// its truth file says what is left.
    pub written: Vec<String>,
    /// Findings that may be reported of the same cause in addition.
    pub also: Vec<(&'static str, Whom)>,
}

/// Whom a consequence names.
#[derive(Clone, Debug)]
pub enum Whom {
    /// The culprit.
    Same,
    /// Somebody else who is known.
    Named(String),
    /// Anybody.
    Anybody,
}

impl Planted {
    /// Nothing known yet but who.
    pub fn by(target: Target) -> Planted {
        Planted {
            target,
            conditions: Vec::new(),
            alternatives: Vec::new(),
            figure: None,
            written: Vec::new(),
            also: Vec::new(),
        }
    }

    /// Adds a figure and what it has to reach.
    pub fn needs(mut self, value: f64, limit: Limit) -> Planted {
        self.conditions.push((value, limit));
        self
    }

    /// Adds another way to be reported: figures and what they have to reach, all of them.
    pub fn or_needs(mut self, conditions: Vec<(f64, Limit)>) -> Planted {
        self.alternatives.push(conditions);
        self
    }

    /// Adds what it cost.
    pub fn costs(mut self, column: &'static str, value: f64) -> Planted {
        self.figure = Some(Figure { column, value });
        self
    }

    /// Adds what it cost in time.
    pub fn costs_s(self, seconds: f64) -> Planted {
        self.costs("cost_ns", seconds * 1e9)
    }

    /// Adds what it cost in CPU time, which is that of these functions, modules or processes.
    pub fn costs_cpu(mut self, seconds: f64, names: &[&str]) -> Planted {
        self.written = names.iter().map(|name| (*name).to_owned()).collect();
        self.costs_s(seconds)
    }

    /// Corrects the cost by what the writer says that it wrote.
    pub fn correct(&mut self, truth: &Value) {
        let part = |name: &String| {
            let by = |table: &str| truth.get(table).and_then(|table| table.get(name));
            let inclusive = |entry: &Value| entry.get("inclusive").and_then(Value::as_f64);
            by("cpu_by_function_ms")
                .and_then(inclusive)
                .or_else(|| by("cpu_by_module_ms").and_then(inclusive))
                .or_else(|| by("cpu_by_process_ms").and_then(Value::as_f64))
        };
        let sum: Option<f64> = self.written.iter().map(part).sum();
        if let (Some(figure), Some(milliseconds), false) = (&mut self.figure, sum, self.written.is_empty()) {
            figure.value = milliseconds * 1e6;
        }
    }

    /// Adds findings that may name the same culprit.
    pub fn also(mut self, findings: &[&'static str]) -> Planted {
        self.also.extend(findings.iter().map(|finding| (*finding, Whom::Same)));
        self
    }

    /// Adds findings that may name somebody for the same reason.
    pub fn also_of(mut self, whom: &Whom, findings: &[&'static str]) -> Planted {
        self.also.extend(findings.iter().map(|finding| (*finding, whom.clone())));
        self
    }

    /// How many times its limit it is, on the machine as it became.
    pub fn multiple(&self, sums: &Sums) -> f64 {
        let ratio = |(value, limit): &(f64, Limit)| value / limit.value(sums).max(1e-12);
        let all = |conditions: &Vec<(f64, Limit)>| conditions.iter().map(ratio).fold(f64::INFINITY, f64::min);
        self.alternatives.iter().map(all).fold(all(&self.conditions), f64::max)
    }
}
