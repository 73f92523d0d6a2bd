//! Starting scripts.

use super::process_create::start_quietly;
use crate::clock::nanos;
use crate::content::Random;
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::words::time;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "script-start",
    about: "Start shells and interpreters with an empty script, with a fresh one, and with the same again",
    manual: "For each shell or interpreter that is on the PATH: starts it with an empty script, with a script of some KB that \
             nobody has seen (comments with random words, so it does nothing), and with that script once more.\n\n\
             What it shows: the empty script is the price of the interpreter itself with all that loads into it. What the fresh script takes \
             more is reading and checking it: on Windows interpreters hand each script to the antimalware interface (AMSI) before they run it, and \
             the product's answer is waited for. The second run says what is left when the answer is known.\n\n\
             What fools it: programs on the PATH may be wrappers (pyenv, nvm) that start others; then their price is part of it, as it is \
             each time that they are used. PowerShell compiles its own modules after an update, so its first start may be slow once.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("scripts", "Scripts for each interpreter", "scripts", (20, 5), (1, 2000)),
        Parameter::number("bytes", "Size of a script", "bytes", (8192, 8192), (64, 1 << 20)),
        Parameter::text(
            "interpreters",
            "Only these, with commas between them; all that are found if empty",
            "",
        ),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "fresh script against empty one",
            dear: ("", "first run"),
            cheap: ("", "empty script"),
            meaning: "What a script of some KB that nobody has seen costs more than none.",
        },
        Contrast {
            title: "first run against second",
            dear: ("", "first run"),
            cheap: ("", "second run"),
            meaning: "What the first start of a script costs more than the next one.",
        },
    ],
    run,
    child: None,
    conclude,
};

/// An interpreter: name of the program, words before the script, ending of the script, what begins a comment.
struct Interpreter {
    name: &'static str,
    words: &'static [&'static str],
    extension: &'static str,
    comment: &'static str,
}

const fn on(
    name: &'static str,
    words: &'static [&'static str],
    extension: &'static str,
    comment: &'static str,
) -> Interpreter {
    Interpreter { name, words, extension, comment }
}

#[cfg(not(windows))]
const ALL: &[Interpreter] = &[
    on("sh", &[], "sh", "#"),
    on("bash", &["--norc"], "sh", "#"),
    on("perl", &[], "pl", "#"),
    on("python3", &[], "py", "#"),
    on("node", &[], "js", "//"),
    on("pwsh", &["-NoProfile", "-NonInteractive", "-File"], "ps1", "#"),
];

#[cfg(windows)]
const ALL: &[Interpreter] = &[
    on("cmd", &["/d", "/c"], "cmd", "@rem"),
    on("powershell", &["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"], "ps1", "#"),
    on("pwsh", &["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"], "ps1", "#"),
    on("cscript", &["//nologo", "//B"], "vbs", "'"),
    on("python", &[], "py", "#"),
    on("node", &[], "js", "//"),
];

/// The program's path, if it is on the PATH.
fn find(name: &str) -> Option<PathBuf> {
    let file = if cfg!(windows) { format!("{name}.exe") } else { name.to_owned() };
    let path = std::env::var_os("PATH")?;
    // Windows keeps empty files there that only open its store.
    let is_program =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() > 0);
    std::env::split_paths(&path).map(|folder| folder.join(&file)).find(is_program)
}

/// Comments with random words, `size` bytes or a little more.
fn script(random: &mut Random, comment: &str, size: usize) -> String {
    let mut text = String::new();
    while text.len() < size {
        text.push_str(comment);
        for _ in 0..4 {
            text.push_str(&format!(" {:016x}", random.bits()));
        }
        text.push('\n');
    }
    text
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let (scripts, bytes) = (run.number("scripts"), run.number("bytes"));
    let only = run.words("interpreters");
    if let Some(unknown) = only.iter().find(|name| !ALL.iter().any(|i| i.name == name.as_str())) {
        let known: Vec<&str> = ALL.iter().map(|i| i.name).collect();
        return Err(ProbeError::Impossible(format!("interpreters={unknown}: one of {}", known.join(", "))));
    }
    let mut found: Vec<(&Interpreter, PathBuf)> = ALL
        .iter()
        .filter(|i| only.is_empty() || only.iter().any(|name| name == i.name))
        .filter_map(|i| Some((i, find(i.name)?)))
        .collect();
    if found.is_empty() {
        return Err(ProbeError::Impossible("none of these interpreters is on the PATH".to_owned()));
    }
    if run.round() % 2 == 1 {
        found.reverse();
    }
    let scratch = run.scratch(scripts.saturating_mul(bytes.saturating_add(8192)))?;
    let mut random = Random::new()?;
    for (interpreter, program) in found {
        let folder = scratch.folder(interpreter.name)?;
        let path = |name: String| folder.join(format!("{name}.{}", interpreter.extension));
        let write = |path: &Path, text: &str| fs::write(path, text).map_err(ProbeError::file(path, "write"));
        let empty = path("empty".to_owned());
        write(&empty, if cfg!(windows) && interpreter.name == "cmd" { "@rem\r\n" } else { "" })?;
        let mut fresh = Vec::new();
        for number in 0..scripts {
            let path = path(format!("script{number}"));
            write(&path, &script(&mut random, interpreter.comment, usize::try_from(bytes).unwrap_or(8192)))?;
            fresh.push(path);
        }
        // Whatever the interpreter itself has to load the first time is not what is measured.
        let mut warm = command(&program, interpreter, &empty);
        match start_quietly(&mut warm) {
            Ok(true) => {}
            Ok(false) => {
                run.note(format!(
                    "{}: ends with an error even for an empty script; left out",
                    program.display()
                ));
                continue;
            }
            Err(error) => {
                run.note(format!("{}: {error}; left out", program.display()));
                continue;
            }
        }
        let empties = vec![empty; fresh.len()];
        for (variant, paths) in [("empty script", &empties), ("first run", &fresh), ("second run", &fresh)] {
            let case = Case::new(interpreter.name).when(variant);
            run.measure(case, |run, laps| {
                let mut failed = 0;
                for (number, path) in paths.iter().enumerate() {
                    run.goes_on()?;
                    run.progress(interpreter.name, number as u64, paths.len() as u64);
                    let start = Instant::now();
                    let ended = start_quietly(&mut command(&program, interpreter, path));
                    laps.push(nanos(start));
                    match ended {
                        Ok(true) => {}
                        Ok(false) => failed += 1,
                        Err(error) if error.kind() == ErrorKind::PermissionDenied => failed += 1,
                        Err(error) => return Err(ProbeError::file(&program, "start")(error)),
                    }
                }
                Ok((paths.len() as u64, failed))
            })?;
        }
    }
    scratch.remove()
}

fn command(program: &Path, interpreter: &Interpreter, script: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(interpreter.words).arg(script);
    command
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let figures = Figures::from_samples(samples);
    let mut said: Vec<String> = ALL
        .iter()
        .filter_map(|interpreter| {
            let of = |variant| figures.typical(interpreter.name, variant);
            let (empty, first, second) = (of("empty script")?, of("first run")?, of("second run")?);
            Some(format!(
                "{}: {} with an empty script, {} with a fresh one, {} with the same again (half of them at most).",
                interpreter.name,
                time(empty),
                time(first),
                time(second)
            ))
        })
        .collect();
    let failed: u64 = samples.iter().map(|s| s.failures).sum();
    if failed > 0 {
        said.push(format!(
            "{failed} starts were denied or ended with an error: somebody forbids these scripts."
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Made;
    use crate::support::{options, tried};

    fn made(interpreters: &str) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path(), &[("scripts", "3"), ("interpreters", interpreters)]);
        let made = tried(&PROBE, &options);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        made
    }

    #[test]
    fn a_shell_runs_each_script_twice() {
        let shell = if cfg!(windows) { "cmd" } else { "sh" };
        let made = made(shell);
        assert!(made.error.is_none(), "{:?}", made.error);
        let variants: Vec<_> =
            made.samples.iter().map(|s| (s.case.variant.as_str(), s.operations, s.failures)).collect();
        assert_eq!(variants, [("empty script", 3, 0), ("first run", 3, 0), ("second run", 3, 0)]);
        assert!(conclude(&made.samples)[0].starts_with(shell));
    }

    #[test]
    fn unknown_names_are_told() {
        assert!(made("basic").error.unwrap().to_string().starts_with("interpreters=basic: one of"));
    }

    #[test]
    fn scripts_are_comments_and_nothing_else() {
        let text = script(&mut Random::new().unwrap(), "#", 1000);
        assert!(text.len() >= 1000 && text.lines().all(|line| line.starts_with("# ")));
    }
}
