//! Commands of `xperf`: `-on` with kernel flags, `-stackwalk`, a second session for providers
//! (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/start>,
//! <https://learn.microsoft.com/en-us/windows-hardware/test/wpt/stackwalk>).

use super::lines::{Lines, starter};
use crate::profile::Provider;
use crate::recording::{Buffers, RecordError, Recording, Session};

pub fn write(recording: &Recording) -> Result<String, RecordError> {
    let mut lines = Lines::new(recording);
    let (session, user) = (recording.session, recording.user_session());
    for provider in recording.providers.iter().filter(|p| !p.without_events.is_empty()) {
        lines.remark(&format!(
            "xperf cannot leave out events of {}; the .wprp file does, and records much less.",
            provider.name
        ));
    }
    lines.session(session);
    lines.prepare(recording.size);
    let mut start = format!("{}xperf", starter(recording.size));
    if session != Session::NtKernelLogger {
        start.push_str(&format!(" -start \"{}\"", session.name()));
    }
    start.push_str(&format!(" -on {}", join(recording.keywords.iter().filter_map(|k| k.xperf))));
    let stacks = join(recording.stacks.iter().filter_map(|s| s.xperf));
    if !stacks.is_empty() {
        start.push_str(&format!(" -stackwalk {stacks}"));
    }
    start.push_str(&format!("{} -f kernel.etl", buffers(recording.size.kernel_buffers())));
    let (rundown, user_providers): (Vec<&Provider>, Vec<&Provider>) =
        recording.providers.iter().partition(|p| p.capture_only);
    let mut stop = match session {
        Session::NtKernelLogger => "xperf -stop".to_owned(),
        _ => format!("xperf -stop \"{}\"", session.name()),
    };
    if !user_providers.is_empty() {
        let list = user_providers.iter().map(|p| provider(p, p.keyword_bits()));
        start.push_str(&format!(" -start {user} -on {}", join(list)));
        start.push_str(&format!("{} -f user.etl", buffers(recording.size.user_buffers())));
        stop.push_str(&format!(" -stop {user}"));
    }
    lines.command(&start);
    lines.wait();
    let state: Vec<String> = user_providers
        .iter()
        .filter_map(|p| Some(format!("{}:{}:{}", p.guid, p.capture_at_stop.as_ref()?, p.level)))
        .collect();
    if !state.is_empty() {
        lines.command(&format!("xperf -capturestate {user} {}", state.join("+")));
    }
    if !rundown.is_empty() {
        // They tell their state when a session switches them on
        // (https://learn.microsoft.com/en-us/dotnet/framework/performance/controlling-logging).
        let list = rundown
            .iter()
            .filter_map(|p| Some(format!("{}:{}:{}", p.guid, p.capture_at_stop.as_ref()?, p.level)));
        let sizes = buffers(recording.size.user_buffers());
        lines.command(&format!("xperf -start {user}-rundown -on {}{sizes} -f rundown.etl", join(list)));
        lines.command("timeout /t 10");
        stop.push_str(&format!(" -stop {user}-rundown"));
    }
    lines.command(&format!("{stop} -d trace.etl"));
    lines.remark(
        "Flight recorder: put -FileMode Circular -MaxFile 1024 behind each -f FILE, which keeps the last 1,024 MiB of each file. \
         Boot traces: the format wpr.",
    );
    Ok(lines.done())
}

fn join<T: AsRef<str>>(names: impl Iterator<Item = T>) -> String {
    names.map(|n| n.as_ref().to_owned()).collect::<Vec<_>>().join("+")
}

/// `GUID:keywords:level:'stack'`.
fn provider(provider: &Provider, keywords: u64) -> String {
    let stack = if provider.stack { ":'stack'" } else { "" };
    format!("{}:{keywords:#x}:{}{stack}", provider.guid, provider.level)
}

fn buffers(buffers: Buffers) -> String {
    format!(" -BufferSize {} -MinBuffers {} -MaxBuffers {}", buffers.size_kib, buffers.min, buffers.max)
}
