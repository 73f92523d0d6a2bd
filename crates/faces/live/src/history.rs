//! Findings as they come and go.

use crate::follower::Window;
use crate::watch::Range;
use etwhy_rules::{Answer, Hit, Outcome, Severity};

/// A finding, from the window that showed it first to the first one that did not any more.
#[derive(Clone, Debug)]
pub struct Episode {
    /// The finding.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How much it matters, at its worst.
    pub severity: Severity,
    /// What was said of it last: of the whole window if that shows it, else of the last seconds.
    pub said: Said,
    /// End of the window that showed it first, nanoseconds since 1970 (UTC).
    pub began_unix_ns: i64,
    /// End of the window that showed it last.
    pub seen_unix_ns: i64,
    /// End of the first window of some seconds that did not show it any more, while a longer one still does.
    pub quiet_unix_ns: Option<i64>,
    /// End of the first window that did not show it any more; `None` while it lasts.
    pub over_unix_ns: Option<i64>,
    last: Option<Said>,
    whole: Option<Said>,
}

/// What a window said of a finding.
#[derive(Clone, Debug)]
pub struct Said {
    /// The worst culprit.
    pub culprit: String,
    /// What was said of that.
    pub headline: String,
    /// What to do.
    pub fix: String,
    /// The part that was looked at.
    pub range: Range,
    /// Its begin, nanoseconds since 1970 (UTC).
    pub from_unix_ns: i64,
    /// Its end.
    pub to_unix_ns: i64,
}

impl Said {
    fn new(hit: &Hit, range: Range, window: &Window) -> Said {
        Said {
            culprit: hit.culprit.clone(),
            headline: hit.headline.clone(),
            fix: hit.fix.clone(),
            range,
            from_unix_ns: window.begin_unix_ns(),
            to_unix_ns: window.end_unix_ns(),
        }
    }
}

impl Episode {
    /// For how long it was seen, in nanoseconds.
    pub fn lasted_ns(&self) -> i64 {
        self.over_unix_ns.unwrap_or(self.seen_unix_ns).saturating_sub(self.began_unix_ns)
    }

    /// Takes note that a window does not show it.
    fn not_seen(&mut self, range: Range, at_unix_ns: i64) {
        match range {
            Range::Whole => self.whole = None,
            Range::Last => {
                let Some(last) = &self.last else { return };
                let quiet = *self.quiet_unix_ns.get_or_insert(at_unix_ns);
                // Short windows show a thing that comes and goes, and then do not: only some seconds without it count.
                if at_unix_ns.saturating_sub(quiet.max(last.to_unix_ns)) >= QUIET_NS {
                    self.last = None;
                }
            }
        }
    }
}

impl Episode {
    fn new(outcome: &Outcome, severity: Severity, said: Said) -> Episode {
        let at = said.to_unix_ns;
        let mut episode = Episode {
            id: outcome.id.clone(),
            title: outcome.title.clone(),
            severity,
            said: said.clone(),
            began_unix_ns: at,
            seen_unix_ns: at,
            quiet_unix_ns: None,
            over_unix_ns: None,
            last: None,
            whole: None,
        };
        episode.see(said);
        episode
    }

    /// Takes note of what a window says of it.
    fn see(&mut self, said: Said) {
        match said.range {
            Range::Last => (self.last, self.quiet_unix_ns) = (Some(said), None),
            Range::Whole => self.whole = Some(said),
        }
        if let Some(said) = self.whole.as_ref().or(self.last.as_ref()) {
            self.said = said.clone();
        }
    }
}

/// A finding that only the last seconds showed is over when they have not shown it for so long, in nanoseconds.
const QUIET_NS: i64 = 3_000_000_000;
/// Ended episodes that are kept.
const MOST_ENDED: usize = 200;

/// All episodes: those that last, and the latest of those that ended.
#[derive(Clone, Debug, Default)]
pub struct History {
    lasting: Vec<Episode>,
    ended: Vec<Episode>,
    ended_in_all: u64,
}

/// What counts as found in a range: what costs something, and in the last seconds only what is more than a guess.
fn counts(outcome: &Outcome, range: Range) -> Option<(Severity, &Hit)> {
    let severity = outcome.severity.filter(|severity| *severity > Severity::Info)?;
    let is_sure = |hit: &&Hit| range == Range::Whole || hit.confidence.as_deref() != Some("low");
    let hit = outcome.hits.iter().filter(|_| outcome.answer == Answer::Found).find(is_sure)?;
    Some((severity, hit))
}

impl History {
    /// Takes note of what a window shows.
    pub fn note(&mut self, outcomes: &[Outcome], range: Range, window: &Window) {
        let at_unix_ns = window.end_unix_ns();
        let found: Vec<(&Outcome, Severity, &Hit)> = outcomes
            .iter()
            .filter_map(|outcome| counts(outcome, range).map(|(severity, hit)| (outcome, severity, hit)))
            .collect();
        for episode in &mut self.lasting {
            if !found.iter().any(|(outcome, ..)| outcome.id == episode.id) {
                episode.not_seen(range, at_unix_ns);
            }
        }
        for mut episode in
            self.lasting.extract_if(.., |episode| episode.last.is_none() && episode.whole.is_none())
        {
            episode.over_unix_ns = Some(episode.quiet_unix_ns.take().unwrap_or(at_unix_ns));
            self.ended.push(episode);
            self.ended_in_all += 1;
        }
        let surplus = self.ended.len().saturating_sub(MOST_ENDED);
        self.ended.drain(..surplus);
        for (outcome, severity, hit) in found {
            let said = Said::new(hit, range, window);
            match self.lasting.iter_mut().find(|episode| episode.id == outcome.id) {
                Some(episode) => {
                    episode.severity = episode.severity.max(severity);
                    // A look at the whole window may take longer than looks at its end.
                    episode.began_unix_ns = episode.began_unix_ns.min(at_unix_ns);
                    episode.seen_unix_ns = episode.seen_unix_ns.max(at_unix_ns);
                    episode.see(said);
                }
                None => self.lasting.push(Episode::new(outcome, severity, said)),
            }
        }
        self.lasting.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.began_unix_ns.cmp(&b.began_unix_ns)));
    }

    /// Those that last, the worst first.
    pub fn lasting(&self) -> &[Episode] {
        &self.lasting
    }

    /// How many ended, with those that were forgotten since.
    pub fn ended_in_all(&self) -> u64 {
        self.ended_in_all
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

    /// A window that ends then.
    fn until(at: i64) -> Window {
        Window { from: 0, to: at, from_ns: 0, to_ns: at, start_unix_ns: 0 }
    }

    const S: i64 = 1_000_000_000;

    #[test]
    fn findings_begin_and_end() {
        let mut history = History::default();
        let found = outcome("cpu.hog", Severity::Warning);
        history.note(&[], Range::Whole, &until(1));
        history.note(std::slice::from_ref(&found), Range::Whole, &until(2));
        let worse = [outcome("cpu.hog", Severity::Critical), outcome("fact", Severity::Info)];
        history.note(&worse, Range::Whole, &until(5));
        assert_eq!((history.lasting().len(), history.lasting()[0].began_unix_ns), (1, 2));
        assert_eq!(history.lasting()[0].severity, Severity::Critical);
        history.note(&[], Range::Whole, &until(9));
        assert!(history.lasting().is_empty());
        assert_eq!((history.ended()[0].over_unix_ns, history.ended()[0].lasted_ns()), (Some(9), 7));
        history.note(&[found], Range::Whole, &until(20));
        assert_eq!((history.lasting()[0].began_unix_ns, history.ended().len()), (20, 1));
    }

    #[test]
    fn what_comes_and_goes_in_the_last_seconds_lasts() {
        let mut history = History::default();
        let found = [outcome("dpc.flood", Severity::Warning)];
        // Every other look of half a second shows it, for ten seconds.
        for half in 0..20 {
            let seen = if half % 2 == 0 { &found[..] } else { &[] };
            history.note(seen, Range::Last, &until(half * S / 2));
            assert_eq!((history.lasting().len(), history.ended().len()), (1, 0), "{half}");
        }
        assert_eq!(history.lasting()[0].quiet_unix_ns, Some(19 * S / 2));
        history.note(&[], Range::Last, &until(12 * S));
        assert_eq!(history.lasting().len(), 1);
        history.note(&[], Range::Last, &until(13 * S));
        let over = &history.ended()[0];
        assert_eq!(
            (history.lasting().len(), over.over_unix_ns, over.lasted_ns()),
            (0, Some(19 * S / 2), 19 * S / 2)
        );
    }

    #[test]
    fn both_ranges_speak_of_one_episode() {
        let mut history = History::default();
        let found = [outcome("dpc.flood", Severity::Warning)];
        history.note(&found, Range::Last, &until(10 * S));
        // The whole window does not show yet what lasts for a second; it was looked at before.
        history.note(&[], Range::Whole, &until(9 * S));
        let one = |history: &History| {
            let all = history.lasting();
            assert_eq!(all.len(), 1);
            (all[0].said.range, all[0].began_unix_ns, all[0].quiet_unix_ns)
        };
        assert_eq!(one(&history), (Range::Last, 10 * S, None));
        history.note(&found, Range::Whole, &until(14 * S));
        history.note(&found, Range::Last, &until(15 * S));
        assert_eq!(one(&history), (Range::Whole, 10 * S, None));
        // It has ended, which the window shows as long as it is in it.
        for second in 16..30 {
            history.note(&[], Range::Last, &until(second * S));
        }
        assert_eq!(one(&history), (Range::Whole, 10 * S, Some(16 * S)));
        history.note(&[], Range::Whole, &until(70 * S));
        assert_eq!((history.ended()[0].over_unix_ns, history.ended()[0].lasted_ns()), (Some(16 * S), 6 * S));
    }

    #[test]
    fn a_guess_from_some_seconds_counts_for_nothing() {
        let mut guess = outcome("memory.handle-leak", Severity::Warning);
        guess.hits[0].confidence = Some("low".into());
        let mut history = History::default();
        history.note(std::slice::from_ref(&guess), Range::Last, &until(S));
        assert!(history.lasting().is_empty());
        history.note(&[guess], Range::Whole, &until(S));
        assert_eq!(history.lasting().len(), 1);
    }
}
