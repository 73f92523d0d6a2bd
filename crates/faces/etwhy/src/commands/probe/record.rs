//! `etwhy probe run --record`: Windows Performance Recorder runs meanwhile, so that `etwhy why` can judge the trace.
//!
//! `wpr` is a program of Windows (10 and later). Its success is not believed: after the stop the file must be there and begin
//! as a trace does.

use crate::exit::Exit;
use anyhow::{Context as _, bail};
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_export::sanitize;
use etwhy_record::{Recording, Session, Size, formats};
use etwhy_scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What stays behind if the program ends at once.
pub const LEFT: &str = "the recording was not ended, `wpr -cancel` does it";

/// Names the program, if it is not where Windows has it.
const VARIABLE: &str = "ETWHY_WPR";

#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// Record meanwhile with Windows Performance Recorder (wpr.exe), for `etwhy why`. It needs an administrator's console,
    /// and costs the probes some time
    #[arg(long = "record", value_name = "FILE.etl")]
    file: Option<PathBuf>,
    /// What --record makes visible: profiles of `etwhy record --list`, separated by commas
    #[arg(
        long = "record-profile",
        value_name = "PROFILES",
        value_delimiter = ',',
        default_value = "cpu,file"
    )]
    profiles: Vec<String>,
}

/// A recording that runs. It is cancelled if nobody stops it.
pub struct Running {
    wpr: PathBuf,
    file: PathBuf,
    stopped: bool,
    /// Holds the profile while `wpr` may read it.
    _folder: Scratch,
}

impl Args {
    /// Starts what the user asked for, if anything.
    pub fn start(&self) -> anyhow::Result<Option<Running>> {
        let Some(file) = &self.file else { return Ok(None) };
        let file = std::path::absolute(file).with_context(|| file.display().to_string())?;
        if file.exists() {
            bail!("{}: is there already; --record names a new file", sanitize(&file.display().to_string()));
        }
        let parent = file.parent().filter(|parent| parent.is_dir());
        if parent.is_none() {
            bail!("{}: its folder is not there", sanitize(&file.display().to_string()));
        }
        let wpr = find()?;
        let names: Vec<&str> = self.profiles.iter().map(String::as_str).collect();
        let recording = Recording::from_profiles(&names, Session::NtKernelLogger, Size::Usual)?;
        let folder = Scratch::new(None).context("a folder for the recording profile")?;
        let profile = folder.path().join(recording.file_name());
        let format = formats().iter().find(|format| format.name == "wprp").context("no format wprp")?;
        std::fs::write(&profile, (format.write)(&recording)?)
            .with_context(|| profile.display().to_string())?;
        let mut name = profile.into_os_string();
        name.push("!");
        name.push(recording.name());
        // Not ours is never cancelled: a start that fails has started nothing.
        wpr_does(&wpr, Command::new(&wpr).arg("-start").arg(&name).arg("-filemode"))?;
        Ok(Some(Running { wpr, file, stopped: false, _folder: folder }))
    }
}

/// How a recording ended: what to do with its file, or what went wrong; nothing if it was cancelled.
pub struct Ended(Option<anyhow::Result<String>>);

impl Ended {
    /// Says it, after the results. Gives how the run ended with it.
    pub fn tell(self, exit: Exit) -> Exit {
        match self.0 {
            None => exit,
            Some(Ok(sentence)) => {
                say!("etwhy: {sentence}");
                exit
            }
            Some(Err(error)) => {
                say!("etwhy: {error:#}");
                if exit == Exit::Done { Exit::InPart } else { exit }
            }
        }
    }
}

impl Running {
    /// Ends it: keeps the file, or cancels the recording if the user wanted everything to end.
    pub fn end(self, interrupted: bool) -> Ended {
        Ended(if interrupted { None } else { Some(self.stop()) })
    }

    /// Stops it and looks at the file.
    fn stop(mut self) -> anyhow::Result<String> {
        let shown = sanitize(&self.file.display().to_string()).into_owned();
        wpr_does(&self.wpr, Command::new(&self.wpr).arg("-stop").arg(&self.file))?;
        self.stopped = true;
        let size = match std::fs::metadata(&self.file) {
            Ok(found) => found.len(),
            Err(error) => bail!("{shown}: wpr reports success, and the file is not there: {error}"),
        };
        EtlFile::open(&self.file, &self.file, &OpenOptions::default())
            .context("wpr reports success, and what it wrote is no trace")?;
        Ok(format!(
            "recorded {}: `etwhy why {shown}` says who it was",
            etwhy_base::units::bytes(i64::try_from(size).unwrap_or(i64::MAX))
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        match wpr_does(&self.wpr, Command::new(&self.wpr).arg("-cancel")) {
            Ok(()) => say!("etwhy: the recording was cancelled"),
            Err(error) => {
                let error = sanitize(&format!("{error:#}")).into_owned();
                say!("etwhy: the recording could not be cancelled, `wpr -cancel` ends it: {error}");
            }
        }
    }
}

/// Where `wpr` is: the variable, the system's folder, the search path.
fn find() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("{VARIABLE}={}: no such file", sanitize(&named.display().to_string()));
        }
        return Ok(named);
    }
    if !cfg!(windows) {
        bail!("--record needs Windows Performance Recorder (wpr.exe), which only Windows has");
    }
    let system = std::env::var_os("SystemRoot").map(|root| Path::new(&root).join("System32"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    system
        .into_iter()
        .chain(std::env::split_paths(&path).filter(|folder| folder.is_absolute()))
        .map(|folder| folder.join("wpr.exe"))
        .find(|file| file.is_file())
        .with_context(|| {
            format!(
                "--record: there is no wpr.exe in System32 or PATH. Windows 10 and later have it, else the Windows \
                 Performance Toolkit; {VARIABLE} may name it"
            )
        })
}

/// Runs `wpr`, and says what it said if it fails.
fn wpr_does(wpr: &Path, command: &mut Command) -> anyhow::Result<()> {
    let what = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{} {what}", wpr.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let said: Vec<&str> = said.split_whitespace().collect();
    let code = output.status.code();
    bail!(
        "wpr {what} failed ({}){}: {}",
        code.map_or_else(|| "ended by the system".to_owned(), |code| format!("code {:#010x}", code as u32)),
        hint(&what, code),
        if said.is_empty() { "it says nothing".to_owned() } else { said.join(" ") }
    )
}

/// What to look at when `wpr` fails. Its own words follow; they are in the language of Windows.
fn hint(what: &str, code: Option<i32>) -> &'static str {
    match (what, code.map(|code| code as u32)) {
        // E_ACCESSDENIED of winerror.h, and the number that it is made of.
        (_, Some(0x8007_0005 | 5)) => ", access denied: an administrator's console is needed",
        ("-start", _) => {
            "; it needs an administrator's console, and `wpr -status` shows whether another recording runs"
        }
        _ => "",
    }
}
