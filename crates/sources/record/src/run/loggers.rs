//! The list of the machine's sessions, which lies beside a trace: a trace knows only the session that wrote it.

use super::NT_KERNEL_LOGGER;
use super::start::SYSTEM_LOGGER;
use super::system::Live;
use std::fmt::Write as _;

/// Sessions in the form of `xperf -loggers`, which etwhy reads beside a trace.
pub fn loggers(sessions: &[Live]) -> String {
    let mut text = String::new();
    for live in sessions {
        let mut field = |name: &str, value: &str| {
            // A name is anybody's; it must not begin a line of its own.
            let value = value.replace(char::is_control, " ");
            // Writing into memory cannot fail.
            let _ = writeln!(text, "{name:<22}: {value}");
        };
        field("Logger Name", &live.name);
        field("Buffers Written", &live.buffers_written.to_string());
        field("Events Lost", &live.events_lost.to_string());
        field("Log Buffers Lost", &live.buffers_lost.to_string());
        field("Log File Mode", &format!("{:#010x}", live.mode));
        field("Log Filename", &live.file);
        let is_kernel = live.mode & SYSTEM_LOGGER != 0 || live.name.eq_ignore_ascii_case(NT_KERNEL_LOGGER);
        if is_kernel {
            let masks = [live.flags];
            let names: Vec<&str> =
                crate::keywords_of(&masks).iter().map(|k| k.xperf.unwrap_or(k.wpr)).collect();
            field("Trace Flags", &names.join("+"));
        }
        text.push('\n');
    }
    text
}
