//! Who sits inside this program: libraries that were injected, and functions of Windows over which somebody wrote a jump.
//!
//! Such a hook needs no process of its own, so that no list of processes shows it. A function that the probe calls begins otherwise in
//! memory than in its file, and the jump that stands there leads to its owner; or the program's table of imports does.

use crate::who::image::{self, Image, Memory, Patch};
use crate::who::loaded::{Loaded, strangers};
use crate::who::suspect::{LIKELY, POSSIBLE, Suspect};
use crate::who::timeline::Seen;
use etwhy_knowledge::{driver, is_security};
use etwhy_os::Mapped;
use etwhy_os::windows::{file_version, modules};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Libraries of Windows by which programs ask the kernel.
const LIBRARIES: &[&str] = &["ntdll.dll", "kernelbase.dll", "kernel32.dll", "advapi32.dll"];

/// Functions by which probes do what they measure, and what these call in turn.
const CALLS: &[&str] = &[
    "CloseHandle",
    "CreateDirectoryW",
    "CreateFileW",
    "CreateProcessInternalW",
    "CreateProcessW",
    "CreateThread",
    "DeleteFileW",
    "FindClose",
    "FindFirstFileExW",
    "FindNextFileW",
    "FlushFileBuffers",
    "FreeLibrary",
    "GetFileInformationByHandle",
    "GetFileInformationByHandleEx",
    "LdrLoadDll",
    "LdrUnloadDll",
    "LoadLibraryExW",
    "MoveFileExW",
    "NtAllocateVirtualMemory",
    "NtClose",
    "NtCreateFile",
    "NtCreateSection",
    "NtCreateThreadEx",
    "NtCreateUserProcess",
    "NtDelayExecution",
    "NtFlushBuffersFile",
    "NtFreeVirtualMemory",
    "NtMapViewOfSection",
    "NtNotifyChangeDirectoryFile",
    "NtOpenFile",
    "NtOpenKey",
    "NtOpenKeyEx",
    "NtOpenSection",
    "NtProtectVirtualMemory",
    "NtQueryAttributesFile",
    "NtQueryDirectoryFile",
    "NtQueryDirectoryFileEx",
    "NtQueryInformationFile",
    "NtQueryInformationProcess",
    "NtQuerySystemInformation",
    "NtQueryValueKey",
    "NtReadFile",
    "NtSetInformationFile",
    "NtSetValueKey",
    "NtUnmapViewOfSection",
    "NtUnmapViewOfSectionEx",
    "NtWaitForSingleObject",
    "NtWriteFile",
    "NtYieldExecution",
    "ReadDirectoryChangesW",
    "ReadFile",
    "RegCloseKey",
    "RegCreateKeyExW",
    "RegOpenKeyExW",
    "RegQueryValueExW",
    "RegSetValueExW",
    "RemoveDirectoryW",
    "SetFileInformationByHandle",
    "Sleep",
    "SleepEx",
    "SwitchToThread",
    "VirtualAlloc",
    "VirtualFree",
    "WriteFile",
];

/// Functions that are named in a sentence.
const MOST_NAMED: usize = 6;

/// Who answers in the place of functions: `Some(number of the module)`, or code that belongs to none.
type Owner = Option<usize>;

/// Adds who sits inside this program, and what could not be looked at.
pub fn judge(seen: &mut Seen) {
    let modules = match loaded() {
        Ok(modules) => modules,
        Err(error) => {
            seen.notes.push(format!("libraries and hooks inside this program are not known: {error}"));
            return;
        }
    };
    let windows = std::env::var("SystemRoot").unwrap_or_default();
    let has = |name: &str| Path::new(&windows).join("System32").join(name).exists();
    let strangers = strangers(&modules, &windows, &has);
    let owner = |at: u64| modules.iter().position(|module| module.addresses.contains(&at));
    let memory: Memory<'_> = &modules::read;

    let mut taken: BTreeMap<Owner, Vec<(String, String)>> = BTreeMap::new();
    for library in LIBRARIES {
        let own = modules.iter().find(|one| one.name().eq_ignore_ascii_case(library) && one.is_in(&windows));
        let Some(own) = own else { continue };
        let patches = on_file(own, |file| file.map(|file| file.patches(CALLS, own.addresses.start, memory)));
        let Some(patches) = patches else {
            seen.notes.push(format!(
                "whether functions of {library} are patched is not known: its file cannot be read, or is not the one that was loaded"
            ));
            continue;
        };
        for patch in patches {
            let full = format!("{library}!{}", patch.name);
            let Some(to) = patch.to else {
                seen.notes.push(format!("{}: nobody is known to whom that leads", differs(&full, &patch)));
                continue;
            };
            let to = image::destination(to, memory, &|at| owner(at).is_some());
            let words = format!("{}: that leads to {to:#x}, {}", differs(&full, &patch), whose(owner(to)));
            taken.entry(owner(to)).or_default().push((full, words));
        }
    }
    for (name, to) in imports(&modules, memory) {
        let to = image::destination(to, memory, &|at| owner(at).is_some());
        let owner = owner(to);
        if owner.is_none_or(|owner| strangers.get(owner).is_some_and(Option::is_some)) {
            let words = format!("this program's import of {name} leads to {to:#x}, {}", whose(owner));
            taken.entry(owner).or_default().push((name, words));
        }
    }

    let mut harmless = Vec::new();
    for (at, (module, why)) in modules.iter().zip(&strangers).enumerate() {
        let functions = taken.remove(&Some(at));
        let Some(why) = why else {
            // Hot patches and layers of compatibility are Windows' own.
            if let Some(functions) = functions {
                seen.notes.push(format!(
                    "{} leads into {}, a part of Windows or of this program",
                    list(&functions),
                    module.path
                ));
            }
            continue;
        };
        let known = driver(&module.name().to_lowercase()).filter(|fact| is_security(fact.category));
        if functions.is_none() && known.is_none() {
            harmless.push(format!("{} ({why})", module.path));
            continue;
        }
        let mut evidence = Vec::new();
        evidence.extend(functions.as_deref().and_then(first));
        evidence.extend(functions.as_deref().map(answers));
        evidence.push(format!("it is loaded into this program ({}): {why}", module.path));
        evidence.extend(
            known.map(|fact| {
                format!("by its name it is {} ({}, {})", fact.product, fact.vendor, fact.category)
            }),
        );
        seen.suspects.push(suspect(module.name(), evidence, functions.is_some()));
    }
    if let Some(functions) = taken.remove(&None) {
        let mut evidence: Vec<String> = first(&functions).into_iter().collect();
        evidence.push(answers(&functions));
        let made = "no library has these addresses: somebody hides, or made the code while running";
        evidence.push(made.to_owned());
        let code = suspect("code of no library", evidence, true);
        seen.suspects.push(Suspect { kind: "code inside this program".to_owned(), ..code });
    }
    if !harmless.is_empty() {
        seen.notes.push(format!(
            "also loaded into this program, without a place in what the probe calls: {}",
            harmless.join("; ")
        ));
    }
}

/// What is loaded, with what its files say.
fn loaded() -> std::io::Result<Vec<Loaded>> {
    let all = modules::own()?.into_iter().map(|module| Loaded {
        company: file_version::company(Path::new(&module.path)).ok().flatten(),
        needs: file(&module.path).and_then(|file| Some(Image::parse(&file)?.needs())).unwrap_or_default(),
        path: module.path,
        addresses: module.addresses,
    });
    Ok(all.collect())
}

fn file(path: &str) -> Option<Mapped> {
    Mapped::new(&File::open(path).ok()?).ok()
}

/// Does something with a module's file, if that is what was loaded.
fn on_file<T>(module: &Loaded, work: impl FnOnce(Option<Image<'_>>) -> T) -> T {
    let file = file(&module.path);
    let image = file.as_deref().and_then(Image::parse);
    work(image.filter(|image| image.is_at(module.addresses.start, &modules::read)))
}

/// Functions that probes call and this program imports, and where they are.
fn imports(modules: &[Loaded], memory: Memory<'_>) -> Vec<(String, u64)> {
    let Some(program) = modules.first() else { return Vec::new() };
    let slots = on_file(program, |file| file.map(|file| file.slots(program.addresses.start)));
    let called = slots.unwrap_or_default().into_iter().filter(|(name, _)| CALLS.contains(&name.as_str()));
    let read = called.filter_map(|(name, slot)| {
        let mut word = [0; 8];
        memory(slot, &mut word).then(|| (name, u64::from_le_bytes(word)))
    });
    read.collect()
}

fn whose(owner: Owner) -> &'static str {
    if owner.is_some() { "which is in it" } else { "which is in no library" }
}

fn differs(full: &str, patch: &Patch) -> String {
    let hex =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<String>>().join(" ");
    format!("{full} begins with {} in memory and with {} in its file", hex(&patch.memory), hex(&patch.file))
}

/// One of the functions in full: anybody can look it up.
fn first(functions: &[(String, String)]) -> Option<String> {
    functions.first().map(|(_, words)| words.clone())
}

fn answers(functions: &[(String, String)]) -> String {
    format!("it answers in the place of {}, which the probe calls", list(functions))
}

fn list(functions: &[(String, String)]) -> String {
    let mut names: Vec<String> = functions.iter().take(MOST_NAMED).map(|(name, _)| name.clone()).collect();
    let left = functions.len().saturating_sub(names.len());
    if left > 0 {
        names.push(format!("{left} more"));
    }
    names.join(", ")
}

fn suspect(name: &str, evidence: Vec<String>, must_answer: bool) -> Suspect {
    Suspect {
        name: name.to_owned(),
        process: None,
        kind: "library inside this program".to_owned(),
        evidence,
        cpu_ns: None,
        blocked_ns: None,
        confidence: if must_answer { LIKELY } else { POSSIBLE }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_innocent_and_was_looked_at() {
        let mut seen = Seen::default();
        judge(&mut seen);
        assert!(seen.suspects.is_empty() && seen.notes.is_empty(), "{seen:?}");
        let modules = loaded().unwrap();
        let ntdll = modules.iter().find(|module| module.name() == "ntdll.dll").unwrap();
        on_file(ntdll, |file| assert!(file.is_some()));
        let imports = imports(&modules, &modules::read);
        assert!(imports.iter().any(|(name, _)| name == "CreateFileW"), "{imports:?}");
    }
}
