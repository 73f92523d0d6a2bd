//! Facts of a Linux machine, all from `/proc` and `/sys`.

use super::Machine;
use std::path::Path;

/// What the machine tells about itself and the folder.
pub fn read(machine: &mut Machine, folder: &Path) {
    let text = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let release = text("/etc/os-release").or_else(|| text("/usr/lib/os-release")).unwrap_or_default();
    machine.push("os", Some(field(&release, "PRETTY_NAME").unwrap_or_else(|| "Linux".to_owned())));
    machine.push("kernel", text("/proc/sys/kernel/osrelease"));
    let cpu = text("/proc/cpuinfo").unwrap_or_default();
    machine.push("cpu", of_cpu(&cpu, "model name").or_else(|| of_cpu(&cpu, "Model")));
    let memory = text("/proc/meminfo").unwrap_or_default();
    machine.push("memory_bytes", memory_bytes(&memory).map(|bytes| bytes.to_string()));
    let product = text("/sys/class/dmi/id/product_name").filter(|name| !name.is_empty());
    let is_guest =
        of_cpu(&cpu, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    machine.push("virtual", is_guest.then(|| product.clone().unwrap_or_else(|| "yes".to_owned())));
    machine.push("model", product.filter(|_| !is_guest));
    let mounts = text("/proc/self/mountinfo").unwrap_or_default();
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if let Some(mount) = mount_of(&mounts, &folder) {
        machine.push("file_system", Some(mount.kind));
        machine.push("device", Some(mount.source));
        machine.push("storage", storage(&mount.device));
    }
    // Security modules see each system call that they ask for; lockdown is a mode of the kernel.
    machine.push("security_modules", text("/sys/kernel/security/lsm"));
    machine.push("lockdown", text("/sys/kernel/security/lockdown").and_then(|text| chosen(&text)));
    machine.push("governor", text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    machine.push("load_at_start", text("/proc/loadavg").map(|t| t.split(' ').take(1).collect()));
}

/// A value of `/etc/os-release` (os-release(5)), without quotation marks.
fn field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// The first value of that name in `/proc/cpuinfo`.
fn of_cpu(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn memory_bytes(text: &str) -> Option<u64> {
    let kb: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    kb.checked_mul(1024)
}

/// The word in brackets: `none [integrity] confidentiality`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Where a folder lies.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    kind: String,
    source: String,
}

/// The mount of a path (proc_pid_mountinfo(5)): the longest mount point that it begins with, the last of equal ones.
fn mount_of(text: &str, path: &Path) -> Option<Mount> {
    let found = text.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let point = unescape(before.get(4)?);
        let mut after = after.split(' ');
        let mount = Mount {
            device: (*before.get(2)?).to_owned(),
            kind: after.next()?.to_owned(),
            source: unescape(after.next()?),
        };
        path.starts_with(&point).then_some((point.len(), mount))
    });
    found.max_by_key(|(length, _)| *length).map(|(_, mount)| mount)
}

/// Blanks, tabs, line ends and backslashes are written as `\040` in mountinfo.
fn unescape(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// `disk` or `SSD or virtual`, with its model: the queue of a block device says whether it turns.
fn storage(device: &str) -> Option<String> {
    let base = std::fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    // A partition has its disk above it.
    let disk = if base.join("queue").exists() { base } else { base.parent()?.to_owned() };
    let read = |name: &str| std::fs::read_to_string(disk.join(name)).ok().map(|text| text.trim().to_owned());
    let kind = match read("queue/rotational")?.as_str() {
        "1" => "rotating",
        _ => "not rotating",
    };
    let name = disk.file_name()?.to_string_lossy().into_owned();
    Some(match read("device/model") {
        Some(model) if !model.is_empty() => format!("{name}, {model}, {kind}"),
        _ => format!("{name}, {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_text() {
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(field(release, "PRETTY_NAME").as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(
            of_cpu("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name").as_deref(),
            Some("AMD EPYC")
        );
        assert_eq!(memory_bytes("MemTotal:       24684084 kB\nMemFree: 1 kB"), Some(24_684_084 * 1024));
        assert_eq!(chosen("none [integrity] confidentiality").as_deref(), Some("integrity"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn the_innermost_mount() {
        // From proc_pid_mountinfo(5), and a mount point with a blank.
        let text = "1 0 254:0 / / rw - ext4 /dev/vda rw\n36 35 98:0 /mnt1 /mnt rw,noatime master:1 - ext3 /dev/root rw\n\
                    37 35 0:30 / /mnt/a\\040b rw - tmpfs none rw\nbroken\n";
        assert_eq!(mount_of(text, Path::new("/mnt/x")).unwrap().kind, "ext3");
        assert_eq!(mount_of(text, Path::new("/mnt/a b/c")).unwrap().kind, "tmpfs");
        assert_eq!(mount_of(text, Path::new("/mntx")).unwrap().source, "/dev/vda");
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn this_machine() {
        let mut machine = Machine::default();
        read(&mut machine, Path::new("/tmp"));
        for name in ["os", "kernel", "memory_bytes", "file_system"] {
            assert!(machine.get(name).is_some(), "{name}: {machine:?}");
        }
    }
}
