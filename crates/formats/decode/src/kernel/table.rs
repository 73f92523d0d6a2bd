//! Look-up of kernel layouts.

use super::files::LAYOUT_FILES;
use super::parse::{Section, SectionKey, parse};
use crate::schema::{DecodedBy, EventSchema};
use etwhy_base::Guid;
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock};

/// Provider name of all kernel groups.
const KERNEL_PROVIDER: &str = "Windows Kernel";

/// Versions of one event, lowest first.
type Versions = Vec<(u16, Arc<EventSchema>)>;

/// Names of one hook id.
#[derive(Debug)]
struct HookName {
    opcode: Arc<str>,
    event: Arc<str>,
    group: u8,
}

/// The layouts that ship with the program.
#[derive(Debug)]
pub struct KernelLayouts {
    /// Index into `events` by hook id (group in the high byte, type in the low one); 0 for none.
    by_hook: Box<[u16]>,
    /// Entry 0 is empty.
    events: Vec<Versions>,
    names: HashMap<u16, HookName>,
    groups: HashMap<u8, (Arc<str>, Option<Guid>)>,
    group_of_guid: HashMap<Guid, u8>,
    classes: HashMap<(Guid, u8), Versions>,
}

static BUILTIN: LazyLock<KernelLayouts> =
    LazyLock::new(|| KernelLayouts::from_texts(LAYOUT_FILES.iter().map(|f| f.text)));

impl KernelLayouts {
    /// The layouts embedded in the program, parsed on first use.
    pub fn builtin() -> &'static KernelLayouts {
        &BUILTIN
    }

    /// Builds the tables. Lines that do not parse are left out (tests see to it that there are none).
    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> KernelLayouts {
        let mut layouts = KernelLayouts {
            by_hook: vec![0; 0x1_0000].into_boxed_slice(),
            events: vec![Vec::new()],
            names: HashMap::new(),
            groups: HashMap::new(),
            group_of_guid: HashMap::new(),
            classes: HashMap::new(),
        };
        for section in texts.flat_map(|text| parse(text).0) {
            match &section.key {
                SectionKey::Group(group) => layouts.add_group(*group, &section),
                SectionKey::Class { provider } => layouts.add_class(provider, &section),
            }
        }
        layouts
    }

    fn add_group(&mut self, group: u8, section: &Section) {
        let name: Arc<str> = section.name.as_str().into();
        self.groups.insert(group, (name, section.guid));
        if let Some(guid) = section.guid {
            self.group_of_guid.insert(guid, group);
        }
        for (ty, schema) in schemas(KERNEL_PROVIDER, section) {
            let hook = hook_id(group, ty);
            let index = match self.by_hook.get(usize::from(hook)) {
                Some(0) | None => {
                    self.events.push(Vec::new());
                    self.events.len() - 1
                }
                Some(index) => usize::from(*index),
            };
            if let (Some(slot), Ok(small)) = (self.by_hook.get_mut(usize::from(hook)), u16::try_from(index)) {
                *slot = small;
            }
            if let Some(versions) = self.events.get_mut(index) {
                insert(versions, schema);
            }
        }
        self.name_types(group, section);
        for &(hook, ty) in &section.hooks {
            let index = self.by_hook.get(usize::from(hook_id(group, ty))).copied().unwrap_or(0);
            if let Some(slot) = self.by_hook.get_mut(usize::from(hook)) {
                *slot = index;
            }
            if let Some(n) = self.names.get(&hook_id(group, ty)) {
                let copy = HookName { opcode: n.opcode.clone(), event: n.event.clone(), group };
                self.names.insert(hook, copy);
            }
        }
    }

    fn name_types(&mut self, group: u8, section: &Section) {
        for (ty, name) in &section.names {
            let event = format!("{}/{name}", section.name).into();
            self.names.insert(hook_id(group, *ty), HookName { opcode: name.as_str().into(), event, group });
        }
        let mut newest: HashMap<u8, u16> = HashMap::new();
        for line in &section.events {
            for ty in &line.types {
                // Opcode names change between versions: the newest is the one people know.
                let version = newest.entry(ty.number).or_insert(line.version);
                if *version <= line.version {
                    *version = line.version;
                    let event = event_name(&section.name, &ty.opcode, ty.known_alone).into();
                    let name = HookName { opcode: ty.opcode.as_str().into(), event, group };
                    self.names.insert(hook_id(group, ty.number), name);
                }
            }
        }
    }

    fn add_class(&mut self, provider: &str, section: &Section) {
        let Some(guid) = section.guid else { return };
        for (ty, schema) in schemas(provider, section) {
            insert(self.classes.entry((guid, ty)).or_default(), schema);
        }
    }

    /// The layout of a kernel record: the highest version listed that is not above the record's, else the
    /// lowest listed. Payloads may be longer than it says: new fields are appended without a new version.
    #[inline]
    pub fn schema(&self, group: u8, ty: u8, version: u16) -> Option<&Arc<EventSchema>> {
        let index = self.by_hook.get(usize::from(hook_id(group, ty)))?;
        choose(self.events.get(usize::from(*index))?, version)
    }

    /// The layout of a classic record (`EVENT_TRACE_HEADER`) by class GUID: a class of its own, or one of the
    /// kernel groups logged under its GUID, with the same layouts.
    pub fn class_schema(&self, guid: &Guid, opcode: u8, version: u16) -> Option<&Arc<EventSchema>> {
        match self.group_of_guid.get(guid) {
            Some(&group) => self.schema(group, opcode, version),
            None => choose(self.classes.get(&(*guid, opcode))?, version),
        }
    }

    /// Every layout, for listings and tests. A layout of several types comes once for each.
    pub fn all(&self) -> impl Iterator<Item = &Arc<EventSchema>> {
        self.events.iter().chain(self.classes.values()).flatten().map(|(_, schema)| schema)
    }

    /// The name of a group, e.g. `PerfInfo` for 0x0F.
    pub fn group_name(&self, group: u8) -> Option<&str> {
        self.groups.get(&group).map(|(name, _)| name.as_ref())
    }

    /// The class GUID of a group.
    pub fn group_guid(&self, group: u8) -> Option<Guid> {
        self.groups.get(&group).and_then(|(_, guid)| *guid)
    }

    /// The group of a class GUID.
    pub fn group_of(&self, guid: &Guid) -> Option<u8> {
        self.group_of_guid.get(guid).copied()
    }

    /// The opcode name of a type, also of types whose layout is not known.
    pub fn type_name(&self, group: u8, ty: u8) -> Option<&str> {
        self.names.get(&hook_id(group, ty)).map(|n| n.opcode.as_ref())
    }

    /// The full name of a type, e.g. `Process/Start` or `CSwitch`; `Image/Load` for group 3 type 10.
    pub fn event_name(&self, group: u8, ty: u8) -> Option<&str> {
        self.names.get(&hook_id(group, ty)).map(|n| n.event.as_ref())
    }

    /// The group whose events a hook id belongs to: its own, but Image for `Image/Load`, which is logged
    /// under the group number of Process.
    pub fn home_group(&self, group: u8, ty: u8) -> u8 {
        self.names.get(&hook_id(group, ty)).map_or(group, |n| n.group)
    }

    /// The group and type of a full event name, e.g. (5, 36) for `CSwitch`. As logged: (3, 10) for `Image/Load`.
    pub fn find(&self, event_name: &str) -> Option<(u8, u8)> {
        // An alias has the group number in its hook id that records carry, so it wins: 030A stands before 140A.
        let hook =
            self.names.iter().filter(|(_, n)| n.event.as_ref() == event_name).map(|(hook, _)| *hook).min()?;
        let [ty, group] = hook.to_le_bytes();
        Some((group, ty))
    }
}

#[inline]
fn hook_id(group: u8, ty: u8) -> u16 {
    u16::from_le_bytes([ty, group])
}

#[inline]
fn choose(versions: &Versions, version: u16) -> Option<&Arc<EventSchema>> {
    versions.iter().rev().find(|(v, _)| *v <= version).or(versions.first()).map(|(_, schema)| schema)
}

fn insert(versions: &mut Versions, (version, schema): (u16, EventSchema)) {
    let at = versions.partition_point(|(v, _)| *v < version);
    versions.insert(at, (version, Arc::new(schema)));
}

fn event_name(task: &str, opcode: &str, known_alone: bool) -> String {
    if known_alone { opcode.to_string() } else { format!("{task}/{opcode}") }
}

fn schemas<'a>(
    provider: &str,
    section: &'a Section,
) -> impl Iterator<Item = (u8, (u16, EventSchema))> + use<'a> {
    let provider: Arc<str> = provider.into();
    let task: Arc<str> = section.name.as_str().into();
    let lines = section.events.iter().flat_map(|line| line.types.iter().map(move |ty| (line, ty)));
    lines.map(move |(line, ty)| {
        let schema = EventSchema {
            guid: section.guid.unwrap_or(Guid::ZERO),
            provider: provider.clone(),
            name: event_name(&section.name, &ty.opcode, ty.known_alone).into(),
            task: task.clone(),
            opcode: ty.opcode.as_str().into(),
            message: "".into(),
            decoded_by: DecodedBy::Kernel,
            verified: ty.verified,
            fields: line.fields.clone(),
        };
        (ty.number, (line.version, schema))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(schema: &EventSchema) -> Vec<&str> {
        schema.fields.iter().map(|f| f.name.as_ref()).collect()
    }

    #[test]
    fn the_version_listed_at_or_below_is_chosen() {
        let k = KernelLayouts::builtin();
        let count = |v| k.schema(0x0F, 46, v).unwrap().fields.len();
        assert_eq!((count(0), count(1), count(2), count(9)), (3, 3, 5, 5));
        assert_eq!(k.schema(3, 1, 3).unwrap().fields.len(), 9);
        assert!(k.schema(0x0F, 200, 2).is_none());
        assert!(k.schema(0xFF, 0, 2).is_none());
    }

    #[test]
    fn events_have_the_names_people_know() {
        let k = KernelLayouts::builtin();
        for (group, ty, name) in [
            (0x0F, 46, "SampledProfile"),
            (0x0F, 68, "DPC"),
            (0x0F, 67, "ISR"),
            (0x0F, 69, "TimerDPC"),
            (0x0F, 66, "ThreadedDPC"),
            (0x0F, 51, "SysClEnter"),
            (0x0F, 53, "PerfInfo/BackTrace"),
            (5, 36, "CSwitch"),
            (5, 50, "ReadyThread"),
            (5, 1, "Thread/Start"),
            (3, 4, "Process/DCEnd"),
            (3, 10, "Image/Load"),
            (0x14, 2, "Image/UnLoad"),
            (0x18, 32, "StackWalk/Stack"),
            (0, 8, "EventTrace/RDComplete"),
            (0, 0x30, "EventTrace/RundownBegin"),
            (1, 10, "DiskIo/Read"),
            (6, 26, "TcpIp/SendIPV6"),
            (2, 32, "HardFault"),
        ] {
            assert_eq!(k.event_name(group, ty), Some(name));
            assert_eq!(k.find(name), Some((group, ty)), "{name}");
        }
        assert_eq!(k.type_name(0x12, 0x33), Some("PpmPerfStateChange"));
        assert_eq!(k.group_name(0x0B), Some("SystemConfig"));
        assert_eq!(k.group_guid(0x0F).unwrap().to_string(), "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc");
        assert_eq!(k.group_guid(0x1D), None);
    }

    #[test]
    fn image_load_is_logged_under_the_group_of_process() {
        let k = KernelLayouts::builtin();
        let load = k.schema(3, 10, 3).unwrap();
        assert_eq!((load.name.as_ref(), load.task.as_ref()), ("Image/Load", "Image"));
        assert_eq!(load.guid, k.group_guid(0x14).unwrap());
        assert_eq!(k.home_group(3, 10), 0x14);
        assert_eq!(k.home_group(3, 1), 3);
    }

    #[test]
    fn classic_records_use_the_same_layouts() {
        let k = KernelLayouts::builtin();
        let process = k.group_guid(3).unwrap();
        assert!(Arc::ptr_eq(k.class_schema(&process, 1, 1).unwrap(), k.schema(3, 1, 1).unwrap()));
        let id: Guid = "b3e675d7-2554-4f18-830b-2762732560de".parse().unwrap();
        let rsds = k.class_schema(&id, 36, 2).unwrap();
        assert_eq!(names(rsds), ["ImageBase", "ProcessId", "GuidSig", "Age", "PdbFileName"]);
        assert_eq!(rsds.provider.as_ref(), "KernelTraceControl");
        assert!(k.class_schema(&id, 99, 2).is_none());
    }

    #[test]
    fn thread_v3_may_have_a_name() {
        let k = KernelLayouts::builtin();
        let last = k.schema(5, 1, 3).unwrap().fields.last().unwrap().clone();
        assert_eq!((last.name.as_ref(), last.optional), ("ThreadName", true));
    }
}
