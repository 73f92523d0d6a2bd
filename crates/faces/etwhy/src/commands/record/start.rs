//! `etwhy record start`: starts sessions and stays to guard them.

use super::control::{self, Ended, Ending};
use super::reader::{self, Reader};
use super::remote;
use crate::exit::Exit;
use crate::open::size;
use crate::options::time::duration;
use crate::report::terminal::{out, text};
use anyhow::{Context as _, bail};
use etwhy_probe::Interrupt;
use etwhy_record::run::{Choice, Here, Mode, NO_WINDOWS, Options, Phase, Tick, Trigger, Watch};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Milliseconds between two steps of the guard: losses are said within a second.
const STEP_MS: u64 = 500;

#[derive(clap::Args)]
pub struct Args {
    /// Profiles to record, separated by commas (`etwhy record --list`)
    #[arg(value_name = "PROFILES", value_delimiter = ',', required = true)]
    profiles: Vec<String>,
    /// Flight recorder: keep the most recent events in this much memory, which is not paged; `save` and `stop` write them
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "rotate")]
    ring: Option<u64>,
    /// Begin a new file at this interval
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    rotate: Option<u64>,
    /// With --rotate: delete the oldest files when all together are larger
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "rotate", default_value = "40GB")]
    keep: u64,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = milliseconds)]
    time: Option<u64>,
    /// End when this happens (several: the first of them): `counter:PATH>NUMBER for 5s` (a performance counter, in English),
    /// `start:NAME` or `exit:NAME` (a process), `log:CHANNEL/ID` (a record of an event log), `key:ctrl+alt+s`, and what is recorded
    /// itself: `finding:ID`, `event:PROVIDER`, `event:PROVIDER/ID` (or a name, or `/ID/FIELD=VALUE`)
    #[arg(long, value_name = "TRIGGER")]
    stop_when: Vec<Trigger>,
    /// Of providers, record the events of this program alone (several times for several; Windows 8.1 and later). The kernel's events, and those of
    /// drivers, are of all programs: what the program waited for stays visible
    #[arg(long, value_name = "NAME", value_parser = program)]
    process: Vec<String>,
    /// Session of the kernel's events: NT Kernel Logger, a private one (Windows 8 and later), or the first that is free
    #[arg(long, value_name = "SESSION", value_parser = ["auto", "nt", "private"], default_value = "auto")]
    session: String,
    /// Folder of the files while it records, and of a rotating recording at last (default: System32\LogFiles\etwhy)
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write the merged trace to FILE at the end
    #[arg(long, short, value_name = "FILE", conflicts_with = "rotate")]
    output: Option<PathBuf>,
    /// Leave the files as Windows has written them: the kernel's events in FILE, others beside it (trace.user.etl)
    #[arg(long)]
    no_merge: bool,
    /// Replace FILE if it is there
    #[arg(long)]
    force: bool,
    /// Record the next start of Windows, from its beginning: restart, and end the recording with `stop`
    #[arg(long, conflicts_with_all = ["ring", "rotate", "time", "stop_when", "process", "session", "on", "no_wait"])]
    boot: bool,
    /// Start and come back: the recording runs without a guard until `etwhy record stop`
    #[arg(long, conflicts_with_all = ["rotate", "time", "stop_when"])]
    no_wait: bool,
    /// Check whether a recording can begin, print what it would take (sessions, buffers, memory), and begin none
    #[arg(long, conflicts_with_all = ["on", "no_wait"])]
    dry_run: bool,
    /// Record on this host by ssh: print the commands, or with -o run them and write what comes back to FILE
    #[arg(long, value_name = "HOST", conflicts_with_all = ["folder", "no_wait", "rotate"])]
    on: Option<String>,
}

#[derive(clap::Args)]
pub struct GuardArgs {}

/// A time in milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    let ns = duration(text).map_err(|error| error.to_string())?;
    u64::try_from(ns / 1_000_000)
        .ok()
        .filter(|ms| *ms > 0)
        .ok_or_else(|| format!("`{text}` is too short a time"))
}

/// The name of a program's file.
fn program(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_control() || r#"\/:;*?"<>|"#.contains(c)) {
        return Err(format!("`{text}` is an invalid program name; try outlook.exe"));
    }
    Ok(if text.contains('.') { text.to_owned() } else { format!("{text}.exe") })
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    if let Some(host) = &args.on {
        let ends_by_itself = args.time.is_some() || !args.stop_when.is_empty();
        if let Some(output) = &args.output {
            if !ends_by_itself {
                bail!(
                    "a recording on another machine has to end by itself: --for 60s, or --stop-when TRIGGER"
                );
            }
            if output.exists() && !args.force {
                bail!("{} is there already: name another file, or --force", output.display());
            }
            let files = remote::run(host, &remote_arguments(&args), output)?;
            return control::print_files(&files);
        }
        let doc = remote::commands(host, &remote_arguments(&args), ends_by_itself)?;
        let mut out = out();
        out.write_all(text(&doc).as_bytes())?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let mut here = Here::open()?;
    let options = options(&args, &here)?;
    reader::check(&args.stop_when, options.mode)?;
    let mut watch = Watch::new(args.stop_when.clone());
    here.prepare(&mut watch)?;
    if args.dry_run {
        let planned = here.step(|recorder| recorder.try_out(&options))?;
        let mut out = out();
        planned.iter().try_for_each(|text| writeln!(out, "{text}"))?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let said = here.step(|recorder| recorder.start(&options))?;
    tell(&said);
    say!("etwhy: {NO_WINDOWS}");
    if args.boot {
        say!(
            "etwhy: the next start of Windows is recorded: restart, and when it was slow enough end the recording with `etwhy record stop -o \
             FILE`; `etwhy record cancel` takes it back"
        );
        return Ok(Exit::Done);
    }
    if args.no_wait {
        say!(
            "etwhy: recording; `etwhy record stop -o FILE` ends it. Nobody guards it: `etwhy record guard` does"
        );
        return Ok(Exit::Done);
    }
    say!(
        "etwhy: recording; Ctrl-C ends it, `etwhy record mark TEXT` marks a moment, `etwhy record status` tells how it is"
    );
    guard(here, watch, &args.stop_when)
}

/// What the other machine's etwhy gets.
fn remote_arguments(args: &Args) -> Vec<String> {
    let mut all = vec![args.profiles.join(",")];
    let mut add = |option: &str, value: Option<String>| {
        if let Some(value) = value {
            all.extend([option.to_owned(), value]);
        }
    };
    add("--ring", args.ring.map(|bytes| format!("{bytes}B")));
    add("--for", args.time.map(|ms| format!("{ms}ms")));
    for trigger in &args.stop_when {
        add("--stop-when", Some(trigger.to_string()));
    }
    for program in &args.process {
        add("--process", Some(program.clone()));
    }
    add("--session", Some(args.session.clone()).filter(|s| s != "auto"));
    if args.no_merge {
        all.push("--no-merge".to_owned());
    }
    all
}

fn options(args: &Args, here: &Here) -> anyhow::Result<Options> {
    let mode = match (args.ring, args.rotate) {
        (Some(bytes), _) => {
            let mebibytes = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
            if mebibytes < 16 {
                bail!("a flight recorder needs at least 16 MiB: --ring 16MiB");
            }
            Mode::Ring { mebibytes }
        }
        (None, Some(every_ms)) if every_ms < 1000 => {
            bail!("files of less than a second: --rotate 1s is the least")
        }
        (None, Some(every_ms)) => Mode::Rotate { every_ms, keep: args.keep },
        (None, None) => Mode::File,
    };
    Ok(Options {
        profiles: args.profiles.clone(),
        programs: programs(&args.process)?,
        mode,
        for_ms: args.time,
        stop_when: args.stop_when.clone(),
        kernel: match args.session.as_str() {
            "nt" => Choice::NtKernelLogger,
            "private" => Choice::Private,
            _ => Choice::Auto,
        },
        folder: absolute(args.folder.as_deref().unwrap_or_else(|| here.folder()))?,
        output: args.output.as_deref().map(absolute).transpose()?,
        replace: args.force,
        parts: args.no_merge,
        boot: args.boot,
    })
}

/// Most characters of all names: a filter has 1,024 bytes, with its final zero (`MAX_EVENT_FILTER_DATA_SIZE`, evntprov.h).
const MOST_NAMES: usize = 511;

fn programs(given: &[String]) -> anyhow::Result<Vec<String>> {
    if given.join(";").encode_utf16().count() > MOST_NAMES {
        bail!("--process: all names together may have {MOST_NAMES} characters");
    }
    Ok(given.to_vec())
}

/// Windows writes where it is told, not where this program is.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{}: is no path", path.display()))
}

pub fn guard_again(_: &GuardArgs) -> anyhow::Result<Exit> {
    let mut here = Here::open()?;
    let Some(status) = here.step(|recorder| recorder.status())? else {
        bail!("there is no recording: `etwhy record start PROFILE` begins one");
    };
    if status.journal.phase != Phase::Running {
        bail!(
            "the recording does not run: `etwhy record stop -o FILE` keeps its files, `etwhy record cancel` deletes them"
        );
    }
    let triggers: Vec<Trigger> =
        status.journal.stop_when.iter().filter_map(|text| text.parse().ok()).collect();
    let mut watch = Watch::new(triggers.clone());
    here.prepare(&mut watch)?;
    guard(here, watch, &triggers)
}

/// Stays until the recording ends, by itself, by Ctrl-C or by another command.
fn guard(mut here: Here, mut watch: Watch, triggers: &[Trigger]) -> anyhow::Result<Exit> {
    let status = here.step(|recorder| recorder.status())?;
    if let Some(reader) = status.and_then(|status| Reader::start(&status.journal, triggers)) {
        watch = watch.with_finder(Box::new(reader));
    }
    let interrupt = at_ctrl_c()?;
    match guard_until(&mut here, &mut watch, || interrupt.is_set())? {
        None => Ok(Exit::Done),
        Some(end) => end.tell(),
    }
}

/// From now on Ctrl-C ends the recording, not only this program.
pub fn at_ctrl_c() -> anyhow::Result<Interrupt> {
    let interrupt = Interrupt::new();
    etwhy_scratch::leave_interrupts();
    interrupt.at_ctrl_c().context("Ctrl-C cannot be handled")?;
    Ok(interrupt)
}

/// Guards a recording until `over` or until it ends by itself, and ends it; `None` if another command has ended it.
pub fn guard_until(
    here: &mut Here,
    watch: &mut Watch,
    mut over: impl FnMut() -> bool,
) -> anyhow::Result<Option<Ended>> {
    loop {
        let ended = here.step(|recorder| {
            if over() {
                return Ok(Some(Some(control::finish(recorder, &Ending::default())?)));
            }
            match recorder.tick(watch)? {
                Tick::Goes(said) => tell(&said),
                Tick::Ended(said) => {
                    tell(&said);
                    return Ok(Some(Some(control::finish(recorder, &Ending::default())?)));
                }
                Tick::Gone => {
                    say!("etwhy: the recording was ended by another command");
                    return Ok(Some(None));
                }
            }
            Ok(None)
        })?;
        if let Some(ended) = ended {
            return Ok(ended);
        }
        std::thread::sleep(Duration::from_millis(STEP_MS));
    }
}

pub fn tell(said: &[String]) {
    for text in said {
        say!("etwhy: {text}");
    }
}
