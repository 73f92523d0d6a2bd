//! Handles of GDI and USER: device contexts, bitmaps, fonts, windows, menus, hooks; and which of them leak.
//!
//! # How it is computed
//! `Microsoft-Windows-Win32k` logs creation, destruction and change of owner of each handle (events 452 to 454 for USER,
//! 455 to 457 for GDI, Windows 10 1903 and later), and when a GDI object gets another handle (458). A row is one
//! handle. Tables of handles belong to a terminal session, so handles of different sessions may have equal values. A
//! process may own 10,000 of each kind unless told otherwise; when it ends, Windows destroys what is left.
//!
//! `gdi_user_leak` fits a line to the number of open handles of a process and type, as `handle_leak` does. A handle that
//! changes its owner counts as closed for the old one and as created for the new one.
//!
//! # What fools it
//! There is no rundown: handles from before the trace are known only when they go. Handles without an owner (process 0)
//! are the system's. Codes of GDI types are taken to be those in the handles themselves; unknown codes have no name.
//! Where buffers are missing, destructions may be: see the anomalies `outstanding_doubtful` and `ends_doubtful`.
//!
//! The layouts rest on documentation; no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FREES_OF_UNKNOWN, FREES_UNSEEN, PAYLOAD_TOO_SHORT};
use crate::catalog::ui_delay::WIN32K;
use crate::event::{Context, Event, Select, What};
use crate::row_ends::{Counter, How, RowEnds};
use crate::trend::Leak;
use etwhy_base::Guid;
use etwhy_decode::kernel::events::Process;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::{HashMap, HashSet};

define_table! {
    /// GDI and USER handles, from creation to destruction.
    pub table GDI_USER_HANDLE: GdiUserHandleRow = "gdi_user_handle" {
        title: "GDI and USER handles", sorted_by: "ts_ns", version: 1,
        /// When it was created.
        ts_ns: i64 [Ns, Time],
        /// When it was destroyed; null if that is not in the trace.
        close_ns: Option<i64> [Ns, Time],
        /// How long it existed.
        dur_ns: Option<i64> [Ns, Duration],
        /// destroy, exit (with its owner), unseen (its value was given out again), doubtful (it was destroyed, but
        /// buffers may be missing in between); null if it is there at the end.
        closed_by: Option<Sym> [None, Kind],
        /// GDI or USER.
        kind: Sym [None, Kind],
        /// Type of the object (DC, Bitmap, Window, ...), if its number is known.
        object_type: Option<Sym> [None, Kind],
        /// Number of the type.
        type_number: i32 [None, Other],
        /// The handle.
        handle: i64 [Address, Other],
        /// Terminal session.
        session_id: i32 [None, Other],
        /// Process that owns it at the end.
        upid: i32 [None, Process],
        /// Process for which it was created, if its owner changed since.
        first_upid: Option<i32> [None, Process],
        /// Thread that created it.
        utid: Option<i32> [None, Thread],
        /// Stack of the creation (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

define_table! {
    /// GDI and USER handles by process and type, and whether they grow.
    pub table GDI_USER_LEAK: GdiUserLeakRow = "gdi_user_leak" {
        title: "GDI and USER handles by process and type", version: 1,
        /// Process that owns them.
        upid: i32 [None, Process],
        /// GDI or USER.
        kind: Sym [None, Kind],
        /// Type of the object, if its number is known.
        object_type: Option<Sym> [None, Kind],
        /// Number of the type.
        type_number: i32 [None, Other],
        /// Handles that existed when the trace or the process began, as far as later events tell.
        open_at_start: i64 [Count, Count],
        /// Handles created for the process or given to it.
        creates: i64 [Count, Count],
        /// Handles destroyed or given away.
        closes: i64 [Count, Count],
        /// Handles that ended with the process.
        closed_by_exit: i64 [Count, Count],
        /// Handles created in the trace and there at its end.
        outstanding: i64 [Count, Count],
        /// Most of the known handles at one moment.
        peak: i64 [Count, Count],
        /// Handles by which the open ones grow each second (least squares over time).
        leak_slope_per_second: Option<f64> [None, Other],
        /// Share of the variation that steady growth explains, 0 to 1 (coefficient of determination).
        leak_r2: Option<f64> [None, Other],
    }
}

const CREATE: u8 = 0;
const DESTROY: u8 = 1;
const OWNER: u8 = 2;
const TRANSFORM: u8 = 3;
const PROCESS_END: u8 = 4;
/// Added for GDI.
const GDI: u8 = 0x10;

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

const FIELDS: &[&str] = &["Handle|OldHandle", "Type", "SessionId", "OwnerPid", "NewHandle"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&GDI_USER_HANDLE, &GDI_USER_LEAK],
    selects: &[
        Select::with(What::Manifest(WIN32K, 452), CREATE, FIELDS),
        Select::with(What::Manifest(WIN32K, 453), DESTROY, FIELDS),
        Select::with(What::Manifest(WIN32K, 454), OWNER, FIELDS),
        Select::with(What::Manifest(WIN32K, 455), GDI | CREATE, FIELDS),
        Select::with(What::Manifest(WIN32K, 456), GDI | DESTROY, FIELDS),
        Select::with(What::Manifest(WIN32K, 457), GDI | OWNER, FIELDS),
        Select::with(What::Manifest(WIN32K, 458), GDI | TRANSFORM, FIELDS),
        Select::with(What::Kernel(Process::End), PROCESS_END, &["ProcessId"]),
        Select::with(What::Manifest(KERNEL_PROCESS, 2), PROCESS_END, &["ProcessID"]),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Handles {
            rows: TableBuilder::new(memory),
            leaks: TableBuilder::new(memory),
            open: HashMap::default(),
            owned: HashMap::default(),
            ends: RowEnds::default(),
            owners: HashMap::default(),
            sums: HashMap::default(),
        })
    },
};

/// GDI or USER, session, handle.
type Key = (bool, u32, u64);

/// A handle that exists.
#[derive(Clone, Copy)]
struct Open {
    /// Its row; handles from before the trace have none.
    row: Option<u32>,
    ty: u32,
    upid: u32,
}

struct Handles {
    rows: TableBuilder<GdiUserHandleRow>,
    leaks: TableBuilder<GdiUserLeakRow>,
    open: HashMap<Key, Open>,
    /// Handles of living processes.
    owned: HashMap<u32, HashSet<Key>>,
    ends: RowEnds,
    /// Owners of rows that have changed theirs.
    owners: HashMap<u32, u32>,
    /// By process, kind and type.
    sums: HashMap<(u32, bool, u32), Leak>,
}

fn kind_name(gdi: bool) -> &'static str {
    if gdi { "GDI" } else { "USER" }
}

/// Types of USER objects (`HANDLE_TYPE` of ReactOS' ntuser.h).
const USER_TYPES: &[(u32, &str)] = &[
    (1, "Window"),
    (2, "Menu"),
    (3, "Cursor"),
    (4, "SetWindowPos"),
    (5, "Hook"),
    (6, "ClipboardData"),
    (7, "CallProc"),
    (8, "AcceleratorTable"),
    (9, "DdeAccess"),
    (10, "DdeConversation"),
    (11, "DdeTransaction"),
    (12, "Monitor"),
    (13, "KeyboardLayout"),
    (14, "KeyboardFile"),
    (15, "WinEventHook"),
    (16, "Timer"),
    (17, "InputContext"),
    (18, "HidData"),
    (19, "DeviceInfo"),
    (20, "TouchInputInfo"),
    (21, "GestureInfo"),
];

/// Types of GDI objects (`GDI_CLIENT_*_TYPE` of phnt's ntgdi.h, System Informer, MIT, shifted down by 16 bits).
const GDI_TYPES: &[(u32, &str)] = &[
    (0x01, "DC"),
    (0x04, "Region"),
    (0x05, "Bitmap"),
    (0x06, "ClientObject"),
    (0x08, "Palette"),
    (0x0A, "Font"),
    (0x10, "Brush"),
    (0x21, "AltDC"),
    (0x25, "DIBSection"),
    (0x26, "Metafile16"),
    (0x30, "Pen"),
    (0x46, "Metafile"),
    (0x50, "ExtPen"),
    (0x66, "MetaDC16"),
];

fn type_name(gdi: bool, number: u32) -> Option<&'static str> {
    let types = if gdi { GDI_TYPES } else { USER_TYPES };
    types.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}

impl Handles {
    fn sums(&mut self, upid: u32, gdi: bool, ty: u32, cx: &Context<'_>) -> &mut Leak {
        self.sums.entry((upid, gdi, ty)).or_insert_with(|| Leak::of_process(cx, upid))
    }

    fn put(&mut self, key: Key, open: Open) {
        self.owned.entry(open.upid).or_default().insert(key);
        self.open.insert(key, open);
    }

    /// Takes a handle out; `how` says why.
    fn end(&mut self, key: Key, ns: i64, how: How, by: Option<u32>) -> Option<Open> {
        let open = self.open.remove(&key)?;
        if let Some(owned) = self.owned.get_mut(&open.upid) {
            owned.remove(&key);
        }
        if let Some(row) = open.row {
            self.ends.end(row, ns, how, by);
        }
        if let Some(sums) = self.sums.get_mut(&(open.upid, key.0, open.ty)) {
            sums.end(ns, how, open.row.is_some());
        }
        Some(open)
    }

    fn process_ends(&mut self, upid: u32, ns: i64) {
        for key in self.owned.remove(&upid).unwrap_or_default() {
            self.end(key, ns, How::Exit, None);
        }
    }

    /// A handle begins with its row.
    fn begin(&mut self, key: Key, ty: u32, upid: u32, event: &Event<'_>, cx: &mut Context<'_>) {
        if self.end(key, event.ns, How::Unseen, None).is_some() {
            cx.ledger.count(&FREES_UNSEEN, 1);
        }
        let actor = cx.actor(event);
        let row = self.ends.add();
        self.rows.push(GdiUserHandleRow {
            ts_ns: event.ns,
            close_ns: None,
            dur_ns: Some(event.ns),
            closed_by: None,
            kind: cx.sym(kind_name(key.0)),
            object_type: type_name(key.0, ty).map(|name| cx.sym(name)),
            type_number: ty as i32,
            handle: key.2 as i64,
            session_id: key.1 as i32,
            upid: upid as i32,
            first_upid: Some(upid as i32),
            utid: actor.map(|a| a.utid as i32),
            stack_id: Some(cx.actor_stack(event, actor)),
        });
        self.sums(upid, key.0, ty, cx).begin(event.ns);
        self.put(key, Open { row: Some(row), ty, upid });
    }

    /// Moves a handle to another owner or another value.
    fn moves(&mut self, key: Key, new: Key, ty: u32, upid: u32, ns: i64, cx: &mut Context<'_>) {
        let old = self.open.remove(&key);
        if let Some(owned) = old.and_then(|o| self.owned.get_mut(&o.upid)) {
            owned.remove(&key);
        }
        let open = match old {
            Some(old) => Open { upid, ..old },
            // From before the trace; whose it was is not told.
            None => Open { row: None, ty, upid },
        };
        if let (Some(row), true) = (open.row, old.is_some_and(|o| o.upid != upid)) {
            self.owners.insert(row, upid);
        }
        match old {
            Some(old) if old.upid == upid => {}
            _ => {
                if let Some(sums) = old.and_then(|o| self.sums.get_mut(&(o.upid, key.0, o.ty))) {
                    sums.end(ns, How::Call, open.row.is_some());
                }
                let sums = self.sums(upid, key.0, open.ty, cx);
                sums.begin(ns);
                // Of what existed before the trace nothing counts as outstanding.
                sums.outstanding -= i64::from(open.row.is_none());
            }
        }
        if new != key && self.end(new, ns, How::Unseen, None).is_some() {
            cx.ledger.count(&FREES_UNSEEN, 1);
        }
        self.put(new, open);
    }
}

impl Analysis for Handles {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let ns = event.ns;
        if event.tag == PROCESS_END {
            if let Some(pid) = event.u64(0) {
                let upid = cx.model.processes.at(pid as u32, ns);
                self.process_ends(upid, ns);
            }
            return;
        }
        let (Some(handle), Some(ty), Some(session), Some(pid)) =
            (event.u64(0), event.u64(1), event.u64(2), event.u64(3))
        else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (gdi, ty, session) = (event.tag & GDI != 0, ty as u32, session as u32);
        let key = (gdi, session, handle);
        let upid = cx.model.processes.at(pid as u32, ns);
        match event.tag & !GDI {
            CREATE => self.begin(key, ty, upid, event, cx),
            OWNER => self.moves(key, key, ty, upid, ns, cx),
            TRANSFORM => match event.u64(4) {
                Some(new) => self.moves(key, (gdi, session, new), ty, upid, ns, cx),
                None => cx.ledger.count(&PAYLOAD_TOO_SHORT, 1),
            },
            _ => {
                let by = cx.actor(event).map(|a| a.utid);
                if self.end(key, ns, How::Call, by).is_some() {
                    return;
                }
                // What an ended process had is gone already.
                if cx.model.processes.get(upid).is_some_and(|p| p.end_ns.is_some()) {
                    return;
                }
                cx.ledger.count(&FREES_OF_UNKNOWN, 1);
                let sums = self.sums(upid, gdi, ty, cx);
                sums.was_there();
                sums.end(ns, How::Call, false);
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let (ends, owners) = (&self.ends, &self.owners);
        let columns = ["close_ns", "dur_ns", "closed_by"];
        end.fill_ends(&mut self.rows, ends, columns, ["destroy", "exit", "unseen", ""])?;
        end.stacks_of(&mut self.rows, "stack_id")?;
        let owner = |row: usize| owners.get(&u32::try_from(row).ok()?).map(|&u| u as i32);
        let mut row = Counter::default();
        self.rows.remap_i32("upid", |upid| owner(row.next()).or(upid))?;
        let mut row = Counter::default();
        self.rows.remap_i32("first_upid", |upid| owner(row.next()).and(upid))?;

        let mut sums: Vec<(&(u32, bool, u32), &Leak)> = self.sums.iter().collect();
        sums.sort_unstable_by_key(|(key, _)| **key);
        for (&(upid, gdi, ty), s) in sums {
            let line = s.line(end, upid);
            self.leaks.push(GdiUserLeakRow {
                upid: upid as i32,
                kind: end.strings.intern(kind_name(gdi)),
                object_type: type_name(gdi, ty).map(|name| end.strings.intern(name)),
                type_number: ty as i32,
                open_at_start: s.open_at_start,
                creates: s.creates,
                closes: s.closes,
                closed_by_exit: s.closed_by_exit,
                outstanding: s.outstanding,
                peak: s.trend.peak,
                leak_slope_per_second: line.map(|l| l.slope),
                leak_r2: line.map(|l| l.r2),
            });
        }
        Ok(vec![self.rows.into(), self.leaks.into()])
    }
}
