//! Events as markers.

use super::timestamp;
use super::tracks::{CodeKind, Track, Tracks};
use crate::profile::{EVENTS, Event, EventKind, Events, Profile, ProfileFormat, Shown};
use etwhy_table::Unit;
use fxprof_processed_profile as fx;
use fxprof_processed_profile::{MarkerFieldFormat, MarkerLocations, MarkerTiming};

/// Longest DPC and ISR that are as they should be (Microsoft, WDK, "Example 15: Measuring DPC/ISR Time").
const LIMITS: [(&str, i64); 2] = [("dpc", 100_000), ("isr", 25_000)];

/// A marker with the fields of its kind in order.
struct Marker {
    kind: fx::MarkerTypeHandle,
    name: fx::StringHandle,
    category: fx::CategoryHandle,
    empty: fx::StringHandle,
    texts: Vec<Option<fx::StringHandle>>,
}

impl fx::Marker for Marker {
    fn marker_type(&self, _: &mut fx::Profile) -> fx::MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _: &mut fx::Profile) -> fx::StringHandle {
        self.name
    }

    fn category(&self, _: &mut fx::Profile) -> fx::CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> fx::StringHandle {
        self.texts.get(field as usize).copied().flatten().unwrap_or(self.empty)
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// What a field of the table is called in the profile.
fn key(name: &str) -> &str {
    if name == "file_id" { "path" } else { name }
}

/// Fields are text: the format has no number that is not there.
fn schema(kind: &EventKind) -> fx::RuntimeSchemaMarkerSchema {
    let mut locations = MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE;
    if matches!(kind.part, "gc" | "hang" | "mark" | "interrupt") {
        locations |= MarkerLocations::TIMELINE_OVERVIEW;
    }
    let field = |name: &&str| fx::RuntimeSchemaMarkerField {
        key: key(name).to_owned(),
        label: key(name).trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " "),
        format: MarkerFieldFormat::String,
        flags: fx::MarkerFieldFlags::SEARCHABLE,
    };
    let label = kind.fields.first().map(|name| format!("{{marker.data.{}}}", key(name)));
    fx::RuntimeSchemaMarkerSchema {
        type_name: kind.table.to_owned(),
        description: None,
        locations,
        chart_label: label.clone(),
        tooltip_label: None,
        table_label: label,
        fields: kind.fields.iter().map(field).collect(),
        graphs: Vec::new(),
    }
}

fn shown(value: &Shown<'_>) -> String {
    match value {
        Shown::Text(text) => text.clone().into_owned(),
        Shown::Number(n, Unit::Ns) => etwhy_base::units::duration_ns(*n),
        Shown::Number(n, Unit::Bytes) => etwhy_base::units::bytes(*n),
        Shown::Number(n, Unit::Address | Unit::Hex64) => format!("{n:#x}"),
        Shown::Number(n, Unit::Hex32) => format!("{:#x}", *n as u32),
        Shown::Number(n, _) => n.to_string(),
    }
}

/// Adds the events that the format carries.
pub(super) fn write(
    profile: &Profile<'_>,
    format: &ProfileFormat,
    tracks: &mut Tracks<'_>,
    made: &mut fx::Profile,
) {
    let empty = made.intern_string("");
    for kind in EVENTS.iter().filter(|kind| format.parts.iter().any(|part| part.name == kind.part)) {
        let Some(events) = Events::read(profile, kind) else { continue };
        let handle = made.register_marker_type(schema(kind));
        let limit = LIMITS.iter().find(|(table, _)| *table == kind.table).map_or(0, |(_, limit)| *limit);
        events.each(profile, |event| {
            let dur_ns = event.end_ns.map_or(0, |end| end.saturating_sub(event.start_ns));
            if limit > 0 && dur_ns <= limit {
                return;
            }
            let thread = tracks.thread(track(&event, tracks), made);
            made.set_thread_show_markers_in_timeline(thread, true);
            let mut texts = vec![None; kind.fields.len()];
            for (name, value) in events.fields(&event) {
                let at = kind.fields.iter().position(|field| key(field) == name);
                if let Some(text) = at.and_then(|at| texts.get_mut(at)) {
                    *text = Some(made.intern_string(&shown(&value)));
                }
            }
            let name = made.intern_string(&events.name(&event));
            let category = tracks.categories.of_table(kind.table);
            let start = timestamp(event.start_ns);
            let timing = match event.end_ns {
                Some(end) => MarkerTiming::Interval(start, timestamp(end)),
                None => MarkerTiming::Instant(start),
            };
            let marker =
                made.add_marker(thread, timing, Marker { kind: handle, name, category, empty, texts });
            if let Some(stack) = tracks.stack(thread, event.stack, CodeKind::Thread, made) {
                made.set_marker_stack(thread, marker, Some(stack));
            }
        });
    }
}

fn track(event: &Event, tracks: &Tracks<'_>) -> Track {
    let people = tracks.people;
    match (event.cpu, event.utid, event.upid) {
        (Some(cpu), ..) => Track::Interrupts(cpu),
        (_, Some(utid), _) if people.thread(Some(utid)).is_some_and(|thread| thread.tid != 0) => {
            Track::Thread(utid)
        }
        (.., Some(upid)) if people.process(Some(upid)).is_some_and(|process| process.pid != 0) => {
            Track::Process(upid)
        }
        _ => Track::Machine,
    }
}
