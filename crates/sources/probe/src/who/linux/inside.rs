//! Who sits inside this program: libraries that were preloaded or injected and answer in the place of the C library.
//!
//! Such a hook needs no process of its own, so that no list of processes shows it. The loader maps what `LD_PRELOAD` and
//! `/etc/ld.so.preload` name (ld.so(8)); `/proc/self/maps` has it, however it came in. While the probe's thread waits, the kernel
//! tells its stack pointer (`/proc/self/task/*/syscall`, proc_pid_syscall(5)): a return address into the library on that stack says who called.

use super::files::small;
use super::waits::FEW_LOOKS;
use crate::who::suspect::{POSSIBLE, PROVEN, Suspect};
use crate::who::timeline::Seen;
use crate::words::time;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Libraries that belong to the program and its C library (glibc, musl, GCC's runtime), and what name services load.
const OWN: &[&str] = &[
    "ld-linux",
    "ld-musl",
    "ld64",
    "ld.so",
    "libc.",
    "libc-",
    "libm.",
    "libm-",
    "libpthread",
    "libdl.",
    "libdl-",
    "librt.",
    "librt-",
    "libgcc_s",
    "libresolv",
    "libnss_",
    "linux-vdso",
];

/// Functions of the C library by which probes do what they measure.
const CALLS: &[&str] = &[
    "clock_nanosleep",
    "clone",
    "close",
    "dlopen",
    "execve",
    "execvp",
    "fork",
    "lstat",
    "lstat64",
    "mkdir",
    "mmap",
    "mmap64",
    "munmap",
    "nanosleep",
    "open",
    "open64",
    "openat",
    "openat64",
    "opendir",
    "posix_spawn",
    "posix_spawnp",
    "pread",
    "pread64",
    "read",
    "readdir",
    "readdir64",
    "recv",
    "rename",
    "sched_yield",
    "send",
    "socket",
    "stat",
    "stat64",
    "statx",
    "syscall",
    "unlink",
    "unlinkat",
    "vfork",
    "write",
];

/// Bytes of the stack that are looked at: the calls nearest to the kernel.
const STACK: usize = 4096;

/// Libraries that are looked into, and bytes of each.
const MOST_MODULES: usize = 64;
const MOST_BYTES: u64 = 256 << 20;

/// Functions that are named in a sentence.
const MOST_NAMED: usize = 6;

/// A library that is no part of this program.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Where its code is.
    code: Vec<Range<u64>>,
    /// Functions that probes call and that it has under the same name.
    replaces: Vec<String>,
    /// How it came in, if that is known.
    how: Option<&'static str>,
    /// Looks that found it on the waiting thread's stack, and the time that they stand for.
    seen: (u64, u64),
}

/// What sits inside this program.
#[derive(Debug, Default)]
pub struct Inside {
    modules: Vec<Module>,
    memory: Option<File>,
    thread: i32,
    /// Looks that found the thread waiting.
    waiting: u64,
}

impl Inside {
    /// Looks what is loaded; `thread` is the one whose waiting is explained.
    pub fn for_thread(thread: i32) -> Inside {
        let maps = super::files::up_to(16 << 20, "/proc/self/maps").unwrap_or_default();
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let mut modules = foreign(&maps, &program.to_string_lossy());
        let variable = std::env::var("LD_PRELOAD").unwrap_or_default();
        let system = small("/etc/ld.so.preload").unwrap_or_default();
        for module in &mut modules {
            module.how = how(&module.path, &variable, &system);
            module.replaces = replaces(&module.path);
        }
        let memory = if modules.is_empty() { None } else { File::open("/proc/self/mem").ok() };
        Inside { modules, memory, thread, waiting: 0 }
    }

    /// Looks whether the thread waits, and in whose call; what is found stands for the time since the last look.
    pub fn look(&mut self, since: Duration) {
        let Some(memory) = &self.memory else { return };
        let Some(pointer) =
            small(format!("/proc/self/task/{}/syscall", self.thread)).and_then(|t| stack_pointer(&t))
        else {
            return;
        };
        let mut stack = [0_u8; STACK];
        let Ok(length) = memory.read_at(&mut stack, pointer) else { return };
        self.waiting += 1;
        let words = stack.get(..length).unwrap_or_default().chunks_exact(8);
        let words: Vec<u64> = words.filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes)).collect();
        let ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        for module in &mut self.modules {
            if words.iter().any(|word| module.code.iter().any(|code| code.contains(word))) {
                module.seen = (module.seen.0 + 1, module.seen.1.saturating_add(ns));
            }
        }
    }

    /// Adds who was seen.
    pub fn judge(&self, seen: &mut Seen) {
        let mut harmless = Vec::new();
        for module in &self.modules {
            let (looks, ns) = module.seen;
            let is_seen = looks >= FEW_LOOKS;
            let name = module.path.rsplit('/').next().unwrap_or(&module.path);
            if !is_seen && module.replaces.is_empty() {
                harmless.push(name);
                continue;
            }
            let mut evidence = Vec::new();
            if is_seen {
                evidence.push(format!(
                    "in {looks} of {} looks that found the probe's thread waiting, a return address into it was on the thread's stack, {} in \
                     all (/proc/self/task/{}/syscall)",
                    self.waiting,
                    time(ns as f64),
                    self.thread
                ));
            }
            let how = module.how.unwrap_or("it is no part of this program");
            evidence.push(format!("it is loaded into this program ({}): {how}", module.path));
            if !module.replaces.is_empty() {
                evidence.push(format!(
                    "it answers in the place of the C library's {}, which the probe calls",
                    module.replaces.join(", ")
                ));
            }
            seen.suspects.push(Suspect {
                name: name.to_owned(),
                process: None,
                kind: "library inside this program".to_owned(),
                evidence,
                cpu_ns: None,
                blocked_ns: is_seen.then_some(ns),
                confidence: if is_seen { PROVEN } else { POSSIBLE }.to_owned(),
            });
        }
        if !harmless.is_empty() {
            seen.notes.push(format!(
                "also loaded into this program, without replacing what the probe calls: {}",
                harmless.join(", ")
            ));
        }
    }
}

/// Libraries of `/proc/self/maps` (proc_pid_maps(5)) with code that are neither the program nor its C library.
fn foreign(maps: &str, program: &str) -> Vec<Module> {
    let mut found: Vec<Module> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let Some(path) = line.find('/').and_then(|at| line.get(at..)) else { continue };
        let path = path.trim_end_matches(" (deleted)");
        let name = path.rsplit('/').next().unwrap_or(path);
        if !rights.contains('x') || path == program || OWN.iter().any(|own| name.starts_with(own)) {
            continue;
        }
        let ends = range.split_once('-').and_then(|(from, to)| {
            Some(u64::from_str_radix(from, 16).ok()?..u64::from_str_radix(to, 16).ok()?)
        });
        let Some(code) = ends else { continue };
        if let Some(module) = found.iter_mut().find(|module| module.path == path) {
            module.code.push(code);
        } else if found.len() < MOST_MODULES {
            found.push(Module { path: path.to_owned(), code: vec![code], ..Module::default() });
        }
    }
    found
}

/// Who asked the loader for it.
fn how(path: &str, variable: &str, system: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let names = |list: &str| {
        list.split([':', ' ', '\t', '\n']).any(|one| one == path || one.rsplit('/').next() == Some(name))
    };
    if names(system) {
        Some("/etc/ld.so.preload names it, for all programs")
    } else if names(variable) {
        Some("the environment variable LD_PRELOAD names it")
    } else {
        None
    }
}

/// The stack pointer of a waiting thread: the last but one word of a line of `/proc/*/syscall`.
fn stack_pointer(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [.., pointer, _] = words.as_slice() else { return None };
    u64::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
}

/// Which of the functions that probes call a library has itself.
fn replaces(path: &str) -> Vec<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    let mut found: Vec<String> = match read {
        Ok(_) => functions(&bytes).filter(|name| CALLS.contains(name)).map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    };
    found.sort_unstable();
    found.dedup();
    let left = found.len().saturating_sub(MOST_NAMED);
    if left > 0 {
        found.truncate(MOST_NAMED);
        found.push(format!("{left} more"));
    }
    found
}

/// Names of the functions that an ELF file of 64 bits, little-endian, offers to the loader (elf(5)): defined symbols of `.dynsym`.
fn functions(file: &[u8]) -> impl Iterator<Item = &str> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    let is_elf = file.starts_with(b"\x7fELF\x02\x01");
    let table = number(file, 0x28, 8).unwrap_or(0);
    let (size, count) = (number(file, 0x3a, 2).unwrap_or(0), number(file, 0x3c, 2).unwrap_or(0));
    let section = move |at: u64| table.checked_add(at.checked_mul(size)?);
    let symbols = (0..if is_elf { count } else { 0 }).find_map(|at| {
        let at = section(at)?;
        (number(file, at.checked_add(4)?, 4)? == DYNAMIC_SYMBOLS).then_some(at)
    });
    let places = symbols.and_then(|at| {
        let names = section(number(file, at.checked_add(0x28)?, 4)?)?;
        let names = number(file, names.checked_add(0x18)?, 8)?;
        Some((number(file, at.checked_add(0x18)?, 8)?, number(file, at.checked_add(0x20)?, 8)?, names))
    });
    let (from, bytes, names) = places.unwrap_or_default();
    (0..(bytes / 24).min(1 << 20)).filter_map(move |at| {
        let symbol = from.checked_add(at * 24)?;
        // STT_FUNC 2, STT_GNU_IFUNC 10; section 0 is SHN_UNDEF: what the library itself needs from others.
        let is_function = matches!(number(file, symbol.checked_add(4)?, 1)? & 15, 2 | 10);
        if !is_function || number(file, symbol.checked_add(6)?, 2)? == 0 {
            return None;
        }
        let name = usize::try_from(names.checked_add(number(file, symbol, 4)?)?).ok()?;
        let text = file.get(name..)?.get(..64).or_else(|| file.get(name..))?;
        std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()
    })
}

fn number(file: &[u8], at: u64, length: usize) -> Option<u64> {
    let bytes = file.get(usize::try_from(at).ok()?..)?.get(..length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_program_is_not_accused() {
        let maps = "55d0c0000000-55d0c0100000 r-xp 00001000 fd:00 1 /usr/bin/etwhy\n\
                    7f0000000000-7f0000100000 r-xp 00026000 fd:00 2 /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f0000200000-7f0000201000 r--p 00000000 fd:00 3 /opt/hook dir/libhook.so\n\
                    7f0000201000-7f0000202000 r-xp 00001000 fd:00 3 /opt/hook dir/libhook.so (deleted)\n\
                    7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0 [vdso]\n\
                    strange\n";
        let found = foreign(maps, "/usr/bin/etwhy");
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(one.path, "/opt/hook dir/libhook.so");
        let [code] = one.code.as_slice() else { panic!("{one:?}") };
        assert_eq!((code.start, code.end), (0x7f00_0020_1000, 0x7f00_0020_2000));
        assert_eq!(
            how("/opt/libhook.so", "libx.so:/opt/libhook.so", ""),
            Some("the environment variable LD_PRELOAD names it")
        );
        assert!(how("/opt/libhook.so", "", "/opt/libhook.so\n").unwrap().contains("ld.so.preload"));
        assert_eq!(how("/opt/libhook.so", "libhook.so.1", ""), None);
        // This test's own program is innocent.
        let own = Inside::for_thread(0);
        let mut seen = Seen::default();
        own.judge(&mut seen);
        assert!(seen.suspects.is_empty(), "{:?}", seen.suspects);
    }

    #[test]
    fn stack_pointers_of_waiting_threads() {
        let waits = "230 0x1 0x0 0x7ffe 0x0 0x0 0x0 0x7ffe3c0ff3a8 0x7f1d2a0e4a37\n";
        assert_eq!(stack_pointer(waits), Some(0x7ffe_3c0f_f3a8));
        assert_eq!((stack_pointer("running\n"), stack_pointer("")), (None, None));
        assert_eq!(stack_pointer("-1 0x10 0x20\n"), Some(0x10));
    }

    #[test]
    fn functions_of_damaged_libraries_are_none() {
        let maps = small("/proc/self/maps").unwrap();
        let libc =
            maps.lines().find_map(|line| line.contains("/libc.so.6").then(|| line.split_whitespace().last()));
        let Some(Some(path)) = libc else { return println!("skipped: no libc.so.6 is loaded") };
        let file = std::fs::read(path).unwrap();
        let names: Vec<&str> = functions(&file).collect();
        assert!(names.contains(&"open") && names.contains(&"read") && !names.contains(&"no such function"));
        for cut in [0, 5, 64, 4096, file.len() / 2] {
            assert!(functions(&file[..cut]).count() <= names.len());
        }
        let mut wild = file[..4096].to_vec();
        wild[0x28..0x40].fill(0xff);
        assert_eq!(functions(&wild).count(), 0);
    }
}
