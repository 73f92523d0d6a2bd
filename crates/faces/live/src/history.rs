//! Findings as they come and go.

use etwhy_rules::{Answer, Outcome, Severity};

/// A finding, from the window that showed it first to the first one that did not any more.
#[derive(Clone, Debug)]
pub struct Episode {
    /// The finding.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How much it matters, at its worst.
    pub severity: Severity,
    /// Its worst culprit when it was seen last.
    pub culprit: String,
    /// What was said of that.
    pub headline: String,
    /// What to do.
    pub fix: String,
    /// End of the window that showed it first, nanoseconds since 1970 (UTC).
    pub began_unix_ns: i64,
    /// End of the window that showed it last.
    pub seen_unix_ns: i64,
    /// End of the first window that did not show it any more; `None` while it lasts.
    pub over_unix_ns: Option<i64>,
}

impl Episode {
    /// For how long it was seen, in nanoseconds.
    pub fn lasted_ns(&self) -> i64 {
        self.over_unix_ns.unwrap_or(self.seen_unix_ns).saturating_sub(self.began_unix_ns)
    }
}

/// Ended episodes that are kept.
const MOST_ENDED: usize = 200;

/// All episodes: those that last, and the latest of those that ended.
#[derive(Clone, Debug, Default)]
pub struct History {
    lasting: Vec<Episode>,
    ended: Vec<Episode>,
}

impl History {
    /// Takes note of what a window that ends at `at_unix_ns` shows. Only findings that cost something count.
    pub fn note(&mut self, outcomes: &[Outcome], at_unix_ns: i64) {
        let counts = |o: &&Outcome| o.answer == Answer::Found && o.severity > Some(Severity::Info);
        let found: Vec<&Outcome> = outcomes.iter().filter(counts).collect();
        let gone = |episode: &Episode| !found.iter().any(|outcome| outcome.id == episode.id);
        for mut episode in self.lasting.extract_if(.., |episode| gone(episode)) {
            episode.over_unix_ns = Some(at_unix_ns);
            self.ended.push(episode);
        }
        let surplus = self.ended.len().saturating_sub(MOST_ENDED);
        self.ended.drain(..surplus);
        for outcome in found {
            let Some((severity, hit)) = outcome.severity.zip(outcome.hits.first()) else { continue };
            let known = self.lasting.iter_mut().find(|episode| episode.id == outcome.id);
            let (began, worst) = known
                .as_ref()
                .map_or((at_unix_ns, severity), |e| (e.began_unix_ns, e.severity.max(severity)));
            let episode = Episode {
                id: outcome.id.clone(),
                title: outcome.title.clone(),
                severity: worst,
                culprit: hit.culprit.clone(),
                headline: hit.headline.clone(),
                fix: hit.fix.clone(),
                began_unix_ns: began,
                seen_unix_ns: at_unix_ns,
                over_unix_ns: None,
            };
            match known {
                Some(known) => *known = episode,
                None => self.lasting.push(episode),
            }
        }
        self.lasting.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.began_unix_ns.cmp(&b.began_unix_ns)));
    }

    /// Those that last, the worst first.
    pub fn lasting(&self) -> &[Episode] {
        &self.lasting
    }

    /// Those that ended, the latest last.
    pub fn ended(&self) -> &[Episode] {
        &self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::{Hit, Subject};

    fn outcome(id: &str, severity: Severity) -> Outcome {
        let hit = Hit {
            culprit: "a.exe".into(),
            culprit_kind: "process".into(),
            instance: None,
            severity,
            headline: "a.exe did it".into(),
            effect: None,
            explanation: String::new(),
            fix: String::new(),
            cost_ns: None,
            share: None,
            confidence: None,
            values: Default::default(),
        };
        Outcome {
            id: id.into(),
            title: id.into(),
            topic: "cpu".into(),
            over: Subject::Trace,
            severity: Some(severity),
            answer: Answer::Found,
            reasons: Vec::new(),
            caveats: Vec::new(),
            hits: vec![hit],
            disproof: String::new(),
            sql: String::new(),
            thresholds: Default::default(),
        }
    }

    #[test]
    fn findings_begin_and_end() {
        let mut history = History::default();
        let found = outcome("cpu.hog", Severity::Warning);
        history.note(&[], 1);
        history.note(std::slice::from_ref(&found), 2);
        history.note(&[outcome("cpu.hog", Severity::Critical), outcome("fact", Severity::Info)], 5);
        assert_eq!((history.lasting().len(), history.lasting()[0].began_unix_ns), (1, 2));
        assert_eq!(history.lasting()[0].severity, Severity::Critical);
        history.note(&[], 9);
        assert!(history.lasting().is_empty());
        assert_eq!((history.ended()[0].over_unix_ns, history.ended()[0].lasted_ns()), (Some(9), 7));
        history.note(&[found], 20);
        assert_eq!((history.lasting()[0].began_unix_ns, history.ended().len()), (20, 1));
    }
}
