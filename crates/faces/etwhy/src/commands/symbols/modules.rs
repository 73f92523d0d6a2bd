//! Modules of a trace, and what is wanted of each.

use crate::exit::Exit;
use crate::open::TraceArgs;
use etwhy_analysis::operators::stack_modules::{StackModule, StackModuleRows, stack_modules};
use etwhy_base::Guid;
use etwhy_base::units::{duration_ns, thousands};
use etwhy_symbols::source::{Attempt, Outcome};
use etwhy_symbols::{ImageKey, ModuleKey, SafeName, WantedModule};
use etwhy_table::reads;
use serde_json::{Value, json};

/// Modules of the traces.
pub struct Modules {
    /// The heaviest first.
    pub list: Vec<StackModule>,
    /// How the pass ended.
    pub exit: Exit,
}

/// Reads the traces. No server is asked while they are read: which files are fetched is what the commands here decide.
pub fn read(args: &TraceArgs, all: bool) -> anyhow::Result<Modules> {
    let mut args = args.clone();
    args.symbols.offline = true;
    let opened = args.open()?;
    let tables = reads::<StackModuleRows>().iter().map(|table| table.name.to_string()).collect();
    let analysed = opened.analyse(Some(tables))?;
    Ok(Modules { list: stack_modules(&analysed.db, all), exit: analysed.exit })
}

/// What would be looked for.
pub fn wanted(module: &StackModule) -> WantedModule {
    let key = || {
        let guid: Guid = module.pdb_guid.as_deref()?.parse().ok()?;
        let pdb_name = module.pdb_name.clone()?;
        (!guid.is_zero()).then_some(ModuleKey { pdb_name, guid, age: module.pdb_age? })
    };
    let name = if module.path.is_empty() { &module.name } else { &module.path };
    let image = (module.time_date_stamp != 0).then(|| ImageKey {
        name: name.clone(),
        time_date_stamp: module.time_date_stamp,
        size_of_image: u32::try_from(module.size_bytes).unwrap_or(0),
    });
    WantedModule { pdb: key(), image }
}

/// Why nothing can be looked for.
pub fn nothing_to_ask(wanted: &WantedModule) -> Option<String> {
    let Some(key) = &wanted.pdb else {
        return Some(
            "no PDB recorded: the trace was not merged on the machine where it was made (xperf -merge, wpr -stop), or the \
             module has none"
                .to_owned(),
        );
    };
    SafeName::of_path(&key.pdb_name)
        .is_none()
        .then(|| "the recorded name of the PDB is no file name".to_owned())
}

/// File name of the PDB, as it is asked for.
pub fn pdb_name(wanted: &WantedModule) -> String {
    let name = wanted.pdb.as_ref().and_then(|key| SafeName::of_path(&key.pdb_name));
    name.map_or_else(|| "-".to_owned(), |name| name.to_string())
}

/// GUID and age as stores have them.
pub fn pdb_id(wanted: &WantedModule) -> String {
    wanted.pdb.as_ref().map_or_else(|| "-".to_owned(), ModuleKey::store_id)
}

/// CPU time, or nothing.
pub fn cpu(module: &StackModule) -> String {
    if module.cpu_inclusive_ns == 0 { "-".to_owned() } else { duration_ns(module.cpu_inclusive_ns) }
}

/// A number.
pub fn count(n: u64) -> String {
    thousands(n.into())
}

/// A module in JSON.
pub fn as_json(module: &StackModule, wanted: &WantedModule) -> Value {
    json!({
        "module": module.name,
        "path": module.path,
        "pdb": wanted.pdb.as_ref().map(|key| key.pdb_name.as_str()),
        "pdb_id": wanted.pdb.as_ref().map(ModuleKey::store_id),
        "image_id": wanted.image.as_ref().map(ImageKey::store_id),
        "cpu_inclusive_ns": module.cpu_inclusive_ns,
        "cpu_exclusive_ns": module.cpu_exclusive_ns,
        "frames": module.frames,
        "named_frames": module.named_frames,
        "on_stacks": module.places,
    })
}

/// Why nothing was found, in one line: what went wrong before what was not there.
pub fn reason(attempts: &[Attempt]) -> String {
    let mut problems: Vec<String> = attempts.iter().filter_map(Attempt::problem).collect();
    problems.dedup();
    if !problems.is_empty() {
        return problems.join("; ");
    }
    let (mut no, mut not_asked, mut unreachable) = (Vec::new(), Vec::new(), Vec::new());
    for attempt in attempts {
        let place = &attempt.place;
        match &attempt.outcome {
            Outcome::NotFound => no.push(place.clone()),
            Outcome::KnownMissing(seconds) => no.push(format!("{place} (asked {} ago)", ago(*seconds))),
            Outcome::Offline => not_asked.push(place.clone()),
            Outcome::Unreachable => unreachable.push(place.clone()),
            _ => {}
        }
    }
    // What was asked over the network says more than the folders beside the trace.
    if no.iter().any(|place| place.contains("://")) {
        no.retain(|place| place.contains("://"));
    }
    let mut texts = Vec::new();
    for (what, mut places) in
        [("not at", no), ("not asked (offline):", not_asked), ("not to be reached from here:", unreachable)]
    {
        places.dedup();
        if !places.is_empty() {
            texts.push(format!("{what} {}", places.join(", ")));
        }
    }
    if texts.is_empty() { "the symbol path is empty".to_owned() } else { texts.join("; ") }
}

/// One word for the same.
pub fn reason_word(attempts: &[Attempt]) -> &'static str {
    let has = |word: &str| attempts.iter().any(|attempt| attempt.outcome.word() == word);
    ["mismatch", "failed", "known missing", "offline", "not found", "unreachable"]
        .into_iter()
        .find(|word| has(word))
        .unwrap_or("no symbol path")
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// What was tried, in JSON.
pub fn attempts_json(attempts: &[Attempt]) -> Value {
    attempts
        .iter()
        .map(|attempt| {
            json!({
                "place": attempt.place,
                "file": attempt.file,
                "outcome": attempt.outcome.word(),
                "problem": attempt.problem(),
            })
        })
        .collect()
}
