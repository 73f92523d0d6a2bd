//! Commands of `logman`, which every Windows has
//! (<https://learn.microsoft.com/en-us/windows-server/administration/windows-commands/logman-create-trace>).
//!
//! It sets the documented flag word (`EVENT_TRACE_FLAG_*`, evntrace.h) and nothing else: no stacks, no events of the other
//! group masks. A kernel session of its own needs `tracelog`
//! (<https://learn.microsoft.com/en-us/windows/win32/etw/configuring-and-starting-a-systemtraceprovider-session>).

use super::lines::{Lines, starter};
use crate::recording::{Buffers, RecordError, Recording, Session};
use crate::vocabulary::Keyword;

/// Provider of the second reserved kernel session (`CKCLGuid`).
const CIRCULAR: &str = "{54dea73a-ed1f-42a4-af71-3e63d056f174}";

pub fn write(recording: &Recording) -> Result<String, RecordError> {
    let mut lines = Lines::new(recording);
    let (session, user) = (recording.session, recording.user_session());
    let (able, unable): (Vec<&Keyword>, Vec<&Keyword>) =
        recording.keywords.iter().copied().partition(|k| k.flag_word().is_some());
    let names = |list: &[&Keyword]| list.iter().map(|k| k.wpr).collect::<Vec<_>>().join(", ");
    // CpuConfig is on by default, and not in the word.
    let unable: Vec<&Keyword> = unable.into_iter().filter(|k| k.wpr != "CpuConfig").collect();
    if !recording.stacks.is_empty() {
        lines.remark(
            "logman records no stacks of kernel events: who called whom cannot be determined from this.",
        );
    }
    if !unable.is_empty() {
        lines.remark(&format!("logman cannot switch on {}: use wpr or xperf for these.", names(&unable)));
    }
    lines.session(session);
    lines.prepare(recording.size);
    let word = able.iter().filter_map(|k| k.flag_word()).fold(0, |word, bits| word | bits);
    lines.remark(&format!("{word:#010x}: {}", names(&able)));
    let sizes = buffers(recording.size.kernel_buffers());
    let start = starter(recording.size);
    match session {
        Session::NtKernelLogger => lines.command(&format!(
            "{start}logman start \"{}\" -p \"Windows Kernel Trace\" {word:#010x} -ct perf{sizes} -o kernel.etl -ets",
            session.name()
        )),
        Session::Circular => lines.command(&format!(
            "{start}logman start \"{}\" -p {CIRCULAR} {word:#010x} -ct perf{sizes} -o kernel.etl -ets",
            session.name()
        )),
        Session::System => {
            lines.remark("logman starts no kernel session of its own; tracelog of the Windows Driver Kit does.");
            let kernel = recording.size.kernel_buffers();
            lines.command(&format!(
                "{start}tracelog -start \"{}\" -f kernel.etl -UsePerfCounter -b {} -min {} -max {} -eflag {}",
                session.name(),
                kernel.size_kib,
                kernel.min,
                kernel.max,
                able.iter().filter_map(|k| k.xperf).collect::<Vec<_>>().join("+")
            ));
        }
    }
    let sizes = buffers(recording.size.user_buffers());
    for (at, provider) in recording.providers.iter().filter(|p| !p.capture_only).enumerate() {
        let keywords = provider.keyword_bits();
        let (verb, rest) = if at == 0 {
            ("start", format!(" -ct perf{sizes} -o user.etl"))
        } else {
            ("update trace", String::new())
        };
        lines.remark(&provider.name);
        lines.command(&format!(
            "logman {verb} {user} -p {{{}}} {keywords:#x} {:#x}{rest} -ets",
            provider.guid, provider.level
        ));
    }
    lines.wait();
    for provider in recording.providers.iter().filter(|p| p.capture_only) {
        if let Some(keywords) = &provider.capture_at_stop {
            lines.remark(&format!("{}: tells its state when it is switched on.", provider.name));
            lines.command(&format!(
                "logman start {user}-rundown -p {{{}}} {keywords} {:#x} -ct perf{sizes} -o rundown.etl -ets",
                provider.guid, provider.level
            ));
            lines.command("timeout /t 10");
            lines.command(&format!("logman stop {user}-rundown -ets"));
        }
    }
    let stop = if session == Session::System { "tracelog -stop" } else { "logman stop" };
    let ets = if session == Session::System { "" } else { " -ets" };
    lines.command(&format!("{stop} \"{}\"{ets}", session.name()));
    if recording.providers.iter().any(|p| !p.capture_only) {
        lines.command(&format!("logman stop {user} -ets"));
        lines.remark("etwhy reads all files at once: etwhy why kernel.etl user.etl");
    }
    lines.remark(
        "Without `xperf -merge kernel.etl trace.etl` or `wpr -merge` on the same machine, identities of images may be \
         missing.",
    );
    Ok(lines.done())
}

fn buffers(buffers: Buffers) -> String {
    format!(" -bs {} -nb {} {}", buffers.size_kib, buffers.min, buffers.max)
}
