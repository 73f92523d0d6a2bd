//! Errors of Windows as sentences that say what to do.

use super::Code;

/// What the error means for a recording, and what to do.
pub fn explain(code: Code) -> String {
    let text = match code.0 {
        2 | 3 => "the folder of the trace does not exist: name another one with --folder",
        5 => {
            "access is denied: start etwhy from an administrator's console (members of `Performance Log Users` may record providers, \
             but not the kernel)"
        }
        32 => "another program has the trace file open: close it, or name another folder",
        39 | 112 => "the disk is full: make room, or name a folder on another disk with --folder",
        50 | 120 => "this system has no such call: recording needs Windows 7 or later",
        87 => "Windows refuses a parameter: this version lacks what the profile asks for; try fewer profiles",
        123 | 161 => "the path of the trace is none: name a folder on a local disk",
        183 => "there is a session of that name or GUID already: `logman query -ets` lists them",
        234 => "there are more sessions than were asked for",
        1450 => {
            "Windows has no room for another session: there may be 64 in all and 8 of the kernel, and their buffers need memory that \
             is not paged; `logman query -ets` lists them: stop one that nobody needs"
        }
        1314 => "a privilege is missing: start etwhy from an administrator's console",
        4201 => "there is no such session: it was stopped by somebody else, or the machine has restarted",
        _ => return format!("error {} of Windows: `net helpmsg {}` tells its text", code.0, code.0),
    };
    format!("{text} (error {})", code.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_its_number_and_what_to_do() {
        for code in [5, 87, 112, 183, 1450, 4201, 31] {
            assert!(explain(Code(code)).contains(&code.to_string()));
        }
        assert!(explain(Code(5)).contains("administrator's console"));
    }
}
