//! Commands of `wpr` (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wpr-command-line-options>).

use super::lines::{Lines, other_ways, starter};
use crate::recording::{RecordError, Recording, Session, Size};

/// How the file of profiles that the commands name is made.
fn make_it(recording: &Recording) -> String {
    let session = match recording.session {
        Session::NtKernelLogger => "",
        Session::Circular => " --when-taken=circular",
        Session::System => " --when-taken=system",
    };
    let size = match recording.size {
        Size::Usual => String::new(),
        Size::Memory { gib } => format!(" --memory={gib}"),
        Size::Large { processors } => format!(" --large={processors}"),
        Size::Machine { memory_mib, .. } => format!(" --memory={}", memory_mib.div_ceil(1024)),
    };
    format!("etwhy record --print {}{session}{size} -o {}", recording.names.join(","), recording.file_name())
}

pub fn write(recording: &Recording) -> Result<String, RecordError> {
    let mut lines = Lines::new(recording);
    lines.remark(&format!("The profile: {}", make_it(recording)));
    lines.extend(recording.unproven());
    lines.session(recording.session);
    lines.prepare(recording.size);
    let target = if !recording.size.is_large() { "" } else { " -recordtempto D:\\traces" };
    let folder = if !recording.size.is_large() { "" } else { "D:\\traces\\" };
    lines.command(&format!(
        "{}wpr -start {}!{} -filemode{target}",
        starter(recording.size),
        recording.file_name(),
        recording.name()
    ));
    lines.wait();
    lines.command(&format!("wpr -stop {folder}trace.etl"));
    lines.extend(other_ways(&recording.file_name(), &recording.name()));
    Ok(lines.done())
}
