//! What there is, for people.

use crate::error::Error;
use crate::messages::{Messages, message_modules};
use crate::names::plain;
use crate::store::FileInfo;
use crate::template::FieldInfo;
use etwhy_base::Guid;
use std::sync::Arc;

/// A provider in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSummary {
    /// Its name, if file or registry tell it.
    pub name: Option<String>,
    /// Its GUID.
    pub guid: Option<Guid>,
    /// The log of a classic provider.
    pub log: Option<String>,
    /// Whether the registry names it.
    pub registered: bool,
    /// Files with its messages.
    pub files: Vec<String>,
    /// Files with its parameters.
    pub parameter_files: Vec<String>,
    /// Types of events in its manifest.
    pub events: u64,
    /// Of them, those with a text.
    pub texts: u64,
}

/// A type of event, or a message of a classic provider.
#[derive(Debug, Clone)]
pub struct EventSummary {
    /// Id of the event.
    pub id: u16,
    /// Its version; none for classic ones.
    pub version: Option<u8>,
    /// Upper half of the message's id of classic ones.
    pub qualifiers: Option<u16>,
    /// Id of the message.
    pub message: Option<u32>,
    /// The text as it stands in the file, without trailing line break.
    pub text: Option<String>,
    /// Fields.
    pub fields: Arc<[FieldInfo]>,
}

impl Messages {
    /// All providers, by name.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn providers(&self) -> Result<Vec<ProviderSummary>, Error> {
        let mut out = Vec::new();
        for store in &self.stores {
            for row in store.all_providers()? {
                let files = message_modules(&row);
                let events = store.events(row.id, None)?;
                let texts = events
                    .iter()
                    .filter(|e| e.message.is_some_and(|m| self.text(&files, m).is_some()))
                    .count();
                out.push(ProviderSummary {
                    parameter_files: row.files("parameter").map(str::to_owned).collect(),
                    name: row.name,
                    guid: row.guid,
                    log: row.log,
                    registered: row.registered,
                    files,
                    events: events.len() as u64,
                    texts: texts as u64,
                });
            }
        }
        Ok(out)
    }

    /// The types of events of a provider, by name or GUID, or those with an id.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn events(&self, provider: &str, id: Option<u16>) -> Result<Vec<EventSummary>, Error> {
        let mut out = Vec::new();
        for store in &self.stores {
            for row in store.providers(provider, provider.parse().ok())? {
                let modules = message_modules(&row);
                for event in store.events(row.id, id)? {
                    let text = event.message.and_then(|m| self.text(&modules, m));
                    let classic = event.keywords & 1 << 55 != 0;
                    out.push(EventSummary {
                        id: event.id,
                        version: Some(event.version),
                        qualifiers: event.message.filter(|_| classic).map(|m| (m >> 16) as u16),
                        message: event.message,
                        text: text.map(|t| t.0.trim_end().to_owned()),
                        fields: self.field_infos(store, &row, &event),
                    });
                }
                if row.classic {
                    for module in &modules {
                        for (message, text) in store.messages(module, &self.options().languages)? {
                            if id.is_none_or(|id| message & 0xffff == u32::from(id)) {
                                out.push(EventSummary {
                                    id: (message & 0xffff) as u16,
                                    version: None,
                                    qualifiers: Some((message >> 16) as u16),
                                    message: Some(message),
                                    text: Some(text.trim_end().to_owned()),
                                    fields: Arc::from(Vec::new()),
                                });
                            }
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    /// Languages with the number of messages in each, the most first.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn languages(&self) -> Result<Vec<(u16, u64)>, Error> {
        let mut all: Vec<(u16, u64)> = Vec::new();
        for store in &self.stores {
            for (language, count) in store.languages()? {
                match all.iter_mut().find(|(l, _)| *l == language) {
                    Some(entry) => entry.1 += count,
                    None => all.push((language, count)),
                }
            }
        }
        all.sort_by_key(|&(language, count)| (std::cmp::Reverse(count), language));
        Ok(all)
    }

    /// Files that were read.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn files(&self) -> Result<Vec<FileInfo>, Error> {
        let mut all = Vec::new();
        for store in &self.stores {
            all.extend(store.files()?);
        }
        Ok(all)
    }

    /// Notes about each database: where it comes from, whether providers were registered or are guessed.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn notes(&self) -> Result<Vec<(String, String)>, Error> {
        let mut all = Vec::new();
        for store in &self.stores {
            all.extend(store.meta()?);
        }
        Ok(all)
    }

    /// A message as people read it, without inserts filled in.
    #[must_use]
    pub fn shown(text: &str) -> String {
        plain(text)
    }
}
