//! Facts of a Mac, from the programs that every macOS has.

use super::Machine;
use std::process::{Command, Stdio};

/// What the machine tells about itself.
pub fn read(machine: &mut Machine) {
    let said = |program: &str, words: &[&str]| {
        let output =
            Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let version = said("/usr/bin/sw_vers", &["-productVersion"]).unwrap_or_default();
    machine.push("os", Some(format!("macOS {version}").trim_end().to_owned()));
    for (name, key) in [
        ("kernel", "kern.osrelease"),
        ("cpu", "machdep.cpu.brand_string"),
        ("memory_bytes", "hw.memsize"),
        ("model", "hw.model"),
    ] {
        machine.push(name, said("/usr/sbin/sysctl", &["-n", key]));
    }
    machine
        .push("virtual", said("/usr/sbin/sysctl", &["-n", "kern.hv_vmm_present"]).filter(|yes| yes == "1"));
}
