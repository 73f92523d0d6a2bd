//! Lists of the trace sessions of a machine, saved as text when the trace was made.

use super::TraceArgs;
use anyhow::Context as _;
use etwhy_trace::logger_text::{self, ListedLogger};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A list of sessions is some kilobytes; what is larger is something else under that name.
const MAX_LOGGERS_TEXT: u64 = 16 << 20;

impl TraceArgs {
    /// Sessions of the texts that were given, else of those that lie beside the traces.
    pub(super) fn listed_loggers(&self) -> anyhow::Result<Vec<ListedLogger>> {
        let mut found = Vec::new();
        for path in &self.loggers {
            let bytes = read_text(path).with_context(|| format!("{}: cannot read", path.display()))?;
            let listed = logger_text::parse(&bytes, &file_name(path));
            if listed.is_empty() {
                say!(
                    "etwhy: {} lists no session; it should hold the output of `xperf -loggers`, `tracelog -l`, \
                     `logman query -ets` or `wpr -status collectors -details`",
                    path.display()
                );
            }
            found.extend(listed);
        }
        if self.loggers.is_empty() && !self.demo {
            let mut beside: Vec<PathBuf> = Vec::new();
            for trace in &self.traces {
                // Names inside archives never become paths: what lies beside the archive counts.
                let folder = if trace.is_dir() { trace.as_path() } else { trace.parent().unwrap_or(trace) };
                beside.extend(["loggers.txt", "xperf-loggers.txt"].map(|name| folder.join(name)));
                let mut own = trace.as_os_str().to_owned();
                own.push(".loggers.txt");
                beside.extend([PathBuf::from(own), trace.with_extension("loggers.txt")]);
            }
            beside.sort();
            beside.dedup();
            for path in beside.iter().filter(|p| p.is_file()) {
                // Not asked for: what cannot be read is left out.
                let bytes = read_text(path).unwrap_or_default();
                let listed = logger_text::parse(&bytes, &file_name(path));
                tracing::info!("{}: found beside the trace, lists {} sessions", path.display(), listed.len());
                found.extend(listed);
            }
        }
        Ok(found)
    }
}

fn read_text(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_LOGGERS_TEXT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
