//! Which files belong to which provider: what the registry says, wherever it is read.
//!
//! Providers of manifests: `SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT\Publishers\{guid}`. Classic ones:
//! [Eventlog key](https://learn.microsoft.com/windows/win32/eventlog/eventlog-key) and
//! [event sources](https://learn.microsoft.com/windows/win32/eventlog/event-sources).

use super::hive::{Hive, Key};
use super::reg::{self, Keys};
use super::source::{Entry, Source};
use crate::error::Error;
use crate::store::Registration;

/// Reads a hive, a `.reg` file or the collector's list.
pub(crate) fn read(source: &mut dyn Source, entry: &Entry) -> Result<Vec<Registration>, Error> {
    let bytes = source.bytes(entry)?;
    let path = entry.path.to_ascii_lowercase();
    if path.ends_with(".csv") {
        return list(&bytes);
    }
    if path.ends_with(".reg") {
        return Ok(registrations(&reg::read(&bytes)));
    }
    let opened = Hive::open(&bytes)?;
    let keys = hive(&opened);
    match opened.is_spent() {
        true => Err(Error::malformed("regf", 0, "its cells refer to the same data over and over")),
        false => Ok(registrations(&keys)),
    }
}

/// The keys of a hive that matter.
fn hive(hive: &Hive<'_>) -> Keys {
    let mut keys = Keys::new();
    let publishers = ["Microsoft", "Windows", "CurrentVersion", "WINEVT", "Publishers"];
    if let Some(key) = hive.path(&publishers) {
        for publisher in hive.subkeys(key) {
            let name = hive.name(publisher).unwrap_or_default();
            keys.push((path(&["WINEVT", "Publishers", &name]), hive.values(publisher)));
        }
    }
    if let Some(control) = control_set(hive)
        && let Some(services) = hive.subkey(control, "Services")
        && let Some(logs) = hive.subkey(services, "EventLog")
    {
        for log in hive.subkeys(logs) {
            let log_name = hive.name(log).unwrap_or_default();
            for provider in hive.subkeys(log) {
                let name = hive.name(provider).unwrap_or_default();
                keys.push((path(&["Services", "EventLog", &log_name, &name]), hive.values(provider)));
            }
        }
    }
    keys
}

fn path(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// The control set that the machine runs with: `Select\Current` says which.
fn control_set(hive: &Hive<'_>) -> Option<Key> {
    let current = hive
        .path(&["Select"])
        .and_then(|select| hive.values(select).into_iter().find(|(name, _)| name == "current"))
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(1u32);
    hive.path(&[&format!("ControlSet{current:03}")]).or_else(|| hive.path(&["ControlSet001"]))
}

/// What keys say.
pub(crate) fn registrations(keys: &Keys) -> Vec<Registration> {
    keys.iter().filter_map(|(path, values)| registration(path, values)).collect()
}

fn registration(path: &[String], values: &[(String, String)]) -> Option<Registration> {
    let value = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let files = |name: &str| -> Vec<String> {
        value(name)
            .unwrap_or_default()
            .split(';')
            .map(|path| path.trim().to_owned())
            .filter(|path| !path.is_empty())
            .collect()
    };
    let is = |at: usize, name: &str| {
        path.len()
            .checked_sub(at)
            .and_then(|at| path.get(at))
            .is_some_and(|part| part.eq_ignore_ascii_case(name))
    };
    if is(3, "WINEVT") && is(2, "Publishers") {
        return Some(Registration {
            name: value("").unwrap_or_default().to_owned(),
            log: None,
            guid: Some(path.last()?.parse().ok()?),
            resource: files("resourcefilename"),
            message: files("messagefilename"),
            parameter: files("parameterfilename"),
            category: Vec::new(),
        });
    }
    if is(4, "Services") && is(3, "EventLog") {
        let log = path.get(path.len() - 2)?.clone();
        let registration = Registration {
            name: path.last()?.clone(),
            log: Some(log),
            guid: value("providerguid").and_then(|text| text.parse().ok()),
            resource: Vec::new(),
            message: files("eventmessagefile"),
            parameter: files("parametermessagefile"),
            category: files("categorymessagefile"),
        };
        let empty = registration.guid.is_none()
            && registration.message.is_empty()
            && registration.parameter.is_empty()
            && registration.category.is_empty();
        return (!empty).then_some(registration);
    }
    None
}

/// The collector's `providers.csv`: kind, name, log, guid, resource, message, parameter, category.
fn list(bytes: &[u8]) -> Result<Vec<Registration>, Error> {
    let text = match bytes.strip_prefix(b"\xff\xfe") {
        Some(wide) => crate::bytes::utf16(wide),
        None => String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned(),
    };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let malformed = |e: csv::Error| {
        let at = e.position().map_or(0, |p| p.byte() as usize);
        Error::malformed("providers.csv", at, e.to_string())
    };
    let head: Vec<String> =
        reader.headers().map_err(malformed)?.iter().map(str::to_ascii_lowercase).collect();
    let column = |name: &str| head.iter().position(|h| h == name);
    let (Some(kind), Some(name)) = (column("kind"), column("name")) else {
        return Err(Error::malformed("providers.csv", 0, "its first line has no columns kind and name"));
    };
    let mut out = Vec::new();
    for row in reader.records() {
        let row = row.map_err(malformed)?;
        let text = |name: &str| column(name).and_then(|at| row.get(at)).unwrap_or_default();
        let files = |name: &str| -> Vec<String> {
            text(name).split(';').map(|path| path.trim().to_owned()).filter(|path| !path.is_empty()).collect()
        };
        let classic = row.get(kind).is_some_and(|k| k.eq_ignore_ascii_case("classic"));
        out.push(Registration {
            name: row.get(name).unwrap_or_default().to_owned(),
            log: classic.then(|| text("log").to_owned()),
            guid: text("guid").parse().ok(),
            resource: files("resource"),
            message: files("message"),
            parameter: files("parameter"),
            category: files("category"),
        });
    }
    Ok(out)
}
