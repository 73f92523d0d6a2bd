//! A recording profile of Windows Performance Recorder.
//!
//! Elements, their order and their attributes follow Microsoft's WPRControlProfiles.xsd
//! (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wprcontrolprofiles-schema>); `tests/all/wprp.rs` checks
//! them. `wpr` wants a file and a memory version of each profile
//! (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/3-profile-definitions>). Nothing is inherited, so that
//! each part says all of itself.

use crate::profile::Provider;
use crate::recording::{Buffers, RecordError, Recording, Session, Size};
use std::fmt::Write as _;

/// The two ways to log.
const MODES: [&str; 2] = ["File", "Memory"];
/// Merged into the trace: identities of images and volumes, build, event metadata, network cards
/// (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/customevent>).
const CUSTOM_EVENTS: [&str; 7] = [
    "ImageId",
    "BuildInfo",
    "VolumeMapping",
    "EventMetadata",
    "PerfTrackMetadata",
    "WinSAT",
    "NetworkInterface",
];

/// Elements, indented.
#[derive(Default)]
struct Xml {
    text: String,
    open: Vec<&'static str>,
}

impl Xml {
    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.open.len()));
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)], end: &str) {
        self.indent();
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes {
            let _ = write!(self.text, " {key}=\"{}\"", escape(value));
        }
        self.text.push_str(end);
        self.text.push('\n');
    }

    fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, "/>");
    }

    fn begin(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, ">");
        self.open.push(name);
    }

    fn end(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// One element per value, in a list element; nothing if there are none.
    fn list<V: AsRef<str>>(
        &mut self,
        list: &'static str,
        item: &'static str,
        values: impl Iterator<Item = V>,
    ) {
        let values: Vec<V> = values.collect();
        if !values.is_empty() {
            self.begin(list, &[]);
            for value in &values {
                self.empty(item, &[("Value", value.as_ref())]);
            }
            self.end();
        }
    }

    fn comment(&mut self, lines: &[String]) {
        self.indent();
        self.text.push_str("<!--\n");
        for line in lines {
            self.indent();
            // Two hyphens would end the comment.
            let _ = writeln!(self.text, "  {}", line.replace("--", "- -"));
        }
        self.indent();
        self.text.push_str("-->\n");
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn provider_id(provider: &Provider) -> String {
    format!("EventProvider_{}", provider.name)
}

pub fn write(recording: &Recording) -> Result<String, RecordError> {
    let mut xml = Xml { text: "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n".to_owned(), open: Vec::new() };
    xml.comment(&remarks(recording));
    xml.begin("WindowsPerformanceRecorder", &[("Version", "1.0"), ("Author", "etwhy")]);
    xml.begin("Profiles", &[]);
    collectors(&mut xml, recording);
    let system_provider = "SystemProvider_etwhy";
    xml.begin("SystemProvider", &[("Id", system_provider)]);
    xml.list("Keywords", "Keyword", recording.keywords.iter().map(|k| k.wpr));
    xml.list("Stacks", "Stack", recording.stacks.iter().map(|s| s.wpr));
    xml.end();
    for provider in &recording.providers {
        event_provider(&mut xml, provider);
    }
    for mode in MODES {
        let name = recording.name();
        xml.begin(
            "Profile",
            &[
                ("Id", &format!("{name}.Verbose.{mode}")),
                ("Name", &name),
                ("Description", &recording.shows()),
                ("LoggingMode", mode),
                ("DetailLevel", "Verbose"),
            ],
        );
        xml.begin("Collectors", &[]);
        xml.begin("SystemCollectorId", &[("Value", &format!("SystemCollector_{mode}"))]);
        xml.empty("SystemProviderId", &[("Value", system_provider)]);
        xml.end();
        if !recording.providers.is_empty() {
            xml.begin("EventCollectorId", &[("Value", &format!("EventCollector_{mode}"))]);
            xml.list("EventProviders", "EventProviderId", recording.providers.iter().map(provider_id));
            xml.end();
        }
        xml.end();
        xml.end();
    }
    xml.end();
    xml.begin("TraceMergeProperties", &[]);
    xml.begin("TraceMergeProperty", &[("Id", "TraceMerge_etwhy"), ("Name", "TraceMerge_etwhy")]);
    xml.empty("DeletePreMergedTraceFiles", &[("Value", "true")]);
    xml.empty("FileCompression", &[("Value", "true")]);
    xml.list("CustomEvents", "CustomEvent", CUSTOM_EVENTS.iter());
    while !xml.open.is_empty() {
        xml.end();
    }
    Ok(xml.text)
}

fn remarks(recording: &Recording) -> Vec<String> {
    let mut lines = vec![format!("{}: {}.", recording.name(), recording.shows())];
    for profile in &recording.profiles {
        lines.push(format!("{}: cost {}; {}.", profile.name, profile.cost, profile.rate));
    }
    lines.extend(recording.notes().into_iter().map(str::to_owned));
    lines.extend(recording.size.explained());
    if recording.providers.iter().any(|p| !(p.without_events.is_empty() && p.stack_of_events.is_empty())) {
        lines.push(
            "Filters of events and stacks need wpr 10.0.15002 and Windows 10 1803 or later.".to_owned(),
        );
    }
    match recording.session {
        Session::NtKernelLogger => {}
        Session::Circular => lines.push(
            "For when the NT Kernel Logger is taken: the second reserved kernel session. Stop it first: logman stop \
             \"Circular Kernel Context Logger\" -ets"
                .to_owned(),
        ),
        Session::System => lines.push(
            "For when the NT Kernel Logger is taken: a kernel session of its own (EVENT_TRACE_SYSTEM_LOGGER_MODE), of \
             which Windows 8 and later have up to eight with the two reserved ones."
                .to_owned(),
        ),
    }
    let (file, name) = (recording.file_name(), recording.name());
    lines.extend(recording.unproven());
    lines.push(format!("wpr -start {file}!{name} -filemode"));
    lines.push("wpr -stop trace.etl".to_owned());
    lines.extend(super::lines::other_ways(&file, &name));
    lines
}

fn collectors(xml: &mut Xml, recording: &Recording) {
    for mode in MODES {
        xml.begin(
            "SystemCollector",
            &[("Id", &format!("SystemCollector_{mode}")), ("Name", recording.session.name())],
        );
        let kernel = recording.size.kernel_buffers();
        // 15 % and 5 % of the memory are what MultiProfile.wprp of etwcontroller has found to do.
        let share = recording.size.percent().map(|[kernel, _]| kernel);
        buffers(xml, mode, kernel, share, ("15", memory_limit(recording.size, 4000)));
        xml.end();
    }
    if recording.providers.is_empty() {
        return;
    }
    for mode in MODES {
        xml.begin("EventCollector", &[("Id", &format!("EventCollector_{mode}")), ("Name", "etwhy events")]);
        let user = recording.size.user_buffers();
        let share = recording.size.percent().map(|[_, user]| user);
        buffers(xml, mode, user, share, ("5", memory_limit(recording.size, 1000)));
        xml.end();
    }
}

/// Most megabytes of a recording in memory: more than its buffers in file mode need.
fn memory_limit(size: Size, usual: u32) -> String {
    (usual.max(size.kernel_buffers().max * 2)).to_string()
}

/// `share`: per cent of the memory that bound buffers in file mode; `memory`: per cent and megabytes in memory mode.
fn buffers(xml: &mut Xml, mode: &str, buffers: Buffers, share: Option<&str>, memory: (&str, String)) {
    xml.empty("BufferSize", &[("Value", &buffers.size_kib.to_string())]);
    let [_, most] = buffers.mebibytes();
    let (percent, limit) = match (mode, share) {
        ("Memory", _) => memory,
        (_, Some(share)) => (share, most.to_string()),
        (_, None) => return xml.empty("Buffers", &[("Value", &buffers.max.to_string())]),
    };
    xml.empty(
        "Buffers",
        &[("Value", percent), ("PercentageOfTotalMemory", "true"), ("MaximumBufferSpace", &limit)],
    );
}

fn event_provider(xml: &mut Xml, provider: &Provider) {
    let (id, level) = (provider_id(provider), provider.level.to_string());
    let mut attributes = vec![
        ("Id", id.as_str()),
        ("Name", provider.guid.as_str()),
        // Providers in the kernel write where memory must not be paged.
        ("NonPagedMemory", "true"),
    ];
    if provider.stack {
        attributes.push(("Stack", "true"));
    }
    attributes.push(("Level", &level));
    if provider.capture_only {
        attributes.push(("CaptureStateOnly", "true"));
    }
    let filters = [
        ("EventFilters", "false", &provider.without_events),
        ("StackFilters", "true", &provider.stack_of_events),
    ];
    let bare = provider.keywords.is_empty()
        && provider.capture_at_stop.is_none()
        && filters.iter().all(|(_, _, ids)| ids.is_empty());
    if bare {
        xml.empty("EventProvider", &attributes);
        return;
    }
    xml.begin("EventProvider", &attributes);
    xml.list("Keywords", "Keyword", provider.keywords.iter());
    xml.list("CaptureStateOnSave", "Keyword", provider.capture_at_stop.iter());
    for (name, filter_in, ids) in filters {
        if !ids.is_empty() {
            xml.begin(name, &[("FilterIn", filter_in)]);
            for id in ids {
                xml.empty("EventId", &[("Value", &id.to_string())]);
            }
            xml.end();
        }
    }
    xml.end();
}
