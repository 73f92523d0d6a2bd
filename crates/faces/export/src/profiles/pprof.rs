//! pprof: a `profile.proto` message in gzip, as `go tool pprof` and its relatives read it.
//!
//! The layout is that of <https://github.com/google/pprof/blob/main/proto/profile.proto>. Each sample is one process,
//! thread and stack; its values are two for each kind of weight, how often and how much. Modules are mappings, with GUID
//! and age of their PDB as build id. Times of the trace go into `time_nanos` and `duration_nanos`; single samples have no time.

use etwhy_trace::catalog::image::ImageRow;
use std::io::Write;

use etwhy_table::Unit;
use foldhash::{HashMap, HashSet};

use crate::profile::{Frame, Key, People, Profile, ProfileFormat, Stacks, Sum, sums};
use crate::protobuf::Message;
use crate::{Result, sanitize};

/// Declaration.
pub static FORMAT: ProfileFormat = ProfileFormat {
    name: "pprof",
    extensions: &["pb", "pprof"],
    about: "pprof (profile.proto, always gzip), for go tool pprof and continuous profilers",
    open: "go tool pprof -http=: FILE; https://pprof.me; speedscope",
    weighted: true,
    most_weights: 16,
    always_gzip: true,
    binary: true,
    parts: &[],
    write,
};

/// Numbers of the fields, `Message.field`.
mod field {
    pub const PROFILE_SAMPLE_TYPE: u32 = 1;
    pub const PROFILE_SAMPLE: u32 = 2;
    pub const PROFILE_MAPPING: u32 = 3;
    pub const PROFILE_LOCATION: u32 = 4;
    pub const PROFILE_FUNCTION: u32 = 5;
    pub const PROFILE_STRING_TABLE: u32 = 6;
    pub const PROFILE_TIME_NANOS: u32 = 9;
    pub const PROFILE_DURATION_NANOS: u32 = 10;
    pub const PROFILE_PERIOD_TYPE: u32 = 11;
    pub const PROFILE_PERIOD: u32 = 12;
    pub const PROFILE_DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub const TYPE_TYPE: u32 = 1;
    pub const TYPE_UNIT: u32 = 2;
    pub const SAMPLE_LOCATION_ID: u32 = 1;
    pub const SAMPLE_VALUE: u32 = 2;
    pub const SAMPLE_LABEL: u32 = 3;
    pub const LABEL_KEY: u32 = 1;
    pub const LABEL_STR: u32 = 2;
    pub const LABEL_NUM: u32 = 3;
    pub const MAPPING_ID: u32 = 1;
    pub const MAPPING_START: u32 = 2;
    pub const MAPPING_LIMIT: u32 = 3;
    pub const MAPPING_FILENAME: u32 = 5;
    pub const MAPPING_BUILD_ID: u32 = 6;
    pub const MAPPING_HAS_FUNCTIONS: u32 = 7;
    pub const LOCATION_ID: u32 = 1;
    pub const LOCATION_MAPPING_ID: u32 = 2;
    pub const LOCATION_ADDRESS: u32 = 3;
    pub const LOCATION_LINE: u32 = 4;
    pub const LINE_FUNCTION_ID: u32 = 1;
    pub const LINE_LINE: u32 = 2;
    pub const FUNCTION_ID: u32 = 1;
    pub const FUNCTION_NAME: u32 = 2;
    pub const FUNCTION_SYSTEM_NAME: u32 = 3;
    pub const FUNCTION_FILENAME: u32 = 4;
}

/// The string table, written at the end: fields of a message may come in any order.
struct Texts {
    numbers: HashMap<String, u64>,
    list: Vec<String>,
}

impl Texts {
    fn new() -> Texts {
        let mut texts = Texts { numbers: HashMap::default(), list: Vec::new() };
        // Text 0 must be empty.
        texts.number("");
        texts
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Function, mapping and location numbers are row numbers plus one, because 0 means none.
struct Writer<'o> {
    out: &'o mut dyn Write,
    message: Message,
    texts: Texts,
    /// By name and file.
    functions: HashMap<(u64, u64), u64>,
}

impl Writer<'_> {
    /// Writes one field of the profile.
    fn field(&mut self, field: u32, write: impl FnOnce(&mut Message, &mut Texts)) -> Result<()> {
        self.message.clear();
        let Writer { message, texts, .. } = self;
        message.message(field, |inner| write(inner, texts));
        self.out.write_all(self.message.bytes())?;
        Ok(())
    }

    fn number(&mut self, field: u32, value: i64) -> Result<()> {
        self.message.clear();
        self.message.int(field, value);
        self.out.write_all(self.message.bytes())?;
        Ok(())
    }

    fn value_type(&mut self, field: u32, name: &str, unit: &str) -> Result<()> {
        self.field(field, |message, texts| {
            message.uint(field::TYPE_TYPE, texts.number(name));
            message.uint(field::TYPE_UNIT, texts.number(unit));
        })
    }

    fn sample(&mut self, key: Key, sums: &[Sum], people: &People, stacks: &Stacks<'_>) -> Result<()> {
        self.field(field::PROFILE_SAMPLE, |message, texts| {
            let frames = stacks.at(key.at).filter(|frame| *frame < stacks.frames());
            message.packed(field::SAMPLE_LOCATION_ID, frames.map(|frame| u64::from(frame) + 1));
            let values = sums.iter().flat_map(|sum| [sum.count as u64, sum.weight as u64]);
            message.packed(field::SAMPLE_VALUE, values);
            let process = people.process(key.upid);
            let thread = people.thread(key.utid);
            let names = [
                ("process", Some(people.process_label(key.upid))),
                ("thread", thread.map(|t| t.label.as_str())),
            ];
            for (name, text) in names {
                let Some(text) = text else { continue };
                message.message(field::SAMPLE_LABEL, |label| {
                    label.uint(field::LABEL_KEY, texts.number(name));
                    label.uint(field::LABEL_STR, texts.number(text));
                });
            }
            for (name, id) in [("pid", process.map(|p| p.pid)), ("tid", thread.map(|t| t.tid))] {
                let Some(id) = id else { continue };
                message.message(field::SAMPLE_LABEL, |label| {
                    label.uint(field::LABEL_KEY, texts.number(name));
                    label.int(field::LABEL_NUM, id);
                });
            }
        })
    }

    /// The function of a frame, written when it is first used.
    fn function(&mut self, frame: &Frame<'_>) -> Result<u64> {
        let name = self.texts.number(&sanitize(frame.label));
        let file = self.texts.number(&sanitize(frame.file.unwrap_or("")));
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry((name, file)).or_insert(next);
        if id == next {
            self.field(field::PROFILE_FUNCTION, |message, _| {
                message.uint(field::FUNCTION_ID, id);
                message.uint(field::FUNCTION_NAME, name);
                message.uint(field::FUNCTION_SYSTEM_NAME, name);
                message.uint(field::FUNCTION_FILENAME, file);
            })?;
        }
        Ok(id)
    }

    fn location(&mut self, frame: u32, found: &Frame<'_>, base: Option<u64>) -> Result<()> {
        let function = self.function(found)?;
        let (address, mapping) = match (base, found.rva, found.image) {
            (Some(base), Some(rva), Some(image)) => (base.wrapping_add(rva), u64::from(image) + 1),
            _ => (found.address, 0),
        };
        self.field(field::PROFILE_LOCATION, |message, _| {
            message.uint(field::LOCATION_ID, u64::from(frame) + 1);
            message.uint(field::LOCATION_MAPPING_ID, mapping);
            message.uint(field::LOCATION_ADDRESS, address);
            message.message(field::LOCATION_LINE, |line| {
                line.uint(field::LINE_FUNCTION_ID, function);
                line.int(field::LINE_LINE, found.line.unwrap_or(0));
            });
        })
    }
}

/// The unit as pprof spells it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "nanoseconds",
        Unit::Us => "microseconds",
        Unit::Ms => "milliseconds",
        Unit::S => "seconds",
        Unit::Bytes => "bytes",
        Unit::KiB => "kilobytes",
        Unit::MilliJoules => "millijoules",
        _ => "count",
    }
}

fn write(profile: &Profile<'_>, out: &mut dyn Write) -> Result<()> {
    let people = People::read(profile.db);
    let stacks = Stacks::read(profile.db);
    let (message, texts) = (Message::default(), Texts::new());
    let mut writer = Writer { out, message, texts, functions: HashMap::default() };
    for weights in &profile.weights {
        let count =
            if weights.name == "cpu" { "samples".to_owned() } else { format!("{} events", weights.name) };
        writer.value_type(field::PROFILE_SAMPLE_TYPE, &count, "count")?;
        writer.value_type(field::PROFILE_SAMPLE_TYPE, weights.name, unit(weights.unit))?;
    }
    let mut used: HashSet<u32> = HashSet::default();
    for (key, sums) in sums(profile, &people) {
        used.extend(stacks.at(key.at).filter(|frame| *frame < stacks.frames()));
        writer.sample(key, &sums, &people, &stacks)?;
    }
    let mut used: Vec<u32> = used.into_iter().collect();
    used.sort_unstable();
    let images = profile.db.read_or_empty::<ImageRow>();
    let mut mappings: HashSet<u32> = HashSet::default();
    for frame in used {
        let found = stacks.frame(frame);
        let image = found.image.and_then(|number| Some((number, images.get(number)?)));
        let start = image.map(|(_, image)| image.base() as u64);
        if let (Some((number, image)), Some(start)) = (image, start)
            && mappings.insert(number)
        {
            writer.field(field::PROFILE_MAPPING, |message, texts| {
                let size = image.size_bytes().max(0) as u64;
                message.uint(field::MAPPING_ID, u64::from(number) + 1);
                message.uint(field::MAPPING_START, start);
                message.uint(field::MAPPING_LIMIT, start.saturating_add(size));
                message.uint(field::MAPPING_FILENAME, texts.number(&sanitize(image.path())));
                if let Some(guid) = image.pdb_guid() {
                    let id = guid.chars().filter(char::is_ascii_hexdigit).collect::<String>();
                    let id = format!("{id}{:X}", image.pdb_age().unwrap_or(0));
                    message.uint(field::MAPPING_BUILD_ID, texts.number(&id));
                }
                // Else pprof looks for a local file under this name to take symbols from.
                message.uint(field::MAPPING_HAS_FUNCTIONS, 1);
            })?;
        }
        writer.location(frame, &found, start)?;
    }
    let (from, to) = profile.range();
    writer.number(field::PROFILE_TIME_NANOS, profile.start_unix_ns().saturating_add(from))?;
    writer.number(field::PROFILE_DURATION_NANOS, to.saturating_sub(from))?;
    if profile.weights.iter().any(|weights| weights.name == "cpu") {
        writer.value_type(field::PROFILE_PERIOD_TYPE, "cpu", "nanoseconds")?;
        writer.number(field::PROFILE_PERIOD, profile.sample_interval_ns())?;
    }
    if let Some(first) = profile.weights.first() {
        let number = writer.texts.number(first.name);
        writer.number(field::PROFILE_DEFAULT_SAMPLE_TYPE, number as i64)?;
    }
    for text in std::mem::take(&mut writer.texts.list) {
        writer.message.clear();
        writer.message.text(field::PROFILE_STRING_TABLE, &text);
        writer.out.write_all(writer.message.bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::test_profile::{profile, written};

    fn has(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// What the numbers mean is checked with other readers (`crates/faces/etwhy/tests/all/export.rs`).
    #[test]
    fn names_are_harmless_and_the_idle_thread_is_left_out() {
        let bytes = written(&FORMAT, &profile());
        assert!(has(&bytes, "evil;name␊ 12.exe (40)") && has(&bytes, "00112233445566778899AABBCCDDEEFFA"));
        assert!(!has(&bytes, "name\n"));
        assert!(!has(&bytes, "Idle"));
        let mut all = profile();
        all.scope.idle = true;
        assert!(has(&written(&FORMAT, &all), "Idle (0)"));
    }
}
