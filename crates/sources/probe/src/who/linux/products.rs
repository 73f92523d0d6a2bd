//! Security products that run.

use super::processes;
use crate::who::suspect::Product;
use etwhy_knowledge::{LinuxProcessFact, linux_process};

/// Largest list of installed packages that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Security products that run, by the names of their processes.
pub fn products() -> Vec<Product> {
    let mut found: Vec<(String, u32, &'static LinuxProcessFact)> = Vec::new();
    for pid in processes::numbers() {
        let Some(comm) = super::files::small(format!("/proc/{pid}/comm")) else { continue };
        let name = processes::name(pid, comm.trim_end());
        if let Some(fact) = linux_process(&name)
            && !found.iter().any(|(known, _, _)| *known == name)
        {
            found.push((name, pid, fact));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let packages = super::files::up_to(MOST_BYTES, "/var/lib/dpkg/status").unwrap_or_default();
    found.sort();
    found
        .into_iter()
        .map(|(name, pid, fact)| Product {
            name: if fact.product.is_empty() { name.clone() } else { fact.product.to_owned() },
            vendor: (!fact.vendor.is_empty()).then(|| fact.vendor.to_owned()),
            kind: "process".to_owned(),
            version: version(&packages, fact.package).map(str::to_owned),
            evidence: format!("/proc/{pid}/comm: {name} ({})", fact.category),
        })
        .collect()
}

/// The version of an installed Debian package (deb-control(5)); `list` is dpkg's list of all packages.
pub fn version<'a>(list: &'a str, package: &str) -> Option<&'a str> {
    if package.is_empty() {
        return None;
    }
    list.split("\n\n").find_map(|entry| {
        let field = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let installed = field("Status")?.split(' ').nth(2) == Some("installed");
        (installed && field("Package")? == package).then(|| field("Version")).flatten()
    })
}
