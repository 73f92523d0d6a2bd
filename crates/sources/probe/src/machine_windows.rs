//! Facts of a Windows machine. Everything here may be read by every user.

use super::Machine;
use etwhy_os::windows::registry::{Key, Name, Root};
use etwhy_os::windows::{disk, library, machine};
use std::path::Path;

/// Adds what Windows tells.
pub fn read(facts: &mut Machine, folder: &Path) {
    let (title, kernel) = system();
    facts.push("os", title);
    facts.push("kernel", kernel);
    let value = |path: &str, name: &str| Some(open(path)?.text(name).ok()?.trim().to_owned());
    facts.push("cpu", value("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "ProcessorNameString"));
    facts.push("memory_bytes", machine::memory_bytes().ok().map(|bytes| bytes.to_string()));
    if let Ok(volume) = disk::volume(folder) {
        facts.push("file_system", Some(volume.file_system));
        facts.push("storage", Some(volume.kind.to_owned()));
    }
    let bios = |name| value("HARDWARE\\DESCRIPTION\\System\\BIOS", name).unwrap_or_default();
    facts.push("virtual", hypervisor(&bios("SystemManufacturer"), &bios("SystemProductName")));
    facts.push("power_plan", power_plan());
}

fn open(path: &str) -> Option<Key> {
    Key::open(Root::Machine, &Name::new(path).ok()?).ok()
}

/// What Windows calls itself, and the version of its kernel.
fn system() -> (Option<String>, Option<String>) {
    let key = open("SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion");
    let text = |name: &str| key.as_ref().and_then(|key| key.text(name).ok()).unwrap_or_default();
    let version = machine::version();
    let build = version.map_or(0, |(_, _, build)| build);
    let title = title(&text("ProductName"), &text("DisplayVersion"), build);
    let title = match library::wine() {
        Some(wine) => format!("Wine {wine} as {title}"),
        None => title,
    };
    let kernel = version.map(|(major, minor, build)| {
        let update = key.as_ref().and_then(|key| key.number("UBR").ok());
        let update = update.map_or(String::new(), |update| format!(".{update}"));
        format!("{major}.{minor}.{build}{update}")
    });
    (Some(title), kernel)
}

/// The registry of Windows 11 still says `Windows 10`; builds from 22000 on are 11 (Microsoft's release information).
fn title(product: &str, release: &str, build: u32) -> String {
    let product = if product.is_empty() { "Windows" } else { product };
    let product =
        if build >= 22000 { product.replacen("Windows 10", "Windows 11", 1) } else { product.to_owned() };
    if release.is_empty() { product } else { format!("{product} {release}") }
}

/// The machine's maker, if it is one of those of virtual machines.
fn hypervisor(maker: &str, model: &str) -> Option<String> {
    const KNOWN: &[&str] = &[
        "VMware",
        "VirtualBox",
        "innotek",
        "QEMU",
        "KVM",
        "Xen",
        "Parallels",
        "Amazon EC2",
        "Google Compute",
        "Virtual Machine",
        "OpenStack",
        "Nutanix",
        "Bochs",
    ];
    let both = format!("{maker} {model}");
    let found = KNOWN.iter().any(|word| both.to_lowercase().contains(&word.to_lowercase()));
    found.then(|| both.trim().to_owned())
}

/// The active power plan. Names of plans that users make are in the registry; those of Windows go by their GUIDs
/// (winnt.h: `GUID_TYPICAL_POWER_SAVINGS`, `GUID_MIN_POWER_SAVINGS`, `GUID_MAX_POWER_SAVINGS`).
fn power_plan() -> Option<String> {
    let plans = open("SYSTEM\\CurrentControlSet\\Control\\Power\\User\\PowerSchemes")?;
    let active = plans.text("ActivePowerScheme").ok()?.to_lowercase();
    let name = match active.as_str() {
        "381b4222-f694-41f0-9685-ff5bb260df2e" => "balanced",
        "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c" => "high performance",
        "a1841308-3541-4fab-bc81-f71556f20b4a" => "power saver",
        "e9a42b02-d5df-448d-aa00-03f14749eb61" => "ultimate performance",
        _ => {
            let named = plans.below(&Name::new(&active).ok()?).ok()?.text("FriendlyName").unwrap_or_default();
            // `@%SystemRoot%\system32\powrprof.dll,-15,Name`
            let name = named.rsplit(',').next().unwrap_or_default().trim();
            return Some(if name.is_empty() { active } else { name.to_owned() });
        }
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_there() {
        let mut facts = Machine::default();
        read(&mut facts, &std::env::temp_dir());
        for name in ["os", "kernel", "cpu", "memory_bytes", "storage"] {
            assert!(facts.get(name).is_some_and(|value| !value.trim().is_empty()), "{name}: {facts:?}");
        }
        assert!(facts.get("os").unwrap().contains("Windows"), "{facts:?}");
    }

    #[test]
    fn names_are_those_people_use() {
        assert_eq!(title("Windows 10 Pro", "24H2", 26100), "Windows 11 Pro 24H2");
        assert_eq!(title("Windows 10 Pro", "22H2", 19045), "Windows 10 Pro 22H2");
        assert_eq!(title("Windows Server 2022 Standard", "21H2", 20348), "Windows Server 2022 Standard 21H2");
        assert_eq!(hypervisor("Dell Inc.", "Latitude 7420"), None);
        assert_eq!(
            hypervisor("Microsoft Corporation", "Virtual Machine").unwrap(),
            "Microsoft Corporation Virtual Machine"
        );
    }
}
