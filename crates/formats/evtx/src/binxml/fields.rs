//! Which part of an event's XML is which value: system values by their place, fields by their name.
//!
//! The same rules serve templates, where contents are substitutions, and records without one, where they are values.

use super::out::Out;
use super::text::is;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// A system value ([MS-EVEN6] 2.2.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemField {
    /// `Provider/@Name`.
    Provider,
    /// `Provider/@Guid`.
    ProviderGuid,
    /// `EventID`.
    EventId,
    /// `EventID/@Qualifiers`.
    Qualifiers,
    /// `Version`.
    Version,
    /// `Level`.
    Level,
    /// `Task`.
    Task,
    /// `Opcode`.
    Opcode,
    /// `Keywords`.
    Keywords,
    /// `TimeCreated/@SystemTime`.
    Time,
    /// `EventRecordID`.
    RecordId,
    /// `Correlation/@ActivityID`.
    Activity,
    /// `Correlation/@RelatedActivityID`.
    RelatedActivity,
    /// `Execution/@ProcessID`.
    Process,
    /// `Execution/@ThreadID`.
    Thread,
    /// `Channel`.
    Channel,
    /// `Computer`.
    Computer,
    /// `Security/@UserID`.
    User,
}

/// How many there are.
pub const SYSTEM_FIELDS: usize = SystemField::User as usize + 1;

impl SystemField {
    /// Each with its element and attribute.
    pub const NAMES: [(SystemField, &'static str, Option<&'static str>); SYSTEM_FIELDS] = {
        use SystemField as S;
        [
            (S::Provider, "Provider", Some("Name")),
            (S::ProviderGuid, "Provider", Some("Guid")),
            (S::EventId, "EventID", None),
            (S::Qualifiers, "EventID", Some("Qualifiers")),
            (S::Version, "Version", None),
            (S::Level, "Level", None),
            (S::Task, "Task", None),
            (S::Opcode, "Opcode", None),
            (S::Keywords, "Keywords", None),
            (S::Time, "TimeCreated", Some("SystemTime")),
            (S::RecordId, "EventRecordID", None),
            (S::Activity, "Correlation", Some("ActivityID")),
            (S::RelatedActivity, "Correlation", Some("RelatedActivityID")),
            (S::Process, "Execution", Some("ProcessID")),
            (S::Thread, "Execution", Some("ThreadID")),
            (S::Channel, "Channel", None),
            (S::Computer, "Computer", None),
            (S::User, "Security", Some("UserID")),
        ]
    };

    /// The one at this place.
    fn of(element: &str, attribute: Option<&str>) -> Option<SystemField> {
        let names = SystemField::NAMES.iter();
        names.copied().find(|(_, own, of)| *own == element && *of == attribute).map(|(field, ..)| field)
    }

    /// The one at this place, in UTF-16.
    pub(super) fn in_utf16(element: &[u8], attribute: Option<&[u8]>) -> Option<SystemField> {
        let same = |(_, own, of): &&(SystemField, &str, Option<&str>)| {
            is(element, own)
                && match (attribute, of) {
                    (None, None) => true,
                    (Some(name), Some(of)) => is(name, of),
                    _ => false,
                }
        };
        SystemField::NAMES.iter().find(same).map(|(field, ..)| *field)
    }
}

/// The name of a field.
#[derive(Clone, Copy, Debug)]
pub enum Name<'a> {
    /// As the event has it.
    Named(&'a Arc<str>),
    /// It has none: its number among those without, from 1.
    Nth(u32),
}

impl Name<'_> {
    /// The name, or `Data1`, `Data2`, ….
    pub fn push(&self, out: &mut impl Out) {
        match self {
            Name::Named(name) => out.text(name),
            Name::Nth(n) => {
                out.ascii(b"Data");
                super::value::push_decimal(out, u64::from(*n));
            }
        }
    }
}

/// Where a content belongs.
#[derive(Clone, Debug)]
pub enum Target {
    /// A system value.
    System(SystemField),
    /// A field with a name.
    Named(String),
    /// `<Data>` without a name.
    Unnamed,
    /// Content of a container: fields of its own, if it is binary XML.
    Container,
}

/// A piece of content.
pub trait Piece: Clone {
    /// Its text, if it is known already.
    fn literal(&self) -> Option<String>;
}

struct Element<A> {
    name: String,
    /// `Name` of a `Data` element.
    data_name: Option<String>,
    content: Vec<A>,
    has_children: bool,
}

/// Follows elements and attributes, and says which content belongs where.
pub struct Finder<A> {
    stack: Vec<Element<A>>,
    attribute: Option<(String, Vec<A>)>,
    /// Names that were given out, and how many of each, to keep them apart.
    given: HashMap<String, u32, RandomState>,
}

/// Fields of a name that are told apart.
const MOST_OF_A_NAME: u32 = 1000;

/// Elements whose attribute `Name` names a field ([MS-EVEN6] 2.2.13, `DataType` and `ComplexDataType`).
fn takes_name(element: &str) -> bool {
    matches!(element, "Data" | "ComplexData")
}

/// What stands directly in an event and holds fields.
fn is_container(name: &str) -> bool {
    matches!(
        name,
        "Event"
            | "EventData"
            | "UserData"
            | "RenderingInfo"
            | "DebugData"
            | "BinaryEventData"
            | "ProcessingErrorData"
    )
}

impl<A: Piece> Finder<A> {
    /// At the beginning of a document or of one that stands in a value.
    pub fn new() -> Finder<A> {
        Finder { stack: Vec::new(), attribute: None, given: HashMap::default() }
    }

    /// An element begins.
    pub fn open(&mut self, name: &str, found: &mut impl FnMut(Target, &[A])) {
        self.end_attribute(found);
        if let Some(parent) = self.stack.last_mut() {
            parent.has_children = true;
        }
        self.stack.push(Element {
            name: name.to_owned(),
            data_name: None,
            content: Vec::new(),
            has_children: false,
        });
    }

    /// An attribute begins.
    pub fn attribute(&mut self, name: &str, found: &mut impl FnMut(Target, &[A])) {
        self.end_attribute(found);
        self.attribute = Some((name.to_owned(), Vec::new()));
    }

    /// Content begins.
    pub fn content(&mut self, found: &mut impl FnMut(Target, &[A])) {
        self.end_attribute(found);
    }

    /// A piece of the content or of the attribute.
    pub fn piece(&mut self, piece: A) {
        match (&mut self.attribute, self.stack.last_mut()) {
            (Some((_, pieces)), _) => pieces.push(piece),
            (None, Some(element)) => element.content.push(piece),
            (None, None) => {}
        }
    }

    /// The element ends.
    pub fn end(&mut self, found: &mut impl FnMut(Target, &[A])) {
        self.end_attribute(found);
        let Some(element) = self.stack.last() else { return };
        let target = self.place(element);
        if let Some(element) = self.stack.pop() {
            let target = match target {
                Some(Target::Named(name)) => Some(Target::Named(self.unique(name))),
                other => other,
            };
            if let Some(target) = target {
                found(target, &element.content);
            }
        }
    }

    /// The content of the innermost element belongs here.
    fn place(&self, element: &Element<A>) -> Option<Target> {
        if self.in_system() {
            return match self.stack.as_slice() {
                [.., system, _] if system.name == "System" => {
                    SystemField::of(&element.name, None).map(Target::System)
                }
                _ => None,
            };
        }
        if is_container(&element.name) && self.stack.len() <= 2 {
            return (!element.content.is_empty()).then_some(Target::Container);
        }
        if element.has_children && element.content.is_empty() {
            return None;
        }
        if takes_name(&element.name) {
            return Some(element.data_name.clone().map_or(Target::Unnamed, Target::Named));
        }
        Some(Target::Named(self.path(None)))
    }

    fn in_system(&self) -> bool {
        self.stack.iter().take(2).any(|e| e.name == "System")
    }

    /// The path of the innermost element behind its container.
    fn path(&self, attribute: Option<&str>) -> String {
        let mut names: Vec<&str> = self.stack.iter().map(|e| e.name.as_str()).collect();
        let skip = names.iter().take(2).take_while(|name| is_container(name)).count();
        let rendering = names.get(..skip).is_some_and(|skipped| skipped.contains(&"RenderingInfo"));
        names.drain(..skip);
        // `UserData` has one element that holds the fields.
        if !rendering && names.len() > 1 && names.first() != Some(&"Data") {
            names.remove(0);
        }
        if rendering {
            names.insert(0, "RenderingInfo");
        }
        let mut path = names.join(".");
        if let Some(attribute) = attribute {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(attribute);
        }
        path
    }

    fn end_attribute(&mut self, found: &mut impl FnMut(Target, &[A])) {
        let Some((name, pieces)) = self.attribute.take() else { return };
        let system = self.in_system();
        let Some(element) = self.stack.last_mut() else { return };
        if system {
            if let Some(field) = SystemField::of(&element.name, Some(&name)) {
                found(Target::System(field), &pieces);
            }
            return;
        }
        if takes_name(&element.name) && name == "Name" {
            let texts: Option<Vec<String>> = pieces.iter().map(Piece::literal).collect();
            element.data_name = texts.map(|t| t.concat()).filter(|t| !t.is_empty());
            return;
        }
        // Namespaces, and languages of forwarded texts.
        if name == "xmlns" || name.starts_with("xmlns:") || is_container(&element.name) {
            return;
        }
        let path = self.path(Some(&name));
        let path = self.unique(path);
        found(Target::Named(path), &pieces);
    }

    /// The name, with a number if it was given out before.
    fn unique(&mut self, name: String) -> String {
        let Some(before) = self.given.get(&name).copied() else {
            self.given.insert(name.clone(), 1);
            return name;
        };
        let mut n = before;
        let unique = loop {
            n += 1;
            let unique = format!("{name}_{n}");
            if n >= MOST_OF_A_NAME || !self.given.contains_key(&unique) {
                break unique;
            }
        };
        self.given.insert(unique.clone(), 1);
        self.given.insert(name, n.min(MOST_OF_A_NAME - 1));
        unique
    }
}
