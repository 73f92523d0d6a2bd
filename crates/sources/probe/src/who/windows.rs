//! Who it is, on Windows: filter drivers by altitude, services, processes and what they used meanwhile.
//!
//! Without administrator's rights Windows does not list its filters. Then they are the drivers that run and have an altitude in
//! the registry, which everybody may read.

mod inside;

use super::suspect::{LIKELY, POSSIBLE, Product, Suspect};
use super::timeline::Seen;
use etwhy_knowledge::{Confidence, driver, is_security, process};
use etwhy_os::windows::file_version;
use etwhy_os::windows::filters::{self, Filter};
use etwhy_os::windows::processes::{self, Process};
use etwhy_os::windows::registry::{Key, Name, Root};
use etwhy_os::windows::services::{self, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Altitudes of the load-order group `FSFilter Anti-Virus` (Microsoft: "Load Order Groups and Altitudes for Minifilter Drivers").
const ANTI_VIRUS: std::ops::Range<f64> = 320_000.0..330_000.0;

/// Where services and drivers are described.
const SERVICES: &str = "SYSTEM\\CurrentControlSet\\Services";

/// Suspects that are named at most.
const MOST_SUSPECTS: usize = 8;

/// Processes that used less are not worth a word: CPU time, and part of the time that passed.
const LEAST_CPU_NS: u64 = 20_000_000;
const LEAST_SHARE: f64 = 0.01;

/// Part of the processors' time that was idle, from which on a busy process took nothing from the probe: there was a processor for both.
const IDLE: f64 = 0.1;

/// A filter driver, and how it is known.
#[derive(Clone, Debug, PartialEq)]
struct Attached {
    filter: Filter,
    file: String,
    evidence: String,
}

/// Security products that run on this machine.
pub fn products() -> Vec<Product> {
    let services = services::running().unwrap_or_default();
    let mut products: Vec<Product> = seen(&services).iter().filter_map(of_filter).collect();
    let mut named: Vec<String> = Vec::new();
    for process in processes::all().unwrap_or_default() {
        if named.contains(&process.name) {
            continue;
        }
        if let Some(product) = of_process(&process, &services) {
            named.push(process.name);
            products.push(product);
        }
    }
    products
}

/// What was there at the start.
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    before: BTreeMap<(u32, u64), u64>,
}

impl Watch {
    /// Begins to look.
    pub fn start(_: &Path) -> Watch {
        Watch { start: Instant::now(), before: times(&processes::all().unwrap_or_default()) }
    }

    /// Who was at work since then, the likeliest first.
    pub fn finish(self) -> Seen {
        let passed = crate::clock::nanos(self.start);
        let now = processes::all().unwrap_or_default();
        let services = services::running().unwrap_or_default();
        let mut notes = Vec::new();
        if self.before.is_empty() || now.is_empty() {
            notes.push("Windows lists no processes: who was busy is not known".to_owned());
        }
        let filters = seen(&services);
        let suspects = judge(&self.before, &now, &filters, &services, passed, std::process::id());
        let mut seen = Seen { suspects, notes, ..Seen::default() };
        inside::judge(&mut seen);
        seen
    }
}

/// CPU time by process; a number alone may have been given anew.
fn times(processes: &[Process]) -> BTreeMap<(u32, u64), u64> {
    processes.iter().map(|process| ((process.id, process.created), process.cpu_ns)).collect()
}

/// Filters, with the file that each is.
fn seen(services: &[Service]) -> Vec<Attached> {
    let file = |name: &str| image(name).unwrap_or_else(|| format!("{name}.sys"));
    match filters::loaded() {
        Ok(filters) => filters
            .into_iter()
            .map(|filter| {
                let volumes =
                    filter.instances.map_or(String::new(), |n| format!(", attached to {n} volumes"));
                let evidence = format!("FilterFindFirst: altitude {}{volumes}", filter.altitude);
                Attached { file: file(&filter.name), filter, evidence }
            })
            .collect(),
        Err(_) => services
            .iter()
            .filter(|service| service.is_driver)
            .filter_map(|service| {
                let (altitude, key) = registered_altitude(&service.name)?;
                let filter = Filter { name: service.name.clone(), altitude, instances: None };
                let evidence = format!("the driver runs, and HKLM\\{key} has altitude {}", filter.altitude);
                Some(Attached { file: file(&service.name), filter, evidence })
            })
            .collect(),
    }
}

/// The altitude of a driver's instance, and where it stands. Windows 11 24H2 has moved `Instances` below `Parameters`.
fn registered_altitude(service: &str) -> Option<(String, String)> {
    ["Parameters\\Instances", "Instances"].iter().find_map(|place| {
        let path = format!("{SERVICES}\\{service}\\{place}");
        let key = Key::open(Root::Machine, &Name::new(&path).ok()?).ok()?;
        let mut names = key.below_names(16).ok()?;
        if let Ok(default) = key.text("DefaultInstance") {
            names.insert(0, default);
        }
        names.iter().find_map(|name| {
            let altitude = key.below(&Name::new(name).ok()?).ok()?.text("Altitude").ok()?;
            (!altitude.is_empty()).then(|| (altitude, format!("{path}\\{name}")))
        })
    })
}

/// File name of a driver's or service's image.
fn image(service: &str) -> Option<String> {
    let path = image_path(service)?;
    Some(path.rsplit(['\\', '/']).next()?.to_owned())
}

fn image_path(service: &str) -> Option<String> {
    let key = Key::open(Root::Machine, &Name::new(&format!("{SERVICES}\\{service}")).ok()?).ok()?;
    key.text("ImagePath").ok().filter(|path| !path.is_empty())
}

/// The version of a driver's file.
fn version(service: &str) -> Option<String> {
    let windows = PathBuf::from(std::env::var_os("SystemRoot")?);
    let path = image_path(service)?;
    let lower = path.to_lowercase();
    // `system32\drivers\x.sys`, `\SystemRoot\System32\drivers\x.sys`, `\??\C:\…\x.sys`
    let file = if let Some(rest) = lower.strip_prefix("\\systemroot\\") {
        windows.join(rest)
    } else if let Some(rest) = lower.strip_prefix("\\??\\") {
        PathBuf::from(rest)
    } else if lower.starts_with("system32\\") {
        windows.join(lower)
    } else {
        PathBuf::from(lower)
    };
    file_version::read(&file).ok().flatten()
}

fn of_filter(seen: &Attached) -> Option<Product> {
    let fact = driver(&seen.file).filter(|fact| is_security(fact.category));
    let by_place = is_anti_virus(&seen.filter.altitude);
    if fact.is_none() && !by_place {
        return None;
    }
    let known = fact.map(|fact| fact.product).filter(|product| !product.is_empty());
    Some(Product {
        name: match known {
            Some(product) => format!("{product} ({})", seen.file),
            None => format!("{} (a filter among the anti-virus filters)", seen.file),
        },
        vendor: fact.map(|fact| fact.vendor.to_owned()).filter(|vendor| !vendor.is_empty()),
        kind: "minifilter".to_owned(),
        version: version(&seen.filter.name),
        evidence: seen.evidence.clone(),
    })
}

fn is_anti_virus(altitude: &str) -> bool {
    altitude.parse::<f64>().is_ok_and(|altitude| ANTI_VIRUS.contains(&altitude))
}

fn of_process(process: &Process, services: &[Service]) -> Option<Product> {
    let fact = security_process(&process.name)?;
    let service = services.iter().find(|service| service.process == Some(process.id));
    Some(Product {
        name: format!("{} ({})", fact.product, process.name),
        vendor: Some(fact.vendor.to_owned()).filter(|vendor| !vendor.is_empty()),
        kind: if service.is_some() { "service" } else { "process" }.to_owned(),
        version: None,
        evidence: match service {
            Some(service) => format!("service {} ({}), process {}", service.name, service.title, process.id),
            None => format!("process {}", process.id),
        },
    })
}

/// What a process is, if its name is that of a security product and of nothing else.
fn security_process(name: &str) -> Option<&'static etwhy_knowledge::ProcessFact> {
    process(name)
        .filter(|fact| is_security(fact.category) && !fact.ambiguous && fact.confidence != Confidence::Low)
}

/// A process and those that it started, and so on. The number of a parent that is gone may have been given anew, to a younger
/// process than its child.
fn descendants(processes: &[Process], root: u32) -> BTreeSet<u32> {
    let created: BTreeMap<u32, u64> = processes.iter().map(|process| (process.id, process.created)).collect();
    let mut all = BTreeSet::from([root]);
    loop {
        let before = all.len();
        for process in processes {
            let older = created.get(&process.parent).is_none_or(|&parent| parent <= process.created);
            if older && all.contains(&process.parent) {
                all.insert(process.id);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Part of the processors' time that was idle; `None` if that is not told. Process number 0 stands for idle processors.
fn idle(before: &BTreeMap<(u32, u64), u64>, now: &[Process]) -> Option<f64> {
    let used = |process: &Process| {
        let then = before.get(&(process.id, process.created)).copied().unwrap_or(0);
        process.cpu_ns.saturating_sub(then) as f64
    };
    let all: f64 = now.iter().map(used).sum();
    let idle = now.iter().find(|process| process.id == 0 && before.contains_key(&(0, process.created)))?;
    (all > 0.0).then(|| used(idle) / all)
}

fn judge(
    before: &BTreeMap<(u32, u64), u64>,
    now: &[Process],
    filters: &[Attached],
    services: &[Service],
    passed_ns: u64,
    us: u32,
) -> Vec<Suspect> {
    let mut vendors: Vec<&str> = Vec::new();
    let mut suspects: Vec<(u8, Suspect)> = Vec::new();
    for seen in filters {
        let Some(product) = of_filter(seen) else { continue };
        vendors.extend(driver(&seen.file).map(|fact| fact.vendor).filter(|vendor| !vendor.is_empty()));
        let place = if is_anti_virus(&seen.filter.altitude) {
            "It stands among the anti-virus filters and is asked at each open of a file"
        } else {
            "It stands between programs and the file system"
        };
        suspects.push((
            0,
            Suspect {
                name: product.name,
                process: None,
                kind: "minifilter".to_owned(),
                evidence: vec![format!("{place} ({}).", seen.evidence)],
                cpu_ns: None,
                blocked_ns: None,
                confidence: LIKELY.to_owned(),
            },
        ));
    }
    let ours = descendants(now, us);
    let short = idle(before, now).filter(|idle| *idle < IDLE);
    // Without what they had used before, nothing tells what they used meanwhile.
    for process in now.iter().filter(|_| !before.is_empty()) {
        let used =
            process.cpu_ns.saturating_sub(before.get(&(process.id, process.created)).copied().unwrap_or(0));
        let share = used as f64 / passed_ns.max(1) as f64;
        // Number 0 stands for idle processors; what we and our children use is no riddle.
        if process.id == 0 || ours.contains(&process.id) || used < LEAST_CPU_NS || share < LEAST_SHARE {
            continue;
        }
        let fact = security_process(&process.name);
        // That somebody works is no evidence, unless the processors were short.
        if fact.is_none() && short.is_none() {
            continue;
        }
        // A product with a filter and a busy process: the filter asks the process.
        let linked = fact.is_some_and(|fact| vendors.contains(&fact.vendor));
        let service = services.iter().find(|service| service.process == Some(process.id));
        let mut evidence = vec![format!(
            "It used {:.0} ms of CPU time while the probe ran, {:.0} % of a processor.",
            used as f64 / 1e6,
            share * 100.0
        )];
        if let Some(fact) = fact {
            evidence
                .push(format!("By its name it is {} ({}, {}).", fact.product, fact.vendor, fact.category));
        }
        if linked {
            evidence.push("A filter driver of the same maker is loaded, which asks it.".to_owned());
        }
        if let Some(idle) = short {
            evidence.push(format!(
                "Processors were short: they were idle for {:.0} % of the time.",
                idle * 100.0
            ));
        }
        if let Some(service) = service {
            evidence.push(format!("It runs the service {} ({}).", service.name, service.title));
        }
        let rank = if linked {
            1
        } else if fact.is_some() {
            2
        } else {
            3
        };
        suspects.push((
            rank,
            Suspect {
                name: process.name.clone(),
                process: Some(process.id),
                kind: "process".to_owned(),
                evidence,
                cpu_ns: Some(used),
                blocked_ns: None,
                confidence: if linked { LIKELY } else { POSSIBLE }.to_owned(),
            },
        ));
    }
    suspects.sort_by_key(|(rank, suspect)| (*rank, std::cmp::Reverse(suspect.cpu_ns)));
    suspects.truncate(MOST_SUSPECTS);
    suspects.into_iter().map(|(_, suspect)| suspect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: u32, parent: u32, name: &str, cpu_ms: u64) -> Process {
        let cpu_ns = cpu_ms * 1_000_000;
        Process { id, parent, name: name.to_owned(), created: u64::from(id) + 1000, cpu_ns }
    }

    fn filter(name: &str, altitude: &str) -> Attached {
        let filter = Filter { name: name.to_owned(), altitude: altitude.to_owned(), instances: Some(2) };
        Attached { filter, file: format!("{name}.sys"), evidence: format!("altitude {altitude}") }
    }

    #[test]
    fn an_engine_with_a_filter_is_likelier_than_a_busy_program_which_counts_if_processors_are_short() {
        let before = times(&[
            process(0, 0, "", 1_000),
            process(8, 4, "MsMpEng.exe", 5_000),
            process(12, 4, "build.exe", 100),
            process(16, 4, "etwhy.exe", 10),
        ]);
        let mut now = [
            process(0, 0, "", 1_100),
            process(8, 4, "MsMpEng.exe", 5_700),
            process(12, 4, "build.exe", 1_900),
            process(16, 4, "etwhy.exe", 2_000),
            process(28, 20, "grandchild.exe", 700),
            process(20, 16, "child.exe", 500),
            process(24, 4, "idle.exe", 5),
        ];
        let filters =
            [filter("WdFilter", "328010"), filter("FileCrypt", "141100"), filter("strange", "321999.5")];
        let services = [Service {
            name: "WinDefend".into(),
            title: "Defender".into(),
            is_driver: false,
            process: Some(8),
        }];
        let suspects = judge(&before, &now, &filters, &services, 2_000_000_000, 16);
        let names: Vec<(&str, &str)> =
            suspects.iter().map(|s| (s.name.as_str(), s.confidence.as_str())).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(names[0].0.contains("WdFilter.sys") && names[0].1 == "likely", "{names:?}");
        assert!(names[1].0.starts_with("strange.sys"), "{names:?}");
        assert_eq!(names[2..], [("MsMpEng.exe", "likely"), ("build.exe", "possible")]);
        assert_eq!((suspects[2].cpu_ns, suspects[2].process), (Some(700_000_000), Some(8)));
        let said = suspects[2].evidence.join(" ");
        assert!(said.contains("700 ms") && said.contains("35 %") && said.contains("WinDefend"), "{said}");
        // 100 ms of idle time beside 700 + 1,800 + 1,990 + 700 + 500 + 5 ms of work.
        assert!(suspects[3].evidence.join(" ").contains("idle for 2 % of the time"), "{suspects:?}");
        // Eight seconds of idle time: the build took nothing from anybody.
        now[0] = process(0, 0, "", 9_000);
        let suspects = judge(&before, &now, &filters, &services, 2_000_000_000, 16);
        assert!(suspects.len() == 3 && suspects[2].name == "MsMpEng.exe", "{suspects:?}");
    }

    #[test]
    fn a_number_that_is_given_anew_is_another_process() {
        let mut again = process(8, 4, "new.exe", 300);
        again.created += 1;
        let idle = process(0, 0, "", 5_000);
        let before = times(&[idle.clone(), process(8, 4, "old.exe", 9_000)]);
        let suspects = judge(&before, &[idle, again], &[], &[], 1_000_000_000, 16);
        assert_eq!(suspects[0].cpu_ns, Some(300_000_000));
    }

    #[test]
    fn this_machine_is_looked_at() {
        let look = Watch::start(&std::env::temp_dir());
        for product in products() {
            assert!(!product.name.is_empty() && !product.evidence.is_empty(), "{product:?}");
        }
        assert!(look.finish().suspects.iter().all(|suspect| suspect.process != Some(std::process::id())));
    }
}
