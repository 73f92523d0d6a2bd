//! What a probe is.

use crate::error::ProbeError;
use crate::run::{Options, Run};
use crate::sample::Sample;
use std::collections::BTreeMap;

/// An operating system that a probe runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The one that this program was built for, if probes know it.
    pub fn this() -> Option<System> {
        match std::env::consts::OS {
            "linux" => Some(System::Linux),
            "macos" => Some(System::MacOs),
            "windows" => Some(System::Windows),
            _ => None,
        }
    }

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            System::Linux => "Linux",
            System::MacOs => "macOS",
            System::Windows => "Windows",
        }
    }
}

/// All systems.
pub const EVERYWHERE: &[System] = &[System::Linux, System::MacOs, System::Windows];

/// What a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number; `quick` is its value with `--quick`. What users give must lie from `min` to `max`.
    Number {
        /// Without more.
        default: u64,
        /// With `--quick`.
        quick: u64,
        /// Smallest.
        min: u64,
        /// Largest: what keeps a typing error from filling a disk.
        max: u64,
        /// `files`, `bytes`, `ms`; empty for plain numbers.
        unit: &'static str,
    },
    /// Some text.
    Text {
        /// Without more.
        default: &'static str,
    },
    /// One or several of some words, with commas between them.
    Choice {
        /// Without more.
        default: &'static str,
        /// The words.
        of: &'static [&'static str],
    },
}

/// Something that users may set: `--set name=value`.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name: small letters and `-`.
    pub name: &'static str,
    /// What it changes, one line.
    pub about: &'static str,
    /// What it takes.
    pub kind: Kind,
}

impl Parameter {
    /// A number.
    pub const fn number(
        name: &'static str,
        about: &'static str,
        unit: &'static str,
        (default, quick): (u64, u64),
        (min, max): (u64, u64),
    ) -> Parameter {
        Parameter { name, about, kind: Kind::Number { default, quick, min, max, unit } }
    }

    /// Words to choose from.
    pub const fn choice(
        name: &'static str,
        about: &'static str,
        default: &'static str,
        of: &'static [&'static str],
    ) -> Parameter {
        Parameter { name, about, kind: Kind::Choice { default, of } }
    }

    /// Some text.
    pub const fn text(name: &'static str, about: &'static str, default: &'static str) -> Parameter {
        Parameter { name, about, kind: Kind::Text { default } }
    }

    /// Its value without more, or with `--quick`.
    pub fn default(&self, quick: bool) -> String {
        match self.kind {
            Kind::Number { quick: value, .. } if quick => value.to_string(),
            Kind::Number { default, .. } => default.to_string(),
            Kind::Text { default } | Kind::Choice { default, .. } => default.to_owned(),
        }
    }

    /// Says what is wrong with a value, if anything is.
    pub fn wrong(&self, value: &str) -> Option<String> {
        match self.kind {
            Kind::Number { min, max, .. } => match value.replace('_', "").parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => None,
                Ok(_) => Some(format!("{}={value}: from {min} to {max}", self.name)),
                Err(_) => Some(format!("{}={value}: a whole number is needed", self.name)),
            },
            Kind::Choice { of, .. } => value
                .split(',')
                .find(|word| !of.contains(word))
                .map(|word| format!("{}={word}: one of {}", self.name, of.join(", "))),
            Kind::Text { .. } => None,
        }
    }
}

/// How a cost of a probe may grow: which laws are ordinary for it (see `etwhy_stats::growth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grows {
    /// It measures no sizes, or too few.
    No,
    /// Each sample is the cost of one call, `n` being how many came before it.
    PerCall,
    /// Each sample is the cost of work on `n` things.
    Total,
}

/// Two kinds of samples of one probe whose ratio is what people ask for.
#[derive(Clone, Copy, Debug)]
pub struct Contrast {
    /// As a heading: `first run against second`.
    pub title: &'static str,
    /// `measure` and `variant` of what is dear; an empty word stands for any.
    pub dear: (&'static str, &'static str),
    /// `measure` and `variant` of what it is compared with.
    pub cheap: (&'static str, &'static str),
    /// What the difference is, in a sentence: `What the first open of a file costs more than any later one.`
    pub meaning: &'static str,
}

/// A probe: one file of `probes/`.
pub struct Probe {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// The manual page: what it does, what the numbers mean, what fools it, the source of what it is compared with.
    pub manual: &'static str,
    /// Where it runs.
    pub systems: &'static [System],
    /// What may be set.
    pub parameters: &'static [Parameter],
    /// How what it measures may grow with the size of the case ([`crate::sample::Case::n`]).
    pub grows: Grows,
    /// What `n` counts: `files in the folder`; empty if nothing.
    pub n_is: &'static str,
    /// Pairs of kinds of samples that belong together.
    pub contrasts: &'static [Contrast],
    /// Does it.
    pub run: fn(&mut Run<'_>) -> Result<(), ProbeError>,
    /// What its child processes do, if it starts this program anew ([`Run::child`]): their arguments come in, their exit
    /// code goes out.
    pub child: Option<fn(&[String]) -> u8>,
    /// Sentences for people who are no experts, from complete or interrupted results: what it costs here. The numbers that
    /// hold for all probes (noise, growth, suspects) are said elsewhere.
    pub conclude: fn(&[Sample]) -> Vec<String>,
}

impl Probe {
    /// Whether it runs on this system.
    pub fn runs_here(&self) -> bool {
        System::this().is_some_and(|system| self.systems.contains(&system))
    }

    /// The values of its parameters with these options. Who runs several probes asks for all of them before the first one starts.
    ///
    /// # Errors
    /// A sentence if what was set makes no sense.
    pub fn values(&self, options: &Options) -> Result<BTreeMap<&'static str, String>, String> {
        let mut values: BTreeMap<&'static str, String> =
            self.parameters.iter().map(|p| (p.name, p.default(options.quick))).collect();
        for (name, value) in &options.set {
            // Whether some probe of the run knows the name is the caller's question.
            let Some(parameter) = self.parameters.iter().find(|p| p.name == name) else { continue };
            if let Some(wrong) = parameter.wrong(value) {
                return Err(format!("{}: {wrong}", self.name));
            }
            values.insert(parameter.name, value.clone());
        }
        Ok(values)
    }
}
