//! The layouts of .NET that ship, held against what was published of them independently of this project.

use crate::schema::{Count, DecodedBy, Field, InType};
use std::collections::BTreeMap;

const LIST: &str = include_str!("clr_published.txt");

/// Types in order, as the list writes them.
fn shape(fields: &[Field]) -> String {
    let word = |field: &Field| {
        let word = match field.in_type {
            InType::Struct => return format!("{{{}}}", shape(&field.members)),
            InType::UInt8 => "u8",
            InType::UInt16 => "u16",
            InType::Int32 | InType::UInt32 | InType::HexInt32 | InType::Boolean => "u32",
            InType::Int64 | InType::UInt64 | InType::HexInt64 => "u64",
            InType::Pointer => "p",
            InType::UnicodeString => "wsz",
            InType::AnsiString => "sz",
            InType::Guid => "guid",
            InType::Float => "f32",
            InType::Double => "f64",
            InType::Binary => "bytes",
            other => return format!("{other:?}"),
        };
        format!("{word}{}", if field.count == Count::One { "" } else { "[]" })
    };
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn events_of_dotnet_are_those_that_were_published() {
    let providers = [
        ("Microsoft-Windows-DotNETRuntime", "runtime"),
        ("Microsoft-Windows-DotNETRuntimeRundown", "rundown"),
        ("Microsoft-Windows-DotNETRuntimePrivate", "private"),
        ("Microsoft-Windows-DotNETRuntimeStress", "stress"),
    ];
    let mut published: BTreeMap<String, &str> = BTreeMap::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let [provider, _source, event, shape] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        assert_eq!(published.insert(format!("{provider} {event}"), shape), None, "{line}");
    }
    let mut faults = Vec::new();
    let files = super::FILES.iter().flat_map(|(_, text)| super::notation::parse(text).0);
    for provider in files {
        let Some((_, short)) = providers.iter().find(|(name, _)| **name == *provider.name) else { continue };
        for event in &provider.events {
            let key = format!("{short} {}.{}", event.id, event.version);
            let ours = match event.schema.decoded_by {
                DecodedBy::None => "?".to_owned(),
                _ if event.schema.fields.is_empty() => "-".to_owned(),
                _ => shape(&event.schema.fields),
            };
            match published.remove(&key) {
                Some(theirs) if theirs == ours => {}
                theirs => faults.push(format!("{key} {}: {ours}, published {theirs:?}", event.schema.name)),
            }
        }
    }
    faults.extend(published.into_iter().map(|(key, shape)| format!("{key} {shape}: does not ship")));
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
