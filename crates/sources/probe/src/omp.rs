//! OpenMP runtimes: where they are, their settings, and what a child process does to measure one.

use crate::child::{ask, tell};
use crate::clock::nanos;
use crate::error::ProbeError;
use crate::run::Run;
use crate::sample::Laps;
use etwhy_os::{OpenMp, OpenMpCalls};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Names that the system's loader is asked for.
const NAMES: &[&str] = if cfg!(windows) {
    &["vcomp140.dll", "libomp140.x86_64.dll", "libiomp5md.dll", "libgomp-1.dll"]
} else if cfg!(target_os = "macos") {
    &["libomp.dylib", "libiomp5.dylib"]
} else {
    &["libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"]
};

/// Folders that the loader does not look into, and what a part of the file name is there.
const FOLDERS: &[&str] = if cfg!(target_os = "macos") {
    &["/opt/homebrew/opt/libomp/lib", "/usr/local/opt/libomp/lib", "/opt/local/lib/libomp"]
} else if cfg!(windows) {
    &[]
} else {
    &["/usr/lib/llvm-*/lib", "/opt/intel/oneapi/compiler/latest/lib"]
};

/// What to install where none is found.
pub const ADVICE: &str = if cfg!(windows) {
    "the Visual C++ redistributable brings vcomp140.dll"
} else if cfg!(target_os = "macos") {
    "`brew install libomp` brings one"
} else {
    "the packages libgomp1 (GCC's) and libomp5-14 or newer (LLVM's) bring one each"
};

/// A setting of runtimes, as environment variables.
pub struct Setting {
    /// Its word, and how results name it.
    pub word: &'static str,
    /// Name of the variable; empty for none.
    pub variable: &'static str,
    /// Its value.
    pub value: &'static str,
    /// Runtimes that know it; empty for all.
    of: &'static [OpenMpCalls],
}

/// The settings; the first is none at all.
pub const SETTINGS: &[Setting] = &[
    Setting { word: "default", variable: "", value: "", of: &[] },
    Setting { word: "passive", variable: "OMP_WAIT_POLICY", value: "passive", of: &[] },
    Setting { word: "active", variable: "OMP_WAIT_POLICY", value: "active", of: &[] },
    Setting { word: "blocktime-0", variable: "KMP_BLOCKTIME", value: "0", of: &[OpenMpCalls::Llvm] },
    Setting { word: "blocktime-200", variable: "KMP_BLOCKTIME", value: "200", of: &[OpenMpCalls::Llvm] },
    Setting { word: "spincount-0", variable: "GOMP_SPINCOUNT", value: "0", of: &[OpenMpCalls::Gnu] },
];

/// Variables that would change what is measured. They are taken away from children, unless the setting puts one there.
const VARIABLES: &[&str] = &["OMP_", "KMP_", "GOMP_", "LIBOMP_"];

impl Setting {
    /// How results name it.
    pub fn variant(&self) -> String {
        if self.variable.is_empty() {
            "no setting".to_owned()
        } else {
            format!("{}={}", self.variable, self.value)
        }
    }

    /// Whether a runtime knows it.
    pub fn suits(&self, kind: Runtime) -> bool {
        self.of.is_empty() || self.of.contains(&kind.0)
    }
}

/// A kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime(OpenMpCalls);

/// Some regions, one after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Window {
    /// Regions.
    pub regions: u64,
    /// Time on the clock.
    pub wall_ns: u64,
    /// CPU time of the process, all threads.
    pub cpu_ns: u64,
    /// Time that its threads were ready without a processor.
    pub queue_ns: Option<u64>,
    /// Percentiles 50, 95, 99 and 100 of what a region took.
    pub laps: [Option<u64>; 4],
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// `gnu`, `llvm`, `microsoft`.
    kind: String,
    /// One second each, or a little more.
    pub windows: Vec<Window>,
}

impl Answer {
    /// Kind of the runtime.
    fn runtime(&self) -> Option<Runtime> {
        Some(Runtime(match self.kind.as_str() {
            "gnu" => OpenMpCalls::Gnu,
            "llvm" => OpenMpCalls::Llvm,
            "microsoft" => OpenMpCalls::Microsoft,
            _ => return None,
        }))
    }
}

/// What a child is to do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Threads of a region.
    pub threads: u64,
    /// Milliseconds between regions.
    pub every_ms: u64,
    /// Regions; with 0 the runtime is loaded and nothing else.
    pub regions: u64,
}

/// What was found on this machine.
#[derive(Debug, Default)]
pub struct Found {
    /// Runtimes that can be loaded, with their kinds.
    pub runtimes: Vec<(PathBuf, Runtime)>,
    /// What was looked for besides, and why it is not among them.
    pub missing: Vec<String>,
}

/// Looks for runtimes: the one that is given, or all that are known.
///
/// # Errors
/// [`ProbeError::Interrupted`].
pub fn find(run: &mut Run<'_>, given: &str) -> Result<Found, ProbeError> {
    let candidates: Vec<PathBuf> = match given {
        "" => NAMES.iter().map(PathBuf::from).chain(in_folders()).collect(),
        given => vec![given.into()],
    };
    let mut found = Found::default();
    let mut known: Vec<PathBuf> = Vec::new();
    for path in candidates {
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        if known.contains(&name) {
            continue;
        }
        let nothing = Work { threads: 1, every_ms: 1, regions: 0 };
        match ask::<Answer>(run, &mut command(run, &path, nothing, None), Duration::from_secs(30))? {
            Ok(answer) => {
                if let Some(kind) = answer.runtime() {
                    known.push(name);
                    found.runtimes.push((path, kind));
                }
            }
            Err(silent) => found.missing.push(format!("{}: {silent}", path.display())),
        }
    }
    Ok(found)
}

/// Runtimes in [`FOLDERS`].
fn in_folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let folders = match folder.split_once('*') {
            None => vec![PathBuf::from(folder)],
            Some((before, after)) => {
                let parent = Path::new(before).parent().unwrap_or(Path::new("/"));
                let begin = Path::new(before).file_name().unwrap_or_default().to_string_lossy().into_owned();
                let mut versions: Vec<PathBuf> = std::fs::read_dir(parent)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
                    .map(|entry| entry.path().join(after.trim_start_matches('/')))
                    .collect();
                versions.sort();
                versions
            }
        };
        for folder in folders {
            found.extend(NAMES.iter().map(|name| folder.join(name)).filter(|path| path.is_file()));
        }
    }
    found
}

/// The child that measures a runtime with a setting.
pub fn command(run: &Run<'_>, path: &Path, work: Work, setting: Option<&Setting>) -> Command {
    let words = [work.threads, work.every_ms, work.regions].map(|number| number.to_string());
    let mut command = run.child(&[]);
    command.arg(path).args(words);
    for (name, _) in std::env::vars_os() {
        if VARIABLES.iter().any(|begin| name.to_string_lossy().starts_with(begin)) {
            command.env_remove(name);
        }
    }
    if let Some(setting) = setting.filter(|setting| !setting.variable.is_empty()) {
        command.env(setting.variable, setting.value);
    }
    command
}

/// Variables of OpenMP that are set where this program was started.
pub fn variables_here() -> Vec<String> {
    let mut names: Vec<String> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|name| VARIABLES.iter().any(|begin| name.starts_with(begin)))
        .collect();
    names.sort();
    names
}

/// What a child of the probe does: path, threads, milliseconds between regions, regions.
pub fn child(arguments: &[String]) -> u8 {
    let [path, threads, every, regions] = arguments else {
        return tell::<Answer>(&Err("path, threads, ms, regions are needed".to_owned()));
    };
    let number = |text: &String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let result = (|| {
        let threads = u32::try_from(number(threads)?.clamp(1, 4096)).map_err(|error| error.to_string())?;
        let every = Duration::from_millis(number(every)?.clamp(1, 60_000));
        let regions = number(regions)?.min(1_000_000);
        let runtime = OpenMp::open(Path::new(path), threads).map_err(|error| error.to_string())?;
        let kind = match runtime.calls() {
            OpenMpCalls::Gnu => "gnu",
            OpenMpCalls::Llvm => "llvm",
            OpenMpCalls::Microsoft => "microsoft",
        };
        let windows = if regions > 0 { measure(&runtime, every, regions)? } else { Vec::new() };
        Ok(Answer { kind: kind.to_owned(), windows })
    })();
    tell(&result)
}

fn measure(runtime: &OpenMp, every: Duration, regions: u64) -> Result<Vec<Window>, String> {
    // The first region makes the workers: that is another matter.
    runtime.empty_region();
    std::thread::sleep(every);
    let in_window = u64::try_from(1000 / every.as_millis().max(1)).unwrap_or(1).max(1);
    let mut windows = Vec::new();
    let mut left = regions;
    while left > 0 {
        let now = in_window.min(left);
        let mut laps = Laps::default();
        let start = Instant::now();
        let (cpu, queue) = (process_cpu_ns()?, process_queue_ns());
        for _ in 0..now {
            let lap = Instant::now();
            runtime.empty_region();
            laps.push(nanos(lap));
            std::thread::sleep(every);
        }
        let queue_ns = process_queue_ns().zip(queue).map(|(now, then)| now.saturating_sub(then));
        windows.push(Window {
            regions: now,
            wall_ns: nanos(start),
            cpu_ns: process_cpu_ns()?.saturating_sub(cpu),
            queue_ns,
            laps: laps.percentiles([0.5, 0.95, 0.99, 1.0]),
        });
        left -= now;
    }
    Ok(windows)
}

/// CPU time of this process.
fn process_cpu_ns() -> Result<u64, String> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
    }
    #[cfg(windows)]
    {
        etwhy_os::calls::process_cpu_ns().map_err(|error| format!("GetProcessTimes: {error}"))
    }
    #[cfg(not(any(unix, windows)))]
    {
        Err("no CPU time on this system".to_owned())
    }
}

/// Time that the threads of this process stood in run queues; Linux only.
fn process_queue_ns() -> Option<u64> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |path: PathBuf| -> Option<u64> {
        std::fs::read_to_string(path.join("schedstat")).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    Some(tasks.flatten().filter_map(|task| of_thread(task.path())).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_belong_to_runtimes() {
        let of = |kind: OpenMpCalls| -> Vec<&str> {
            SETTINGS.iter().filter(|s| s.suits(Runtime(kind))).map(|s| s.word).collect()
        };
        assert_eq!(of(OpenMpCalls::Llvm), ["default", "passive", "active", "blocktime-0", "blocktime-200"]);
        assert_eq!(of(OpenMpCalls::Gnu), ["default", "passive", "active", "spincount-0"]);
        assert_eq!(of(OpenMpCalls::Microsoft), ["default", "passive", "active"]);
    }

    #[test]
    fn what_is_no_runtime_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(child(&words("/no/such/library 1 1 0")), 1);
        assert_eq!(child(&words("x y")), 1);
    }
}
