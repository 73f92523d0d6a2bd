//! Manifests: XML that describes the events of providers, from the trace itself or from files.

mod chunks;
mod complexity;
mod types;
mod xml;

pub use chunks::{ChunkCollector, is_chunk};
pub use xml::{ManifestError, parse};

use crate::anomalies::{MANIFEST_BROKEN, MANIFEST_TOO_LARGE, SOURCE_UNREADABLE};
use crate::schema::{EventSchema, field_count};
use etwhy_base::Guid;
use etwhy_base::files::read_at_most;
use etwhy_base::utf16;
use etwhy_etl::Ledger;
use foldhash::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Largest manifest file that is read. The largest of Windows has 5 MB as UTF-16.
pub const MAX_MANIFEST: u64 = 32 * 1024 * 1024;
/// Most files that are looked at in a folder.
const MAX_FILES: usize = 20_000;

/// One provider with its events.
#[derive(Clone, Debug, Default)]
pub struct ProviderManifest {
    /// Provider GUID.
    pub guid: Guid,
    /// Provider name.
    pub name: Arc<str>,
    /// Its events.
    pub events: Vec<ManifestEvent>,
}

/// One event of a manifest.
#[derive(Clone, Debug)]
pub struct ManifestEvent {
    /// `EVENT_DESCRIPTOR.Id`.
    pub id: u16,
    /// `EVENT_DESCRIPTOR.Version`.
    pub version: u8,
    /// `EVENT_DESCRIPTOR.Opcode`.
    pub opcode: u8,
    /// Its layout.
    pub schema: Arc<EventSchema>,
}

/// The events of many providers.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    names: HashMap<Guid, Arc<str>>,
    events: HashMap<(Guid, u16), Vec<ManifestEvent>>,
    fields: usize,
}

impl Manifests {
    /// No manifests.
    pub fn new() -> Manifests {
        Manifests::default()
    }

    /// Reads every `.man`, `.manifest` and `.xml` file of a folder and its subfolders (or one file).
    ///
    /// Files that cannot be read are counted in the ledger, with the reason at the first of them.
    pub fn load_dir(path: &Path, ledger: &mut Ledger) -> Manifests {
        let mut manifests = Manifests::new();
        for file in crate::files::find(path, &["man", "manifest", "xml"], MAX_FILES, ledger) {
            // Folders hold other XML too.
            manifests.load_file(&file, file == path, ledger);
        }
        manifests
    }

    fn load_file(&mut self, file: &Path, named: bool, ledger: &mut Ledger) {
        let result = match read_at_most(file, MAX_MANIFEST) {
            Ok(bytes) => parse(&text_of(&bytes)),
            Err(e) if e.kind() == ErrorKind::InvalidData => {
                ledger.note(&MANIFEST_TOO_LARGE, 1, || file.display().to_string());
                return;
            }
            Err(e) => {
                ledger.note(&SOURCE_UNREADABLE, 1, || format!("{}: {e}", file.display()));
                return;
            }
        };
        match result {
            Ok(providers) if providers.is_empty() && named => {
                ledger.note(&MANIFEST_BROKEN, 1, || format!("{}: holds no provider", file.display()));
            }
            Ok(providers) => providers.into_iter().for_each(|p| self.add(p)),
            Err(e) => ledger.note(&MANIFEST_BROKEN, 1, || format!("{}: {e}", file.display())),
        }
    }

    /// Adds a provider; events that are there already are replaced.
    pub fn add(&mut self, provider: ProviderManifest) {
        self.names.insert(provider.guid, provider.name);
        for event in provider.events {
            self.fields += field_count(&event.schema.fields);
            let known = self.events.entry((provider.guid, event.id)).or_default();
            match known.iter_mut().find(|k| k.version == event.version && k.opcode == event.opcode) {
                Some(same) => *same = event,
                None => known.push(event),
            }
        }
    }

    /// The layout of an event.
    ///
    /// An exact version is preferred, and among its events the one with the right opcode. Else the
    /// nearest lower version serves, because new versions append fields; the reader reports the rest.
    pub fn schema(&self, provider: Guid, id: u16, version: u8, opcode: u8) -> Option<&Arc<EventSchema>> {
        let known = self.events.get(&(provider, id))?;
        let best = known
            .iter()
            .filter(|event| event.version <= version)
            .max_by_key(|event| (event.version, event.opcode == opcode))?;
        Some(&best.schema)
    }

    /// The name of a provider.
    pub fn provider_name(&self, provider: Guid) -> Option<&Arc<str>> {
        self.names.get(&provider)
    }

    /// The provider of this name, in any case.
    pub fn provider_named(&self, name: &str) -> Option<Guid> {
        self.names.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(guid, _)| *guid)
    }

    /// Number of events over all providers.
    pub fn len(&self) -> usize {
        self.events.values().map(Vec::len).sum()
    }

    /// Number of fields that were added, replaced ones included: a measure of the memory taken.
    pub fn field_total(&self) -> usize {
        self.fields
    }

    /// True when there is no event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Moves everything of `other` here.
    pub fn extend(&mut self, other: Manifests) {
        self.names.extend(other.names);
        self.fields += other.fields;
        for (key, events) in other.events {
            self.events.entry(key).or_default().extend(events);
        }
    }
}

/// Text of a manifest file in UTF-8 or UTF-16, by its byte order mark.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16::text(rest),
        [0xFE, 0xFF, rest @ ..] => utf16::text_be(rest),
        [0xEF, 0xBB, 0xBF, rest @ ..] => crate::text::text8(rest).into_owned(),
        [b'<', 0, ..] => utf16::text(bytes),
        _ => crate::text::text8(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_and_broken_files_counted() {
        let dir = std::env::temp_dir().join(format!("etwhy-manifests-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub")).unwrap();
        let xml = r#"<instrumentation><events><provider name="P" guid="{00000001-0000-0000-0000-000000000000}">
            <events><event value="1" version="0" symbol="One"/><event value="1" version="3" symbol="Three"/></events>
            </provider></events></instrumentation>"#;
        let wide: Vec<u8> =
            [0xFEFFu16].into_iter().chain(xml.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        std::fs::write(dir.join("sub/p.man"), wide).unwrap();
        std::fs::write(dir.join("broken.xml"), "<a><b></a>").unwrap();
        std::fs::write(dir.join("note.txt"), "<no manifest").unwrap();
        let mut ledger = Ledger::new();
        let manifests = Manifests::load_dir(&dir, &mut ledger);
        std::fs::remove_dir_all(&dir).unwrap();
        let guid = Guid::from_text("00000001-0000-0000-0000-000000000000");
        assert_eq!(manifests.len(), 2);
        assert_eq!(&*manifests.schema(guid, 1, 2, 0).unwrap().name, "One", "nearest lower version");
        assert_eq!(&*manifests.schema(guid, 1, 9, 0).unwrap().name, "Three");
        assert_eq!(manifests.provider_name(guid).map(|n| &**n), Some("P"));
        assert_eq!(ledger.get(&MANIFEST_BROKEN), 1);
        assert!(ledger.entries().next().unwrap().first.contains("broken.xml"));
        assert!(Manifests::load_dir(Path::new("/no/such/folder"), &mut ledger).is_empty());
        assert_eq!(ledger.get(&SOURCE_UNREADABLE), 1);
    }
}
