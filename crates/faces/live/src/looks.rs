//! When a trace that is followed is looked at: its last seconds often, the whole window as often as they leave time for.

use crate::error::Result;
use crate::follower::Follower;
use crate::pace::Pace;
use crate::watch::{Look, Range, Watch};
use etwhy_trace::Symbols;
use std::time::Instant;

/// A trace that is followed, and what is asked of it.
///
/// A look at the whole window takes seconds if much happens. It runs on a thread of its own, so that what the last seconds show is seen
/// meanwhile.
pub struct Looks {
    /// The trace.
    pub follower: Follower,
    /// What is asked.
    pub watch: Watch,
    pace: Pace,
    /// Of looks at the whole window, while none is under way.
    symbols: Option<Symbols>,
    /// When the look that is under way began.
    begun: Instant,
    /// Something came since the last seconds were looked at, and since the window was.
    news: [bool; 2],
    /// Something was looked at.
    seen: bool,
}

impl Looks {
    /// Nothing was looked at yet; looks at the whole window use `symbols`.
    pub fn new(follower: Follower, watch: Watch, symbols: Symbols) -> Looks {
        let (pace, begun) = (Pace::new(), Instant::now());
        Looks { follower, watch, pace, symbols: Some(symbols), begun, news: [true; 2], seen: false }
    }

    /// Buffers came.
    pub fn came(&mut self) {
        self.news = [true; 2];
    }

    /// A look that is due, if one is: as often as half of a processor allows.
    ///
    /// # Errors
    /// Those of looking.
    pub fn due(&mut self) -> Result<Option<Look>> {
        if let Some((look, symbols)) = self.watch.finished(false) {
            self.symbols = Some(symbols);
            let look = look?;
            self.seen = true;
            self.pace.done(Range::Whole, self.begun, look.sum.cost);
            return Ok(Some(look));
        }
        let [last, whole] = self.news;
        if last && self.pace.left(Range::Last).is_zero() {
            let begin = Instant::now();
            self.news[0] = false;
            if let Some(look) = self.watch.look_at_last(&mut self.follower)? {
                self.seen = true;
                self.pace.done(Range::Last, begin, begin.elapsed());
                return Ok(Some(look));
            }
        }
        if whole
            && self.pace.left(Range::Whole).is_zero()
            && let Some(symbols) = self.symbols.take()
        {
            self.begun = Instant::now();
            self.news[1] = false;
            self.symbols = self.watch.begin(&mut self.follower, symbols)?;
        }
        Ok(None)
    }

    /// The look that is under way, once it is over.
    ///
    /// # Errors
    /// Those of looking.
    pub fn under_way(&mut self) -> Result<Option<Look>> {
        let Some((look, symbols)) = self.watch.finished(true) else { return Ok(None) };
        self.symbols = Some(symbols);
        look.map(Some)
    }

    /// Looks at both ranges, whatever that costs; nothing if nothing has come yet.
    ///
    /// # Errors
    /// Those of looking.
    pub fn now(&mut self) -> Result<Vec<Look>> {
        let whole = self.watch.look(&mut self.follower)?;
        // What was never looked at before is over: its end is not nearer than the rest.
        let last = match self.seen {
            true => self.watch.look_at_last(&mut self.follower)?,
            false => None,
        };
        self.seen |= whole.is_some();
        Ok(last.into_iter().chain(whole).collect())
    }
}
