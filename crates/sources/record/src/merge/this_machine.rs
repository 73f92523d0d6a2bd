//! What this machine adds to traces that were recorded on it.

use super::Volume;
use std::path::PathBuf;

/// What merging takes from the machine that was recorded.
#[derive(Clone, Debug, Default)]
pub struct MachineFacts {
    /// Folders with images: its disks.
    pub images: Vec<PathBuf>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
}

impl MachineFacts {
    /// Those of this machine; none where nothing can be recorded.
    #[cfg(windows)]
    pub fn of_this_one() -> MachineFacts {
        let letters = etwhy_os::windows::disk::letters();
        // Images on other machines are not looked at: a trace would choose whom this program logs on to.
        let fixed = letters.iter().filter(|letter| letter.kind == "fixed");
        MachineFacts {
            images: fixed.map(|letter| PathBuf::from(&letter.root)).collect(),
            volumes: letters
                .into_iter()
                .map(|letter| Volume { nt_path: format!("{}\\", letter.device), dos_path: Some(letter.root) })
                .collect(),
        }
    }

    /// Those of this machine; none where nothing can be recorded.
    #[cfg(not(windows))]
    pub fn of_this_one() -> MachineFacts {
        MachineFacts::default()
    }
}
