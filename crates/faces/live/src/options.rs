//! How a trace is followed.

use etwhy_etl::read::Segment;

/// How to follow.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Length of the window in nanoseconds; `None`: it begins where the trace does.
    pub window_ns: Option<i64>,
    /// Most bytes of buffers in the window.
    pub window_bytes: u64,
    /// How long a processor without buffers is waited for, in nanoseconds of the trace.
    pub slack_ns: i64,
    /// How long before the window buffers may begin that a processor is still filling, in nanoseconds: those come late, and are put
    /// where they belong.
    pub patience_ns: i64,
    /// Threads to use, at least 1.
    pub threads: usize,
    /// Header for files that begin without one of their own: that of another file of the session.
    pub header: Option<Segment>,
}
