//! Texts that are missing: what is said instead, and which files would have them.

use crate::error::Error;
use crate::known;
use crate::messages::{CACHED_MAX, EventKey, Messages, MissingTexts};
use crate::store::{Store, module_name};
use crate::template::Inserts;

use std::sync::Arc;

impl Messages {
    /// Remembers that a text is missing.
    pub(crate) fn miss(&self, key: &EventKey<'_>, lacking: Vec<String>, registered: bool) {
        let mut files: Vec<String> = lacking.iter().map(|file| module_name(file)).collect();
        if files.is_empty() {
            files.extend(known::files(key.provider).map(str::to_owned));
        }
        let mut seen = std::collections::HashSet::new();
        files.retain(|file| !file.is_empty() && seen.insert(file.clone()));
        let has = |file: &str, ask: fn(&Store, &str) -> Result<bool, Error>| {
            self.stores.iter().any(|store| self.ask(ask(store, file)))
        };
        let there = !files.is_empty() && files.iter().all(|file| has(file, Store::has_messages));
        for file in &mut files {
            // The manifest is here and its texts are in the translation.
            if has(file, Store::has_module) && !has(file, Store::has_messages) {
                file.push_str(".mui");
            }
        }
        let mut cache = self.cache();
        if cache.wanted.len() >= CACHED_MAX {
            return;
        }
        let wanted =
            cache.wanted.entry((key.provider.to_lowercase(), key.guid)).or_insert_with(|| MissingTexts {
                provider: key.provider.to_owned(),
                guid: key.guid,
                events: Vec::new(),
                files,
                registered,
                other_build: there,
            });
        if let Err(at) = wanted.events.binary_search(&key.event_id) {
            wanted.events.insert(at, key.event_id);
        }
    }

    /// Providers whose texts were asked for and are missing, with the files that would have them, by name.
    #[must_use]
    pub fn wanted(&self) -> Vec<MissingTexts> {
        self.cache().wanted.values().cloned().collect()
    }

    /// Appends what Event Viewer says of an event without a text, and its values with their names.
    ///
    /// The wording is that of Event Viewer, as pages of Microsoft and many bug reports quote it, such as
    /// [Intune's](https://learn.microsoft.com/intune/intune-service/protect/certificate-connector-install). Windows
    /// lists values without names; here they have them where the record or the manifest names them.
    pub fn missing<I: Inserts + ?Sized>(&self, key: &EventKey<'_>, inserts: &I, out: &mut String) {
        use std::fmt::Write as _;
        let _ = write!(
            out,
            "The description for Event ID {} from source {} cannot be found. Either the component that raises this \
             event is not installed on your local computer or the installation is corrupted. You can install or repair \
             the component on the local computer.\n\nIf the event originated on another computer, the display \
             information had to be saved with the event.",
            key.event_id, key.provider
        );
        if inserts.is_empty() {
            return;
        }
        out.push_str("\n\nThe following information was included with the event:\n");
        let fields = self.fields(key).unwrap_or_else(|| Arc::from(Vec::new()));
        for n in 0..inserts.len() {
            out.push('\n');
            let start = out.len();
            if !inserts.name(n, out)
                && let Some(field) = fields.get(n)
            {
                out.push_str(&field.name);
            }
            if out.len() > start {
                out.push_str(": ");
            }
            if let Some(map) = fields.get(n).and_then(|field| field.map.as_ref())
                && let Some(number) = inserts.number(n)
                && map.write(number, out)
            {
                continue;
            }
            inserts.write(n, out);
        }
    }
}
