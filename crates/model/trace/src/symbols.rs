//! Symbols of the images of a trace, read when they are first needed.

use crate::anomalies::{SYMBOLS_MISMATCHED, SYMBOLS_UNREADABLE};
use crate::model::Model;
use crate::model::il_map::IlPlace;
use crate::model::image::{Image, base_name};
use etwhy_base::Guid;
use etwhy_etl::Ledger;
use etwhy_symbols::{
    ImageKey, Locate, ModuleKey, ModuleSymbols, Name, NameStyle, Origin, PortableLines, Resolver,
    SymbolStore, WantedModule,
};
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// What identifies an image: PDB name, GUID and age; file name, time stamp and size.
type Identity = (Option<(Sym, Guid, u32)>, (Option<Sym>, u32, u64));

/// Images that are looked at for one address. Hundreds at one place are a process that loads and unloads; more
/// are damage or malice.
pub(crate) const MAX_CANDIDATES: usize = 1024;

/// Where symbols are looked for and how names are shown.
pub struct Symbols {
    resolver: Resolver,
    names: NameStyle,
    loaded: HashMap<Identity, Option<Arc<ModuleSymbols>>>,
    /// Decorated names with what is shown for them: taking one apart costs more than all else at an address, and a function
    /// has many addresses.
    taken_apart: HashMap<Box<str>, Box<str>>,
    /// Portable PDBs of assemblies.
    lines: HashMap<(Sym, Guid), Option<PortableLines>>,
}

/// Names that are remembered. Images of a trace have some thousand functions that were seen running.
const MAX_TAKEN_APART: usize = 1 << 17;

impl Symbols {
    /// Symbols from `folders`, in the short form of names and without a compact cache. Without folders only the .NET
    /// runtime names functions.
    pub fn new(folders: &[PathBuf]) -> Symbols {
        let mut locators: Vec<Box<dyn Locate>> = Vec::new();
        if !folders.is_empty() {
            locators.push(Box::new(SymbolStore::new(folders.to_vec())));
        }
        Symbols::with_resolver(Resolver::new(locators, None), NameStyle::Short)
    }

    /// Symbols that `resolver` finds, with names in the form `names`.
    pub fn with_resolver(resolver: Resolver, names: NameStyle) -> Symbols {
        Symbols {
            resolver,
            names,
            loaded: HashMap::default(),
            taken_apart: HashMap::default(),
            lines: HashMap::default(),
        }
    }

    /// Module and function at a kernel address, by the images that are loaded now.
    pub(crate) fn kernel_routine<'s>(
        &mut self,
        address: u64,
        model: &Model,
        strings: &'s Strings,
        ledger: &mut Ledger,
    ) -> Option<(&'s str, Option<String>)> {
        let all = model.images.all();
        let loaded = model.images.for_process(None).iter().rev().take(MAX_CANDIDATES);
        let image = loaded
            .filter_map(|&number| all.get(number as usize))
            .find(|image| image.contains(address) && image.unload_ns.is_none())?;
        let module = base_name(strings.get(image.path?));
        let symbols = self.module(image, strings, ledger);
        let rva = u32::try_from(address.wrapping_sub(image.base)).ok();
        let function = symbols.zip(rva).and_then(|(s, rva)| Some(self.shown(&s, s.lookup(rva)?.function)));
        Some((module, function))
    }

    /// A name as it is shown: those of export tables begin with `~`, because another function may stand there.
    pub(crate) fn shown(&mut self, symbols: &ModuleSymbols, name: Name<'_>) -> String {
        let shown = match (self.names, name.linkage) {
            (NameStyle::Raw, _) => name.show(self.names),
            (NameStyle::Full, Some(linkage)) if linkage.starts_with('?') => self.apart(linkage, name),
            _ if ["?", "_R", "_ZN"].iter().any(|mark| name.plain.starts_with(mark)) => {
                self.apart(name.plain, name)
            }
            _ => name.show(self.names),
        };
        match symbols.origin() {
            Origin::Export => format!("~{shown}"),
            _ => shown.into_owned(),
        }
    }

    /// A name as it is shown; `decorated` is the form of it that is taken apart.
    fn apart<'n>(&mut self, decorated: &str, name: Name<'n>) -> Cow<'n, str> {
        if let Some(known) = self.taken_apart.get(decorated) {
            return known.to_string().into();
        }
        let shown = name.show(self.names);
        if self.taken_apart.len() < MAX_TAKEN_APART {
            self.taken_apart.insert(decorated.into(), (&*shown).into());
        }
        shown
    }

    /// The symbols of an image, if there are any.
    pub(crate) fn module(
        &mut self,
        image: &Image,
        strings: &Strings,
        ledger: &mut Ledger,
    ) -> Option<Arc<ModuleSymbols>> {
        let pdb = image.pdb.map(|pdb| (pdb.name, pdb.guid, pdb.age));
        let identity = (pdb, (image.path, image.time_date_stamp, image.size));
        if let Some(known) = self.loaded.get(&identity) {
            return known.clone();
        }
        let name = image.path.map(|path| base_name(strings.get(path)).to_owned());
        // Some linkers write no time stamp; 0 identifies nothing.
        let stamp = Some(image.time_date_stamp).filter(|stamp| *stamp != 0);
        let wanted = WantedModule {
            pdb: pdb.map(|(name, guid, age)| ModuleKey { pdb_name: strings.get(name).to_owned(), guid, age }),
            image: name.zip(stamp).zip(u32::try_from(image.size).ok()).map(
                |((name, time_date_stamp), size_of_image)| ImageKey { name, time_date_stamp, size_of_image },
            ),
        };
        let module = self.resolver.load(&wanted);
        self.note_problems(ledger);
        self.loaded.insert(identity, module.clone());
        module
    }

    /// True if there is a portable PDB for the place; then its file and line, unless the PDB has none.
    pub(crate) fn managed_line(
        &mut self,
        place: &IlPlace,
        strings: &Strings,
        ledger: &mut Ledger,
    ) -> (bool, Option<(String, u32)>) {
        let (name, guid) = (place.pdb.name, place.pdb.guid);
        if !self.lines.contains_key(&(name, guid)) {
            let key = ModuleKey { pdb_name: strings.get(name).to_owned(), guid, age: place.pdb.age };
            let lines = self.resolver.lines(&key);
            self.note_problems(ledger);
            self.lines.insert((name, guid), lines);
        }
        let lines = self.lines.get(&(name, guid)).and_then(Option::as_ref);
        (lines.is_some(), lines.and_then(|lines| lines.lookup(place.token, place.il_offset)))
    }

    fn note_problems(&self, ledger: &mut Ledger) {
        for problem in self.resolver.problems() {
            let anomaly = if problem.mismatch { &SYMBOLS_MISMATCHED } else { &SYMBOLS_UNREADABLE };
            ledger.note(anomaly, 1, || problem.text);
        }
    }
}
