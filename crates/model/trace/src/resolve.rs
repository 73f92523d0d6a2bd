//! Addresses to frames, once per distinct address and image, at the end of the pass.

use crate::anomalies::{FRAMES_WITHOUT_IMAGE, STACKS_BEYOND_LIMIT};
use crate::model::Model;
use crate::model::il_map::IlPlace;
use crate::model::image::{Image, base_name, is_kernel};
use crate::model::place::PlaceId;
use crate::model::stack::{DistinctStack, FinishedStacks};
use crate::symbols::{MAX_CANDIDATES, Symbols};
use etwhy_etl::Ledger;
use etwhy_symbols::ModuleSymbols;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Kernel or driver code.
    Kernel,
    /// Code of an image in a process.
    User,
    /// .NET code, compiled ahead or just in time.
    Managed,
    /// No image and no method is known there.
    Unknown,
}

impl FrameKind {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            FrameKind::Kernel => "kernel",
            FrameKind::User => "user",
            FrameKind::Managed => "managed",
            FrameKind::Unknown => "unknown",
        }
    }
}

/// A distinct place in code.
#[derive(Clone, Debug)]
pub struct Frame {
    /// An address at which it was seen.
    pub address: u64,
    /// Image number, of one process that has it.
    pub image: Option<u32>,
    /// Offset from the image's base.
    pub rva: Option<u64>,
    /// Module name without path, or `[unknown]`, `[.NET]`.
    pub module: Sym,
    /// Function, if symbols or the .NET runtime named it.
    pub function: Option<Sym>,
    /// Source file.
    pub file: Option<Sym>,
    /// Source line.
    pub line: Option<i32>,
    /// Kind of code.
    pub kind: FrameKind,
    /// `module!function`, or `module!+0xrva`, or the address.
    pub label: Sym,
    /// Where the function name came from: `pdb`, `breakpad`, `export`, `clr`, or `none`.
    pub source: &'static str,
    /// The function is inlined into that of the next frame outwards, which has the same address.
    pub inlined: bool,
    /// The image is that of another process with the same library there.
    pub guessed: bool,
}

/// Frames and stacks, resolved.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Distinct frames; the frame number is the index.
    pub frames: Vec<Frame>,
    /// How many of them, at the front, are the same whatever is asked: those of stacks, and of the routines of system calls,
    /// DPCs and ISRs. Behind them come places that a table only shows as text.
    pub listed: usize,
    /// Distinct stacks; the stack number is the index.
    pub stacks: Vec<DistinctStack>,
    of_ticket: Vec<i32>,
    /// Frame of each place.
    of_place: Vec<u32>,
    /// Where each stack's frames start in `stack_frames`, one more for the end.
    starts: Vec<u64>,
    stack_frames: Vec<u32>,
    /// Frames of the kernel at the inner end of each stack.
    kernel_depths: Vec<u32>,
}

/// Frames of one address: the innermost one, and how many there are. They are numbered one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    count: u32,
}

impl Run {
    /// The function that was called, into which the others are inlined.
    fn outermost(self) -> u32 {
        self.first.saturating_add(self.count.saturating_sub(1))
    }
}

/// Images of one address space, sorted for search.
struct Space {
    /// (base, end, image), by base; images may overlap in time.
    images: Vec<(u64, u64, u32)>,
    /// Largest end of all images up to here: how far back an overlap can reach.
    reach: Vec<u64>,
}

impl Space {
    fn new(model: &Model, upid: Option<u32>) -> Space {
        let all = model.images.all();
        let images = model.images.for_process(upid).iter();
        Space::with(images.filter_map(|&n| all.get(n as usize).map(|i| (i.base, i.size, n))))
    }

    /// Of images by base, size and number.
    fn with(images: impl Iterator<Item = (u64, u64, u32)>) -> Space {
        let mut images: Vec<_> =
            images.map(|(base, size, number)| (base, base.saturating_add(size), number)).collect();
        images.sort_unstable();
        let highest = |high: &mut u64, image: &(u64, u64, u32)| {
            *high = image.1.max(*high);
            Some(*high)
        };
        let reach = images.iter().scan(0, highest).collect();
        Space { images, reach }
    }

    /// The image at `address` in that epoch: the last one loaded by then, or else the first one later.
    fn find(&self, address: u64, epoch: u32, all: &[Image]) -> Option<u32> {
        let mut at = self.images.partition_point(|i| i.0 <= address);
        let last = at.saturating_sub(MAX_CANDIDATES);
        let mut best: Option<(bool, i64, u32)> = None;
        while at > last {
            at -= 1;
            if self.reach.get(at).is_some_and(|&reach| reach <= address) {
                break;
            }
            let Some(&(_, end, number)) = self.images.get(at) else { break };
            if address >= end {
                continue;
            }
            let Some(image) = all.get(number as usize) else { continue };
            let by_then = image.epoch <= epoch;
            let rank = if by_then { i64::from(image.epoch) } else { -i64::from(image.epoch) };
            let candidate = (by_then, rank, number);
            if best.is_none_or(|b| candidate > b) {
                best = Some(candidate);
            }
        }
        best.map(|b| b.2)
    }
}

/// Bytes of records for each frame of a distinct stack that is kept, and frames that any trace may have. Real
/// traces have some hundred bytes for each; a hostile one refers to one long stack from as many processes as
/// it likes, and each of them makes it another stack.
const BYTES_PER_FRAME: u64 = 4;
const MIN_FRAMES: usize = 500_000;

/// Functions at one address, inlined ones included. Real ones have a dozen; the innermost are kept.
const MAX_PLACES: usize = 100;

/// Builder of frames.
struct Frames<'a> {
    model: &'a Model,
    symbols: &'a mut Symbols,
    strings: &'a mut Strings,
    ledger: &'a mut Ledger,
    frames: Vec<Frame>,
    /// Frames by image file and rva, or by process and address.
    known: HashMap<(u32, u64, Seen), Run>,
    spaces: HashMap<Option<u32>, Space>,
    /// Methods by process, sorted by start address: (start, end, method).
    methods: HashMap<u32, Vec<(u64, u64, u32)>>,
    /// Dense number of each image's file.
    file_of_image: Vec<u32>,
    unknown: Sym,
    without_image: u64,
    /// Looked-up addresses: (process or kernel, epoch, address) to frame.
    cache: HashMap<(u32, u32, u64), Run>,
    /// Address space of all system-wide libraries, for processes without any image.
    shared: Option<Space>,
}

/// How an address was seen. Where symbols tell lines, that of a call may be another one than that of the instruction
/// behind it, to which it returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Seen {
    /// In no image: the address is all there is.
    Bare,
    /// In a method whose lines are known, as an address to return to.
    BareReturn,
    /// In an image without symbols.
    Plain,
    /// As the instruction that ran.
    Leaf,
    /// As an address to return to.
    Return,
}

impl Resolved {
    pub(crate) fn new(
        model: &Model,
        finished: FinishedStacks,
        symbols: &mut Symbols,
        strings: &mut Strings,
        ledger: &mut Ledger,
        bytes: u64,
    ) -> Resolved {
        let most = usize::try_from(bytes / BYTES_PER_FRAME).unwrap_or(usize::MAX).saturating_add(MIN_FRAMES);
        let mut left = most;
        let mut frames = Frames::new(model, symbols, strings, ledger);
        let mut starts = Vec::with_capacity(finished.stacks.len() + 1);
        let mut kernel_depths = Vec::with_capacity(finished.stacks.len());
        let mut stack_frames = Vec::new();
        starts.push(0u64);
        let places = model.places.all();
        let mut of_place = vec![u32::MAX; places.len()];
        let mut name_place = |frames: &mut Frames<'_>, number: usize| {
            if let (Some(place), Some(frame)) = (places.get(number), of_place.get_mut(number)) {
                let (upid, epoch) = (place.upid, place.epoch);
                let none = DistinctStack { upid, epoch, leaf_only: true, kernel: 0, user: 0 };
                // A routine is named by its first instruction, which may be one of what is inlined there.
                *frame = frames.frame(&none, place.address, false).outermost();
            }
        };
        for number in model.places.routines() {
            name_place(&mut frames, number.index());
        }
        // Where the frames of a half already are: many stacks share one.
        let mut halves: HashMap<(u32, u32, u32, bool), (usize, usize)> = HashMap::default();
        let mut append = |frames: &mut Frames<'_>,
                          all: &mut Vec<u32>,
                          stack: &DistinctStack,
                          part: u32,
                          addresses: &[u64],
                          innermost: bool| {
            let Some(&first) = addresses.first() else { return };
            let (owner, epoch) = match is_kernel(first, 8) {
                true => (u32::MAX, 0),
                false => (stack.upid.unwrap_or(u32::MAX - 1), stack.epoch),
            };
            let key = (part, owner, epoch, innermost);
            if let Some(&(from, to)) = halves.get(&key) {
                return all.extend_from_within(from..to);
            }
            let from = all.len();
            for (position, &address) in addresses.iter().enumerate() {
                let run = frames.frame(stack, address, !innermost || position > 0);
                all.extend(run.first..run.first.saturating_add(run.count));
            }
            halves.insert(key, (from, all.len()));
        };
        for stack in &finished.stacks {
            let mut parts = [model.stacks.frames_of(stack.kernel), model.stacks.frames_of(stack.user)];
            let depth = parts.iter().map(|p| p.len()).sum();
            match left.checked_sub(depth) {
                Some(rest) => left = rest,
                None => {
                    frames.ledger.note(&STACKS_BEYOND_LIMIT, 1, || format!("after {most} frames"));
                    parts = [&[], &[]];
                }
            }
            let from = stack_frames.len();
            let [kernel, user] = parts;
            append(&mut frames, &mut stack_frames, stack, stack.kernel, kernel, true);
            let mut kernel_depth = (stack_frames.len() - from) as u32;
            append(&mut frames, &mut stack_frames, stack, stack.user, user, kernel.is_empty());
            // The lone instruction pointer of an event is among the user's.
            let lone = |frame: &u32| frames.frames.get(*frame as usize);
            if stack.leaf_only
                && let Some(frame) = stack_frames.get(from..).and_then(<[u32]>::last).and_then(lone)
                && (is_kernel(frame.address, 8) || frame.kind == FrameKind::Kernel)
            {
                kernel_depth = (stack_frames.len() - from) as u32;
            }
            left = left.saturating_sub((stack_frames.len() - from).saturating_sub(depth));
            kernel_depths.push(kernel_depth);
            starts.push(stack_frames.len() as u64);
        }
        let listed = frames.frames.len();
        for number in 0..places.len() {
            name_place(&mut frames, number);
        }
        frames.ledger.count(&FRAMES_WITHOUT_IMAGE, frames.without_image);
        Resolved {
            frames: frames.frames,
            listed,
            stacks: finished.stacks,
            of_ticket: finished.of_ticket,
            of_place,
            starts,
            stack_frames,
            kernel_depths,
        }
    }

    /// The stack of a ticket.
    #[inline]
    pub fn stack_of_ticket(&self, ticket: i32) -> Option<i32> {
        let stack = usize::try_from(ticket).ok().and_then(|t| self.of_ticket.get(t)).copied()?;
        (stack >= 0).then_some(stack)
    }

    /// The frame of a place in code, with its number.
    #[inline]
    pub fn frame_of_place(&self, place: PlaceId) -> Option<(u32, &Frame)> {
        let number = *self.of_place.get(place.index())?;
        Some((number, self.frames.get(number as usize)?))
    }

    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> &[u32] {
        let from = self.starts.get(stack as usize).copied().unwrap_or(0) as usize;
        let to = self.starts.get(stack as usize + 1).copied().unwrap_or(0) as usize;
        self.stack_frames.get(from..to).unwrap_or(&[])
    }

    /// Number of kernel frames at the inner end of a stack.
    pub fn kernel_depth(&self, stack: u32) -> usize {
        self.kernel_depths.get(stack as usize).map_or(0, |depth| *depth as usize)
    }
}

impl<'a> Frames<'a> {
    fn new(
        model: &'a Model,
        symbols: &'a mut Symbols,
        strings: &'a mut Strings,
        ledger: &'a mut Ledger,
    ) -> Frames<'a> {
        let mut files: HashMap<(Option<Sym>, u64, u32), u32> = HashMap::default();
        let file_of_image = model
            .images
            .all()
            .iter()
            .map(|image| {
                let next = files.len() as u32;
                *files.entry((image.path, image.size, image.time_date_stamp)).or_insert(next)
            })
            .collect();
        let mut methods: HashMap<u32, Vec<(u64, u64, u32)>> = HashMap::default();
        for (number, method) in model.clr.all().iter().enumerate() {
            let end = method.start.saturating_add(u64::from(method.size));
            methods.entry(method.upid).or_default().push((method.start, end, number as u32));
        }
        for list in methods.values_mut() {
            list.sort_unstable();
        }
        let unknown = strings.intern("[unknown]");
        Frames {
            model,
            symbols,
            strings,
            ledger,
            frames: Vec::new(),
            known: HashMap::default(),
            spaces: HashMap::default(),
            methods,
            file_of_image,
            unknown,
            without_image: 0,
            cache: HashMap::default(),
            shared: None,
        }
    }

    /// The frames of an address of a stack. `is_return`: a return address, so the call is one byte before.
    fn frame(&mut self, stack: &DistinctStack, address: u64, is_return: bool) -> Run {
        let kernel = is_kernel(address, 8);
        // Address 0x80000000 and up is the kernel only in processes of 32-bit systems, whose kernel images
        // stand there; look for a process image first.
        let owner = if kernel { u32::MAX } else { stack.upid.unwrap_or(u32::MAX - 1) };
        let epoch = if kernel { u32::MAX } else { stack.epoch };
        let key = (owner, epoch ^ (u32::from(is_return) << 31), address);
        if let Some(&frame) = self.cache.get(&key) {
            return frame;
        }
        let frame = self.resolve(stack, address, is_return, kernel);
        self.cache.insert(key, frame);
        frame
    }

    fn resolve(&mut self, stack: &DistinctStack, address: u64, is_return: bool, kernel: bool) -> Run {
        let at = if is_return { address.saturating_sub(1) } else { address };
        let upid = stack.upid;
        let method = upid.filter(|_| !kernel).and_then(|upid| self.method(upid, at));
        let (image, guessed) = self.image(upid, stack.epoch, at, kernel);
        let file = image.and_then(|n| self.file_of_image.get(n as usize)).copied();
        let all = self.model.images.all();
        let found = image.and_then(|n| all.get(n as usize));
        // A method has its name already.
        let native = found.filter(|_| method.is_none());
        let symbols = native.and_then(|image| self.symbols.module(image, self.strings, self.ledger));
        let place = method.zip(upid).and_then(|(number, upid)| self.il_place(upid, number, at));
        let (lined, line) = match &place {
            Some(place) => self.symbols.managed_line(place, self.strings, self.ledger),
            None => (false, None),
        };
        let seen = match (found, &symbols, is_return) {
            (None, ..) => Seen::Bare,
            (_, None, _) => Seen::Plain,
            (_, Some(_), false) => Seen::Leaf,
            (_, Some(_), true) => Seen::Return,
        };
        let identity = match (file, found) {
            (Some(file), Some(image)) => (file, address.wrapping_sub(image.base), seen),
            _ if lined && is_return => (upid.unwrap_or(u32::MAX), address, Seen::BareReturn),
            _ => (upid.unwrap_or(u32::MAX), address, Seen::Bare),
        };
        if let Some(&frame) = self.known.get(&identity) {
            return frame;
        }
        let rva = found.map(|i| address.wrapping_sub(i.base));
        let module_text = found.and_then(|i| i.path).map(|p| base_name(self.strings.get(p)).to_owned());
        let mut frame = Frame {
            address,
            image,
            rva,
            module: module_text.as_deref().map_or(self.unknown, |m| self.strings.intern(m)),
            function: None,
            file: None,
            line: None,
            kind: match (kernel || found.is_some_and(|i| i.upid.is_none()), found) {
                (true, Some(_)) => FrameKind::Kernel,
                (_, None) => FrameKind::Unknown,
                _ => FrameKind::User,
            },
            label: self.unknown,
            source: "none",
            inlined: false,
            guessed,
        };
        let mut frames = Vec::new();
        if let Some(method) = method {
            self.name_method(&mut frame, method);
            frame.file = line.as_ref().map(|(file, _)| self.strings.intern(file));
            frame.line = line.and_then(|(_, line)| i32::try_from(line).ok());
        } else if let (Some(image), Some(symbols)) = (found, &symbols) {
            self.name_native(&mut frame, &mut frames, symbols, at.wrapping_sub(image.base));
        } else if found.is_none() {
            self.without_image += 1;
        }
        frames.push(frame);
        let run = Run { first: self.frames.len() as u32, count: frames.len() as u32 };
        for frame in &mut frames {
            let module = self.strings.get(frame.module);
            let label = match (frame.function, frame.rva) {
                (Some(function), _) => format!("{module}!{}", self.strings.get(function)),
                (None, Some(rva)) => format!("{module}!+{rva:#x}"),
                (None, None) => format!("{module}!{address:#x}"),
            };
            frame.label = self.strings.intern(&label);
        }
        self.frames.append(&mut frames);
        self.known.insert(identity, run);
        run
    }

    fn method(&self, upid: u32, address: u64) -> Option<u32> {
        let list = self.methods.get(&upid)?;
        let at = list.partition_point(|m| m.0 <= address);
        list.get(at.checked_sub(1)?).filter(|m| address < m.1).map(|m| m.2)
    }

    /// Where the instruction at an address of a method comes from.
    fn il_place(&self, upid: u32, method: u32, address: u64) -> Option<IlPlace> {
        let start = self.model.clr.all().get(method as usize)?.start;
        self.model.il_maps.place(upid, method, address.checked_sub(start)?)
    }

    fn image(&mut self, upid: Option<u32>, epoch: u32, address: u64, kernel: bool) -> (Option<u32>, bool) {
        let model = self.model;
        let all = model.images.all();
        if !kernel && let Some(upid) = upid {
            let space = self.spaces.entry(Some(upid)).or_insert_with(|| Space::new(model, Some(upid)));
            if let Some(found) = space.find(address, epoch, all) {
                return (Some(found), false);
            }
        }
        let space = self.spaces.entry(None).or_insert_with(|| Space::new(model, None));
        if let Some(found) = space.find(address, u32::MAX, all) {
            return (Some(found), false);
        }
        // System libraries stand at the same place in all processes of a boot. A process of which no image
        // is known at all borrows them from others.
        if !kernel && upid.is_none_or(|u| model.images.for_process(Some(u)).is_empty()) {
            let shared = self.shared.get_or_insert_with(|| shared_space(model));
            return (shared.find(address, u32::MAX, all), true);
        }
        (None, false)
    }

    fn name_method(&mut self, frame: &mut Frame, method: u32) {
        let Some(method) = self.model.clr.all().get(method as usize) else { return };
        let get = |sym: Option<Sym>| sym.map_or("", |s| self.strings.get(s));
        let (namespace, name) = (get(method.namespace), get(method.name));
        let function = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") };
        if function.is_empty() {
            return;
        }
        frame.function = Some(self.strings.intern(&function));
        frame.kind = FrameKind::Managed;
        frame.source = "clr";
        if frame.image.is_none() {
            frame.module = self.strings.intern("[.NET]");
        }
    }

    /// Names the function of `frame`; what is inlined there goes to `inner`, innermost first.
    fn name_native(&mut self, frame: &mut Frame, inner: &mut Vec<Frame>, symbols: &ModuleSymbols, rva: u64) {
        let Some(symbol) = u32::try_from(rva).ok().and_then(|rva| symbols.lookup(rva)) else { return };
        frame.source = symbols.origin().name();
        for place in symbol.places {
            if place.inlined && inner.len() >= MAX_PLACES {
                continue;
            }
            let named = Frame {
                function: Some(self.strings.intern(&self.symbols.shown(symbols, place.name))),
                file: place.file.map(|f| self.strings.intern(f)),
                line: place.line.and_then(|l| i32::try_from(l).ok()),
                inlined: place.inlined,
                ..frame.clone()
            };
            if place.inlined { inner.push(named) } else { *frame = named }
        }
    }
}

/// Images that stand at the same place in two or more processes.
fn shared_space(model: &Model) -> Space {
    let mut seen: HashMap<(u64, u64, Option<Sym>), (u32, u32)> = HashMap::default();
    for (number, image) in model.images.all().iter().enumerate().filter(|(_, i)| i.upid.is_some()) {
        seen.entry((image.base, image.size, image.path)).or_insert((number as u32, 0)).1 += 1;
    }
    let shared = seen.into_iter().filter(|(_, (_, n))| *n >= 2);
    Space::with(shared.map(|((base, size, _), (number, _))| (base, size, number)))
}
