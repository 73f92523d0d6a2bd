//! Watches triggers while a recording runs.

use super::Machine;
use super::trigger::{Seen, Trigger, is_named};
use std::collections::BTreeSet;

/// Who reads the growing trace: it tells when an event was seen or a finding fires.
pub trait Finder {
    /// Why this trigger fires, if it does.
    fn fired(&mut self, trigger: &Trigger) -> Option<String>;
}

/// Watches triggers; it lives as long as the guard.
#[derive(Default)]
pub struct Watch {
    triggers: Vec<Watched>,
    processes: Option<BTreeSet<(String, u64)>>,
    finder: Option<Box<dyn Finder>>,
    troubles: Vec<String>,
}

struct Watched {
    trigger: Trigger,
    /// Since when the counter is above the number.
    above_since: Option<u64>,
    /// It was said that it cannot be watched now.
    is_in_trouble: bool,
}

impl Watch {
    /// Watches these.
    pub fn new(triggers: Vec<Trigger>) -> Watch {
        let watched = |trigger| Watched { trigger, above_since: None, is_in_trouble: false };
        Watch { triggers: triggers.into_iter().map(watched).collect(), ..Watch::default() }
    }

    /// Has events and findings watched by this reader.
    #[must_use]
    pub fn with_finder(self, finder: Box<dyn Finder>) -> Watch {
        Watch { finder: Some(finder), ..self }
    }

    /// Tries whether all can be watched: what only shows during the recording would end none.
    ///
    /// # Errors
    /// Which cannot, and why.
    pub fn prepare(&mut self, machine: &mut dyn Machine) -> Result<(), String> {
        for Watched { trigger, .. } in &self.triggers {
            match trigger {
                Trigger::Counter { path, .. } => machine.has_counter(path),
                Trigger::Log { channel, .. } => machine.logged(channel).map(drop),
                Trigger::Key(keys) => machine.pressed(keys).map(drop),
                Trigger::Event { .. }
                | Trigger::Finding(_)
                | Trigger::ProcessStart(_)
                | Trigger::ProcessExit(_) => Ok(()),
            }
            .map_err(|why| format!("`{trigger}` cannot be watched: {why}"))?;
        }
        Ok(())
    }

    /// Triggers that cannot be watched at the moment, each said once as long as that lasts.
    pub fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    /// Why one of them fires, if one does.
    pub fn fired(&mut self, machine: &mut dyn Machine) -> Option<String> {
        let (mut started, mut ended) = (Vec::new(), Vec::new());
        if self.triggers.iter().any(|watched| watched.trigger.seen() == Seen::Both) {
            let now: BTreeSet<(String, u64)> = machine.processes().into_iter().collect();
            if let Some(before) = self.processes.replace(now.clone()) {
                let names =
                    |a: &BTreeSet<(String, u64)>, b| a.difference(b).map(|(n, _)| n.clone()).collect();
                (started, ended) = (names(&now, &before), names(&before, &now));
            }
        }
        // All records that came, for all triggers of a channel.
        let mut records = std::collections::BTreeMap::new();
        let mut why = None;
        for watched in &mut self.triggers {
            let met = match &watched.trigger {
                Trigger::ProcessStart(name) => {
                    Ok(started.iter().any(|n| is_named(n, name)).then(|| format!("{name} has started")))
                }
                Trigger::ProcessExit(name) => {
                    Ok(ended.iter().any(|n| is_named(n, name)).then(|| format!("{name} has ended")))
                }
                Trigger::Counter { path, above, for_ms } => match machine.counter(path) {
                    Ok(value) if value > *above => {
                        let now = machine.now_ms();
                        let since = *watched.above_since.get_or_insert(now);
                        Ok((now.saturating_sub(since) >= *for_ms).then(|| {
                            format!("{path} is {value:.1}, above {above} for {:.1} s", *for_ms as f64 / 1e3)
                        }))
                    }
                    other => {
                        watched.above_since = None;
                        other.map(|_| None)
                    }
                },
                Trigger::Log { channel, id } => {
                    let new = records.entry(channel.clone()).or_insert_with(|| machine.logged(channel));
                    let met = |ids: &Vec<u32>| {
                        ids.contains(id).then(|| format!("a record {id} was written to the log {channel}"))
                    };
                    new.as_ref().map(met).map_err(Clone::clone)
                }
                Trigger::Key(keys) => {
                    machine.pressed(keys).map(|pressed| pressed.then(|| format!("{keys} was pressed")))
                }
                trigger @ (Trigger::Event { .. } | Trigger::Finding(_)) => {
                    Ok(self.finder.as_mut().and_then(|finder| finder.fired(trigger)))
                }
            };
            match met {
                Ok(met) => {
                    watched.is_in_trouble = false;
                    why = why.or(met.map(|met| format!("{}: {met}", watched.trigger)));
                }
                Err(_) if watched.is_in_trouble => {}
                Err(trouble) => {
                    watched.is_in_trouble = true;
                    self.troubles.push(format!("`{}` cannot be watched now: {trouble}", watched.trigger));
                }
            }
        }
        why
    }
}
