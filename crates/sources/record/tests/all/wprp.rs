//! The profiles as XML, checked against the published schema, and read back.
//!
//! [`ELEMENTS`] says of each element that we write what Microsoft's WPRControlProfiles.xsd
//! (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wprcontrolprofiles-schema>) says: attributes, children,
//! their order and number. The values of keywords and stacks come from `data`, which lists the schema's enumerations.

use etwhy_record::{Recording, Session, Size, formats, keyword, profiles, stack};
use roxmltree::{Document, Node};
use std::collections::BTreeSet;

/// What the schema says of an element.
struct Element {
    /// Name, with that of the parent where elements of one name differ.
    path: &'static str,
    /// Attributes that must be there.
    required: &'static [&'static str],
    /// Attributes that may be there.
    optional: &'static [&'static str],
    /// Children in their order: name, least and greatest number.
    children: &'static [(&'static str, usize, usize)],
}

const MANY: usize = usize::MAX;

const fn element(
    path: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    children: &'static [(&'static str, usize, usize)],
) -> Element {
    Element { path, required, optional, children }
}

/// Children of both kinds of collectors: `SystemBufferElementGroup`, `EventBufferElementGroup`.
const BUFFERS: &[(&str, usize, usize)] = &[
    ("BufferSize", 0, 1),
    ("Buffers", 0, 1),
    ("StackCaching", 0, 1),
    ("MaximumFileSize", 0, 1),
    ("FileMax", 0, 1),
    ("FlushTimer", 0, 1),
    ("FlushThreshold", 0, 1),
];
const ID_FILTER: &[(&str, usize, usize)] = &[("EventId", 0, 64)];

const ELEMENTS: &[Element] = &[
    element(
        "WindowsPerformanceRecorder",
        &["Version"],
        &["Author", "Team", "Copyright", "Company", "Comments", "Tag"],
        &[("Profiles", 0, 1), ("TraceMergeProperties", 0, MANY), ("OnOffTransitionConfigurations", 0, 1)],
    ),
    element(
        "Profiles",
        &[],
        &[],
        &[
            ("SystemCollector", 0, MANY),
            ("EventCollector", 0, MANY),
            ("HeapEventCollector", 0, MANY),
            ("HypervisorEventCollector", 0, MANY),
            ("SystemProvider", 0, MANY),
            ("MicroArchitecturalConfig", 0, MANY),
            ("HardwareCounter", 0, MANY),
            ("EventProvider", 0, MANY),
            ("HeapEventProvider", 0, MANY),
            ("Profile", 1, MANY),
        ],
    ),
    element("SystemCollector", &["Id"], &["Base", "Name", "Realtime", "HostGuestCorrelation"], BUFFERS),
    element(
        "EventCollector",
        &["Id", "Name"],
        &["Base", "Realtime", "HostGuestCorrelation", "Private", "ProcessPrivate", "Secure"],
        BUFFERS,
    ),
    element("BufferSize", &["Value"], &["Operation"], &[]),
    element(
        "Buffers",
        &["Value"],
        &["Operation", "PercentageOfTotalMemory", "MinimumRundownSpace", "MaximumBufferSpace"],
        &[],
    ),
    element("StackCaching", &["BucketCount", "CacheSize"], &[], &[]),
    element(
        "SystemProvider",
        &["Id"],
        &["Base", "SuppressHighVolume"],
        &[
            ("Keywords", 0, MANY),
            ("CaptureStateOnStart", 0, MANY),
            ("CaptureStateOnSave", 0, MANY),
            ("CaptureStateOnDemand", 0, MANY),
            ("Stacks", 0, MANY),
            ("PoolTags", 0, MANY),
        ],
    ),
    element(
        "SystemProvider/Keywords",
        &[],
        &["Operation"],
        &[("Keyword", 1, MANY), ("CustomKeyword", 0, MANY)],
    ),
    element("Stacks", &[], &["Operation"], &[("Stack", 1, MANY)]),
    element("Stack", &["Value"], &["Strict"], &[]),
    element(
        "EventProvider",
        &["Id", "Name"],
        &[
            "Base",
            "NonPagedMemory",
            "Stack",
            "SID",
            "TSID",
            "Level",
            "CaptureStateOnly",
            "Strict",
            "ProcessExeFilter",
            "EventKey",
            "ExcludeInPrivate",
            "EnableSilos",
            "ContainerId",
        ],
        &[
            ("Keywords", 0, MANY),
            ("CaptureStateOnStart", 0, MANY),
            ("CaptureStateOnSave", 0, MANY),
            ("CaptureStateOnDemand", 0, MANY),
            ("Stacks", 0, MANY),
            ("EventFilters", 0, 1),
            ("StackFilters", 0, 1),
            ("EventNameFilters", 0, 1),
            ("StackEventNameFilters", 0, 1),
            ("StackKeywordLevelFilter", 0, 1),
            ("CustomFilter", 0, 1),
        ],
    ),
    element("EventProvider/Keywords", &[], &["Operation"], &[("Keyword", 1, MANY)]),
    element("CaptureStateOnSave", &[], &["Operation", "Timeout"], &[("Keyword", 1, MANY)]),
    element("Keyword", &["Value"], &["Strict"], &[]),
    element("EventFilters", &["FilterIn"], &["Operation"], ID_FILTER),
    element("StackFilters", &["FilterIn"], &["Operation"], ID_FILTER),
    element("EventId", &["Value"], &[], &[]),
    element(
        "Profile",
        &["Id", "Name", "Description", "LoggingMode", "DetailLevel"],
        &["Base", "Internal", "Default"],
        &[("ProblemCategories", 0, MANY), ("Collectors", 0, MANY), ("TraceMergeProperties", 0, 1)],
    ),
    element(
        "Collectors",
        &[],
        &["Operation"],
        &[
            ("SystemCollectorId", 0, 1),
            ("EventCollectorId", 0, MANY),
            ("HeapEventCollectorId", 0, MANY),
            ("HypervisorEventCollectorId", 0, MANY),
        ],
    ),
    element(
        "SystemCollectorId",
        &["Value"],
        &[],
        &[
            ("BufferSize", 0, 1),
            ("Buffers", 0, 1),
            ("SystemProviderId", 0, 1),
            ("SystemProvider", 0, 1),
            ("HardwareCounterId", 0, 1),
            ("HardwareCounter", 0, 1),
            ("EventProviders", 0, 1),
        ],
    ),
    element("SystemProviderId", &["Value"], &[], &[("Keywords", 0, MANY), ("Stacks", 0, MANY)]),
    element(
        "EventCollectorId",
        &["Value"],
        &[],
        &[("BufferSize", 0, 1), ("Buffers", 0, 1), ("EventProviders", 0, MANY)],
    ),
    element(
        "EventProviders",
        &[],
        &["Operation"],
        &[("EventProviderId", 0, MANY), ("EventProvider", 0, MANY)],
    ),
    element("EventProviderId", &["Value"], &[], &[("Keywords", 0, MANY)]),
    element("TraceMergeProperties", &[], &[], &[("TraceMergeProperty", 1, MANY)]),
    element(
        "TraceMergeProperty",
        &["Id", "Name"],
        &["Base"],
        &[
            ("DeletePreMergedTraceFiles", 0, 1),
            ("FileCompression", 0, 1),
            ("InjectOnly", 0, 1),
            ("SkipMerge", 0, 1),
            ("CustomEvents", 0, 1),
        ],
    ),
    element("DeletePreMergedTraceFiles", &[], &["Value"], &[]),
    element("FileCompression", &[], &["Value"], &[]),
    element("CustomEvents", &[], &["Operation"], &[("CustomEvent", 1, MANY)]),
    element("CustomEvent", &[], &["Value"], &[]),
];

/// Ids that an element may point to: which attribute of which elements.
const REFERENCES: &[(&str, &str)] = &[
    ("SystemCollectorId", "SystemCollector"),
    ("EventCollectorId", "EventCollector"),
    ("SystemProviderId", "SystemProvider"),
    ("EventProviderId", "EventProvider"),
];

fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}

fn parent<'a>(node: Node<'a, '_>) -> &'a str {
    node.parent_element().map_or("", name)
}

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok())
}

/// Whether an attribute's value is of the schema's type.
fn value_fits(node: Node<'_, '_>, key: &str, value: &str) -> bool {
    let boolean = matches!(value, "true" | "false");
    match (name(node), key) {
        // IdType: no colon, no blank. A profile's name is one too.
        (_, "Id" | "Base") | ("Profile", "Name") => {
            !value.is_empty() && !value.contains(|c: char| c == ':' || c.is_whitespace())
        }
        ("WindowsPerformanceRecorder", "Version") => value.parse::<f32>().is_ok(),
        ("Keyword", "Value") => match (parent(node), node.parent_element().map(parent)) {
            ("Keywords", Some("SystemProvider")) => keyword(value).is_some(),
            _ => is_hex(value),
        },
        ("Stack", "Value") => stack(value).is_some(),
        ("BufferSize" | "Buffers" | "EventId", "Value") | ("Buffers", "MaximumBufferSpace") => {
            is_number(value)
        }
        ("EventProvider", "Level") => value.parse::<u8>().is_ok(),
        ("Profile", "LoggingMode") => matches!(value, "File" | "Memory"),
        ("Profile", "DetailLevel") => matches!(value, "Light" | "Verbose"),
        ("CustomEvent", "Value") => [
            "None",
            "ImageId",
            "BuildInfo",
            "VolumeMapping",
            "EventMetadata",
            "PerfTrackMetadata",
            "WinSAT",
            "NetworkInterface",
        ]
        .contains(&value),
        (_, "Operation") => matches!(value, "Set" | "Add" | "Remove"),
        ("DeletePreMergedTraceFiles" | "FileCompression", "Value")
        | (
            _,
            "Strict"
            | "FilterIn"
            | "NonPagedMemory"
            | "CaptureStateOnly"
            | "PercentageOfTotalMemory"
            | "Realtime"
            | "HostGuestCorrelation",
        )
        | ("EventProvider", "Stack" | "SID" | "TSID") => boolean,
        _ => true,
    }
}

/// What is wrong with a document.
fn faults(text: &str) -> Vec<String> {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => return vec![error.to_string()],
    };
    let mut faults = Vec::new();
    let root = document.root_element();
    if name(root) != "WindowsPerformanceRecorder" {
        faults.push(format!("root is {}", name(root)));
    }
    let mut ids = BTreeSet::new();
    for node in root.descendants().filter(Node::is_element) {
        let full = format!("{}/{}", parent(node), name(node));
        let Some(rule) = ELEMENTS.iter().find(|e| e.path == full || e.path == name(node)) else {
            faults.push(format!("{full}: unknown element"));
            continue;
        };
        for required in rule.required {
            if node.attribute(*required).is_none() {
                faults.push(format!("{full}: no {required}"));
            }
        }
        for attribute in node.attributes() {
            let key = attribute.name();
            if !rule.required.contains(&key) && !rule.optional.contains(&key) {
                faults.push(format!("{full}: attribute {key}"));
            }
            if !value_fits(node, key, attribute.value()) {
                faults.push(format!("{full}: {key}=\"{}\"", attribute.value()));
            }
        }
        sequence(node, rule, &full, &mut faults);
        // xs:key IdKey: ids of the root's grandchildren are distinct.
        if let Some(id) = node.attribute("Id")
            && node.parent_element().is_some_and(|p| p.parent_element() == Some(root))
            && !ids.insert(id)
        {
            faults.push(format!("{id} stands twice"));
        }
        // xs:key: values of one list are distinct.
        if ["Keywords", "Stacks", "CustomEvents", "CaptureStateOnSave"].contains(&name(node)) {
            let mut values = BTreeSet::new();
            for value in node.children().filter_map(|c| c.attribute("Value")) {
                if !values.insert(value) {
                    faults.push(format!("{full}: {value} stands twice"));
                }
            }
        }
        if let Some((_, target)) = REFERENCES.iter().find(|(from, _)| *from == name(node)) {
            let value = node.attribute("Value");
            let found = root.descendants().any(|other| {
                other.has_tag_name(*target) && value.is_some() && other.attribute("Id") == value
            });
            if !found {
                faults.push(format!("{full}: no {target} has the id {value:?}"));
            }
        }
    }
    faults
}

/// Children in the order and number of the rule.
fn sequence(node: Node<'_, '_>, rule: &Element, full: &str, faults: &mut Vec<String>) {
    let mut at = 0;
    let mut counts = vec![0; rule.children.len()];
    for child in node.children().filter(Node::is_element) {
        match rule.children.iter().position(|(allowed, ..)| *allowed == name(child)) {
            None => faults.push(format!("{full}: {} within it", name(child))),
            Some(place) if place < at => faults.push(format!("{full}: {} too late", name(child))),
            Some(place) => {
                at = place;
                counts[place] += 1;
            }
        }
    }
    for ((child, least, greatest), count) in rule.children.iter().zip(counts) {
        if count < *least || count > *greatest {
            faults.push(format!("{full}: {count} x {child}"));
        }
    }
}

fn wprp(recording: &Recording) -> String {
    let format = formats().iter().find(|f| f.name == "wprp").unwrap();
    (format.write)(recording).unwrap()
}

fn combinations() -> Vec<Recording> {
    let names: Vec<&str> = profiles().iter().map(|p| p.name).collect();
    let mut lists: Vec<Vec<&str>> = names.iter().map(|name| vec![*name]).collect();
    lists.extend(names.windows(2).map(<[&str]>::to_vec));
    let mut all = Vec::new();
    for session in [Session::NtKernelLogger, Session::Circular, Session::System] {
        for size in [Size::Usual, Size::Memory { gib: 2 }, Size::Large { processors: 192 }] {
            all.extend(lists.iter().map(|list| Recording::from_profiles(list, session, size).unwrap()));
        }
    }
    all
}

#[test]
fn every_profile_follows_the_schema() {
    for recording in combinations() {
        let text = wprp(&recording);
        assert_eq!(faults(&text), Vec::<String>::new(), "{}\n{text}", recording.name());
    }
}

#[test]
fn read_back_it_is_the_same_recording() {
    for recording in combinations() {
        let text = wprp(&recording);
        let document = Document::parse(&text).unwrap();
        let values = |list: &str, parent_name: &str| -> BTreeSet<String> {
            document
                .descendants()
                .filter(|n| n.has_tag_name(list) && parent(*n) == parent_name)
                .flat_map(|n| {
                    n.children().filter_map(|c| c.attribute("Value")).map(str::to_owned).collect::<Vec<_>>()
                })
                .collect()
        };
        let set = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<BTreeSet<String>>();
        assert_eq!(
            values("Keywords", "SystemProvider"),
            set(recording.keywords.iter().map(|k| k.wpr).collect())
        );
        assert_eq!(values("Stacks", "SystemProvider"), set(recording.stacks.iter().map(|s| s.wpr).collect()));
        let mut providers = document.descendants().filter(|n| n.has_tag_name("EventProvider"));
        for provider in &recording.providers {
            let node = providers.next().unwrap();
            assert_eq!(node.attribute("Name"), Some(provider.guid.as_str()));
            assert_eq!(node.attribute("Level"), Some(provider.level.to_string().as_str()));
            assert_eq!(node.attribute("Stack") == Some("true"), provider.stack);
            assert_eq!(node.attribute("CaptureStateOnly") == Some("true"), provider.capture_only);
            let list = |list: &str| -> Vec<String> {
                let lists = node.children().filter(|n| n.has_tag_name(list));
                lists
                    .flat_map(|n| n.children())
                    .filter_map(|c| c.attribute("Value"))
                    .map(str::to_owned)
                    .collect()
            };
            assert_eq!(list("Keywords"), provider.keywords);
            assert_eq!(list("CaptureStateOnSave"), Vec::from_iter(provider.capture_at_stop.clone()));
            let ids = |list: Vec<String>| -> Vec<u16> { list.iter().map(|id| id.parse().unwrap()).collect() };
            assert_eq!(ids(list("EventFilters")), provider.without_events);
            assert_eq!(ids(list("StackFilters")), provider.stack_of_events);
        }
        assert!(providers.next().is_none());
        for collector in document.descendants().filter(|n| n.has_tag_name("SystemCollector")) {
            assert_eq!(collector.attribute("Name"), Some(recording.session.name()));
        }
        // Both versions of the profile use all that is defined.
        let used: Vec<&str> = document
            .descendants()
            .filter(|n| n.has_tag_name("EventProviderId"))
            .filter_map(|n| n.attribute("Value"))
            .collect();
        assert_eq!(used.len(), 2 * recording.providers.len());
        let modes: Vec<_> = document
            .descendants()
            .filter(|n| n.has_tag_name("Profile"))
            .map(|n| (n.attribute("Name").unwrap(), n.attribute("LoggingMode").unwrap()))
            .collect();
        assert_eq!(modes, [(recording.name().as_str(), "File"), (recording.name().as_str(), "Memory")]);
    }
}

#[test]
fn the_checker_sees_faults() {
    let sound =
        wprp(&Recording::from_profiles(&["file", "ui"], Session::default(), Size::default()).unwrap());
    assert_eq!(faults(&sound), Vec::<String>::new());
    let damage: [(&str, &str, &str); 9] = [
        ("<Keyword Value=\"FileIO\"/>", "<Keyword Value=\"FileIo\"/>", "FileIo"),
        ("<Stack Value=\"FileCreate\"/>", "<Stack Value=\"FileOpen\"/>", "FileOpen"),
        ("<Stack Value=\"FileCreate\"/>", "<Stack Value=\"FileClose\"/>", "stands twice"),
        (
            "<SystemProviderId Value=\"SystemProvider_etwhy\"/>",
            "<SystemProviderId Value=\"x\"/>",
            "no SystemProvider",
        ),
        ("DetailLevel=\"Verbose\"", "Detail=\"Verbose\"", "no DetailLevel"),
        ("LoggingMode=\"File\"", "LoggingMode=\"Disk\"", "Disk"),
        ("Level=\"255\"", "Level=\"256\"", "256"),
        ("Id=\"EventCollector_File\"", "Id=\"SystemCollector_File\"", "stands twice"),
        (
            "<BufferSize Value=\"1024\"/>\n      <Buffers Value=\"3\" PercentageOfTotalMemory=\"true\" MaximumBufferSpace=\"256\"/>",
            "<Buffers Value=\"512\"/><BufferSize Value=\"1\"/>",
            "too late",
        ),
    ];
    for (from, to, expected) in damage {
        let damaged = sound.replacen(from, to, 1);
        assert_ne!(damaged, sound, "{from}");
        let found = faults(&damaged);
        assert!(found.iter().any(|fault| fault.contains(expected)), "{to}: {found:?}");
    }
}
