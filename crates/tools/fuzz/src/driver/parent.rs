//! The parent: starts children, watches them, writes down what it finds.

use super::Options;
use crate::targets::{ALL, Target, by_name};
use crate::watch;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Memory at which a child is stopped at once, whatever its input: the machine is not ours alone.
const HARD_LIMIT: u64 = 3 << 30;
/// How often a child is looked at.
const TICK: Duration = Duration::from_millis(20);

/// How a child ended.
enum End {
    /// It did what it was told.
    Done,
    /// A mutant took too long or too much, or the child died in it.
    Bad(u64, String),
    /// The time of the campaign is over.
    Over,
}

struct Watched<'o> {
    options: &'o Options,
    child: Child,
    lines: Receiver<String>,
    /// The mutant at work and since when, on the wall and in processor time.
    current: Option<u64>,
    since: Instant,
    cpu: u64,
    panics: Vec<(u64, String)>,
    ran: u64,
    seeds: u64,
}

impl<'o> Watched<'o> {
    fn start(
        options: &'o Options,
        target: &'static Target,
        extra: &[(&str, String)],
    ) -> std::io::Result<Watched<'o>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", "--target", target.name]).arg("--corpus").arg(options.corpus());
        command.arg(format!("--seed={}", options.seed)).arg(format!("--limit={}", options.limit));
        for (name, value) in extra {
            command.arg(format!("--{name}={value}"));
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines() {
                    if line.map_or(true, |line| sender.send(line).is_err()) {
                        break;
                    }
                }
            });
        }
        let since = Instant::now();
        Ok(Watched {
            options,

            child,
            lines,
            current: None,
            since,
            cpu: 0,
            panics: Vec::new(),
            ran: 0,
            seeds: 0,
        })
    }

    /// Follows the child to its end.
    fn follow(&mut self, until: Option<Instant>) -> End {
        let end = self.watch(until);
        let _ = self.child.kill();
        let _ = self.child.wait();
        end
    }

    fn watch(&mut self, until: Option<Instant>) -> End {
        let mut looked = Instant::now();
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    if let Some(end) = self.line(&line) {
                        return end;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map(|s| s.to_string()).unwrap_or_default();
                    return match self.current {
                        Some(index) if !status.ends_with("status: 0") => {
                            End::Bad(index, format!("the process died: {status}"))
                        }
                        _ => End::Done,
                    };
                }
            }
            if looked.elapsed() < TICK {
                continue;
            }
            looked = Instant::now();
            let pid = self.child.id();
            if let Some(bytes) = watch::memory(Some(pid)).filter(|&bytes| bytes > HARD_LIMIT) {
                return End::Bad(self.current.unwrap_or(0), format!("memory {bytes} bytes and growing"));
            }
            if let Some(index) = self.current {
                // A busy machine slows everybody; only processor time counts, but sleep for ever is a hang too.
                let cpu = watch::cpu_time(pid).map(|now| now.saturating_sub(self.cpu) / 100);
                let wall = self.since.elapsed().as_secs();
                let patience = self.options.patience;
                if cpu.unwrap_or(wall) >= patience || wall >= 10 * patience {
                    return End::Bad(index, format!("hang: not done after {wall} s"));
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return End::Over;
            }
        }
    }

    fn line(&mut self, line: &str) -> Option<End> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "seeds" => self.seeds = rest.parse().unwrap_or(0),
            "run" => {
                self.current = rest.parse().ok();
                self.since = Instant::now();
                self.cpu = watch::cpu_time(self.child.id()).unwrap_or(0);
                self.ran += 1;
            }
            "panic" => self.panics.push((self.current.unwrap_or(0), line.to_owned())),
            "memory" => return Some(End::Bad(self.current.unwrap_or(0), line.to_owned())),
            _ => {}
        }
        None
    }
}

/// Runs all targets; fails if there is a finding.
pub fn campaign(options: &Options) -> ExitCode {
    if options.list {
        for target in ALL {
            println!("{:<14} {}", target.name, target.about);
        }
        return ExitCode::SUCCESS;
    }
    let unknown = options.target.iter().find(|name| by_name(name).is_none());
    if let Some(name) = unknown {
        eprintln!("etwhy-fuzz: there is no target `{name}`; see --list");
        return ExitCode::from(2);
    }
    let chosen: Vec<&'static Target> = ALL
        .iter()
        .filter(|t| options.target.is_empty() || options.target.iter().any(|name| name == t.name))
        .collect();
    let bounded = options.short || options.mutants.is_some();
    let share = Duration::from_secs(options.seconds) / chosen.len().max(1) as u32;
    let mut findings = 0;
    for target in chosen {
        let until = (!bounded).then(|| Instant::now() + share);
        let per_seed = options.mutants.unwrap_or(target.short as u64);
        match one_target(options, target, until, bounded.then_some(per_seed)) {
            Ok(n) => findings += n,
            Err(error) => {
                eprintln!("etwhy-fuzz: {}: {error}", target.name);
                return ExitCode::from(2);
            }
        }
    }
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Findings of one target after which it is left alone: the same bug over and over teaches nothing.
const ENOUGH: usize = 20;

fn one_target(
    options: &Options,
    target: &'static Target,
    until: Option<Instant>,
    per_seed: Option<u64>,
) -> std::io::Result<usize> {
    let began = Instant::now();
    let seeds = (target.seeds)(&options.corpus(), options.limit);
    let total = per_seed.map(|n| n * seeds.len() as u64 + seeds.len() as u64);
    let (mut next, mut ran) = (0u64, 0u64);
    let mut found: Vec<(u64, String)> = Vec::new();
    loop {
        let count = total.map_or(u64::MAX, |t| t.saturating_sub(next));
        if count == 0 || found.len() >= ENOUGH {
            break;
        }
        let range = [("from", next.to_string()), ("count", count.to_string())];
        let mut child = Watched::start(options, target, &range)?;
        let end = child.follow(until);
        ran += child.ran;
        found.append(&mut child.panics);
        match end {
            End::Done | End::Over => break,
            End::Bad(index, _) => {
                let again = [("from", index.to_string()), ("count", "1".to_owned())];
                let mut child = Watched::start(options, target, &again)?;
                if let End::Bad(index, what) = child.follow(None) {
                    found.push((index, what));
                }
                next = index + 1;
            }
        }
    }
    println!(
        "{:<14} {ran:>8} mutants of {:>3} seeds in {:>5.1} s, {} findings",
        target.name,
        seeds.len(),
        began.elapsed().as_secs_f64(),
        found.len()
    );
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (index, what) in &found {
        // Findings that differ in numbers only are most likely one: some of them will do.
        let kind: String = what.chars().filter(|c| !c.is_ascii_digit()).take(100).collect();
        let seen = kinds.entry(kind).or_default();
        *seen += 1;
        if *seen > 3 {
            continue;
        }
        std::fs::create_dir_all(&options.findings)?;
        let file = options.findings.join(format!("{}-{}-{index}.bin", target.name, options.seed));
        std::fs::write(&file, target.mutant(&seeds, options.seed, *index))?;
        println!("  seed {} mutant {index}: {what}", options.seed);
        println!("    again: etwhy-fuzz --target {} --file {}", target.name, file.display());
    }
    Ok(found.len())
}

/// Runs a target on one file.
pub fn one_file(options: &Options, file: &Path) -> ExitCode {
    let Some(target) = options.target.first().and_then(|name| by_name(name)) else {
        eprintln!("etwhy-fuzz: --file needs a --target; see --list");
        return ExitCode::from(2);
    };
    let mut extra = vec![("file", file.display().to_string())];
    extra.extend(options.size.map(|size| ("size", size.to_string())));
    let began = Instant::now();
    let mut child = match Watched::start(options, target, &extra) {
        Ok(child) => child,
        Err(error) => {
            eprintln!("etwhy-fuzz: {error}");
            return ExitCode::from(2);
        }
    };
    let end = child.follow(None);
    let said = match (&end, child.panics.first()) {
        (End::Bad(_, what), _) | (_, Some((_, what))) => what.clone(),
        _ if child.ran == 0 => "the file cannot be read".to_owned(),
        _ => {
            println!("ok after {:.1} s", began.elapsed().as_secs_f64());
            return ExitCode::SUCCESS;
        }
    };
    println!("{said}");
    ExitCode::FAILURE
}
