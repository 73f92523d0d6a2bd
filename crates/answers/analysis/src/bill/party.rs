//! To whom a program, a driver or a library belongs.

use crate::operators::{ProcessRow, process_names};
use etwhy_knowledge::category_of;
use etwhy_table::Database;
use etwhy_trace::catalog::image::ImageRow;
use std::collections::BTreeMap;

/// Product of everything that comes with Windows.
pub(crate) const WINDOWS: &str = "Windows";

/// Category of programs that the knowledge base does not know.
pub(crate) const OTHER: &str = "[other programs]";
/// Category of drivers that it does not know.
pub(crate) const OTHER_DRIVER: &str = "[other drivers]";

/// Categories of products that put code into what others do: their time in foreign processes is theirs.
const IMPOSING: [&str; 13] = [
    "antivirus",
    "EDR",
    "DLP",
    "ZTNA",
    "ZTNA/DLP",
    "activity-monitor",
    "anti-cheat",
    "application-control",
    "content-screener",
    "copy-protection",
    "privilege-management",
    "security-enhancer",
    "security-monitor",
];

/// True for categories of products that work inside of others' processes.
pub(crate) fn is_imposing(category: &str) -> bool {
    IMPOSING.contains(&category)
}

/// Who something belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Party {
    /// Name of the product; of the vendor or the file if it is not known.
    pub product: String,
    /// Who makes it; empty if unknown.
    pub vendor: String,
    /// Company of the version resource; empty if unknown.
    pub company: String,
    /// What it is for; [`OTHER`] or [`OTHER_DRIVER`] if unknown.
    pub category: String,
}

fn is_microsoft(vendor: &str) -> bool {
    vendor.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("microsoft"))
}

impl Party {
    /// That of a module with this name and what tables know of it.
    pub fn of_module(
        name: &str,
        vendor: Option<&str>,
        product: Option<&str>,
        category: Option<&str>,
    ) -> Party {
        let (vendor, product) = (vendor.unwrap_or("").trim(), product.unwrap_or("").trim());
        let category = category.unwrap_or("");
        let windows = is_windows(vendor, product, category);
        // The version resource of Defender says Windows.
        let known = category_of(name, "")
            .map(|k| k.product)
            .filter(|_| is_imposing(category) && is_microsoft(vendor));
        let product = known.filter(|p| !p.is_empty()).unwrap_or(product);
        let first = |texts: [&str; 3]| texts.into_iter().find(|t| !t.is_empty()).unwrap_or("").to_owned();
        Party {
            product: if windows { WINDOWS.to_owned() } else { first([product, vendor, name]) },
            vendor: vendor.to_owned(),
            company: String::new(),
            category: first([
                category,
                if windows { "os" } else { "" },
                if is_driver_file(name) { OTHER_DRIVER } else { OTHER },
            ]),
        }
    }

    /// Both belong to the same vendor and are for the same.
    pub fn is_same(&self, other: &Party) -> bool {
        self.product == other.product || self.key() == other.key()
    }

    /// What products are told apart by. Parts of a security product have many names: the vendor stands for them.
    pub fn key(&self) -> String {
        if is_imposing(&self.category) && is_microsoft(&self.vendor) {
            format!("microsoft {}", self.category)
        } else if is_imposing(&self.category) && !self.vendor.is_empty() {
            format!("vendor {}", self.vendor.to_ascii_lowercase())
        } else {
            self.product.to_ascii_lowercase()
        }
    }

    /// It comes with Windows and is there for others: drivers for devices, for one.
    pub fn is_windows(&self) -> bool {
        self.product == WINDOWS
    }
}

fn is_driver_file(name: &str) -> bool {
    name.len()
        .checked_sub(4)
        .and_then(|at| name.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(".sys"))
}

/// Windows writes its name into its version resources, with signs that vary.
fn is_windows(vendor: &str, product: &str, category: &str) -> bool {
    let named = product.contains("Windows") && product.contains("Operating System");
    let known = is_microsoft(vendor) && (category == "os" || product.is_empty());
    is_microsoft(vendor) && !is_imposing(category) && (named || known)
}

/// Processes and drivers with their owners.
pub(crate) struct Parties {
    processes: Vec<Process>,
    drivers: BTreeMap<String, Party>,
    unknown: Process,
}

struct Process {
    label: String,
    pid: i64,
    party: Party,
}

/// Programs that are Windows: processes without an image file, and names that count where no vendor is known.
const SYSTEM: [&str; 35] = [
    "System",
    "Registry",
    "Memory Compression",
    "MemCompression",
    "Secure System",
    "vmmem",
    "Idle",
    "audiodg.exe",
    "backgroundTaskHost.exe",
    "conhost.exe",
    "csrss.exe",
    "ctfmon.exe",
    "dllhost.exe",
    "dwm.exe",
    "explorer.exe",
    "fontdrvhost.exe",
    "LogonUI.exe",
    "lsass.exe",
    "lsm.exe",
    "RuntimeBroker.exe",
    "SearchIndexer.exe",
    "SearchProtocolHost.exe",
    "services.exe",
    "sihost.exe",
    "smss.exe",
    "spoolsv.exe",
    "svchost.exe",
    "taskhost.exe",
    "taskhostw.exe",
    "TiWorker.exe",
    "TrustedInstaller.exe",
    "wininit.exe",
    "winlogon.exe",
    "WmiPrvSE.exe",
    "WUDFHost.exe",
];

/// What [`Parties::read`] reads.
pub(crate) type PartiesRows = (ProcessRow, ImageRow);

impl Parties {
    /// Reads `process` and `image`.
    pub fn read(db: &Database) -> Parties {
        let names = process_names(db);
        // Images by process: only those with the name of the process count, and drivers.
        let mut programs: BTreeMap<i64, Party> = BTreeMap::new();
        let mut drivers = BTreeMap::new();
        for row in &db.read_or_empty::<ImageRow>() {
            let (upid, file) = (row.upid().unwrap_or(-1), row.name());
            let of = usize::try_from(upid).ok().and_then(|u| names.get(u));
            if upid >= 0 && !of.is_some_and(|(name, _)| name.eq_ignore_ascii_case(file)) {
                continue;
            }
            let company = row.company().unwrap_or("");
            let product = row.product().filter(|p| !p.trim().is_empty());
            let known = category_of(file, company).map(|k| k.product).filter(|p| !p.is_empty());
            let mut party = match row.vendor() {
                None if upid >= 0 => Parties::by_name(file),
                vendor => Party::of_module(file, vendor, product.or(known), row.category()),
            };
            company.clone_into(&mut party.company);
            if upid < 0 {
                drivers.insert(file.to_ascii_lowercase(), party);
            } else {
                programs.entry(upid).or_insert(party);
            }
        }
        let processes = names.into_iter().enumerate().map(|(upid, (name, pid))| {
            let party = programs.remove(&(upid as i64)).unwrap_or_else(|| Parties::by_name(&name));
            Process { label: format!("{name} ({pid})"), pid, party }
        });
        let processes = processes.collect();
        let unknown = Process {
            label: "[unknown process]".to_owned(),
            pid: -1,
            party: Party { product: "[unknown]".into(), category: OTHER.into(), ..Party::default() },
        };
        Parties { processes, drivers, unknown }
    }

    fn by_name(name: &str) -> Party {
        if SYSTEM.iter().any(|system| system.eq_ignore_ascii_case(name)) {
            return Party::of_module(name, Some("Microsoft"), None, Some("os"));
        }
        let known = category_of(name, "");
        let text = |of: Option<&'static str>| of.filter(|t| !t.is_empty());
        Party::of_module(
            name,
            text(known.map(|k| k.vendor)),
            text(known.map(|k| k.product)),
            text(known.map(|k| k.category)),
        )
    }

    fn at(&self, upid: i64) -> &Process {
        usize::try_from(upid).ok().and_then(|u| self.processes.get(u)).unwrap_or(&self.unknown)
    }

    /// Owner of a process.
    pub fn process(&self, upid: i64) -> &Party {
        &self.at(upid).party
    }

    /// Name and id of a process.
    pub fn label(&self, upid: i64) -> &str {
        &self.at(upid).label
    }

    /// The process stands for the idle threads.
    pub fn is_idle(&self, upid: i64) -> bool {
        self.at(upid).pid == 0
    }

    /// The process is the kernel's own.
    pub fn is_kernel(&self, upid: i64) -> bool {
        matches!(self.at(upid).pid, 0 | 4)
    }

    /// Owner of a driver.
    pub fn driver(&self, name: &str) -> Party {
        let found = self.drivers.get(&name.to_ascii_lowercase()).cloned();
        found.unwrap_or_else(|| Parties::by_name(name))
    }
}
