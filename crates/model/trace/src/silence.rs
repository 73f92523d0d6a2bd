//! When it is no chance that events of a kind no longer come, or did not come yet.

/// Of fewer events nobody knows how long their pauses are.
const LEAST_EVENTS: i64 = 100;
/// A silence is at least this part of the time looked at.
const PART: i64 = 5;
/// And so many times as long as the longest pause between two of the events.
const PAUSES: i64 = 10;

/// True if `silent` nanoseconds at an end of `whole` are no chance for so many events, of which two were at most `pause` apart: the session
/// was stopped or taken, had not begun, or a circular recording has overwritten its beginning.
pub(crate) fn is_silence(silent: i64, whole: i64, events: i64, pause: i64) -> bool {
    events >= LEAST_EVENTS && silent > 0 && silent >= whole / PART && silent >= pause.saturating_mul(PAUSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_long_against_the_trace_and_the_pauses() {
        assert!(is_silence(20, 100, 100, 2));
        assert!(!is_silence(19, 100, 100, 1) && !is_silence(20, 100, 100, 3) && !is_silence(20, 100, 99, 2));
        assert!(!is_silence(0, 0, 1000, 0));
    }
}
