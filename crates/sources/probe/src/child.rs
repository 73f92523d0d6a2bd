//! Child processes that measure, and tell what they measured as one line of JSON.

use crate::error::ProbeError;
use crate::run::Run;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a child may say at most, in bytes.
const MOST: u64 = 1 << 20;

/// Why a child gave nothing.
#[derive(Debug)]
pub enum Silent {
    /// The program is not there or may not be started.
    NoStart(std::io::Error),
    /// It failed; what it said last.
    Failed(String),
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Silent::NoStart(error) => write!(f, "cannot be started: {error}"),
            Silent::Failed(words) => f.write_str(words),
        }
    }
}

/// Ends a child that nobody waits for any more.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a child, waits for its end, and reads what it told.
///
/// # Errors
/// [`ProbeError::Interrupted`]: then the child is ended, too. That it failed is no error of the probe: see [`Silent`].
pub fn ask<T: DeserializeOwned>(
    run: &Run<'_>,
    command: &mut Command,
    limit: Duration,
) -> Result<Result<T, Silent>, ProbeError> {
    run.goes_on()?;
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => Ends(child),
        Err(error) => return Ok(Err(Silent::NoStart(error))),
    };
    let out = collect(child.0.stdout.take());
    let err = collect(child.0.stderr.take());
    let start = Instant::now();
    let status = loop {
        match child.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() > limit => {
                return Ok(Err(Silent::Failed(format!("no answer within {} s", limit.as_secs()))));
            }
            Ok(None) => {
                run.goes_on()?;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(ProbeError::system("wait for a child process")(error)),
        }
    };
    // Ctrl-C reaches the child as well, and its end is not the reason then.
    run.goes_on()?;
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    if !status.success() {
        let words = String::from_utf8_lossy(&err);
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a word");
        return Ok(Err(Silent::Failed(format!("{status}: {}", last.trim()))));
    }
    Ok(serde_json::from_slice(&out).map_err(|error| Silent::Failed(format!("unexpected answer: {error}"))))
}

fn collect(from: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            let _ = from.take(MOST).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// What a child says in the end; its exit code.
pub fn tell<T: Serialize>(result: &Result<T, String>) -> u8 {
    match result {
        Ok(value) => match serde_json::to_string(value) {
            Ok(text) => {
                println!("{text}");
                0
            }
            Err(error) => {
                eprintln!("{error}");
                1
            }
        },
        Err(words) => {
            eprintln!("{words}");
            1
        }
    }
}
