//! Exit codes.

use crate::report::quality::{self, Anomaly};
use etwhy_base::units::thousands;
use etwhy_export::ExportError;
use etwhy_export::extract::ExtractError;
use etwhy_input::anomaly::GIVEN_UNUSABLE;
use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use std::io::ErrorKind;
use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Done = 0,
    /// Done in part: the ledger says what is missing. Or the output could not be written.
    InPart = 1,
    /// The command line or the input made no sense.
    WrongUse = 2,
    /// The input is no trace.
    NotATrace = 3,
    /// The input is newer than this program.
    TooNew = 4,
    /// A condition of `--fail-on` is met.
    ConditionMet = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The exit code of a run that ended with this table `ledger`. What the recording session lost is a fact of the
/// trace, not a failure of the run.
pub fn of_ledger(db: &Database) -> Exit {
    if quality::ledger(db).iter().any(is_missing) { Exit::InPart } else { Exit::Done }
}

/// True for anomalies that mean that something in the input could not be used.
pub fn is_missing(anomaly: &Anomaly) -> bool {
    match anomaly.severity.as_str() {
        "error" => true,
        "data_loss" => matches!(anomaly.stage.as_str(), "input" | "read"),
        _ => false,
    }
}

/// What is missing, in short: `8 x buffers_missing`.
pub fn missing(db: &Database) -> Option<String> {
    let all = quality::ledger(db);
    let kinds =
        all.iter().filter(|a| is_missing(a)).map(|a| format!("{} x {}", thousands(a.count.into()), a.name));
    let kinds: Vec<String> = kinds.collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

/// What to say when a run was done in part: what is missing, where it begins, what to do. `None` if nothing is.
pub fn in_part(db: &Database) -> Option<String> {
    let missing = quality::ledger(db);
    let missing: Vec<&Anomaly> = missing.iter().filter(|anomaly| is_missing(anomaly)).collect();
    // What an option names is not part of the trace.
    let damaged = missing.iter().any(|a| a.name != GIVEN_UNUSABLE.name);
    let copy = if damaged { "; if this is a copy, copy it again" } else { "" };
    let traces = db.read::<TraceRow>().ok();
    let mut files = traces.iter().flat_map(|rows| rows.iter()).map(|row| row.file().to_owned());
    let only = files.next().filter(|_| files.next().is_none());
    let kinds: Vec<String> = missing.iter().map(|a| kind(a, only.as_deref())).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "done in part, not everything could be read: {}. `etwhy dump ledger` on it says what that means{copy}",
            kinds.join(", ")
        )
    })
}

/// An anomaly with the place where it begins. One that has none lies in the only trace there is: who reads many has to know in which.
fn kind(anomaly: &Anomaly, only: Option<&str>) -> String {
    let times = format!("{} x {}", thousands(anomaly.count.into()), anomaly.name);
    let place = Some(anomaly.first.as_str()).filter(|first| !first.is_empty()).or(only);
    match place {
        Some(place) => format!("{times} ({place})"),
        None => times,
    }
}

/// The exit code of an error.
pub fn of_error(error: &anyhow::Error) -> Exit {
    if is_full(error) {
        return Exit::InPart;
    }
    for cause in error.chain() {
        if cause.is::<Changed>() {
            return Exit::InPart;
        }
        // Following says what reading says.
        let read = match cause.downcast_ref::<etwhy_live::LiveError>() {
            Some(etwhy_live::LiveError::Trace(error)) => Some(error),
            _ => cause.downcast_ref::<etwhy_etl::Error>(),
        };
        if let Some(error) = read {
            return match error {
                etwhy_etl::Error::NotATrace { .. } => Exit::NotATrace,
                etwhy_etl::Error::TooNew { .. } => Exit::TooNew,
                etwhy_etl::Error::Io { .. } => Exit::WrongUse,
            };
        }
        if let Some(error) = cause.downcast_ref::<ExtractError>() {
            use ExtractError::{Columns, Damaged, Manifest, Rows, TooNew};
            return match error {
                TooNew { .. } => Exit::TooNew,
                Manifest { .. } | Columns { .. } | Damaged { .. } | Rows { .. } => Exit::NotATrace,
                _ => Exit::WrongUse,
            };
        }
        if let Some(error) = cause.downcast_ref::<ExportError>() {
            return of_output(error);
        }
        if let Some(error) = cause.downcast_ref::<etwhy_evtx::EvtxError>() {
            use etwhy_evtx::EvtxError::{Io, Newer, NotALog};
            return match error {
                Newer { .. } => Exit::TooNew,
                NotALog { .. } => Exit::NotATrace,
                Io { .. } => Exit::WrongUse,
            };
        }
        if let Some(error) = cause.downcast_ref::<etwhy_counters::CountersError>() {
            use etwhy_counters::CountersError::{Binary, Empty, NoHeader, NoTime, NotText, Nothing};
            let is_none = matches!(
                error,
                Binary { .. }
                    | Empty { .. }
                    | NoHeader { .. }
                    | NoTime { .. }
                    | NotText { .. }
                    | Nothing { .. }
            );
            return if is_none { Exit::NotATrace } else { Exit::WrongUse };
        }
        if let Some(error) = cause.downcast_ref::<etwhy_input::InputError>() {
            use etwhy_input::InputError::{Damaged, NoTraceInArchive, NoTraceInFolder, NotATrace};
            let no_trace = matches!(
                error,
                NotATrace { .. } | NoTraceInFolder { .. } | NoTraceInArchive { .. } | Damaged { .. }
            );
            return if no_trace { Exit::NotATrace } else { Exit::WrongUse };
        }
    }
    Exit::WrongUse
}

/// The exit code for output that could not be written: a place that makes no sense is wrong use.
fn of_output(error: &ExportError) -> Exit {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    match error {
        ExportError::Occupied { .. } | ExportError::UnknownFormat { .. } => Exit::WrongUse,
        ExportError::File { source, .. }
            if matches!(source.kind(), IsADirectory | NotADirectory | NotFound | PermissionDenied) =>
        {
            Exit::WrongUse
        }
        _ => Exit::InPart,
    }
}

/// True if there is no place left on a disk: what was read is not to blame.
pub fn is_full(error: &anyhow::Error) -> bool {
    full(error).is_some()
}

/// Which kind of full it is, if there is no place left.
fn full(error: &anyhow::Error) -> Option<ErrorKind> {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => Some(error.kind()),
        None => cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind),
    };
    error.chain().filter_map(kind).find(|kind| !advice(*kind).is_empty())
}

/// What to do where there is no place left, as the end of a message; nothing for other errors.
pub fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room, or choose a place on another disk",
        ErrorKind::FileTooLarge => {
            "; the disk or a limit of this session allows no larger file: choose another place"
        }
        _ => "",
    }
}

/// As [`advice`], for an error.
pub fn advice_of(error: &anyhow::Error) -> &'static str {
    full(error).map_or("", advice)
}

/// True when the reader of our output went away: that is success.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(etwhy_export::is_closed_pipe)
            || cause.downcast_ref::<etwhy_export::ExportError>().is_some_and(|e| e.is_closed_pipe())
    })
}

/// Files have lost records since the pass: what was written before is not all of it.
#[derive(Debug)]
pub struct Changed {
    /// Events that are still there.
    pub made: usize,
    /// Events that there were.
    pub rows: usize,
}

impl std::error::Error for Changed {}

impl std::fmt::Display for Changed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Changed { made, rows } = self;
        write!(f, "the trace changed while it was read: {made} of its {rows} events are still there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_about_a_full_disk_is_known_however_the_error_came() {
        let full = || std::io::Error::from(ErrorKind::StorageFull);
        let json = serde_json::to_writer(&mut Full, &[0; 10]).unwrap_err();
        let errors = [
            anyhow::Error::from(full()).context("x.etl: cannot write"),
            ExportError::from(full()).of_file("x.csv".as_ref()).into(),
            json.into(),
        ];
        for error in errors {
            assert!(advice_of(&error).contains("make room"), "{error:#}");
            assert_eq!(of_error(&error), Exit::InPart);
        }
        assert_eq!(advice_of(&std::io::Error::from(ErrorKind::NotFound).into()), "");
    }

    #[test]
    fn the_trace_is_named_in_which_something_is_missing() {
        let missing = |first: &str| Anomaly {
            name: "buffers_missing".to_owned(),
            severity: "data_loss".to_owned(),
            stage: "read".to_owned(),
            count: 1_300,
            meaning: String::new(),
            first: first.to_owned(),
        };
        assert_eq!(kind(&missing(""), Some("b.etl")), "1,300 x buffers_missing (b.etl)");
        assert_eq!(kind(&missing(""), None), "1,300 x buffers_missing");
        assert_eq!(
            kind(&missing("b.etl: its end"), Some("b.etl")),
            "1,300 x buffers_missing (b.etl: its end)"
        );
    }

    struct Full;

    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
