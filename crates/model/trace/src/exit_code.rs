//! What an exit code says of how a process ended.
//!
//! Windows passes on 32 bits: what the program returned, the status that killed it, or what whoever ended it gave
//! to `TerminateProcess`. The three cannot be distinguished for certain; a program may return 0xC0000005 by itself.

use etwhy_knowledge::ntstatus_name;
use std::borrow::Cow;

/// Codes that are no `NTSTATUS` and yet have a known sender.
const OTHERS: [(u32, &str); 4] = [
    // Exception codes of runtimes: 0xE0 and three letters ("msc", "CCR", "COM").
    (0xE06D_7363, "C++ exception"),
    (0xE043_4352, "CLR exception"),
    (0xE043_4F4D, "CLR exception"),
    // What windbg calls the code of windows that were closed because they hung.
    (0xCFFF_FFFF, "APPLICATION_HANG"),
];

/// Statuses that come from outside: Ctrl+C or a closed console, the end of a session, a debugger, a closed hung
/// window, a process on its way out.
const KILLED: [u32; 5] = [0xC000_013A, 0x4001_0004, 0x4001_0005, 0xCFFF_FFFF, 0xC000_004B];

/// How a process ended, by its exit code: `normal`, `error`, `crash` or `killed`.
pub fn kind(code: u32) -> &'static str {
    if code == 0 {
        "normal"
    } else if KILLED.contains(&code) {
        "killed"
    } else if is_crash(code) {
        "crash"
    } else {
        "error"
    }
}

/// The two high bits of an `NTSTATUS` are its severity, 3 for errors (MS-ERREF 2.3). Of the warnings those are
/// exceptions that debuggers know: guard page, misalignment, breakpoint, single step.
fn is_crash(code: u32) -> bool {
    match code >> 30 {
        3 => ntstatus_name(code).is_some() || OTHERS.iter().any(|(known, _)| *known == code),
        2 => (0x8000_0001..=0x8000_0004).contains(&code),
        _ => false,
    }
}

/// The code's name if it is that of a status, else the number: as programs return it if it is small, in hex
/// otherwise.
pub fn name(code: u32) -> Cow<'static, str> {
    if let Some((_, name)) = OTHERS.iter().find(|(known, _)| *known == code) {
        return Cow::Borrowed(name);
    }
    let signed = code as i32;
    match ntstatus_name(code).filter(|_| code >> 30 != 0) {
        Some(name) => Cow::Borrowed(name),
        None if (-65_536..=0xFFF_FFFF).contains(&signed) => Cow::Owned(signed.to_string()),
        None => Cow::Owned(format!("{code:#010x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_kinds() {
        let known = [
            (0, "0", "normal"),
            (1, "1", "error"),
            (259, "259", "error"),
            (u32::MAX, "-1", "error"),
            (0xC000_0005, "STATUS_ACCESS_VIOLATION", "crash"),
            (0xC000_0409, "STATUS_STACK_BUFFER_OVERRUN", "crash"),
            (0xC000_00FD, "STATUS_STACK_OVERFLOW", "crash"),
            (0xC000_0142, "STATUS_DLL_INIT_FAILED", "crash"),
            (0x8000_0003, "STATUS_BREAKPOINT", "crash"),
            (0xE043_4352, "CLR exception", "crash"),
            (0xC000_013A, "STATUS_CONTROL_C_EXIT", "killed"),
            (0x4001_0004, "DBG_TERMINATE_PROCESS", "killed"),
            (0x8007_001F, "0x8007001f", "error"),
            (0xC123_4567, "0xc1234567", "error"),
        ];
        for (code, text, what) in known {
            assert_eq!((name(code).as_ref(), kind(code)), (text, what), "{code:#x}");
        }
    }
}
