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
/// window, a process on its way out, one that was started while its session ended.
const KILLED: [u32; 6] = [0xC000_013A, 0x4001_0004, 0x4001_0005, 0xCFFF_FFFF, 0xC000_004B, 0xC000_026B];

/// Statuses that Windows ends a process with when an exception is not handled, or when it detects a fault. Programs that pass on
/// the status of a failed call (access denied, not found) have not crashed.
const FAULTS: &[u32] = &[
    // Exceptions of the processor and of Windows: `GetExceptionCode`, winnt.h, "Specific Exceptions" of the debugger's manual.
    0x8000_0001, // STATUS_GUARD_PAGE_VIOLATION
    0x8000_0002, // STATUS_DATATYPE_MISALIGNMENT
    0x8000_0003, // STATUS_BREAKPOINT
    0x8000_0004, // STATUS_SINGLE_STEP
    0xC000_0005, // STATUS_ACCESS_VIOLATION
    0xC000_0006, // STATUS_IN_PAGE_ERROR
    0xC000_0008, // STATUS_INVALID_HANDLE
    0xC000_001C, // STATUS_INVALID_SYSTEM_SERVICE
    0xC000_001D, // STATUS_ILLEGAL_INSTRUCTION
    0xC000_001E, // STATUS_INVALID_LOCK_SEQUENCE
    0xC000_0025, // STATUS_NONCONTINUABLE_EXCEPTION
    0xC000_0026, // STATUS_INVALID_DISPOSITION
    0xC000_0028, // STATUS_BAD_STACK
    0xC000_0029, // STATUS_INVALID_UNWIND_TARGET
    0xC000_008C, // STATUS_ARRAY_BOUNDS_EXCEEDED
    0xC000_008D, // STATUS_FLOAT_DENORMAL_OPERAND
    0xC000_008E, // STATUS_FLOAT_DIVIDE_BY_ZERO
    0xC000_008F, // STATUS_FLOAT_INEXACT_RESULT
    0xC000_0090, // STATUS_FLOAT_INVALID_OPERATION
    0xC000_0091, // STATUS_FLOAT_OVERFLOW
    0xC000_0092, // STATUS_FLOAT_STACK_CHECK
    0xC000_0093, // STATUS_FLOAT_UNDERFLOW
    0xC000_0094, // STATUS_INTEGER_DIVIDE_BY_ZERO
    0xC000_0095, // STATUS_INTEGER_OVERFLOW
    0xC000_0096, // STATUS_PRIVILEGED_INSTRUCTION
    0xC000_00AA, // STATUS_INSTRUCTION_MISALIGNMENT
    0xC000_00FD, // STATUS_STACK_OVERFLOW
    0xC000_0144, // STATUS_UNHANDLED_EXCEPTION
    0xC000_0194, // STATUS_POSSIBLE_DEADLOCK
    0xC000_01A5, // STATUS_INVALID_EXCEPTION_HANDLER
    0xC000_02B4, // STATUS_FLOAT_MULTIPLE_FAULTS
    0xC000_02B5, // STATUS_FLOAT_MULTIPLE_TRAPS
    0xC015_000F, // STATUS_SXS_EARLY_DEACTIVATION
    0xC015_0010, // STATUS_SXS_INVALID_DEACTIVATION
    // Faults that the process or its runtime detects itself: MS-ERREF 2.3.1, "Common Process Termination Values" (J. Poley, Microsoft).
    0xC000_027B, // STATUS_STOWED_EXCEPTION
    0xC000_0374, // STATUS_HEAP_CORRUPTION
    0xC000_0409, // STATUS_STACK_BUFFER_OVERRUN
    0xC000_0417, // STATUS_INVALID_CRUNTIME_PARAMETER
    0xC000_041D, // STATUS_FATAL_USER_CALLBACK_EXCEPTION
    0xC000_0420, // STATUS_ASSERTION_FAILURE
    0xC000_0421, // STATUS_VERIFIER_STOP
    0xC000_0602, // STATUS_FAIL_FAST_EXCEPTION
    // The loader cannot start the program: the same two.
    0xC000_007B, // STATUS_INVALID_IMAGE_FORMAT
    0xC000_0135, // STATUS_DLL_NOT_FOUND
    0xC000_0138, // STATUS_ORDINAL_NOT_FOUND
    0xC000_0139, // STATUS_ENTRYPOINT_NOT_FOUND
    0xC000_0142, // STATUS_DLL_INIT_FAILED
    0xC000_0145, // STATUS_APP_INIT_FAILURE
    0xC000_0221, // STATUS_IMAGE_CHECKSUM_MISMATCH
    0xC000_0269, // STATUS_ILLEGAL_DLL_RELOCATION
    0xC000_0428, // STATUS_INVALID_IMAGE_HASH
    0xC015_0002, // STATUS_SXS_CANT_GEN_ACTCTX
];

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

/// An exception that nobody handled, or a fault that ended the process.
fn is_crash(code: u32) -> bool {
    FAULTS.contains(&code) || OTHERS.iter().any(|(known, _)| *known == code)
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
            (0xC000_0135, "STATUS_DLL_NOT_FOUND", "crash"),
            (0xC000_0374, "STATUS_HEAP_CORRUPTION", "crash"),
            (0xC000_013A, "STATUS_CONTROL_C_EXIT", "killed"),
            (0xC000_026B, "STATUS_DLL_INIT_FAILED_LOGOFF", "killed"),
            (0xC000_0001, "STATUS_UNSUCCESSFUL", "error"),
            (0xC000_0022, "STATUS_ACCESS_DENIED", "error"),
            (0xC000_042C, "STATUS_ELEVATION_REQUIRED", "error"),
            (0x4001_0004, "DBG_TERMINATE_PROCESS", "killed"),
            (0x8007_001F, "0x8007001f", "error"),
            (0xC123_4567, "0xc1234567", "error"),
        ];
        for (code, text, what) in known {
            assert_eq!((name(code).as_ref(), kind(code)), (text, what), "{code:#x}");
        }
    }

    #[test]
    fn faults_are_statuses_and_no_kills() {
        for code in FAULTS {
            assert!(ntstatus_name(*code).is_some(), "{code:#x}");
            assert!(!KILLED.contains(code), "{code:#x}");
        }
    }
}
