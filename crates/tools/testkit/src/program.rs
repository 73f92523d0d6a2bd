//! The program that is tested.

use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A written trace, which goes with its folder when it is dropped.
#[derive(Debug)]
pub struct Trace {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Trace {
    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl std::ops::Deref for Trace {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// A program, and what is expected of its runs.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    path: &'static str,
    columns: Option<&'static str>,
    complete: bool,
}

impl Program {
    /// The program at `env!("CARGO_BIN_EXE_…")`, which cargo tells to tests of its own crate only. Its runs must succeed.
    pub const fn new(path: &'static str) -> Program {
        Program { path, columns: None, complete: true }
    }

    /// The same, as on a terminal of this width.
    pub const fn wide(self, columns: &'static str) -> Program {
        Program { columns: Some(columns), ..self }
    }

    /// The same, where exit code 1 is right too: what a real trace lost is no failure.
    pub const fn partly(self) -> Program {
        Program { complete: false, ..self }
    }

    /// A command to be run, without standard input.
    pub fn command<T: AsRef<OsStr>>(&self, arguments: &[T]) -> Command {
        let mut command = Command::new(self.path);
        command.args(arguments).stdin(Stdio::null());
        // Whoever runs the tests may have said how wide his terminal is.
        match self.columns {
            Some(columns) => command.env("COLUMNS", columns),
            None => command.env_remove("COLUMNS"),
        };
        command
    }

    /// A run that may end in any way but by a fault of its own.
    pub fn output(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).outcome();
        let errors = crate::text(&output.stderr);
        assert!(!errors.contains("panicked"), "{}: {errors}", arguments.join(" "));
        output
    }

    /// What [`Self::output`] has, as exit code, standard output and standard error.
    pub fn ran(&self, arguments: &[&str]) -> (i32, String, String) {
        let out = self.output(arguments);
        (out.status.code().unwrap_or(-1), String::from_utf8(out.stdout).unwrap(), crate::text(&out.stderr))
    }

    /// Standard output of a run that succeeds, as text.
    pub fn run(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.bytes(arguments)).unwrap()
    }

    /// Standard output of a run that succeeds.
    pub fn bytes(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.output(arguments);
        let good = output.status.success() || !self.complete && output.status.code() == Some(1);
        let errors = crate::text(&output.stderr);
        assert!(good, "{}: {}\n{errors}", arguments.join(" "), output.status);
        output.stdout
    }

    /// Standard output, which is one JSON value.
    pub fn json<R: DeserializeOwned>(&self, arguments: &[&str]) -> R {
        let text = self.run(arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", arguments.join(" ")))
    }

    /// The rows that a command prints.
    pub fn rows<R: DeserializeOwned>(&self, arguments: &[&str]) -> Vec<R> {
        let text = self.run(&[arguments, &["--format", "jsonl", "--quiet"]].concat());
        let row = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        text.lines().map(row).collect()
    }

    /// The rows of a table of a trace.
    pub fn dump<R: DeserializeOwned>(&self, table: &str, trace: &Path) -> Vec<R> {
        self.rows(&["dump", table, trace.to_str().unwrap()])
    }

    /// What a query says of a trace.
    pub fn sql<R: DeserializeOwned>(&self, trace: &Path, query: &str) -> Vec<R> {
        self.rows(&["sql", trace.to_str().unwrap(), "-c", query])
    }

    /// Writes a scenario as a trace.
    pub fn synth(&self, scenario: &Path, trace: &Path, more: &[&str]) {
        let (from, to) = (scenario.to_str().unwrap(), trace.to_str().unwrap());
        self.run(&[&["synth", from, "-o", to, "--quiet"], more].concat());
    }

    /// Writes a shipped scenario (`dpc_flood`, `tables/io`) as a trace of its name into a folder.
    pub fn story(&self, name: &str, scale: &str, folder: &Path) -> PathBuf {
        let scenario = crate::root().join(format!("scenarios/{name}.toml"));
        let trace = folder.join(scenario.with_extension("etl").file_name().unwrap());
        self.synth(&scenario, &trace, &["--scale", scale]);
        trace
    }

    /// Writes the text of a scenario as a trace into a folder.
    pub fn written(&self, folder: &Path, scenario: &str) -> PathBuf {
        let (text, trace) = (folder.join("s.toml"), folder.join("s.etl"));
        std::fs::write(&text, scenario).unwrap();
        self.synth(&text, &trace, &[]);
        trace
    }

    /// The text of a scenario as a trace in a folder of its own.
    pub fn scenario(&self, scenario: &str) -> Trace {
        let folder = tempfile::tempdir().unwrap();
        let path = self.written(folder.path(), scenario);
        Trace { folder, path }
    }

    /// Writes the demonstration.
    pub fn demo(&self, trace: &Path) {
        self.run(&["synth", "--demo", "--quiet", "-o", trace.to_str().unwrap()]);
    }
}

/// Runs of commands that fail only for reasons of the program.
pub trait Run {
    /// What it prints, and how it ends.
    fn outcome(&mut self) -> Output;
    /// It runs on.
    fn started(&mut self) -> Child;
}

impl Run for Command {
    fn outcome(&mut self) -> Output {
        again(|| self.output())
    }

    fn started(&mut self) -> Child {
        again(|| self.spawn())
    }
}

/// Starts a program again where Wine could not. Its `CreateProcess` fails with `ERROR_INTERNAL_ERROR` (1359) when the Unix
/// process behind it ended before it had reported to the server (`NtCreateUserProcess` in dlls/ntdll/unix/process.c), which
/// happens about once in several thousand starts on a busy machine. Nothing of the program has run by then. Windows has no
/// such case.
fn again<T>(mut start: impl FnMut() -> std::io::Result<T>) -> T {
    const INTERNAL_ERROR: i32 = 1359;
    let mut tries = 0;
    loop {
        match start() {
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(INTERNAL_ERROR) && tries < 5 => {
                tries += 1;
                eprintln!("Wine could not start a program (try {tries}): {error}");
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
            other => return other.unwrap(),
        }
    }
}
