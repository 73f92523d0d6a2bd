//! What is known of frames, by dense numbers of their modules, functions and stack tags.

use super::{NONE, Stack};
use etwhy_knowledge::{
    StackTag, WorkHost, category_of, is_disk_driver, is_file_system, is_layer_crossing, is_os_driver,
    is_system_library, is_thread_start, stack_tag, work_host,
};
use etwhy_table::Database;
use etwhy_trace::catalog::{image::ImageRow, stack::FrameRow};
use foldhash::HashMap;

/// What kind of code a module is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Kernel or driver.
    Kernel,
    /// Code of a process.
    User,
    /// .NET.
    Managed,
    /// Nothing is known there.
    #[default]
    Unknown,
}

impl Kind {
    pub(crate) fn from_name(name: &str) -> Kind {
        match name {
            "kernel" => Kind::Kernel,
            "user" => Kind::User,
            "managed" => Kind::Managed,
            _ => Kind::Unknown,
        }
    }

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::User => "user",
            Kind::Managed => "managed",
            Kind::Unknown => "unknown",
        }
    }
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    /// File name.
    pub name: String,
    /// Who makes it; empty if unknown.
    pub vendor: String,
    /// What it belongs to; empty if unknown.
    pub product: String,
    /// What it is for; empty if unknown.
    pub category: String,
    /// What kind of code it is.
    pub kind: Kind,
    /// A kernel module that is Windows itself, or hosts others.
    pub os: bool,
    /// A library of Windows that programs call.
    pub system_library: bool,
}

/// A frame that begins a DPC or ISR.
const DISPATCH: u16 = 1;
/// A frame that nobody called.
const THREAD_START: u16 = 2;
/// A system call of ntdll or win32u.
const STUB: u16 = 4;
/// The kernel writes the event of a system call.
const SYSCALL_EVENT: u16 = 8;
/// A driver that calls it hands work to another layer.
const CROSSING: u16 = 16;
/// The kernel's own entry of a system call.
const SERVICE: u16 = 32;
/// The kernel dispatches a system call.
const SERVICE_DISPATCH: u16 = 64;

/// A thread of the System process begins there.
const WORK_START: u16 = 128;
/// Runs work that was queued to a thread of the System process.
const WORK_QUEUED: u16 = 256;
/// Its function has a name that is sure: that of the nearest export is not.
const NAMED: u16 = 512;
/// Kernel code whose function is not known.
const NAMELESS: u16 = 1024;

/// Windows asks drivers there about a call that is not theirs: minifilters, callbacks of registry, processes and handles.
const ASKS: u16 = 2048;
/// A driver of disks or volumes.
const DISK: u16 = 4096;
/// A file system of Windows.
const FILES: u16 = 8192;

/// What is known of one frame, together since it is needed together.
#[derive(Clone, Copy)]
struct Frame {
    module: u32,
    function: u32,
    tag: u32,
    flags: u16,
}

/// What is known of frames.
#[derive(Default)]
pub(crate) struct Facts {
    frames: Vec<Frame>,
    /// Modules by number.
    pub modules: Vec<Module>,
    /// Functions by number: their label and module.
    pub functions: Vec<(String, u32)>,
    /// Stack tags by number.
    pub tags: Vec<&'static StackTag>,
}

/// What [`Facts::read`] reads.
pub(crate) type FactsRows = (FrameRow, ImageRow);

/// Vendor, product and company of an image.
type Version = (String, String, String);

fn versions(db: &Database) -> Vec<Version> {
    let own = |text: Option<&str>| text.unwrap_or("").to_owned();
    let images = db.read_or_empty::<ImageRow>();
    images.iter().map(|row| (own(row.vendor()), own(row.product()), own(row.company()))).collect()
}

impl Facts {
    /// Reads `frame` and `image`; stack tags only if they are wanted.
    pub fn read(db: &Database, with_tags: bool) -> Facts {
        let versions = versions(db);
        let mut out = Facts::default();
        let (mut modules, mut functions) = (HashMap::default(), HashMap::default());
        let mut tags: HashMap<(u32, u32), u32> = HashMap::default();
        for row in &db.read_or_empty::<FrameRow>() {
            let kind = Kind::from_name(row.kind());
            let name = row.module();
            let number = *modules.entry((name.to_owned(), kind == Kind::Kernel)).or_insert_with(|| {
                let image = row.image_id().and_then(|i| versions.get(usize::try_from(i).ok()?));
                out.modules.push(Module::new(name, kind, image));
                (out.modules.len() - 1) as u32
            });
            // Without a name every address would be its own function; the module stands for them.
            let own = row.function();
            let text = match own {
                Some(_) => row.label().to_owned(),
                None => format!("{name}!?"),
            };
            let function = *functions.entry(text).or_insert_with_key(|text| {
                out.functions.push((text.clone(), number));
                (out.functions.len() - 1) as u32
            });
            let own = own.unwrap_or("");
            let tag_of = |out: &mut Facts| {
                let Some(found) = stack_tag(name, own) else { return NONE };
                out.tags.iter().position(|t| *t == found).unwrap_or_else(|| {
                    out.tags.push(found);
                    out.tags.len() - 1
                }) as u32
            };
            let frame = Frame {
                module: number,
                function,
                tag: match row.tag() {
                    Some(_) if with_tags => {
                        *tags.entry((number, function)).or_insert_with(|| tag_of(&mut out))
                    }
                    _ => NONE,
                },
                flags: flags(name, kind, own, row.tag()),
            };
            out.frames.push(frame);
        }
        out
    }

    /// Number of the frame's module.
    pub fn module_of(&self, frame: u32) -> u32 {
        self.frames.get(frame as usize).map_or(NONE, |f| f.module)
    }

    /// Number of the frame's function.
    pub fn function_of(&self, frame: u32) -> u32 {
        self.frames.get(frame as usize).map_or(NONE, |f| f.function)
    }

    /// Number of the frame's stack tag.
    pub fn tag_of(&self, frame: u32) -> u32 {
        self.frames.get(frame as usize).map_or(NONE, |f| f.tag)
    }

    /// The module with this number.
    pub fn module(&self, number: u32) -> Option<&Module> {
        self.modules.get(number as usize)
    }

    /// The stack tag with this number.
    pub fn stack_tag(&self, number: u32) -> Option<&'static StackTag> {
        self.tags.get(number as usize).copied()
    }

    /// The module is a driver that can be blamed.
    pub fn is_driver(&self, module: u32) -> bool {
        self.module(module).is_some_and(|m| m.kind == Kind::Kernel && !m.os)
    }

    /// The frame belongs to a library of Windows that programs call.
    pub fn is_system_library(&self, frame: u32) -> bool {
        self.module(self.module_of(frame)).is_some_and(|m| m.system_library)
    }

    fn has(&self, frame: u32, flag: u16) -> bool {
        self.frames.get(frame as usize).is_some_and(|f| f.flags & flag != 0)
    }

    /// The frame begins a DPC or ISR.
    pub fn is_dispatch(&self, frame: u32) -> bool {
        self.has(frame, DISPATCH)
    }

    /// The frame begins a thread.
    pub fn is_thread_start(&self, frame: u32) -> bool {
        self.has(frame, THREAD_START)
    }

    /// The frame is a system call of ntdll or win32u.
    pub fn is_stub(&self, frame: u32) -> bool {
        self.has(frame, STUB)
    }

    /// A driver that calls this frame directly hands work to another layer: the next driver, the stack above, or the system call that
    /// a hook was put in front of. What a nameless function of Windows was asked for is not known, and not charged.
    pub fn hands_on(&self, callee: u32, caller_of_driver: Option<u32>) -> bool {
        let hook = || caller_of_driver.is_some_and(|frame| self.has(frame, SERVICE_DISPATCH));
        self.has(callee, CROSSING | NAMELESS) || (self.has(callee, SERVICE) && hook())
    }

    /// Windows asks drivers there about a call that is not theirs, or the driver stands before a system call as a hook.
    pub fn asks(&self, caller_of_driver: u32) -> bool {
        self.has(caller_of_driver, ASKS | SERVICE_DISPATCH)
    }

    /// The frame is of kernel code whose function has no name.
    pub fn is_nameless(&self, frame: u32) -> bool {
        self.has(frame, NAMELESS)
    }

    /// The frame is of a driver of disks or volumes of Windows.
    pub fn is_disk(&self, frame: u32) -> bool {
        self.has(frame, DISK)
    }

    /// The frame is of the part of Windows that files on disks pass: a file system, or a driver of disks or volumes.
    pub fn is_storage(&self, frame: u32) -> bool {
        self.has(frame, DISK | FILES)
    }

    /// The frame for which a sample or wait with this stack is charged to a driver: the innermost of the kernel part that is not Windows
    /// itself, for its own code and for what Windows does on its behalf. `None` if that driver only handed the work to the next layer
    /// (`etwhy_knowledge::layer_crossings`), which would do it without the driver. With it, the frame of Windows that called the driver.
    pub fn charged(&self, part: &Stack<'_>) -> Option<(u32, Option<u32>)> {
        let driver = |frame: &u32| self.is_driver(self.module_of(*frame));
        let at = part.kernel.iter().position(driver)?;
        let callee = at.checked_sub(1).and_then(|at| part.kernel.get(at));
        // Drivers call themselves and one another: what of Windows called the first of them decides whether they are hooks.
        let outer = part.kernel.iter().skip(at).find(|frame| !driver(frame)).copied();
        let passed_on = callee.is_some_and(|&callee| self.hands_on(callee, outer));
        part.kernel.get(at).filter(|_| !passed_on).map(|frame| (*frame, outer))
    }

    /// A thread of the System process begins there.
    pub fn starts_work(&self, frame: u32) -> bool {
        self.has(frame, WORK_START)
    }

    /// The frame takes or calls work that was queued to a thread of the System process.
    pub fn runs_queued_work(&self, frame: u32) -> bool {
        self.has(frame, WORK_QUEUED)
    }

    /// The name of the frame's function is known for sure.
    pub fn is_named(&self, frame: u32) -> bool {
        self.has(frame, NAMED)
    }

    /// The kernel writes the event of a system call there.
    pub fn is_syscall_event(&self, frame: u32) -> bool {
        self.has(frame, SYSCALL_EVENT)
    }
}

impl Module {
    fn new(name: &str, kind: Kind, image: Option<&Version>) -> Module {
        let (vendor, product, company) = image.cloned().unwrap_or_default();
        let known = category_of(name, &company);
        let or = |own: String, known: Option<&str>| {
            if own.is_empty() { known.unwrap_or("").to_owned() } else { own }
        };
        Module {
            name: name.to_owned(),
            vendor: or(vendor, known.map(|k| k.vendor)),
            product: or(product, known.map(|k| k.product)),
            category: known.map_or(String::new(), |k| k.category.to_owned()),
            kind,
            // Where nothing is known there is nobody to blame.
            os: kind == Kind::Kernel && (name.starts_with('[') || is_os_driver(name, &company)),
            system_library: kind != Kind::Kernel && is_system_library(name),
        }
    }
}

fn flags(module: &str, kind: Kind, function: &str, tag: Option<&str>) -> u16 {
    let crossing = kind == Kind::Kernel && is_layer_crossing(module, function);
    let mut flags = if crossing { CROSSING } else { 0 };
    flags |= if kind == Kind::Kernel && is_disk_driver(module) { DISK } else { 0 };
    flags |= if kind == Kind::Kernel && is_file_system(module) { FILES } else { 0 };
    if function.is_empty() {
        return flags | if kind == Kind::Kernel { NAMELESS } else { 0 };
    }
    flags |= if function.starts_with('~') { 0 } else { NAMED };
    if kind == Kind::Kernel {
        flags |= match work_host(module, function) {
            Some(WorkHost::Start) => WORK_START,
            Some(WorkHost::Queue | WorkHost::Item) => WORK_QUEUED,
            None => 0,
        };
        let service = function
            .strip_prefix("Nt")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
        flags |= if service { SERVICE } else { 0 };
        flags |= if function.starts_with("KiSystemService") { SERVICE_DISPATCH } else { 0 };
        // Only those of the kernel: ndis.sys has functions tagged so that lie inside of a DPC.
        let dispatcher = tag == Some("interrupt") && function.starts_with('K');
        flags |= if dispatcher { DISPATCH } else { 0 };
        let logs = ["PerfInfoLogSysCall", "KiTrackSystemCall"];
        flags |= if logs.iter().any(|f| function.starts_with(f)) { SYSCALL_EVENT } else { 0 };
        let asks = tag == Some("callback") || tag == Some("filter") && function.contains("Callbacks");
        flags |= if asks { ASKS } else { 0 };
    } else {
        flags |= if is_thread_start(function) { THREAD_START } else { 0 };
        let system = ["ntdll.dll", "win32u.dll"].iter().any(|m| module.eq_ignore_ascii_case(m));
        let stub = system && (function.starts_with("Nt") || function.starts_with("Zw"));
        flags |= if stub { STUB } else { 0 };
    }
    flags
}
