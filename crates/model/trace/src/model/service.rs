//! Services: which exist, in which process they run, and by which tag their threads are known.
//!
//! The service manager gives every service a number, the `SubProcessTag`. A thread carries the tag of the service
//! that it works for, so that services that share an `svchost.exe` can be told apart.

use crate::event::fields::Event;
use crate::event::select::Select;
use crate::model::process::Processes;
use etwhy_decode::kernel::events::SystemConfig;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

pub(crate) const SELECTS: &[Select] = &[Select::kernel(SystemConfig::Services, &[])];

/// A service, as `SystemConfig` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its key name.
    pub name: Sym,
    /// What people see.
    pub display_name: Option<Sym>,
    /// Image name of its process, as recorded.
    pub process_name: Option<Sym>,
    /// Group of its `svchost.exe`.
    pub svchost_group: Option<Sym>,
    /// Group by which the system starts it.
    pub load_order_group: Option<Sym>,
    /// `dwCurrentState` of `SERVICE_STATUS`; not recorded before version 2.
    pub state: Option<u32>,
    /// Process id; 0 when it does not run.
    pub pid: u32,
    /// Tag of its threads; 0 when it has none or none was recorded.
    pub tag: u32,
    /// When this was said, ns.
    pub ns: i64,
}

/// All services.
#[derive(Clone, Debug, Default)]
pub struct Services {
    all: Vec<Service>,
    known: HashMap<(Sym, u32, u32), u32>,
    by_tag: HashMap<(u32, u32), u32>,
}

/// A machine has some hundreds; what is above this is damage or malice.
const MAX_SERVICES: usize = 65_536;

impl Services {
    /// All, in the order of their first mention.
    pub fn all(&self) -> &[Service] {
        &self.all
    }

    /// The service behind a tag in a process.
    pub fn by_tag(&self, pid: u32, tag: u32) -> Option<&Service> {
        let number = *self.by_tag.get(&(pid, tag)).filter(|_| tag != 0)?;
        self.all.get(number as usize)
    }

    /// Numbers of the services that each process hosts, by process instance.
    pub fn hosted(&self, processes: &Processes) -> HashMap<u32, Vec<u32>> {
        let mut instances: HashMap<u32, Vec<u32>> = HashMap::default();
        for (upid, process) in processes.all().iter().enumerate() {
            instances.entry(process.pid).or_default().push(upid as u32);
        }
        let mut hosted: HashMap<u32, Vec<u32>> = HashMap::default();
        for (number, service) in self.all.iter().enumerate().filter(|(_, s)| s.pid != 0) {
            let candidates = instances.get(&service.pid).map_or(&[][..], Vec::as_slice);
            // The record speaks of the moment at which it was written; ids are used again.
            let lives = |upid: &u32| {
                processes.get(*upid).is_some_and(|p| {
                    p.start_ns.is_none_or(|s| s <= service.ns) && p.end_ns.is_none_or(|e| e >= service.ns)
                })
            };
            let host = candidates.iter().copied().rfind(lives);
            // Session headers are merged with their time of writing lost: a single candidate is meant.
            let host = host.or_else(|| candidates.first().copied().filter(|_| candidates.len() == 1));
            if let Some(upid) = host {
                hosted.entry(upid).or_default().push(number as u32);
            }
        }
        hosted
    }

    fn add(&mut self, service: Service) {
        let key = (service.name, service.pid, service.tag);
        if let Some(known) = self.known.get(&key).and_then(|&n| self.all.get_mut(n as usize)) {
            // Several sessions of one recording, or start and end of one, say the same: the last word counts.
            *known = service;
            return;
        }
        if self.all.len() >= MAX_SERVICES {
            return;
        }
        let number = self.all.len() as u32;
        self.known.insert(key, number);
        if service.tag != 0 {
            self.by_tag.insert((service.pid, service.tag), number);
        }
        self.all.push(service);
    }
}

/// The name of a service state (`SERVICE_STATUS.dwCurrentState`, winsvc.h).
pub fn state_name(state: u32) -> Option<&'static str> {
    Some(match state {
        1 => "stopped",
        2 => "start pending",
        3 => "stop pending",
        4 => "running",
        5 => "continue pending",
        6 => "pause pending",
        7 => "paused",
        _ => return None,
    })
}

pub(crate) fn event(event: &Event<'_>, services: &mut Services, strings: &mut Strings) {
    let fields = event.fields();
    let mut text = |name: &str| {
        let text = fields.text(name);
        strings.intern_non_empty(text.trim())
    };
    let Some(name) = text("ServiceName") else { return };
    let service = Service {
        name,
        display_name: text("DisplayName"),
        process_name: text("ProcessName"),
        svchost_group: text("SvchostGroup"),
        load_order_group: text("LoadOrderGroup"),
        state: fields.u32("ServiceState"),
        pid: fields.u32("ProcessId").unwrap_or(0),
        tag: fields.u32("SubProcessTag").unwrap_or(0),
        ns: event.ns,
    };
    services.add(service);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: u32, pid: u32, tag: u32) -> Service {
        Service {
            name: Sym(name),
            display_name: None,
            process_name: None,
            svchost_group: None,
            load_order_group: None,
            state: Some(4),
            pid,
            tag,
            ns: 10,
        }
    }

    #[test]
    fn tags_tell_services_of_one_process_apart() {
        let mut services = Services::default();
        services.add(service(1, 500, 7));
        services.add(service(2, 500, 8));
        services.add(service(2, 500, 8));
        services.add(service(3, 0, 0));
        assert_eq!(services.all().len(), 3);
        assert_eq!(services.by_tag(500, 8).map(|s| s.name), Some(Sym(2)));
        assert_eq!(services.by_tag(501, 8), None);
        assert_eq!(services.by_tag(0, 0), None);
    }

    #[test]
    fn a_service_runs_in_the_instance_of_its_time() {
        let mut processes = Processes::default();
        let first = processes.at(500, 0);
        let mut services = Services::default();
        services.add(service(1, 500, 7));
        services.add(service(2, 77, 9));
        let hosted = services.hosted(&processes);
        assert_eq!(hosted.get(&first).map(Vec::as_slice), Some(&[0][..]));
        assert_eq!(hosted.len(), 1);
    }
}
