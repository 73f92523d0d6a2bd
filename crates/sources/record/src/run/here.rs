//! The machine that this program runs on.

use super::{Machine, Recorder, Refused, Sessions, Watch};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What every other system says.
#[cfg(not(windows))]
const ELSEWHERE: &str = "recording needs Windows: run `etwhy record start` there, `etwhy record start … --on HOST` prints the commands for \
                         that, `etwhy record --print` prints what wpr, xperf and logman need";

/// Sessions, machine and journal of this machine.
pub struct Here {
    sessions: Box<dyn Sessions>,
    machine: Box<dyn Machine>,
    folder: PathBuf,
}

impl Here {
    /// Opens it.
    ///
    /// # Errors
    /// Where this is no Windows, or functions of Windows are missing.
    pub fn open() -> Result<Here, Refused> {
        #[cfg(not(windows))]
        return Err(Refused(ELSEWHERE.to_owned()));
        #[cfg(windows)]
        {
            let folder = folder();
            let sessions = super::Windows::load().map_err(|error| {
                Refused(format!("functions of Event Tracing for Windows are missing: {error}"))
            })?;
            let machine = super::ThisMachine::new(folder.clone());
            Ok(Here { sessions: Box::new(sessions), machine: Box::new(machine), folder })
        }
    }

    /// Folder of the journal, and of the files unless the user names another one. Only administrators can write there, so that
    /// nobody else can have an administrator's `stop` move or delete files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Tries whether triggers can be watched here.
    ///
    /// # Errors
    /// Which cannot, and why.
    pub fn prepare(&mut self, watch: &mut Watch) -> Result<(), Refused> {
        watch.prepare(&mut *self.machine).map_err(Refused)
    }

    /// Does one step while no other etwhy does one.
    ///
    /// # Errors
    /// If the folder of the journal cannot be written, or the step refuses.
    pub fn step<T>(
        &mut self,
        act: impl FnOnce(&mut Recorder<'_>) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let refused = |error: std::io::Error| {
            let hint = if error.kind() == std::io::ErrorKind::PermissionDenied {
                ": start etwhy from an administrator's console"
            } else {
                ""
            };
            Refused(format!("{}: {error}{hint}", self.folder.display()))
        };
        fs::create_dir_all(&self.folder).map_err(refused)?;
        let lock = File::create(self.folder.join("lock")).map_err(refused)?;
        lock.lock().map_err(refused)?;
        // The lock goes with the file, also if this program is killed.
        act(&mut Recorder { sessions: &mut *self.sessions, machine: &mut *self.machine })
    }
}

/// `ETWHY_RECORD`, else a folder that Windows keeps for log files.
#[cfg(windows)]
fn folder() -> PathBuf {
    let given = std::env::var_os("ETWHY_RECORD").filter(|folder| !folder.is_empty());
    given.map_or_else(
        || {
            let root = std::env::var_os("SystemRoot").unwrap_or_else(|| "C:\\Windows".into());
            PathBuf::from(root).join("System32\\LogFiles\\etwhy")
        },
        PathBuf::from,
    )
}
