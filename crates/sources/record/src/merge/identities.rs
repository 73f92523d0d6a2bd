//! Which build an image is: records that merging adds before each event of an image (`KernelTraceControl`), from the image's file.
//!
//! Order, headers and repetition are those of merged traces: for each event of an image one record with the name and one with the PDB
//! (or one that says that there is none), at the same time, on the same processor; the version resource once for each build. Times,
//! processor and process of these records are how readers find the image that they belong to.

use etwhy_decode::kernel::{KernelLayouts, KernelValue, Slots, encode};
use etwhy_etl::Record;
use etwhy_etl::abi::guids::{IMAGE_ID, SYSTEM_CONFIG_EX};
use etwhy_etl::write::{ClassicHead, RecordBuf};
use etwhy_messages::{Version, pe};
use etwhy_symbols::verify::{Identity, identify};
use etwhy_symbols::{FileKind, ImageKey, Locate, ModuleKey, WantedModule};
use object::ReadCache;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;

/// Types of identity records: name, none, PDB, version resource. Their layouts are in `classes.txt` of the crate `decode`.
const INFO: u8 = 0;
const NONE: u8 = 32;
const RSDS: u8 = 36;
const FILE_VERSION: u8 = 64;
/// Types of the machine's records: a volume without a letter, one with.
const UNKNOWN_VOLUME: u8 = 34;
const VOLUME_MAPPING: u8 = 35;
/// Image/Load, which is logged under the number of Process, and Image/UnLoad, DCStart, DCEnd.
const LOAD: (u8, u8) = (0x03, 10);
const OTHERS: [(u8, u8); 3] = [(0x14, 2), (0x14, 3), (0x14, 4)];
/// Identities and builds that are remembered: a bound for damaged traces, far above real ones.
const MOST: usize = 4_000_000;
const MOST_IMAGES: usize = 200_000;
/// Longest text of a version resource that is written, in characters.
const LONGEST_TEXT: usize = 512;

/// A volume of the machine that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The kernel's name: `\Device\HarddiskVolume3\`.
    pub nt_path: String,
    /// Its letter (`C:\`); none for one without.
    pub dos_path: Option<String>,
}

/// A build of an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Build {
    /// File name in lower case.
    name: String,
    size: u32,
    time_date_stamp: u32,
}

/// What the file of a build says.
struct Facts {
    pdb: Option<ModuleKey>,
    version: Option<Version>,
    name: String,
}

/// An event of an image.
struct ImageEvent {
    base: u64,
    size: u64,
    pid: u32,
    time_date_stamp: u32,
    path: String,
}

/// A build that events name.
struct Image {
    build: Build,
    /// As one of the events has it.
    path: String,
    /// The files have no identity at one of its events.
    lacks: bool,
    /// What its file says, if it lacks an identity and there is a file.
    facts: Option<Facts>,
}

/// What is known of images.
#[derive(Default)]
pub struct Identities {
    /// Identities that the files have, by time, address and process.
    known: HashSet<(i64, u64, u32)>,
    /// Builds whose version resource is told, by size and time stamp.
    told: HashSet<(u32, u32)>,
    images: Vec<Image>,
    /// Numbers of images.
    numbers: HashMap<Build, usize>,
    /// Events of images: time, address, process, image. An identity may stand behind its event, so that all are known at the end only.
    events: Vec<(i64, u64, u32, usize)>,
    has_volumes: bool,
    slots: HashMap<(u8, u8, u16, usize), Option<ImageSlots>>,
}

/// Where the fields of an image event stand.
struct ImageSlots {
    slots: Slots,
}

impl ImageSlots {
    fn read(&self, payload: &[u8]) -> Option<ImageEvent> {
        let number = |name: &str| self.slots.slot(name)?.u64(payload);
        Some(ImageEvent {
            base: number("ImageBase")?,
            size: number("ImageSize")?,
            pid: u32::try_from(number("ProcessId")?).ok()?,
            time_date_stamp: u32::try_from(number("TimeDateStamp")?).ok()?,
            path: self.slots.tail("FileName")?.text(payload)?,
        })
    }
}

impl ImageEvent {
    fn build(&self) -> Option<Build> {
        let name = self.path.rsplit(['\\', '/']).next()?.to_lowercase();
        let size = u32::try_from(self.size).ok()?;
        let known = !name.is_empty() && size != 0 && self.time_date_stamp != 0;
        known.then_some(Build { name, size, time_date_stamp: self.time_date_stamp })
    }
}

impl Identities {
    /// Takes note of a record of the files.
    pub fn note(&mut self, record: &Record<'_>) {
        match record.guid() {
            Some(IMAGE_ID) => self.note_identity(record),
            Some(SYSTEM_CONFIG_EX) => {
                self.has_volumes |= matches!(record.opcode(), UNKNOWN_VOLUME | VOLUME_MAPPING);
            }
            _ => {
                let Some(event) = self.image(record) else { return };
                let Some(build) = event.build() else { return };
                let number = match self.numbers.get(&build) {
                    Some(&number) => number,
                    None if self.images.len() < MOST_IMAGES => {
                        let number = self.images.len();
                        self.numbers.insert(build.clone(), number);
                        self.images.push(Image { build, path: event.path, lacks: false, facts: None });
                        number
                    }
                    None => return,
                };
                if self.events.len() < MOST {
                    self.events.push((record.ticks, event.base, event.pid, number));
                }
            }
        }
    }

    fn note_identity(&mut self, record: &Record<'_>) {
        let (opcode, version, pointer) = (record.opcode(), record.version(), record.pointer_size());
        let Some(schema) = KernelLayouts::builtin().class_schema(&IMAGE_ID, opcode, version) else { return };
        let slots = Slots::for_schema(schema, pointer);
        let number = |name: &str| slots.slot(name).and_then(|slot| slot.u64(record.payload()));
        let narrow = |number: Option<u64>| number.and_then(|n| u32::try_from(n).ok());
        if opcode == FILE_VERSION {
            let key = (narrow(number("ImageSize")), narrow(number("TimeDateStamp")));
            if let (Some(size), Some(stamp)) = key
                && self.told.len() < MOST
            {
                self.told.insert((size, stamp));
            }
        } else if let (Some(base), Some(pid)) = (number("ImageBase"), narrow(number("ProcessId")))
            && self.known.len() < MOST
        {
            self.known.insert((record.ticks, base, pid));
        }
    }

    /// The image that a record is about.
    #[inline]
    fn image(&mut self, record: &Record<'_>) -> Option<ImageEvent> {
        if !record.kind.is_system() {
            return None;
        }
        let event = (record.group(), record.opcode());
        if event != LOAD && !OTHERS.contains(&event) {
            return None;
        }
        let key = (event.0, event.1, record.version(), record.pointer_size());
        let slots = self.slots.entry(key).or_insert_with(|| {
            let schema = KernelLayouts::builtin().schema(key.0, key.1, key.2)?;
            Some(ImageSlots { slots: Slots::for_schema(schema, key.3) })
        });
        slots.as_ref()?.read(record.payload())
    }

    /// Ends the first pass: looks for the files of images that the traces do not identify.
    pub fn look_up(&mut self, files: Option<&dyn Locate>) {
        for (ticks, base, pid, number) in std::mem::take(&mut self.events) {
            if !self.known.contains(&(ticks, base, pid))
                && let Some(image) = self.images.get_mut(number)
            {
                image.lacks = true;
            }
        }
        let Some(files) = files else { return };
        for image in self.images.iter_mut().filter(|image| image.lacks) {
            let key = ImageKey {
                name: image.path.clone(),
                time_date_stamp: image.build.time_date_stamp,
                size_of_image: image.build.size,
            };
            let found = files.candidates(&WantedModule { pdb: None, image: Some(key) });
            let found = found.into_iter().filter(|found| found.kind == FileKind::Image);
            image.facts = found.filter_map(|found| Facts::read(&found.file, &image.build)).next();
        }
    }

    /// Builds that events name, and those of them that are identified.
    pub fn counts(&self) -> (usize, usize) {
        let identified = self.images.iter().filter(|image| !image.lacks || image.facts.is_some()).count();
        (self.images.len(), identified)
    }

    fn adds_identities(&self) -> bool {
        self.images.iter().any(|image| image.facts.is_some())
    }

    /// Whether anything is to be added.
    pub fn has_news(&self, volumes: &[Volume]) -> bool {
        self.adds_identities() || (!volumes.is_empty() && !self.has_volumes)
    }

    /// Writes what stands before an event of an image.
    pub fn before(
        &mut self,
        record: &Record<'_>,
        buf: &mut RecordBuf,
        write: &mut dyn FnMut(&mut RecordBuf) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(event) = self.image(record) else { return Ok(()) };
        if self.known.contains(&(record.ticks, event.base, event.pid)) {
            return Ok(());
        }
        let Some(build) = event.build() else { return Ok(()) };
        let image = self.numbers.get(&build).and_then(|number| self.images.get(*number));
        let Some(facts) = image.and_then(|image| image.facts.as_ref()) else { return Ok(()) };
        let mut add = |opcode: u8, version: u16, values: &[(&str, KernelValue)]| {
            let at = Place { pointer: record.pointer_size(), pid: event.pid, ticks: record.ticks };
            put(buf, (&IMAGE_ID, opcode, version), &at, values, write)
        };
        let place: [(&str, KernelValue); 2] =
            [("ImageBase", event.base.into()), ("ProcessId", event.pid.into())];
        let [base, pid] = place.clone();
        let original = facts.version.as_ref().and_then(|version| version.original_name.as_deref());
        let name = original.unwrap_or(&facts.name);
        let stamp: (&str, KernelValue) = ("TimeDateStamp", build.time_date_stamp.into());
        add(
            INFO,
            2,
            &[
                base.clone(),
                ("ImageSize", event.size.into()),
                pid.clone(),
                stamp.clone(),
                ("OriginalFileName", name.into()),
            ],
        )?;
        match &facts.pdb {
            Some(pdb) => add(
                RSDS,
                2,
                &[
                    base,
                    pid,
                    ("GuidSig", KernelValue::Guid(pdb.guid)),
                    ("Age", pdb.age.into()),
                    ("PdbFileName", pdb.pdb_name.as_str().into()),
                ],
            )?,
            None => add(NONE, 2, &place)?,
        }
        if let Some(version) = &facts.version
            && self.told.insert((build.size, build.time_date_stamp))
        {
            let text = |text: &Option<String>| {
                let text: String = text.as_deref().unwrap_or_default().chars().take(LONGEST_TEXT).collect();
                KernelValue::Text(text)
            };
            let values: [(&str, KernelValue); 9] = [
                ("ImageSize", build.size.into()),
                stamp,
                ("OrigFileName", name.into()),
                ("FileDescription", text(&version.description)),
                ("FileVersion", text(&version.file_version)),
                ("BinFileVersion", version.to_string().as_str().into()),
                ("ProductName", text(&version.product)),
                ("CompanyName", text(&version.company)),
                ("ProductVersion", text(&version.product_version)),
            ];
            add(FILE_VERSION, 0, &values)?;
        }
        Ok(())
    }

    /// Writes the volumes of the machine, unless the files have them.
    pub fn volumes(
        &self,
        volumes: &[Volume],
        pointer: u8,
        ticks: i64,
        buf: &mut RecordBuf,
        write: &mut dyn FnMut(&mut RecordBuf) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.has_volumes {
            return Ok(());
        }
        let at = Place { pointer: pointer.into(), pid: u32::MAX, ticks };
        for volume in volumes {
            let nt = ("NtPath", KernelValue::Text(volume.nt_path.clone()));
            match &volume.dos_path {
                Some(dos) => {
                    let values = [nt, ("DosPath", KernelValue::Text(dos.clone()))];
                    put(buf, (&SYSTEM_CONFIG_EX, VOLUME_MAPPING, 0), &at, &values, write)?;
                }
                None => put(buf, (&SYSTEM_CONFIG_EX, UNKNOWN_VOLUME, 0), &at, &[nt], write)?,
            }
        }
        Ok(())
    }
}

/// Where a record belongs.
struct Place {
    pointer: usize,
    pid: u32,
    ticks: i64,
}

/// Writes a record of a class. What does not fit its layout (an address of 64 bits in a record of 32) is left out.
fn put(
    buf: &mut RecordBuf,
    (class, opcode, version): (&etwhy_base::Guid, u8, u16),
    at: &Place,
    values: &[(&str, KernelValue)],
    write: &mut dyn FnMut(&mut RecordBuf) -> io::Result<()>,
) -> io::Result<()> {
    let Some(schema) = KernelLayouts::builtin().class_schema(class, opcode, version) else { return Ok(()) };
    let Ok(payload) = encode(schema, at.pointer, values) else { return Ok(()) };
    let head = ClassicHead { guid: *class, opcode, level: 0, version, tid: u32::MAX, pid: at.pid };
    buf.full(if at.pointer == 4 { 4 } else { 8 }, at.ticks, &head).bytes(&payload);
    write(buf)
}

impl Facts {
    /// What a file says, if it is this build.
    fn read(file: &Path, build: &Build) -> Option<Facts> {
        let Ok(Identity::Image { time_date_stamp, size_of_image, pdb }) = identify(file) else { return None };
        if (time_date_stamp, size_of_image) != (build.time_date_stamp, build.size) {
            return None;
        }
        // A damaged resource tells no version.
        let version =
            File::open(file).ok().and_then(|open| pe::version(&ReadCache::new(open)).ok().flatten());
        Some(Facts { pdb, version, name: build.name.clone() })
    }
}
