//! Commands of `wpr` (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wpr-command-line-options>).

use super::lines::{Lines, starter};
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
        Size::Large { processors } => format!(" --large={processors}"),
    };
    format!("etwhy record --print {}{session}{size} -o {}", recording.names.join(","), recording.file_name())
}

pub fn write(recording: &Recording) -> Result<String, RecordError> {
    let mut lines = Lines::of(recording);
    lines.remark(&format!("The profile: {}", make_it(recording)));
    lines.session(recording.session);
    lines.prepare(recording.size);
    let target = if recording.size == Size::Usual { "" } else { " -recordtempto D:\\traces" };
    let folder = if recording.size == Size::Usual { "" } else { "D:\\traces\\" };
    lines.command(&format!(
        "{}wpr -start {}!{} -filemode{target}",
        starter(recording.size),
        recording.file_name(),
        recording.name()
    ));
    lines.wait();
    lines.command(&format!("wpr -stop {folder}trace.etl"));
    Ok(lines.done())
}
