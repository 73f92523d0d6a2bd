//! Which one of several processes with the same name is meant.

use etwhy_table::Database;
use etwhy_trace::catalog::process::ProcessRow;
use serde::Serialize;

/// One process, named so that nobody takes another one for it.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Instance {
    /// Its name; with its services, its application pool or its process id if there are several of that name.
    pub label: String,
    /// What tells it from others of its name in any recording: its services, or its application pool.
    #[serde(skip)]
    pub role: Option<String>,
    /// Its process id.
    pub pid: i64,
}

/// Longest list of services in a label, in characters.
const MAX_SERVICES: usize = 40;

impl Instance {
    /// The process with this number, as table `process` knows it.
    pub fn find(db: &Database, upid: i64) -> Option<Instance> {
        let processes = db.read_or_empty::<ProcessRow>();
        let own = processes.iter().find(|row| row.upid() == upid)?;
        let (name, pid) = (own.name(), own.pid());
        let pool = || {
            own.command_line().filter(|_| name.eq_ignore_ascii_case("w3wp.exe")).and_then(application_pool)
        };
        let services = own.services().filter(|list| !list.is_empty() && list.chars().count() <= MAX_SERVICES);
        let several =
            || processes.iter().filter(|row| row.name().eq_ignore_ascii_case(name)).nth(1).is_some();
        // A name that only one process has says who it is, unless it is that of a host of services.
        let ambiguous = name.eq_ignore_ascii_case("svchost.exe") || several();
        let role = services.or_else(pool);
        let label = match role.filter(|_| ambiguous) {
            Some(role) => format!("{name} ({role})"),
            None if pid > 0 && several() => format!("{name} ({pid})"),
            None => name.to_owned(),
        };
        Some(Instance { label, role: role.map(str::to_owned), pid })
    }
}

/// The application pool of an IIS worker: what follows `-ap` on its command line.
/// <https://learn.microsoft.com/iis/get-started/planning-your-iis-architecture/deep-dive-into-iis-configuration-with-iis-7-and-iis-8>
fn application_pool(command_line: &str) -> Option<&str> {
    let rest = command_line.split_once(" -ap ")?.1.trim_start();
    let pool = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    };
    pool.filter(|pool| !pool.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_iis() {
        let line = r#"c:\windows\system32\inetsrv\w3wp.exe -ap "Shop Pool" -v "v4.0" -l "webengine4.dll" -a \\.\pipe\iisipm1"#;
        assert_eq!(application_pool(line), Some("Shop Pool"));
        assert_eq!(application_pool("w3wp.exe -ap Shop -v v4.0"), Some("Shop"));
        assert_eq!(application_pool("w3wp.exe -debug"), None);
        assert_eq!(application_pool("w3wp.exe -ap \"\""), None);
    }
}
