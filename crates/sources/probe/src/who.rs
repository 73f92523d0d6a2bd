//! Who it is: security products that run, and who was at work while a probe ran.

#[cfg(any(windows, test))]
mod image;
#[cfg(any(windows, test))]
mod loaded;
mod suspect;
mod timeline;

use std::path::Path;
pub use suspect::{LIKELY, POSSIBLE, PROVEN, Product, Suspect};
pub use timeline::{Seen, Timeline};

/// Looks around while a probe runs.
#[derive(Debug)]
pub struct Watch(system::Watch);

impl Watch {
    /// Begins to look, from a thread of its own. `folder` is where the probe makes its files; the calling thread is the one
    /// whose waiting is explained.
    pub fn start(folder: &Path) -> Watch {
        Watch(system::Watch::start(folder))
    }

    /// Ends it, and says who was seen.
    pub fn finish(self) -> Seen {
        let mut seen = self.0.finish();
        rank(&mut seen.suspects);
        seen
    }
}

/// Puts suspects of another run to those of earlier ones: the same program seen again, perhaps as another process, is one suspect. Its
/// times are summed; the surer of its accusations, with its evidence, is kept.
pub fn join(all: &mut Vec<Suspect>, more: impl IntoIterator<Item = Suspect>) {
    for again in more {
        match all.iter_mut().find(|known| known.name == again.name && known.kind == again.kind) {
            Some(known) => merge(known, again),
            None => all.push(again),
        }
    }
    rank(all);
}

fn merge(known: &mut Suspect, again: Suspect) {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    known.cpu_ns = sum(known.cpu_ns, again.cpu_ns);
    known.blocked_ns = sum(known.blocked_ns, again.blocked_ns);
    if doubt(&again) < doubt(known) {
        known.confidence = again.confidence;
        known.evidence = again.evidence;
        known.process = again.process;
    }
    if !known.evidence.iter().any(|words| words == ONE_OF_SEVERAL) {
        known.evidence.push(ONE_OF_SEVERAL.to_owned());
    }
}

/// The last evidence of a suspect that was seen in several runs: what stands before it are figures of one of them.
pub const ONE_OF_SEVERAL: &str = "figures of one run so far, of all runs from here on";

/// How unsure an accusation is, from 0.
fn doubt(suspect: &Suspect) -> u8 {
    match suspect.confidence.as_str() {
        PROVEN => 0,
        LIKELY => 1,
        _ => 2,
    }
}

/// The surest first, then who kept the probe waiting longest, then who worked most.
fn rank(suspects: &mut [Suspect]) {
    suspects.sort_by_key(|suspect| {
        (
            doubt(suspect),
            std::cmp::Reverse(suspect.blocked_ns.unwrap_or(0)),
            std::cmp::Reverse(suspect.cpu_ns.unwrap_or(0)),
        )
    });
}

/// Security products that run on this machine, as far as this user may see.
pub fn products() -> Vec<Product> {
    system::products()
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

#[cfg(not(any(target_os = "linux", windows)))]
mod system {
    use super::{Product, Seen};
    use std::path::Path;

    #[derive(Debug)]
    pub struct Watch;

    impl Watch {
        pub fn start(_: &Path) -> Watch {
            Watch
        }

        pub fn finish(self) -> Seen {
            let note = format!("who was at work meanwhile is not looked at on {}", std::env::consts::OS);
            Seen { notes: vec![note], ..Seen::default() }
        }
    }

    pub fn products() -> Vec<Product> {
        Vec::new()
    }
}
