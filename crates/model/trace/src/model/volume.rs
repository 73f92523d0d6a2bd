//! Drive letters of device paths, from the volume mapping that merging adds.

use crate::event::fields::Event;
use crate::event::select::{Select, What};
use etwhy_etl::abi::guids::SYSTEM_CONFIG_EX;

const SYSTEM_PATHS: u8 = 33;
const MAPPING: u8 = 35;

pub(crate) const SELECTS: &[Select] = &[
    Select::new(What::Classic(SYSTEM_CONFIG_EX, SYSTEM_PATHS), SYSTEM_PATHS),
    Select::new(What::Classic(SYSTEM_CONFIG_EX, MAPPING), MAPPING),
];

/// What device paths are called on the machine.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    /// (device path in lower case, drive path), longest first, both ending in a backslash.
    map: Vec<(String, String)>,
    windows: Option<String>,
}

/// A trace does not have more volumes than this; anything above is damage or malice.
const MAX_VOLUMES: usize = 4096;

impl Volumes {
    /// Makes `device` known as `drive`.
    pub fn add(&mut self, device: &str, drive: &str) {
        if device.is_empty() || self.map.len() >= MAX_VOLUMES {
            return;
        }
        let device = device.to_lowercase();
        if self.map.iter().any(|(known, _)| *known == device) {
            return;
        }
        let at = self.map.partition_point(|(known, _)| known.len() >= device.len());
        self.map.insert(at, (device, drive.to_owned()));
    }

    /// The path as a user of the machine would write it. Unknown devices keep their path.
    pub fn drive_path(&self, path: &str) -> String {
        for (device, drive) in &self.map {
            if let Some(rest) = behind(path, device) {
                return format!("{drive}{rest}");
            }
        }
        if let Some(rest) = path.strip_prefix("\\??\\") {
            return rest.to_owned();
        }
        if let (Some(windows), Some(rest)) = (&self.windows, behind(path, SYSTEM_ROOT)) {
            return format!("{windows}{rest}");
        }
        if let Some(rest) = path.strip_prefix("\\Device\\Mup\\") {
            return format!("\\\\{rest}");
        }
        if let Some(drive) = self.drive_of(path) {
            return format!("{drive}{path}");
        }
        path.to_owned()
    }

    /// The drive of a path without any device, as some image events of Windows 7 and 8 have it
    /// (`\Windows\System32\a.dll`): the system's if it lies in the Windows folder, or the only
    /// disk's.
    fn drive_of(&self, path: &str) -> Option<&str> {
        if !path.starts_with('\\') || path.starts_with("\\\\") || path.starts_with("\\??\\") {
            return None;
        }
        let letter = |drive: &'_ str| drive.get(1..2) == Some(":");
        let windows = self.windows.as_deref().filter(|windows| letter(windows));
        let under = |folder: &str| folder.get(2..).is_some_and(|f| behind(path, &f.to_lowercase()).is_some());
        if let Some(windows) = windows.filter(|windows| under(windows)) {
            return windows.get(..2);
        }
        if behind(path, "\\device\\").is_some() || behind(path, SYSTEM_ROOT).is_some() {
            return None;
        }
        let mut disks =
            self.map.iter().filter(|(device, drive)| device.contains("\\harddiskvolume") && letter(drive));
        let (_, drive) = disks.next()?;
        if disks.next().is_some() { None } else { drive.get(..2) }
    }
}

const SYSTEM_ROOT: &str = "\\systemroot\\";

/// What follows `prefix`, which is in lower case, in a path in any case.
fn behind<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let (head, rest) = path.split_at_checked(prefix.len())?;
    let is_same = match head.is_ascii() {
        true => head.eq_ignore_ascii_case(prefix),
        false => head.to_lowercase() == prefix,
    };
    is_same.then_some(rest)
}

pub(crate) fn event(event: &Event<'_>, volumes: &mut Volumes) {
    let fields = event.fields();
    match event.tag {
        MAPPING => volumes.add(&fields.text("NtPath"), &fields.text("DosPath")),
        _ => {
            let mut windows = fields.text("SystemWindowsDirectory").into_owned();
            if !windows.is_empty() {
                if !windows.ends_with('\\') {
                    windows.push('\\');
                }
                volumes.windows = Some(windows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_device_wins_whatever_the_case() {
        let mut volumes = Volumes::default();
        volumes.add("\\Device\\HarddiskVolume1\\", "C:\\");
        volumes.add("\\Device\\HarddiskVolume10\\", "D:\\");
        volumes.add("\\SystemRoot\\", "C:\\Windows\\");
        assert_eq!(volumes.drive_path("\\device\\harddiskvolume1\\x"), "C:\\x");
        assert_eq!(volumes.drive_path("\\Device\\HarddiskVolume10\\x"), "D:\\x");
        assert_eq!(volumes.drive_path("\\SystemRoot\\system32\\a.sys"), "C:\\Windows\\system32\\a.sys");
        assert_eq!(volumes.drive_path("\\Device\\HarddiskVolume3\\x"), "\\Device\\HarddiskVolume3\\x");
        assert_eq!(volumes.drive_path("\\??\\C:\\x"), "C:\\x");
        volumes.add("\\Device\\Straße\\", "E:\\");
        assert_eq!(volumes.drive_path("\\DEVICE\\STRAßE\\Ä"), "E:\\Ä");
        assert_eq!(volumes.drive_path("\\Devicé\\x"), "\\Devicé\\x");
        assert_eq!(volumes.drive_path("\\Device\\Mup\\server\\share\\x"), "\\\\server\\share\\x");
    }

    #[test]
    fn paths_without_a_device_lie_on_the_only_disk_or_in_the_windows_folder() {
        let mut volumes = Volumes::default();
        assert_eq!(volumes.drive_path("\\temp\\x"), "\\temp\\x");
        volumes.add("\\Device\\HarddiskVolume2\\", "D:\\");
        volumes.windows = Some("D:\\Windows\\".to_owned());
        assert_eq!(volumes.drive_path("\\temp\\x"), "D:\\temp\\x");
        volumes.add("\\Device\\HarddiskVolume3\\", "E:\\");
        assert_eq!(volumes.drive_path("\\temp\\x"), "\\temp\\x");
        assert_eq!(volumes.drive_path("\\windows\\x"), "D:\\windows\\x");
        assert_eq!(volumes.drive_path("\\\\server\\x"), "\\\\server\\x");
        assert_eq!(volumes.drive_path("\\Device\\Foo\\x"), "\\Device\\Foo\\x");
        assert_eq!(volumes.drive_path("[hypercall page]"), "[hypercall page]");
    }
}
