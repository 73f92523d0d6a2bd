//! Texts of events from databases, folders and files.

use crate::error::Error;
use crate::known;
use crate::names::ProviderNames;
use crate::store::{Counts, EventRow, ProviderRow, Store};
use crate::template::{EventText, FieldInfo, Origin, Parameters, ValueMap};
use etwhy_base::Guid;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What [`Messages::open`] does.
#[derive(Debug, Clone)]
pub struct Options {
    /// Languages (LCIDs) in the order that they are wanted; texts in others are taken if there is nothing better.
    pub languages: Vec<u16>,
    /// Names instead of well-known SIDs, as Event Viewer's window shows them; `wevtutil` shows the SIDs.
    pub name_sids: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { languages: vec![crate::lang::EN_US], name_sids: false }
    }
}

/// What a type of event is known by.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventKey<'a> {
    /// `Provider/@Name`.
    pub provider: &'a str,
    /// `Provider/@Guid`.
    pub guid: Option<Guid>,
    /// `EventID`.
    pub event_id: u16,
    /// `EventID/@Qualifiers`, which classic events have.
    pub qualifiers: Option<u16>,
    /// `Version`.
    pub version: u8,
    /// `Channel`, which tells apart classic providers of the same name.
    pub channel: &'a str,
}

/// What a lookup found.
#[derive(Clone, Default)]
enum Found {
    #[default]
    Nothing,
    /// The type of event is known and its text is not.
    Fields(Arc<[FieldInfo]>),
    Text(Arc<EventText>),
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    provider: String,
    guid: Option<Guid>,
    id: u16,
    qualifiers: Option<u16>,
    version: u8,
    channel: String,
}

#[derive(Default)]
pub(crate) struct Cache {
    events: HashMap<Key, Found>,
    parameters: HashMap<Vec<String>, Arc<Parameters>>,
    names: HashMap<(String, Option<Guid>), Arc<ProviderNames>>,
    pub(crate) wanted: BTreeMap<(String, Option<Guid>), MissingTexts>,
    /// What databases refused.
    failed: Vec<String>,
}

/// Texts of events. Shared by threads; each type of event is looked up once.
pub struct Messages {
    pub(crate) stores: Vec<Store>,
    options: Options,
    cache: Mutex<Cache>,
}

/// The most types of events that are remembered; a log has some hundred.
pub(crate) const CACHED_MAX: usize = 1 << 16;

impl Messages {
    /// Opens databases, folders of DLLs (with their translations in subfolders), archives and single files, any of them
    /// mixed; what is named first goes first.
    ///
    /// A database opens at once and is read on demand. Anything else is read as a whole into memory.
    ///
    /// # Errors
    /// If one of them cannot be read or is none of these.
    pub fn open(paths: &[PathBuf], options: &Options) -> Result<Self, Error> {
        let mut stores = Vec::new();
        let mut others = Vec::new();
        for path in paths {
            match crate::build::kind(path)? {
                crate::build::Kind::Database => stores.push(Store::open(path)?),
                _ => others.push(path.clone()),
            }
        }
        if !others.is_empty() {
            // What is read as files stands in the order of the arguments; of two kinds, databases go last, because
            // files are named for a reason.
            let built = crate::build::build(
                &others,
                None,
                // All languages: a text in another one is better than none.
                &crate::build::BuildOptions::default(),
                &mut |_| {},
            )?;
            stores.insert(0, built.store);
        }
        Ok(Self::new(stores, options))
    }

    /// Without any source: names of Windows itself only, and every text is missing.
    #[must_use]
    pub fn empty(options: &Options) -> Self {
        Self::new(Vec::new(), options)
    }

    pub(crate) fn new(stores: Vec<Store>, options: &Options) -> Self {
        Self { stores, options: options.clone(), cache: Mutex::default() }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a store says; if it fails, that is remembered, and it says nothing.
    pub(crate) fn ask<T: Default>(&self, answer: Result<T, Error>) -> T {
        answer.unwrap_or_else(|e| {
            let mut cache = self.cache();
            if cache.failed.len() < 100 {
                cache.failed.push(e.to_string());
            }
            T::default()
        })
    }

    /// What databases refused while looking up; texts are missing for it.
    #[must_use]
    pub fn failed(&self) -> Vec<String> {
        self.cache().failed.clone()
    }

    /// What all sources hold together.
    ///
    /// # Errors
    /// If a database cannot be read.
    pub fn counts(&self) -> Result<Counts, Error> {
        let mut sum = Counts::default();
        for store in &self.stores {
            let counts = store.counts()?;
            sum.files += counts.files;
            sum.manifest_providers += counts.manifest_providers;
            sum.classic_providers += counts.classic_providers;
            sum.events += counts.events;
            sum.messages += counts.messages;
        }
        Ok(sum)
    }

    /// The text of a type of event; nothing if there is none, which [`Messages::wanted`] then names.
    #[must_use]
    pub fn event(&self, key: &EventKey<'_>) -> Option<Arc<EventText>> {
        match self.find(key) {
            Found::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The fields that the manifest of the provider declares for a type of event, also if its text is missing.
    #[must_use]
    pub fn fields(&self, key: &EventKey<'_>) -> Option<Arc<[FieldInfo]>> {
        match self.find(key) {
            Found::Text(text) if !text.fields.is_empty() => Some(text.fields.clone()),
            Found::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    fn find(&self, key: &EventKey<'_>) -> Found {
        let owned = Key {
            provider: key.provider.to_lowercase(),
            guid: key.guid,
            id: key.event_id,
            qualifiers: key.qualifiers,
            version: key.version,
            channel: key.channel.to_lowercase(),
        };
        if let Some(found) = self.cache().events.get(&owned) {
            return found.clone();
        }
        let found = self.look_up(key);
        let mut cache = self.cache();
        if cache.events.len() < CACHED_MAX {
            cache.events.insert(owned, found.clone());
        }
        found
    }

    /// Manifest first, then classic files, then guesses.
    fn look_up(&self, key: &EventKey<'_>) -> Found {
        let mut fields = None;
        let mut lacking: Vec<String> = Vec::new();
        let (mut registered, mut textless) = (false, false);
        for store in &self.stores {
            let providers = self.ask(store.providers(key.provider, key.guid));
            for provider in providers.iter().filter(|p| !p.classic) {
                registered |= provider.registered;
                let event = self.event_row(store, provider, key);
                let Some(event) = event else {
                    lacking.extend(provider.files("resource").map(str::to_owned));
                    lacking.extend(provider.files("message").map(str::to_owned));
                    continue;
                };
                let known = self.field_infos(store, provider, &event);
                let modules = message_modules(provider);
                if let Some(message) = event.message {
                    if let Some((text, origin)) = self.text(&modules, message) {
                        return self.compiled(&text, origin, key, &providers, known);
                    }
                    lacking.extend(modules);
                } else {
                    // Its maker gave it no text, so no file is wanted.
                    textless = true;
                }
                fields = fields.or(Some(known));
            }
            let mut classic: Vec<&ProviderRow> =
                providers.iter().filter(|p| p.classic || p.files("message").next().is_some()).collect();
            // Two logs may have a source of the same name; the one of this log goes first.
            classic
                .sort_by_key(|p| !p.log.as_deref().is_some_and(|log| log.eq_ignore_ascii_case(key.channel)));
            for provider in classic {
                registered |= provider.registered;
                let modules: Vec<String> = provider.files("message").map(str::to_owned).collect();
                if let Some((text, origin)) = self.classic_text(&modules, key) {
                    let known = fields.take().unwrap_or_else(|| Arc::from(Vec::new()));
                    return self.compiled(&text, origin, key, &providers, known);
                }
                lacking.extend(modules);
            }
        }
        if fields.is_none()
            && !registered
            && let Some((text, mut origin)) = self.guess(key)
        {
            origin.guessed = true;
            return self.compiled(&text, origin, key, &[], Arc::from(Vec::new()));
        }
        if !textless || !lacking.is_empty() {
            self.miss(key, lacking, registered);
        }
        fields.map_or(Found::Nothing, Found::Fields)
    }

    /// The type of event in a manifest: of this version, or else of the nearest.
    fn event_row(&self, store: &Store, provider: &ProviderRow, key: &EventKey<'_>) -> Option<EventRow> {
        let rows = self.ask(store.events(provider.id, Some(key.event_id)));
        // Of a classic event with a manifest the message has the qualifiers in its upper half.
        let fits = |row: &EventRow| match (key.qualifiers, row.message) {
            (Some(q), Some(m)) if q != 0 => m >> 16 == u32::from(q),
            _ => true,
        };
        let distance = |row: &EventRow| (!fits(row), row.version.abs_diff(key.version));
        let row = rows.into_iter().min_by_key(distance)?;
        // Another facility is another event (netevent.dll and a driver both have a 7001).
        let classic = key.qualifiers.is_some_and(|q| q != 0);
        (fits(&row) || !classic).then_some(row)
    }

    pub(crate) fn field_infos(
        &self,
        store: &Store,
        provider: &ProviderRow,
        event: &EventRow,
    ) -> Arc<[FieldInfo]> {
        let Some(template) = event.template else {
            return Arc::from(Vec::new());
        };
        let modules = message_modules(provider);
        let mut maps: HashMap<i64, Option<Arc<ValueMap>>> = HashMap::new();
        self.ask(store.fields(template))
            .into_iter()
            .map(|(name, in_type, out_type, map)| FieldInfo {
                name,
                in_type,
                out_type,
                map: map.and_then(|id| {
                    maps.entry(id).or_insert_with(|| self.value_map(store, id, &modules)).clone()
                }),
            })
            .collect()
    }

    fn value_map(&self, store: &Store, id: i64, modules: &[String]) -> Option<Arc<ValueMap>> {
        let (name, bits, values) = self.ask(store.map(id).map(Some))?;
        let values = values
            .into_iter()
            .filter_map(|(value, message)| {
                let (text, _) = self.text(modules, message?)?;
                let mut out = String::new();
                EventText::parse(&text).render(&[] as &[&str], &mut out);
                Some((value, out.trim_end().to_owned()))
            })
            .collect::<Vec<_>>();
        (!values.is_empty()).then(|| Arc::new(ValueMap { name, bits, values }))
    }

    /// A message in the first of some files that has it.
    pub(crate) fn text(&self, modules: &[String], id: u32) -> Option<(String, Origin)> {
        for module in modules {
            let found = self
                .stores
                .iter()
                .filter_map(|store| self.ask(store.message(module, id, &self.options.languages)))
                .min_by_key(|(_, language)| crate::lang::rank(*language, &self.options.languages));
            if let Some((text, language)) = found {
                let origin = Origin { file: module.clone(), message: id, language, guessed: false };
                return Some((text, origin));
            }
        }
        None
    }

    /// The message of a classic event: by its full id; some files have it without severity, or without all of the
    /// upper half.
    fn classic_text(&self, modules: &[String], key: &EventKey<'_>) -> Option<(String, Origin)> {
        classic_ids(key).find_map(|id| self.text(modules, id))
    }

    /// Files for which nobody says that they are the provider's.
    fn guess(&self, key: &EventKey<'_>) -> Option<(String, Origin)> {
        let mut modules: Vec<String> = known::files(key.provider).map(str::to_owned).collect();
        for ending in [".dll", ".exe", ".sys"] {
            modules.push(format!("{}{ending}", key.provider.to_lowercase()));
        }
        if let Some(found) = self.classic_text(&modules, key) {
            return Some(found);
        }
        // An id with qualifiers that just one file has.
        let qualifiers = key.qualifiers.filter(|&q| q != 0)?;
        let id = u32::from(qualifiers) << 16 | u32::from(key.event_id);
        let mut all: Vec<String> =
            self.stores.iter().flat_map(|store| self.ask(store.modules_with(id))).collect();
        all.sort_unstable();
        all.dedup();
        match all.as_slice() {
            [one] => self.text(std::slice::from_ref(one), id),
            _ => None,
        }
    }

    fn compiled(
        &self,
        text: &str,
        origin: Origin,
        key: &EventKey<'_>,
        providers: &[ProviderRow],
        fields: Arc<[FieldInfo]>,
    ) -> Found {
        let parameters = self.parameters(key, providers);
        Found::Text(Arc::new(EventText::compile(text, parameters, fields, self.options.name_sids, origin)))
    }

    /// The parameters of a provider: those that the registry names, else where Windows has them.
    fn parameters(&self, key: &EventKey<'_>, providers: &[ProviderRow]) -> Arc<Parameters> {
        let mut modules: Vec<String> =
            providers.iter().flat_map(|p| p.files("parameter").map(str::to_owned)).collect();
        modules.extend(known::parameter_files(key.provider).map(str::to_owned));
        let mut seen = std::collections::HashSet::new();
        modules.retain(|module| seen.insert(module.clone()));
        if let Some(parameters) = self.cache().parameters.get(&modules) {
            return parameters.clone();
        }
        let messages: Vec<(u32, String)> = modules
            .iter()
            .flat_map(|module| {
                self.stores.iter().flat_map(|store| self.ask(store.messages(module, &self.options.languages)))
            })
            .collect();
        let parameters = Arc::new(Parameters::new(messages));
        self.cache().parameters.insert(modules, parameters.clone());
        parameters
    }

    /// Names of levels, tasks, opcodes, keywords and channels of a provider.
    #[must_use]
    pub fn names(&self, provider: &str, guid: Option<Guid>) -> Arc<ProviderNames> {
        let key = (provider.to_lowercase(), guid);
        if let Some(names) = self.cache().names.get(&key) {
            return names.clone();
        }
        let mut names = ProviderNames::default();
        for store in &self.stores {
            for row in self.ask(store.providers(provider, guid)) {
                let modules = message_modules(&row);
                let text = |id: u32| self.text(&modules, id).map(|found| found.0);
                names.add(&self.ask(store.named(row.id)), &text);
                let category: Vec<String> = row.files("category").map(str::to_owned).collect();
                for module in &category {
                    names.categories(&self.ask(store.messages(module, &self.options.languages)));
                }
            }
        }
        let names = Arc::new(names);
        let mut cache = self.cache();
        if cache.names.len() < CACHED_MAX {
            cache.names.insert(key, names.clone());
        }
        names
    }
}

/// Files with the messages of a provider's manifest, the most likely first.
pub(crate) fn message_modules(provider: &ProviderRow) -> Vec<String> {
    let mut modules: Vec<String> = provider.files("message").map(str::to_owned).collect();
    for module in provider.files("resource").map(str::to_owned).chain(provider.module.clone()) {
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    modules
}

/// The ids under which a classic event's message may stand.
///
/// The full one is the right one; a file that has the lower half only is compiled without facility and severity
/// (EventLogExpert's issue 683). Without qualifiers nothing is known of the upper half, and severities are tried.
fn classic_ids(key: &EventKey<'_>) -> impl Iterator<Item = u32> {
    let id = u32::from(key.event_id);
    let qualifiers = u32::from(key.qualifiers.unwrap_or(0));
    let full = qualifiers << 16 | id;
    let severities = (key.qualifiers.is_none()).then_some([0x4000_0000, 0x8000_0000, 0xc000_0000]);
    [full, full & 0x0fff_ffff, id]
        .into_iter()
        .chain(severities.into_iter().flatten().map(move |s: u32| s | id))
}

/// A provider for which texts were missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTexts {
    /// Its name.
    pub provider: String,
    /// Its GUID.
    pub guid: Option<Guid>,
    /// Event ids without a text.
    pub events: Vec<u16>,
    /// Files that hold its texts; none if nobody knows them.
    pub files: Vec<String>,
    /// Whether the registry of the machine names the files; otherwise they are those of another Windows, or a guess.
    pub registered: bool,
    /// Whether these files are there and lack the text: another build of them is wanted.
    pub other_build: bool,
}
