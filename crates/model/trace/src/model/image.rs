//! Images: what is loaded where and when, and which build it is.

use super::process::Processes;
use crate::event::fields::{Event, Fields};
use crate::event::select::{Select, What};
use etwhy_base::Guid;
use etwhy_decode::kernel::events;
use etwhy_etl::Ledger;
use etwhy_etl::abi::guids::IMAGE_ID;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;
use std::collections::BTreeMap;

const LOAD: u8 = events::Image::Load.opcode;
const UNLOAD: u8 = events::Image::UnLoad.opcode;
const HYPERCALL_PAGE: u8 = events::Image::HypercallPage.opcode;
const KERNEL_PROCESS_LOAD: u8 = 105;
const KERNEL_PROCESS_UNLOAD: u8 = 106;
const ID_INFO: u8 = 200;
const ID_RSDS: u8 = 236;
const ID_IL_RSDS: u8 = 237;
const ID_FILE_VERSION: u8 = 240;

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(events::Image::Load, &[]),
    Select::kernel(events::Image::UnLoad, &[]),
    Select::kernel(events::Image::DCStart, &[]),
    Select::kernel(events::Image::DCEnd, &[]),
    Select::kernel(events::Image::HypercallPage, &[]),
    Select::new(What::Manifest(KERNEL_PROCESS, 5), KERNEL_PROCESS_LOAD),
    Select::new(What::Manifest(KERNEL_PROCESS, 6), KERNEL_PROCESS_UNLOAD),
    Select::new(What::Classic(IMAGE_ID, 0), ID_INFO),
    Select::new(What::Classic(IMAGE_ID, 36), ID_RSDS),
    Select::new(What::Classic(IMAGE_ID, 37), ID_IL_RSDS),
    Select::new(What::Classic(IMAGE_ID, 64), ID_FILE_VERSION),
];

/// Addresses from here on are the kernel's on 64-bit systems (canonical high half).
const KERNEL_64: u64 = 0xFFFF_0000_0000_0000;
/// Likewise on 32-bit systems.
const KERNEL_32: u64 = 0x8000_0000;

/// True when `address` lies in the kernel, as a record with that pointer size sees it.
#[inline]
pub fn is_kernel(address: u64, pointer_size: usize) -> bool {
    if pointer_size == 4 { (KERNEL_32..1 << 32).contains(&address) } else { address >= KERNEL_64 }
}

/// File name of a Windows path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

/// PDB identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// PDB name or path as recorded. Never used as a path.
    pub name: Sym,
    /// Its GUID.
    pub guid: Guid,
    /// Its age.
    pub age: u32,
}

/// Version resource.
#[derive(Clone, Copy, Debug)]
pub struct FileVersion {
    /// Original file name.
    pub original_name: Option<Sym>,
    /// File description.
    pub description: Option<Sym>,
    /// File version.
    pub file_version: Option<Sym>,
    /// Product.
    pub product: Option<Sym>,
    /// Company.
    pub company: Option<Sym>,
}

/// One image in one process (or in the kernel).
#[derive(Clone, Debug)]
pub struct Image {
    /// Process instance; `None` for the kernel.
    pub upid: Option<u32>,
    /// First address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// Path as recorded (device path).
    pub path: Option<Sym>,
    /// `TimeDateStamp` of the PE header.
    pub time_date_stamp: u32,
    /// `CheckSum` of the PE header.
    pub checksum: u32,
    /// Native PDB.
    pub pdb: Option<PdbId>,
    /// PDB of the managed code inside (NGEN, ReadyToRun).
    pub il_pdb: Option<PdbId>,
    /// Original file name from the version resource.
    pub original_name: Option<Sym>,
    /// Epoch of its process's address space when it was loaded.
    pub epoch: u32,
    /// Loaded at, ns; `None`: before the trace. Where the load was not recorded: not before that.
    pub load_ns: Option<i64>,
    /// Unloaded at, ns; `None`: still loaded at the end.
    pub unload_ns: Option<i64>,
}

impl Image {
    /// True when the address lies inside.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.base).is_some_and(|offset| offset < self.size)
    }
}

/// Identity records wait for their image, or the image for them: both orders occur.
#[derive(Clone, Copy, Debug, Default)]
struct Identity {
    ticks: i64,
    time_date_stamp: u32,
    original_name: Option<Sym>,
    pdb: Option<PdbId>,
    il_pdb: Option<PdbId>,
}

/// All images; the image number is the index.
#[derive(Clone, Debug, Default)]
pub struct Images {
    all: Vec<Image>,
    /// Image numbers by process; the kernel's under `None`.
    by_process: HashMap<Option<u32>, Vec<u32>>,
    /// Number of the image at (process, base).
    at_base: HashMap<(Option<u32>, u64), u32>,
    /// Identities by (process id of the record, base).
    identities: HashMap<(u32, u64), Identity>,
    /// Version resources by (size, time stamp).
    versions: HashMap<(u32, u32), Vec<FileVersion>>,
    /// When addresses of a process got a new meaning, ns, ascending.
    epochs: HashMap<Option<u32>, Vec<i64>>,
    /// Ranges in which images of a process were so far: start to end, disjoint.
    taken: HashMap<Option<u32>, BTreeMap<u64, u64>>,
}

/// Images of a process that are looked at when its addresses are used again, the last ones first. Without a limit a
/// hostile trace makes every load look at all loads before it.
const MAX_LOOKED_AT: usize = 4096;

/// Where the version resource of a machine's files may differ under one (size, stamp): more is damage.
const MAX_VERSIONS_PER_KEY: usize = 16;

impl Images {
    /// All images in the order of their numbers.
    pub fn all(&self) -> &[Image] {
        &self.all
    }

    /// Numbers of the images of a process (`None`: of the kernel).
    pub fn for_process(&self, upid: Option<u32>) -> &[u32] {
        self.by_process.get(&upid).map_or(&[], Vec::as_slice)
    }

    /// How often addresses of the process got a new meaning so far. Stacks of different epochs are kept
    /// apart, because the same address may belong to another image.
    #[inline]
    pub fn epoch(&self, upid: Option<u32>) -> u32 {
        self.epochs.get(&upid).map_or(0, |changes| changes.len() as u32)
    }

    /// As [`Images::epoch`], at an earlier moment.
    #[inline]
    pub fn epoch_at(&self, upid: u32, ns: i64) -> u32 {
        let changes = self.epochs.get(&Some(upid)).map_or(&[][..], Vec::as_slice);
        match changes.last() {
            Some(last) if *last > ns => changes.partition_point(|&change| change <= ns) as u32,
            _ => changes.len() as u32,
        }
    }

    /// The version resource of an image.
    pub fn version(&self, image: &Image) -> Option<&FileVersion> {
        let found = self.versions.get(&(image.size as u32, image.time_date_stamp))?;
        found.iter().find(|v| v.original_name == image.original_name).or_else(|| found.first())
    }

    /// Makes room for an image: what is still loaded there must have gone. Returns when the last of the images
    /// that were there went.
    fn clear(&mut self, upid: Option<u32>, base: u64, size: u64, ns: i64) -> Option<i64> {
        let end = base.saturating_add(size);
        let mut since = None;
        if !self.taken.get(&upid).is_some_and(|taken| is_taken(taken, base, end)) {
            return None;
        }
        for &number in self.by_process.get(&upid).into_iter().flatten().rev().take(MAX_LOOKED_AT) {
            if let Some(old) = self.all.get_mut(number as usize)
                && old.base < end
                && base < old.base.saturating_add(old.size)
            {
                since = since.max(Some(*old.unload_ns.get_or_insert(ns)));
            }
        }
        since
    }

    fn add(&mut self, mut image: Image, ns: i64) {
        let number = self.all.len() as u32;
        let (upid, base, end) = (image.upid, image.base, image.base.saturating_add(image.size));
        let list = self.by_process.entry(upid).or_default();
        list.push(number);
        // Where something else was before, addresses change their meaning.
        if take(self.taken.entry(upid).or_default(), base, end) {
            self.epochs.entry(upid).or_default().push(ns);
        }
        image.epoch = self.epoch(upid);
        self.at_base.insert((upid, base), number);
        self.all.push(image);
    }

    fn identify(&mut self, number: u32, identity: &Identity) {
        let Some(image) = self.all.get_mut(number as usize) else { return };
        if identity.time_date_stamp != 0 {
            image.time_date_stamp = identity.time_date_stamp;
        }
        image.original_name = identity.original_name.or(image.original_name);
        image.pdb = identity.pdb.or(image.pdb);
        image.il_pdb = identity.il_pdb.or(image.il_pdb);
    }
}

/// True if something of the range lies in one of the disjoint ranges.
fn is_taken(taken: &BTreeMap<u64, u64>, start: u64, end: u64) -> bool {
    taken.range(..end).next_back().is_some_and(|(_, &to)| to > start)
}

/// Adds a range to disjoint ranges; true if some of it was taken before.
fn take(taken: &mut BTreeMap<u64, u64>, mut start: u64, mut end: u64) -> bool {
    let mut before = false;
    // Ranges that begin before the end of the new one, from behind; the first that ends before its start is
    // the last to be looked at.
    while let Some((&from, &to)) = taken.range(..end).next_back() {
        if to <= start {
            break;
        }
        taken.remove(&from);
        (start, end) = (start.min(from), end.max(to));
        before = true;
    }
    taken.insert(start, end);
    before
}

pub(crate) fn event(
    event: &Event<'_>,
    images: &mut Images,
    processes: &mut Processes,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let fields = event.fields();
    match event.tag {
        ID_INFO | ID_RSDS | ID_IL_RSDS => identity(event, &fields, images, processes, strings),
        ID_FILE_VERSION => file_version(&fields, images, strings),
        HYPERCALL_PAGE => {
            // The page through which the kernel calls the hypervisor belongs to no file.
            let base = fields.u64("HypercallPageVa");
            let path = strings.intern_non_empty("[hypercall page]");
            load(None, base, 4096, path, 0, 0, LOAD, event.ns, images, strings);
        }
        tag => image(tag, event, &fields, images, processes, strings, ledger),
    }
}

fn image(
    tag: u8,
    event: &Event<'_>,
    fields: &Fields<'_>,
    images: &mut Images,
    processes: &mut Processes,
    strings: &mut Strings,
    ledger: &mut Ledger,
) {
    let base = fields.u64("ImageBase|BaseAddress");
    let size = fields.u64("ImageSize|ModuleSize");
    let Some(pid) = fields.u32("ProcessId|ProcessID").or_else(|| event.pid()) else {
        ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
        return;
    };
    let upid = match tag {
        _ if is_kernel(base, event.pointer_size) => None,
        LOAD | KERNEL_PROCESS_LOAD => Some(processes.living(pid, event.ns)),
        _ => Some(processes.at(pid, event.ns)),
    };
    let path = strings.intern_non_empty(&fields.text("FileName|ImageFileName|ImageName"));
    let stamp = fields.u64("TimeDateStamp|TimeDateStamp") as u32;
    let checksum = fields.u64("ImageChecksum|ImageCheckSum") as u32;
    load(upid, base, size, path, stamp, checksum, tag, event.ns, images, strings);
    // An identity at the same time and place is this image's.
    let found = images.identities.get(&(pid, base)).filter(|i| i.ticks == event.record.ticks).copied();
    if let (Some(identity), Some(&number)) = (found, images.at_base.get(&(upid, base))) {
        images.identify(number, &identity);
    }
}

#[allow(clippy::too_many_arguments)] // the fields of one event, used once
fn load(
    upid: Option<u32>,
    base: u64,
    size: u64,
    path: Option<Sym>,
    time_date_stamp: u32,
    checksum: u32,
    tag: u8,
    ns: i64,
    images: &mut Images,
    strings: &Strings,
) {
    if base == 0 || size == 0 {
        return;
    }
    let known = images.at_base.get(&(upid, base)).copied();
    let known = known.filter(|&n| {
        images.all.get(n as usize).is_some_and(|i| i.size == size && same_file(strings, i.path, path))
    });
    let alive = |i: &Image| i.unload_ns.is_none();
    let unload = matches!(tag, UNLOAD | KERNEL_PROCESS_UNLOAD);
    let known = known.and_then(|n| images.all.get_mut(n as usize)).filter(|i| unload || alive(i));
    if let Some(image) = known {
        // Views that the kernel makes while it starts a process are unloaded again and again without a load:
        // then the last unload counts.
        if unload {
            image.unload_ns = Some(ns);
        }
        // The name may have been told without its device first.
        if path.map(|p| strings.get(p).len()) > image.path.map(|p| strings.get(p).len()) {
            image.path = path;
        }
        return;
    }
    // Unload and rundown at the end without a load: it was there since before the trace, or since something
    // else went from its place.
    let loaded = matches!(tag, LOAD | KERNEL_PROCESS_LOAD);
    let since = images.clear(upid, base, size, ns);
    let image = Image {
        upid,
        base,
        size,
        path,
        time_date_stamp,
        checksum,
        pdb: None,
        il_pdb: None,
        original_name: None,
        epoch: 0,
        load_ns: if loaded { Some(ns) } else { since },
        unload_ns: unload.then_some(ns),
    };
    images.add(image, ns);
}

/// True for the same path, or for one path with and one without the device in front.
fn same_file(strings: &Strings, a: Option<Sym>, b: Option<Sym>) -> bool {
    if a == b {
        return true;
    }
    let (Some(a), Some(b)) = (a, b) else { return false };
    let (a, b) = (strings.get(a), strings.get(b));
    let (long, short) = if a.len() > b.len() { (a, b) } else { (b, a) };
    short.starts_with('\\')
        && long
            .len()
            .checked_sub(short.len())
            .and_then(|at| long.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(short))
}

/// Identity records are repeated for every process; a bound keeps damage from filling memory.
const MAX_IDENTITIES: usize = 4_000_000;

fn identity(
    event: &Event<'_>,
    fields: &Fields<'_>,
    images: &mut Images,
    processes: &Processes,
    strings: &mut Strings,
) {
    let base = fields.u64("ImageBase");
    let Some(pid) = fields.u32("ProcessId") else { return };
    let text = strings.intern_non_empty(&fields.text("OriginalFileName|PdbFileName"));
    let ticks = event.record.ticks;
    if images.identities.len() >= MAX_IDENTITIES {
        return;
    }
    let entry = images.identities.entry((pid, base)).or_default();
    if entry.ticks != ticks {
        *entry = Identity { ticks, ..Identity::default() };
    }
    let pdb = || Some(PdbId { name: text?, guid: fields.guid("GuidSig")?, age: fields.u32("Age")? });
    match event.tag {
        ID_INFO => {
            entry.time_date_stamp = fields.u64("TimeDateStamp") as u32;
            entry.original_name = text;
        }
        ID_RSDS => entry.pdb = pdb(),
        _ => entry.il_pdb = pdb(),
    }
    let identity = *entry;
    // The image may have come first.
    let upid = if is_kernel(base, event.pointer_size) { None } else { processes.current(pid) };
    if let Some(&number) = images.at_base.get(&(upid, base)) {
        let same_time = images
            .all
            .get(number as usize)
            .is_some_and(|i| i.load_ns == Some(event.ns) || i.unload_ns == Some(event.ns) || i.pdb.is_none());
        if same_time {
            images.identify(number, &identity);
        }
    }
}

fn file_version(fields: &Fields<'_>, images: &mut Images, strings: &mut Strings) {
    let (Some(size), Some(stamp)) = (fields.u32("ImageSize"), fields.u32("TimeDateStamp")) else { return };
    let version = FileVersion {
        original_name: strings.intern_non_empty(&fields.text("OrigFileName")),
        description: strings.intern_non_empty(&fields.text("FileDescription")),
        file_version: strings.intern_non_empty(&fields.text("FileVersion")),
        product: strings.intern_non_empty(&fields.text("ProductName")),
        company: strings.intern_non_empty(&fields.text("CompanyName")),
    };
    let list = images.versions.entry((size, stamp)).or_default();
    if list.len() < MAX_VERSIONS_PER_KEY && !list.iter().any(|v| v.original_name == version.original_name) {
        list.push(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_are_found_and_merged() {
        let mut taken = BTreeMap::new();
        assert!(!take(&mut taken, 100, 200));
        assert!(!take(&mut taken, 200, 300));
        assert!(!take(&mut taken, 10, 20));
        assert!(is_taken(&taken, 0, 11) && is_taken(&taken, 299, 400) && is_taken(&taken, 150, 151));
        assert!(!is_taken(&taken, 0, 10) && !is_taken(&taken, 20, 100) && !is_taken(&taken, 300, 400));
        assert!(take(&mut taken, 150, 160));
        assert!(take(&mut taken, 0, 250));
        assert_eq!(taken.into_iter().collect::<Vec<_>>(), [(0, 300)]);
    }

    #[test]
    fn kernel_addresses() {
        assert!(is_kernel(0xFFFF_F800_0000_0000, 8));
        assert!(!is_kernel(0x7FF6_1234_0000, 8));
        assert!(!is_kernel(0x8000_0000, 8));
        assert!(is_kernel(0x8000_0000, 4));
        assert!(!is_kernel(0x7FFF_FFFF, 4));
    }
}
