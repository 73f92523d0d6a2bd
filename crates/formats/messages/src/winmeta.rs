//! Names that Windows defines for all providers, in English.
//!
//! Values: `winmeta.h` ([constants](https://learn.microsoft.com/windows/win32/wes/winmeta-xml)). Names: as Event Viewer
//! shows them; those of keywords and opcodes are listed in `TaskKeywordResolver` of Microsoft's EventLogExpert.

/// Name of a level. Level 0 (*log always*), which audits have, is shown as *Information*.
#[must_use]
pub fn level(level: u8) -> Option<&'static str> {
    Some(match level {
        1 => "Critical",
        2 => "Error",
        3 => "Warning",
        0 | 4 => "Information",
        5 => "Verbose",
        _ => return None,
    })
}

/// Name of a task: only 0 is defined for all.
#[must_use]
pub fn task(task: u16) -> Option<&'static str> {
    (task == 0).then_some("None")
}

/// Name of an opcode.
#[must_use]
pub fn opcode(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0 => "Info",
        1 => "Start",
        2 => "Stop",
        3 => "DC Start",
        4 => "DC Stop",
        5 => "Extension",
        6 => "Reply",
        7 => "Resume",
        8 => "Suspend",
        9 => "Send",
        240 => "Receive",
        _ => return None,
    })
}

/// Bits of keywords that mean the same for all providers: the upper sixteen without the uppermost, which name channels.
pub const KEYWORDS: [(u64, &str); 8] = [
    (1 << 48, "Response Time"),
    (1 << 49, "WDI Context"),
    (1 << 50, "WDI Diag"),
    (1 << 51, "SQM"),
    (1 << 52, "Audit Failure"),
    (1 << 53, "Audit Success"),
    (1 << 54, "Correlation Hint"),
    (1 << 55, "Classic"),
];

/// Channels that every machine has, by their number.
#[must_use]
pub fn channel(channel: u8) -> Option<&'static str> {
    Some(match channel {
        8 => "System",
        9 => "Application",
        10 => "Security",
        _ => return None,
    })
}
