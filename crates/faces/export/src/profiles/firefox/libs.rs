//! Images as libraries, with the names that were resolved for them.

use crate::profile::{Profile, Stacks};
use crate::sanitize;
use etwhy_trace::catalog::image::ImageRow;
use foldhash::HashMap;
use fxprof_processed_profile as fx;
use fxprof_processed_profile::debugid::DebugId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Libraries by row of table `image`.
pub(super) struct Libs {
    libs: HashMap<u32, fx::LibraryHandle>,
}

impl Libs {
    /// Those of all images in which frames lie.
    pub fn collect(profile: &Profile<'_>, stacks: &Stacks<'_>, made: &mut fx::Profile) -> Libs {
        // Whether a name belongs to the address itself, or to the one behind it.
        let mut names: BTreeMap<u32, BTreeMap<u32, (bool, Option<&str>)>> = BTreeMap::new();
        for frame in 0..stacks.frames() {
            let frame = stacks.frame(frame);
            let Some((image, rva)) = frame.image.zip(frame.rva.and_then(|rva| u32::try_from(rva).ok()))
            else {
                continue;
            };
            let known = names.entry(image).or_default();
            known.insert(rva, (true, frame.function));
            if let Some(before) = rva.checked_sub(1) {
                // Return addresses are looked up there.
                known.entry(before).or_insert((false, frame.function));
            }
        }
        let images = profile.db.read_or_empty::<ImageRow>();
        let mut libs = HashMap::default();
        for (row, names) in names {
            let Some(image) = images.get(row) else { continue };
            let text = |text: &str| sanitize(text).into_owned();
            let debug_path = text(image.pdb_name().unwrap_or(image.name()));
            let id = image.pdb_guid().map(|guid| format!("{guid}-{:x}", image.pdb_age().unwrap_or(0)));
            let id = id.and_then(|id| id.parse::<DebugId>().ok()).unwrap_or_default();
            let (stamp, size) = (image.time_date_stamp() as u32, image.size_bytes() as u32);
            let lib = fx::LibraryInfo {
                name: text(image.name()),
                debug_name: debug_path.rsplit(['\\', '/']).next().unwrap_or("").to_owned(),
                path: text(image.path()),
                debug_path,
                debug_id: id,
                // As symbol servers index images.
                code_id: Some(format!("{stamp:08X}{size:x}")),
                arch: None,
                symbol_table: Some(Arc::new(fx::SymbolTable::new(symbols(&names)))),
            };
            libs.insert(row, made.add_lib(lib));
        }
        Libs { libs }
    }

    /// Of an image.
    pub fn get(&self, image: u32) -> Option<fx::LibraryHandle> {
        self.libs.get(&image).copied()
    }
}

/// Neighbouring addresses of one name are one symbol, which ends with the last of them: what lies behind is not known.
fn symbols(names: &BTreeMap<u32, (bool, Option<&str>)>) -> Vec<fx::Symbol> {
    let all: Vec<(u32, Option<&str>)> = names.iter().map(|(rva, (_, name))| (*rva, *name)).collect();
    let runs = all.chunk_by(|a, b| a.1 == b.1);
    runs.filter_map(|run| {
        let ((first, name), (last, _)) = (*run.first()?, *run.last()?);
        let size = Some((last - first).saturating_add(1));
        Some(fx::Symbol { address: first, size, name: sanitize(name?).into_owned() })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_covers_what_was_seen_of_it() {
        let names = [(9, Some("f")), (10, Some("f")), (19, Some("f")), (20, None), (30, Some("f"))];
        let names = names.into_iter().map(|(rva, name)| (rva, (true, name))).collect();
        let made: Vec<_> = symbols(&names).into_iter().map(|s| (s.address, s.size)).collect();
        assert_eq!(made, [(9, Some(11)), (30, Some(1))]);
    }
}
