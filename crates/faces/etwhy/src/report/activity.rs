//! The verdict of a trace without kernel events in a sentence.

use etwhy_analysis::activity::Activity;
use etwhy_base::units::{counted, duration_ns, thousands};

/// What cannot be determined, and what can, in two sentences.
pub fn sentence(activity: &Activity) -> String {
    let mut text = format!("{} It holds {}", activity.cannot, holds(activity));
    if let Some(longest) = activity.longest.first() {
        text.push_str(&format!(
            "; the longest operation is {}{}, {}",
            longest.name,
            longest.process.as_ref().map(|process| format!(" of {process}")).unwrap_or_default(),
            duration_ns(longest.dur_ns)
        ));
    }
    text.push('.');
    let happened = activity.events.saturating_sub(activity.rundown);
    if activity.undecoded_events > 0 && activity.undecoded_events.saturating_mul(2) >= happened {
        text.push_str(" Most of them could not be decoded: see below what would.");
    }
    text
}

/// `69 events of 1 provider in 4.20 s`.
fn holds(activity: &Activity) -> String {
    let happened = activity.events.saturating_sub(activity.rundown);
    let rundown = match activity.rundown {
        0 => String::new(),
        n => format!(
            " (and {} that {} machine and session)",
            thousands(n.into()),
            if n == 1 { "describes" } else { "describe" }
        ),
    };
    format!(
        "{} of {} in {}{rundown}",
        counted(happened, "event", "events"),
        counted(activity.providers, "provider", "providers"),
        duration_ns(activity.duration_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_analysis::activity::LongInterval;

    #[test]
    fn one_and_many() {
        let mut activity = Activity { cannot: "No.".into(), events: 1, providers: 1, ..Activity::default() };
        assert_eq!(sentence(&activity), "No. It holds 1 event of 1 provider in 0 ns.");
        activity = Activity { events: 1_500, rundown: 1, providers: 2, undecoded_events: 1_000, ..activity };
        activity.duration_ns = 2_000_000_000;
        activity.longest =
            vec![LongInterval { name: "Request".into(), dur_ns: 5_000_000, ..LongInterval::default() }];
        assert_eq!(
            sentence(&activity),
            "No. It holds 1,499 events of 2 providers in 2 s (and 1 that describes machine and session); the longest \
             operation is Request, 5 ms. Most of them could not be decoded: see below what would."
        );
    }
}
