//! The process of a trace: it reads what the server in front names, says how far it is, and answers questions about it.

use super::page::GIVEN;
use super::reader::Reader;
use super::{Args, names};
use crate::exit::Exit;
use crate::open::{Recording, TraceArgs};
use crate::progress;
use anyhow::{Context as _, anyhow};
use etwhy_hud::{Facts, Host, Hud, Loaded, Options, Patience, Ready, Running, Said};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Traces smaller than this are read whole before their verdict could be looked at.
const SMALL: u64 = 48 << 20;

/// Reads and serves until standard input ends.
pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let token = begin()?;
    match serve(args, &token) {
        Ok(mut running) => {
            leave_interrupts(&mut running);
            loop {
                std::thread::park();
            }
        }
        Err(error) => Ok(failed(&error)),
    }
}

/// Begins as the server in front expects: takes the token, ends with standard input, says what is done. The token.
///
/// # Errors
/// If standard input has none.
pub fn begin() -> anyhow::Result<String> {
    let mut token = String::new();
    std::io::stdin().read_line(&mut token).context("no token")?;
    etwhy_child::end_with_standard_input(|| etwhy_scratch::exit(Exit::Done as i32));
    let last = Mutex::new((String::new(), Instant::now()));
    progress::tell(Box::new(move |what, done, total| {
        let Ok(mut last) = last.lock() else { return };
        if last.0 == what && last.1.elapsed() < Duration::from_millis(100) && done != total {
            return;
        }
        *last = (what.to_owned(), Instant::now());
        drop(last);
        say(&Said::Doing { what: what.to_owned(), done, total });
    }));
    Ok(token.trim().to_owned())
}

/// From now on Ctrl-C is for the server in front, which ends this one.
pub fn leave_interrupts(running: &mut Running<Hud>) {
    etwhy_scratch::leave_interrupts();
    running.take_interrupts();
}

/// Says why there is nothing to serve.
pub fn failed(error: &anyhow::Error) -> Exit {
    say(&Said::Failed { text: crate::message(error) });
    Exit::NotATrace
}

/// A line for the server in front. If it is gone, standard input says so, too.
pub fn say(said: &Said) {
    let mut out = crate::stdout::watched();
    if let Ok(line) = serde_json::to_string(said) {
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

fn serve(args: &Args, token: &str) -> anyhow::Result<Running<Hud>> {
    let rules = args.rules.load()?;
    let reader = Reader::new(args, rules);
    let mut given = args.of.iter().zip(&args.number).map(|(path, number)| {
        let path = (path != Path::new(GIVEN)).then_some(path);
        let trace = match path {
            Some(path) => TraceArgs { traces: vec![path.clone()], demo: false, ..args.trace.clone() },
            None => args.trace.clone(),
        };
        (trace, usize::try_from(*number).ok())
    });
    let (Some(one), other) = (given.next(), given.next()) else { return Err(anyhow!("nothing to read")) };
    let Some(other) = other else { return alone(args, reader, one, token) };
    let (mut traces, mut in_part) = (Vec::new(), false);
    for (trace, number) in [one, other] {
        let (recording, name, number) = recording(&trace, number)?;
        let (loaded, exit) = reader.read(recording.open()?, name, &trace, number)?;
        in_part |= exit != Exit::Done;
        traces.push(loaded);
    }
    let running = start(reader, traces, token)?;
    say(&Said::Ready(ready(&running, in_part)));
    Ok(running)
}

/// One trace: its verdict first, if the rest would take long.
fn alone(
    args: &Args,
    reader: Reader,
    (trace, number): (TraceArgs, Option<usize>),
    token: &str,
) -> anyhow::Result<Running<Hud>> {
    let (first, name, at) = recording(&trace, number)?;
    if let Some(trace_id) = first.recording_id() {
        say(&Said::Identity { trace_id });
    }
    let fast = first.size() < SMALL || !args.logs.is_empty();
    if fast {
        let (loaded, exit) = reader.read(first.open()?, name, &trace, at)?;
        let running = start(reader, vec![loaded], token)?;
        say(&Said::Ready(ready(&running, exit != Exit::Done)));
        return Ok(running);
    }
    let loaded = reader.verdict(first, name.clone())?;
    let running = start(Reader::new(args, args.rules.load()?), vec![loaded], token)?;
    say(&Said::Verdict(ready(&running, false)));
    let (again, ..) = recording(&trace, Some(at))?;
    let (loaded, exit) = reader.read(again.open()?, name, &trace, at)?;
    running.state.put(0, loaded);
    say(&Said::Ready(ready(&running, exit != Exit::Done)));
    Ok(running)
}

/// Opens one of the recordings in what was given, with what people call it.
fn recording(trace: &TraceArgs, number: Option<usize>) -> anyhow::Result<(Recording, String, usize)> {
    let list = trace.recordings()?.list;
    let several = list.len() > 1;
    let called = |recording: &Recording| {
        let files: Vec<PathBuf> = recording.files.iter().map(PathBuf::from).collect();
        names(&files, false)
    };
    if several && number.is_none() {
        say(&Said::Recordings { names: list.iter().map(called).collect() });
    }
    let at = number.unwrap_or(0);
    let found = list.into_iter().nth(at).ok_or_else(|| anyhow!("there is no trace in what was given"))?;
    let name = if several { called(&found) } else { names(&trace.traces, trace.demo) };
    Ok((found, name, at))
}

/// Starts the server of these traces.
///
/// # Errors
/// If it cannot listen.
pub fn start(host: impl Host + 'static, traces: Vec<Loaded>, token: &str) -> anyhow::Result<Running<Hud>> {
    let options = Options {
        address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        hosts: Vec::new(),
        token: Some(token.to_owned()),
        // The server in front has limits of its own; a connection that waits here is one of its questions.
        patience: Patience { connections: 512, ..Patience::default() },
    };
    etwhy_hud::start(Box::new(host), traces, &options).map_err(|text| anyhow!(text))
}

fn ready(running: &Running<Hud>, in_part: bool) -> Ready {
    let facts = running.state.traces().first().map(|trace| Facts::of(trace)).unwrap_or_default();
    Ready { port: running.address.port(), in_part, facts }
}
