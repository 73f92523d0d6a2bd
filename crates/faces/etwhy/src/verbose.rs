//! `-v` and `ETWHY_LOG`: what is opened, found, chosen and skipped, and how long it takes, in lines on standard error.

use anyhow::Context as _;
use std::fmt::{Debug, Write as _};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Starts it. `-v` says how far a run is; `-vv` also names each symbol file, derived table and finding. Without either `ETWHY_LOG` decides,
/// which can choose by crate: `etwhy_symbols=debug,info`.
///
/// # Errors
/// If `ETWHY_LOG` makes no sense.
pub fn start(times: u8) -> anyhow::Result<()> {
    let of_all = |level: Level| Targets::new().with_target("etwhy", level);
    let targets = match (times, std::env::var("ETWHY_LOG")) {
        (0, Ok(text)) if !text.trim().is_empty() => text.parse().with_context(|| {
            format!("ETWHY_LOG: `{text}` is not a filter; try info, debug or etwhy_symbols=debug,info")
        })?,
        (0, _) => return Ok(()),
        (1, _) => of_all(Level::INFO),
        _ => of_all(Level::DEBUG),
    };
    let lines = tracing_subscriber::registry().with(Lines(Instant::now()).with_filter(targets));
    Ok(tracing::subscriber::set_global_default(lines)?)
}

/// Runs a stage and says how long it took.
pub fn stage<T>(name: &str, run: impl FnOnce() -> T) -> T {
    crate::progress::doing(name, 0, 0);
    let begin = Instant::now();
    let made = run();
    tracing::info!("{name}: {:.3} s", begin.elapsed().as_secs_f64());
    made
}

/// A line for each event, with the time since the start of the program.
struct Lines(Instant);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = format!("[{:.3} s] ", self.0.elapsed().as_secs_f64());
        event.record(&mut Text(&mut line));
        crate::say(&line);
    }
}

struct Text<'t>(&'t mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
