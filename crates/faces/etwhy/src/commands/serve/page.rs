//! What commands with a page share: the server in front, what is printed of it, the processes that it starts.

use super::browser;
use super::store::OfStore;
use crate::command::PROGRAM;
use crate::exit::Exit;
use crate::own;
use anyhow::anyhow;
use etwhy_hud::{Front, Launcher, Options, Policy, Source};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// What people see of it besides the page.
pub struct Show {
    /// A browser is opened.
    pub opens: bool,
    /// Nothing is said on standard error.
    pub quiet: bool,
    /// Where the page is below the address of the server.
    pub path: &'static str,
}

/// Serves until Ctrl-C. `add` opens what is given, once the page can be asked.
///
/// # Errors
/// If nothing can be served there, and those of `add`.
pub fn run(
    launcher: Box<dyn Launcher>,
    policy: Policy,
    options: &Options,
    show: &Show,
    add: impl FnOnce(&Arc<Front>) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let mut running = etwhy_hud::front::start(launcher, policy, options).map_err(|text| anyhow!(text))?;
    // The server ends in order, with its traces.
    etwhy_scratch::leave_interrupts();
    running.take_interrupts();
    if !options.address.ip().is_loopback() {
        say!(
            "etwhy: other machines can reach this page; without encryption, and whoever has the address sees everything"
        );
    }
    let mut out = crate::stdout::watched();
    writeln!(out, "{}{}", running.url, show.path)?;
    out.flush()?;
    if show.opens
        && let Err(error) = browser::open(&running)
    {
        say!("etwhy: no browser can be opened ({error}); open the address in one");
    } else if !show.quiet {
        let what = if show.opens { "the page opens in a browser" } else { "open this address in a browser" };
        say!("etwhy: {what}; Ctrl-C ends it");
    }
    add(&running.state)?;
    let front = running.wait();
    let exit = if front.in_part() { Exit::InPart } else { Exit::Done };
    front.close();
    Ok(exit)
}

/// The token of the option or of the environment.
///
/// # Errors
/// If it is none.
pub fn token(given: Option<&str>) -> anyhow::Result<Option<String>> {
    let token = given.map(str::to_owned);
    let token = token.or_else(|| std::env::var("ETWHY_TOKEN").ok().filter(|text| !text.is_empty()));
    if let Some(why) = token.as_deref().and_then(etwhy_hud::guard::refuse_token) {
        return Err(anyhow!("{why} (--token or ETWHY_TOKEN)"));
    }
    Ok(token)
}

/// This program, started for a trace.
pub struct Own {
    program: PathBuf,
    /// The command that was given.
    name: &'static str,
    /// What stands before the command, and behind it.
    line: [Vec<OsString>; 2],
    /// The store that is served.
    store: Option<OfStore>,
}

impl Own {
    /// The command `name` of this program, as it was started.
    ///
    /// # Errors
    /// If nobody can tell where this program is.
    pub fn new(name: &'static str) -> anyhow::Result<Own> {
        let program = own::program()?;
        let mut words = std::env::args_os().skip(1);
        let before: Vec<OsString> = words.by_ref().take_while(|word| word != name).collect();
        let mut behind = Vec::new();
        // The token is the front's alone.
        while let Some(word) = words.next() {
            if word == "--token" {
                words.next();
            } else if !word.as_encoded_bytes().starts_with(b"--token=") {
                behind.push(word);
            }
        }
        Ok(Own { program, name, line: [before, behind], store: None })
    }

    /// With the page of a store.
    pub(super) fn with_store(self, store: Option<OfStore>) -> Own {
        Own { store, ..self }
    }
}

impl Launcher for Own {
    fn program(&self) -> String {
        PROGRAM.to_owned()
    }

    fn command(&self, sources: &[Source]) -> Command {
        let [before, behind] = &self.line;
        let mut command = Command::new(&self.program);
        command.args(before).env_remove("ETWHY_TOKEN");
        let serves = self.name == super::COMMAND.name;
        if !serves && sources.iter().all(|source| source.path.is_none()) {
            command.args([self.name, "--worker"]).args(behind);
            return command;
        }
        command.args([super::COMMAND.name, "--worker"]);
        for source in sources {
            let mut of = OsString::from("--of=");
            of.push(source.path.as_deref().unwrap_or(Path::new(GIVEN)));
            command.arg(of);
            command.arg(format!("--number={}", source.number.map_or(-1, |n| i64::try_from(n).unwrap_or(-1))));
        }
        if serves {
            command.args(behind);
        } else {
            // Options for following are none for reading what else the page opens.
            return own::ending_with(command, sources.iter().filter_map(|source| source.path.as_ref()));
        }
        command
    }

    fn store(&self) -> Option<&dyn etwhy_hud::Many> {
        self.store.as_ref().map(|store| store as _)
    }
}

/// In the place of a path: all that is given, as one trace. Standard input, which it means elsewhere, is a file by then.
pub const GIVEN: &str = "-";
