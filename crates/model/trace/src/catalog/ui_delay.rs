//! Delays of user interfaces: threads that did not look for messages, and which window had the focus.
//!
//! # How it is computed
//! `Microsoft-Windows-Win32k` tells of a thread that has not checked its messages for a while when it checks again
//! (MessageCheckDelay, ImmersiveMessageCheckDelay for store apps): the delay ends with the event and began
//! `DelayTimeMs` earlier. InputProcessDelay has no such number; its delay is the time since the thread took the input
//! that it works on (`TimeSinceInputRemoveMs`). WaitCursor says how long a wait cursor was shown. ThreadInfoRundown,
//! at the end of a trace, and ThreadExit tell of a delay that has not ended: they count if input waits for the thread
//! (`TimeSinceOldestInputMs` is not 0), because a thread without input has no reason to look for it.
//!
//! Windows calls a window not responding when its thread has not looked for messages for 5 s (`IsHungAppWindow`,
//! documented; `HungAppTimeout` of the user may say otherwise).
//!
//! Several events may tell of one delay. `fresh_ns` is the part that no earlier row of the same thread and kind
//! covers: add up that, not `dur_ns`.
//!
//! Table `focus` follows FocusChange (threads) and FocusedProcessChange (processes, by session).
//!
//! # What fools it
//! Which delays are recorded is Windows' choice: short ones are not. What the bits of the events' flags mean is not
//! published. FocusChange does not name its session: with several sessions active the threads' rows may mix.
//!
//! The layouts are those of the published manifest; no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Delays of threads with a user interface.
    pub table UI_DELAY: UiDelayRow = "ui_delay" {
        title: "User interface delays", version: 1,
        /// Start of the delay; before the start of the trace if negative.
        start_ns: i64 [Ns, Time],
        /// When it was recorded: its end, unless it is pending.
        ts_ns: i64 [Ns, Time],
        /// How long it lasted until then.
        dur_ns: i64 [Ns, Duration],
        /// Part of it that no earlier row of the thread and kind covers.
        fresh_ns: i64 [Ns, Duration],
        /// MessageCheckDelay, InputProcessDelay, ImmersiveMessageCheckDelay, ImmersiveInputProcessDelay, WaitCursor,
        /// ThreadInfoRundown, ThreadExit.
        kind: Sym [None, Kind],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that was late.
        utid: Option<i32> [None, Thread],
        /// The thread looked for no messages for at least 5 s; null where the event does not tell.
        unresponsive: Option<bool> [None, Flag],
        /// It had not ended when it was recorded.
        pending: bool [None, Flag],
        /// Class of the window whose message was handled last.
        window_class: Option<Sym> [None, Name],
        /// Class of its top-level window.
        top_level_class: Option<Sym> [None, Name],
        /// Program or package.
        image_path: Option<Sym> [None, Path],
        /// Message that was handled last.
        message_id: Option<i32> [Hex32, Other],
        /// Its name, for frequent ones.
        message: Option<Sym> [None, Name],
        /// Time since the thread last took input.
        since_input_remove_ns: Option<i64> [Ns, Duration],
        /// Time for which the oldest input has been waiting; 0 if none is.
        oldest_input_ns: Option<i64> [Ns, Duration],
        /// Flags of the event; their meaning is not published.
        flags: Option<i32> [Hex32, Flag],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

define_table! {
    /// Who had the focus, and for how long.
    pub table FOCUS: FocusRow = "focus" {
        title: "Window in focus", version: 1,
        /// When it got the focus; null if it had it when the trace began.
        start_ns: Option<i64> [Ns, Time],
        /// When it lost the focus; null if it had it when the trace ended, or that was not recorded.
        end_ns: Option<i64> [Ns, Time],
        /// How long it had the focus.
        dur_ns: Option<i64> [Ns, Duration],
        /// thread (FocusChange) or process (FocusedProcessChange).
        kind: Sym [None, Kind],
        /// Terminal session; null for threads.
        session_id: Option<i32> [None, Other],
        /// Process that had the focus.
        upid: Option<i32> [None, Process],
        /// Thread that had the focus; null for processes.
        utid: Option<i32> [None, Thread],
        /// Process that had it before.
        from_upid: Option<i32> [None, Process],
        /// Thread that had it before; null for processes.
        from_utid: Option<i32> [None, Thread],
    }
}

/// `Microsoft-Windows-Win32k`.
pub(super) const WIN32K: Guid = Guid::from_text("8c416c79-d49b-4f01-a467-e56d3aa8234c");

const FOCUS_CHANGE: u8 = 2;
const PROCESS_FOCUS: u8 = 26;
const WAIT_CURSOR: u8 = 35;
pub(super) const RUNDOWN: u8 = 36;
pub(super) const INPUT_DELAY: u8 = 37;
pub(super) const CHECK_DELAY: u8 = 38;
const THREAD_EXIT: u8 = 45;
pub(super) const IMMERSIVE_INPUT_DELAY: u8 = 172;
pub(super) const IMMERSIVE_CHECK_DELAY: u8 = 173;

/// Documented with `IsHungAppWindow` (winuser.h).
const NOT_RESPONDING_NS: i64 = 5_000_000_000;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&UI_DELAY, &FOCUS],
    selects: &[
        Select::new(What::Manifest(WIN32K, 2), FOCUS_CHANGE),
        Select::new(What::Manifest(WIN32K, 26), PROCESS_FOCUS),
        Select::new(What::Manifest(WIN32K, 35), WAIT_CURSOR),
        Select::new(What::Manifest(WIN32K, 36), RUNDOWN),
        Select::new(What::Manifest(WIN32K, 37), INPUT_DELAY),
        Select::new(What::Manifest(WIN32K, 38), CHECK_DELAY),
        Select::new(What::Manifest(WIN32K, 45), THREAD_EXIT),
        Select::new(What::Manifest(WIN32K, 172), IMMERSIVE_INPUT_DELAY),
        Select::new(What::Manifest(WIN32K, 173), IMMERSIVE_CHECK_DELAY),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(UiDelays {
            rows: TableBuilder::new(memory),
            focus: TableBuilder::new(memory),
            covered: HashMap::default(),
            thread: None,
            processes: HashMap::default(),
        })
    },
};

/// Frequent messages (winuser.h).
const MESSAGES: &[(u32, &str)] = &[
    (0x0001, "WM_CREATE"),
    (0x0002, "WM_DESTROY"),
    (0x0003, "WM_MOVE"),
    (0x0005, "WM_SIZE"),
    (0x0006, "WM_ACTIVATE"),
    (0x0007, "WM_SETFOCUS"),
    (0x000F, "WM_PAINT"),
    (0x0010, "WM_CLOSE"),
    (0x0014, "WM_ERASEBKGND"),
    (0x0018, "WM_SHOWWINDOW"),
    (0x001C, "WM_ACTIVATEAPP"),
    (0x0046, "WM_WINDOWPOSCHANGING"),
    (0x0047, "WM_WINDOWPOSCHANGED"),
    (0x004E, "WM_NOTIFY"),
    (0x00A1, "WM_NCLBUTTONDOWN"),
    (0x0100, "WM_KEYDOWN"),
    (0x0101, "WM_KEYUP"),
    (0x0102, "WM_CHAR"),
    (0x0104, "WM_SYSKEYDOWN"),
    (0x0111, "WM_COMMAND"),
    (0x0112, "WM_SYSCOMMAND"),
    (0x0113, "WM_TIMER"),
    (0x0200, "WM_MOUSEMOVE"),
    (0x0201, "WM_LBUTTONDOWN"),
    (0x0202, "WM_LBUTTONUP"),
    (0x0203, "WM_LBUTTONDBLCLK"),
    (0x0204, "WM_RBUTTONDOWN"),
    (0x0205, "WM_RBUTTONUP"),
    (0x020A, "WM_MOUSEWHEEL"),
    (0x0219, "WM_DEVICECHANGE"),
];

/// Who has the focus.
#[derive(Clone, Copy)]
struct Focus {
    /// Process or thread id.
    id: u32,
    /// Its instance.
    instance: u32,
    start_ns: Option<i64>,
    from: Option<u32>,
}

struct UiDelays {
    rows: TableBuilder<UiDelayRow>,
    focus: TableBuilder<FocusRow>,
    /// Until when rows of a thread and kind cover the time.
    covered: HashMap<(u32, u8), i64>,
    thread: Option<Focus>,
    /// By session.
    processes: HashMap<u32, Focus>,
}

fn ms(value: Option<u32>) -> Option<i64> {
    Some(i64::from(value?) * 1_000_000)
}

/// A delay that an event reports.
pub(super) struct Delay {
    /// As in column `kind`.
    pub kind: &'static str,
    /// Start; before the start of the trace if negative.
    pub start_ns: i64,
    /// Time until the event.
    pub dur_ns: i64,
    /// Thread that was late.
    pub utid: Option<u32>,
    /// It has not ended.
    pending: bool,
}

/// An event that lacks the fields of a delay.
pub(super) struct TooShort;

/// The delay that an event of the window manager reports; `None` if it reports none.
pub(super) fn delay(event: &Event<'_>, cx: &mut Context<'_>) -> Result<Option<Delay>, TooShort> {
    let fields = event.fields();
    let (kind, length) = match event.tag {
        CHECK_DELAY => ("MessageCheckDelay", ms(fields.u32("DelayTimeMs"))),
        IMMERSIVE_CHECK_DELAY => ("ImmersiveMessageCheckDelay", ms(fields.u32("DelayTimeMs"))),
        INPUT_DELAY => ("InputProcessDelay", ms(fields.u32("TimeSinceInputRemoveMs"))),
        IMMERSIVE_INPUT_DELAY => ("ImmersiveInputProcessDelay", ms(fields.u32("TimeSinceInputRemoveMs"))),
        WAIT_CURSOR => ("WaitCursor", ms(fields.u32("DisplayTimeMs"))),
        RUNDOWN => ("ThreadInfoRundown", ms(fields.u32("TimeSinceInputCheckMs"))),
        _ => ("ThreadExit", ms(fields.u32("TimeSinceInputCheckMs"))),
    };
    let pending = matches!(event.tag, RUNDOWN | THREAD_EXIT);
    let oldest = fields.u32("TimeSinceOldestInputMs");
    let Some(dur_ns) = length.filter(|_| !pending || oldest.is_some()) else {
        return Err(TooShort);
    };
    if pending && oldest == Some(0) {
        return Ok(None);
    }
    // The rundown comes from another thread, and the wait cursor may.
    let named = match event.tag {
        WAIT_CURSOR => fields.u32("ThreadId").map(|tid| (tid, fields.u32("ProcessId"))),
        RUNDOWN | THREAD_EXIT => fields.u32("ThreadId").map(|tid| (tid, None)),
        _ => event.tid_pid().map(|(tid, pid)| (tid, Some(pid))),
    };
    let utid = named.map(|(tid, pid)| cx.model.thread(tid, pid, event.ns));
    Ok(Some(Delay { kind, start_ns: event.ns.saturating_sub(dur_ns), dur_ns, utid, pending }))
}

impl UiDelays {
    fn delay(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Delay { kind, start_ns, dur_ns, utid, pending } = match delay(event, cx) {
            Ok(Some(delay)) => delay,
            Ok(None) => return,
            Err(TooShort) => {
                cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
                return;
            }
        };
        let fields = event.fields();
        let since_remove = ms(fields.u32("TimeSinceInputRemoveMs"));
        let oldest = ms(fields.u32("TimeSinceOldestInputMs"));
        let mut fresh_ns = dur_ns;
        if let Some(utid) = utid {
            let covered = self.covered.entry((utid, event.tag)).or_insert(i64::MIN);
            fresh_ns = event.ns.saturating_sub(start_ns.max(*covered)).max(0);
            *covered = (*covered).max(event.ns);
        }
        let looks = matches!(event.tag, CHECK_DELAY | IMMERSIVE_CHECK_DELAY | RUNDOWN | THREAD_EXIT);
        let message_id = fields.u32("MessageId");
        let message = message_id.and_then(|id| MESSAGES.iter().find(|(number, _)| *number == id));
        let tid = event.tid_pid().map(|(tid, _)| tid);
        self.rows.push(UiDelayRow {
            start_ns,
            ts_ns: event.ns,
            dur_ns,
            fresh_ns,
            kind: cx.sym(kind),
            upid: utid.map(|u| u as i32),
            utid: utid.map(|u| u as i32),
            unresponsive: looks.then_some(dur_ns >= NOT_RESPONDING_NS),
            pending,
            window_class: cx.sym_or_none(fields.text("ClassName")),
            top_level_class: cx.sym_or_none(fields.text("TopLevelClassName")),
            image_path: cx.sym_or_none(fields.text("ImagePath|PackageMoniker")),
            message_id: message_id.map(|id| id as i32),
            message: message.map(|(_, name)| cx.sym(name)),
            since_input_remove_ns: since_remove,
            oldest_input_ns: oldest,
            flags: fields.u32("Flags").map(|f| f as i32),
            stack_id: Some(cx.stack_ticket(event, tid, utid)),
        });
    }

    fn thread_focus(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let (Some(old), Some(new)) = (fields.u32("OldThreadId"), fields.u32("NewThreadId")) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let from = (old != 0).then(|| cx.model.thread(old, None, event.ns));
        let current = self.thread.take();
        self.lost(current, old, from, event.ns, None, cx);
        self.thread = (new != 0).then(|| {
            let instance = cx.model.thread(new, None, event.ns);
            Focus { id: new, instance, start_ns: Some(event.ns), from }
        });
    }

    fn process_focus(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let ids = (fields.u32("SessionId"), fields.u32("OldProcessId"), fields.u32("NewProcessId"));
        let (Some(session), Some(old), Some(new)) = ids else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let from = (old != 0).then(|| cx.model.processes.at(old, event.ns));
        let current = self.processes.remove(&session);
        self.lost(current, old, from, event.ns, Some(session), cx);
        if new != 0 {
            let instance = cx.model.processes.at(new, event.ns);
            self.processes.insert(session, Focus { id: new, instance, start_ns: Some(event.ns), from });
        }
    }

    /// `old` loses the focus, which `current` should have.
    fn lost(
        &mut self,
        current: Option<Focus>,
        old: u32,
        old_instance: Option<u32>,
        ns: i64,
        session: Option<u32>,
        cx: &mut Context<'_>,
    ) {
        let kind = cx.sym(if session.is_some() { "process" } else { "thread" });
        match current {
            Some(current) if current.id == old => self.push(&current, Some(ns), kind, session),
            other => {
                // A change in between is missing: neither its end nor the other's begin is known.
                if let Some(current) = other {
                    self.push(&current, None, kind, session);
                }
                if let Some(instance) = old_instance {
                    let focus = Focus { id: old, instance, start_ns: None, from: None };
                    self.push(&focus, Some(ns), kind, session);
                }
            }
        }
    }

    fn push(&mut self, focus: &Focus, end_ns: Option<i64>, kind: Sym, session: Option<u32>) {
        let (who, from) = (Some(focus.instance as i32), focus.from.map(|f| f as i32));
        let process = session.is_some();
        self.focus.push(FocusRow {
            start_ns: focus.start_ns,
            end_ns,
            dur_ns: end_ns.zip(focus.start_ns).map(|(end, start)| end.saturating_sub(start)),
            kind,
            session_id: session.map(|s| s as i32),
            upid: who,
            utid: who.filter(|_| !process),
            from_upid: from,
            from_utid: from.filter(|_| !process),
        });
    }
}

impl Analysis for UiDelays {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        match event.tag {
            FOCUS_CHANGE => self.thread_focus(event, cx),
            PROCESS_FOCUS => self.process_focus(event, cx),
            _ => self.delay(event, cx),
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        if let Some(focus) = self.thread.take() {
            let kind = end.strings.intern("thread");
            self.push(&focus, None, kind, None);
        }
        let mut left: Vec<(u32, Focus)> = std::mem::take(&mut self.processes).into_iter().collect();
        left.sort_unstable_by_key(|(session, _)| *session);
        for (session, focus) in left {
            let kind = end.strings.intern("process");
            self.push(&focus, None, kind, Some(session));
        }
        // Rows of threads have the thread in the columns of processes until here.
        for (process, thread) in [("upid", "utid"), ("from_upid", "from_utid")] {
            let mut threads: Vec<Option<i32>> = Vec::new();
            self.focus.remap_i32(thread, |utid| {
                threads.push(utid);
                utid
            })?;
            let mut threads = threads.into_iter();
            self.focus.remap_i32(process, |upid| match threads.next().flatten() {
                Some(utid) => {
                    let upid = end.model.threads.get(u32::try_from(utid).ok()?)?.upid;
                    upid.map(|u| u as i32)
                }
                None => upid,
            })?;
        }
        Ok(vec![self.rows.into(), self.focus.into()])
    }
}
