//! Standard output: one place that knows whether it could be written.
//!
//! A command may write through layers that do not hand errors on, or drop a buffer that was not flushed. Therefore every
//! write is watched here, and `main` asks at the end: results that did not arrive are exit code 1 with a message,
//! whatever the command says. A reader that went away (`etwhy … | head`) is no failure.

use etwhy_export::is_closed_pipe;
use std::ffi::OsString;
use std::io::{self, Stdout, Write};
use std::sync::{Mutex, PoisonError};

/// The first error.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output, watched.
pub struct Out(Stdout);

/// Standard output. Whoever writes much wants [`crate::report::terminal::out`].
pub fn watched() -> Out {
    Out(io::stdout())
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(note)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(note)
    }
}

/// Keeps an error, and gives one of its kind.
fn note(error: io::Error) -> io::Error {
    let same = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
    if error.kind() != io::ErrorKind::Interrupted {
        FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
    same
}

/// How writing ended.
pub enum Ended {
    /// Everything was taken.
    Whole,
    /// The reader went away.
    Closed,
    /// It could not be written.
    Failed(io::Error),
}

/// Writes what is held back, and says how writing ended.
pub fn end() -> Ended {
    // What goes wrong here is kept as any other error.
    let _ = watched().flush();
    match FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        None => Ended::Whole,
        Some(error) if is_closed_pipe(&error) => Ended::Closed,
        Some(error) => Ended::Failed(error),
    }
}

/// Commands that print their results unless `-o` names a file.
const PRINTS: &[&str] = &["counters", "dump", "evtx", "export", "modules", "record", "sql", "strace", "tree"];

/// The command line without `-o -`, which means what its absence means, and with `--md=FILE.md` for `--md FILE.md`, which older scripts have.
pub fn plain_line(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut line: Vec<OsString> = Vec::new();
    let mut options = true;
    for argument in arguments {
        let text = argument.to_str().unwrap_or_default();
        options &= text != "--";
        // Options in front of the command take no values.
        let command =
            line.iter().skip(1).filter_map(|name| name.to_str()).find(|name| !name.starts_with('-'));
        let prints = options && command.is_some_and(|name| PRINTS.contains(&name));
        if prints && matches!(text, "-o-" | "-o=-" | "--output=-") {
            continue;
        }
        if prints && text == "-" && line.last().is_some_and(|last| last == "-o" || last == "--output") {
            line.pop();
            continue;
        }
        let is_document = options && text.ends_with(".md") && !text.starts_with('-');
        if let Some(last) = line.last_mut().filter(|last| is_document && last.to_str() == Some("--md")) {
            last.push("=");
            last.push(argument);
            continue;
        }
        line.push(argument);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::plain_line;

    #[test]
    fn a_dash_for_the_output_is_left_out() {
        let line = |text: &str| {
            let words = text.split(' ').map(Into::into);
            plain_line(words).into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for text in [
            "etwhy dump cpu x -o -",
            "etwhy dump cpu x --output -",
            "etwhy dump --output=- cpu x",
            "etwhy dump cpu x -o-",
            "etwhy dump cpu -o - x",
        ] {
            assert_eq!(line(text), "etwhy dump cpu x");
        }
        assert_eq!(line("etwhy why a.etl --md b.md"), "etwhy why a.etl --md=b.md");
        for text in [
            "etwhy why --md a.etl",
            "etwhy dump cpu - -o x",
            "etwhy synth x -o -",
            "etwhy probe child -- a -o -",
            "etwhy dump -- -o -",
        ] {
            assert_eq!(line(text), text);
        }
    }
}
