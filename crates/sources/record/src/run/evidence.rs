//! How far recording has been tried.

/// A step of evidence, from the weakest to the strongest.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// What was done.
    pub what: &'static str,
    /// What that shows.
    pub shows: &'static str,
    /// What came of it.
    pub state: &'static str,
}

/// What must be said wherever recording is offered, until a real Windows has answered.
pub const NO_WINDOWS: &str = "No Windows has run `etwhy record start` yet: it is tested against a double of the functions of Windows, under Wine.";

/// All steps.
pub fn evidence() -> &'static [Evidence] {
    &[
        Evidence {
            what: "100,000 random schedules of start, guard, save, stop and cancel with restarts of Windows, crashes, errors, full disks and other programs that take sessions over",
            shows: "never two recordings of etwhy, never the end of somebody else's session, and at last none of etwhy's is left",
            state: "passes with every test run",
        },
        Evidence {
            what: "what is printed for wpr, xperf and logman, read back and compared with what is started",
            shows: "both record the same",
            state: "passes with every test run",
        },
        Evidence {
            what: "the program under Wine with a double of ETW's functions that checks Microsoft's documented conditions (crates/sources/record/tests/etw-double), killed in between",
            shows: "structures, offsets and flags are as documented; layouts are those of evntrace.h",
            state: "passes with scripts/test-windows",
        },
        Evidence {
            what: "`etwhy record selftest` on a real Windows: records work whose truth it knows, compares ten figures, and writes a bundle to send",
            shows: "that Windows does what it documents; group masks, stacks and filters have no other proof",
            state: "not done: the command has run under Wine with the double only, where no figure can agree",
        },
        Evidence {
            what: "the same on machines of a build service (.github/workflows/windows-selftest.yml)",
            shows: "the same for each change",
            state: "not done: the file has never run",
        },
    ]
}
