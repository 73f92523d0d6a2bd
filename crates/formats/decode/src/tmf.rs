//! TMF files: what WPP messages mean (`tracefmt`'s text form; WDK documentation "Trace Message Format File").
//!
//! A message becomes an ordinary [`EventSchema`]: its arguments are fields, its format is the template.

use crate::anomalies::{SOURCE_UNREADABLE, TMF_BROKEN};
use crate::scalar::out;
use crate::schema::{DecodedBy, EventSchema, Field, InType, Length, ValueMap};
use etwhy_base::Guid;
use etwhy_base::files::read_at_most;
use etwhy_etl::Ledger;
use foldhash::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Largest TMF file that is read.
const MAX_TMF: u64 = 64 * 1024 * 1024;
/// Most files of a folder: Windows has some ten thousand message GUIDs.
const MAX_FILES: usize = 200_000;
/// Most arguments of a message.
const MAX_ARGUMENTS: usize = 128;

/// The messages of all TMF files, by (message GUID, number).
#[derive(Clone, Debug, Default)]
pub struct TmfSet {
    messages: HashMap<(Guid, u16), Arc<EventSchema>>,
}

impl TmfSet {
    /// Reads every `.tmf` file of a folder and its subfolders (or one file).
    pub fn load_dir(path: &Path, ledger: &mut Ledger) -> TmfSet {
        let mut set = TmfSet::default();
        for file in crate::files::find(path, &["tmf"], MAX_FILES, ledger) {
            match read_at_most(&file, MAX_TMF) {
                Ok(bytes) => {
                    let text = crate::manifest::text_of(&bytes);
                    let before = set.len();
                    let bad = set.add(&text);
                    ledger.note(&TMF_BROKEN, bad, || file.display().to_string());
                    if bad == 0 && !text.contains("#typev") && set.len() == before {
                        ledger.note(&TMF_BROKEN, 1, || format!("{}: holds no message", file.display()));
                    }
                }
                Err(e) if e.kind() == ErrorKind::InvalidData => {
                    ledger.note(&TMF_BROKEN, 1, || format!("{}: too large", file.display()));
                }
                Err(e) => ledger.note(&SOURCE_UNREADABLE, 1, || format!("{}: {e}", file.display())),
            }
        }
        set
    }

    /// Adds the messages of one file; gives the number of messages that could not be read.
    pub fn add(&mut self, text: &str) -> u64 {
        let mut bad = 0;
        let mut guid = None;
        let mut component = "";
        let mut lines = text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            if let Some((found, name)) = guid_line(line) {
                guid = Some(found);
                component = name;
                continue;
            }
            let Some(head) = line.strip_prefix("#typev").or_else(|| line.strip_prefix("#type")) else {
                continue;
            };
            let mut arguments = Vec::new();
            if lines.next_if(|l| *l == "{").is_some() {
                for argument in lines.by_ref() {
                    if argument == "}" {
                        break;
                    }
                    arguments.push(argument);
                }
            }
            match guid.and_then(|guid| message(guid, component, head, &arguments)) {
                Some((key, schema)) => {
                    self.messages.insert(key, Arc::new(schema));
                }
                None => bad += 1,
            }
        }
        bad
    }

    /// Adds all messages of `other`.
    pub fn extend(&mut self, other: TmfSet) {
        self.messages.extend(other.messages);
    }

    /// The message with a number.
    pub fn schema(&self, guid: Guid, number: u16) -> Option<&Arc<EventSchema>> {
        self.messages.get(&(guid, number))
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True when there is no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

/// `guid component // SRC=…`
fn guid_line(line: &str) -> Option<(Guid, &str)> {
    let (first, rest) = line.split_once(char::is_whitespace)?;
    let guid = first.trim_end_matches(',').parse().ok()?;
    Some((guid, rest.split("//").next().unwrap_or("").trim()))
}

/// `Name number "format" // LEVEL=… FLAGS=… FUNC=…`, and the lines of its arguments.
fn message(
    guid: Guid,
    component: &str,
    head: &str,
    arguments: &[&str],
) -> Option<((Guid, u16), EventSchema)> {
    let mut words = head.trim_start().splitn(3, char::is_whitespace);
    let name = words.next()?;
    let number: u16 = words.next()?.parse().ok()?;
    let rest = words.next()?.trim_start().strip_prefix('"')?;
    // Formats may contain quotes and slashes; the remark is the last thing on the line.
    let end = rest.rfind("\" //").or_else(|| rest.rfind('"'))?;
    let (format, remark) = (rest.get(..end)?, rest.get(end + 1..).unwrap_or(""));
    let function = remark_value(remark, "FUNC=");
    let level = remark_value(remark, "LEVEL=");
    let flags = remark_value(remark, "FLAGS=");
    let template = format
        .replace("%!FUNC!", &escaped(function))
        .replace("%!LEVEL!", &escaped(level))
        .replace("%!FLAGS!", &escaped(flags))
        .replace("%!COMPNAME!", &escaped(component))
        .replace("%1!s!", &escaped(component))
        .replace("%2!s!", &escaped(name))
        .replace("\\\"", "\"");
    let mut fields: Vec<(usize, Field)> = Vec::new();
    for line in arguments.iter().take(MAX_ARGUMENTS) {
        fields.push(argument(line)?);
    }
    fields.sort_by_key(|(position, _)| *position);
    let schema = EventSchema {
        guid,
        provider: component.into(),
        name: name.into(),
        task: function.into(),
        opcode: "".into(),
        message: template.trim().into(),
        decoded_by: DecodedBy::Wpp,
        verified: false,
        fields: fields.into_iter().map(|(_, field)| field).collect(),
    };
    Some(((guid, number), schema))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

fn remark_value<'a>(remark: &'a str, key: &str) -> &'a str {
    let Some(at) = remark.find(key) else { return "" };
    let value = remark.get(at + key.len()..).unwrap_or("");
    // FUNC may hold spaces and templates' brackets, and stands last.
    let end =
        if key == "FUNC=" { value.len() } else { value.find(char::is_whitespace).unwrap_or(value.len()) };
    value.get(..end).unwrap_or("").trim()
}

/// `expression, ItemType(names) -- position`. The expression may contain anything.
fn argument(line: &str) -> Option<(usize, Field)> {
    let (head, position) = line.rsplit_once("--")?;
    let position = position.trim().parse().ok()?;
    let at = head.rfind(", Item")?;
    let expression = head.get(..at)?.trim();
    let item = head.get(at + 2..)?.trim();
    let (kind, names) = match item.split_once('(') {
        Some((kind, names)) => (kind, names.strip_suffix(')').unwrap_or(names)),
        None => (item, ""),
    };
    let (in_type, out_type) = item_type(kind)?;
    let mut field = Field::plain(expression, in_type);
    field.out_type = out_type;
    if kind == "ItemMACAddr" {
        field.length = Length::Fixed(6);
    }
    if !names.is_empty() && (kind.starts_with("ItemList") || kind.starts_with("ItemSet")) {
        field.map = Some(Arc::new(names_map(names, kind.starts_with("ItemSet"))));
    }
    Some((position, field))
}

/// Names of a list (values from 0) or of a set (bits from 0); `name=value` sets a value.
fn names_map(names: &str, bitmap: bool) -> ValueMap {
    let mut entries = Vec::new();
    let mut next = 0u32;
    for name in names.split(',').map(str::trim) {
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => {
                let value = value.trim();
                let hex = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"));
                let parsed = hex.map_or_else(|| value.parse().ok(), |h| u32::from_str_radix(h, 16).ok());
                (name.trim(), parsed.unwrap_or(next))
            }
            None if bitmap => (name, 1u32.checked_shl(next).unwrap_or(0)),
            None => (name, next),
        };
        entries.push((value, Arc::from(name)));
        next = if bitmap { next.saturating_add(1) } else { value.saturating_add(1) };
    }
    ValueMap { name: "".into(), bitmap, entries }
}

/// In-type and out-type of an item word of `defaultwpp.ini`.
fn item_type(word: &str) -> Option<(InType, u16)> {
    use InType::*;
    Some(match word {
        "ItemLong" | "ItemEnum" | "ItemFlagsEnum" | "ItemDWORD" | "ItemListLong" => (Int32, 0),
        "ItemULong" | "ItemULongX" | "ItemSetLong" => (UInt32, 0),
        "ItemShort" => (Int16, 0),
        "ItemUShort" | "ItemListShort" | "ItemSetShort" => (UInt16, 0),
        "ItemChar" => (Int8, 0),
        "ItemUChar" | "ItemListByte" | "ItemSetByte" | "ItemCharHidden" => (UInt8, 0),
        "ItemCharShort" => (Int16, 0),
        "ItemLongLong" | "ItemTimeDelta" | "ItemWaitTime" | "ItemDueTime" => (Int64, 0),
        "ItemULongLong" | "ItemLongLongO" => (UInt64, 0),
        "ItemLongLongX" | "ItemLongLongXX" => (HexInt64, 0),
        "ItemDouble" => (Double, 0),
        "ItemFloat" => (Float, 0),
        "ItemPtr" | "ItemKSid" => (Pointer, 0),
        "ItemString" | "ItemRString" | "ItemMLString" => (AnsiString, 0),
        "ItemWString" | "ItemRWString" => (UnicodeString, 0),
        "ItemPString" => (CountedAnsiString, 0),
        "ItemPWString" => (CountedString, 0),
        "ItemGuid" | "ItemGUID" | "ItemCLSID" | "ItemLIBID" | "ItemIID" => (Guid, 0),
        "ItemNTSTATUS" => (UInt32, out::NTSTATUS),
        "ItemHRESULT" => (UInt32, out::HRESULT),
        "ItemWINERROR" | "ItemNDIS_STATUS" | "ItemNDIS_OID" => (UInt32, out::WIN32ERROR),
        "ItemIPAddr" | "ItemIPADDR" => (IPv4, 0),
        "ItemIPV6Addr" => (IPv6, 0),
        "ItemPort" | "ItemPORT" => (Port, 0),
        "ItemMACAddr" => (Binary, 0),
        "ItemSid" => (Sid, 0),
        "ItemTimestamp" => (FileTime, 0),
        "ItemHexDump" | "ItemHEXDump" => (CountedBinary, 0),
        "ItemBool" => (UInt8, out::BOOLEAN),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read;

    const SAMPLE: &str = r#"// PDB:  x.pdb
0b6c077e-f983-3543-6bbc-baec3455628b sys // SRC=DsBth.c MJ= MN=
#typev DsBth_c106 16 "%0 [%!FUNC!] %2!s! status=%10!s! irql %11!s! p=%12!p! \"%13!s!\" a, b // %14!012I64X!" //   LEVEL=TRACE_LEVEL_VERBOSE FLAGS=TRACE_DSBTH FUNC=DsBth_D0Entry
{
f(a, b), ItemNTSTATUS -- 10
KeGetCurrentIrql(), ItemListByte(Low,APC,DPC) -- 11
(x != NULL) ? x->y : '', ItemPtr -- 12
name, ItemPWString -- 13
addr, ItemLongLongXX -- 14
}
#typev DsBth_c1 17 "%0 plain" //   LEVEL=L FLAGS=F FUNC=G
{
}
#typev Broken 18 "%0 %10!s!" // FUNC=H
{
x, ItemFromTheFuture -- 10
}
"#;

    #[test]
    fn a_message_with_everything() {
        let mut set = TmfSet::default();
        assert_eq!(set.add(SAMPLE), 1);
        assert_eq!(set.len(), 2);
        let guid = Guid::from_text("0b6c077e-f983-3543-6bbc-baec3455628b");
        let schema = set.schema(guid, 16).unwrap();
        let mut payload = 0xC000_0022u32.to_le_bytes().to_vec();
        payload.push(2);
        payload.extend(0xffff_f800_0000_1000u64.to_le_bytes());
        payload.extend([4, 0, b'o', 0, b'k', 0]);
        payload.extend(0xABCDu64.to_le_bytes());
        let decoded = read(schema, &payload, 8);
        assert!(!decoded.truncated && decoded.rest.is_empty());
        let mut text = String::new();
        crate::message::render_message(&mut text, schema, &decoded.values);
        assert_eq!(
            text,
            "[DsBth_D0Entry] DsBth_c106 status=0xc0000022 irql DPC p=0xfffff80000001000 \"ok\" a, b // 00000000ABCD"
        );
        assert!(set.schema(guid, 17).unwrap().fields.is_empty());
        assert!(set.schema(guid, 18).is_none());
    }

    #[test]
    fn cut_files_do_no_harm() {
        for cut in 0..SAMPLE.len() {
            TmfSet::default().add(&SAMPLE[..cut]);
        }
    }

    #[test]
    fn names_of_sets_are_bits() {
        let map = names_map("a,b,c=0x10", true);
        let values: Vec<u32> = map.entries.iter().map(|(v, _)| *v).collect();
        assert_eq!((values, map.bitmap), (vec![1, 2, 16], true));
    }

    #[test]
    fn files_of_the_corpus() {
        let Some(corpus) = crate::testing::corpus() else { return };
        let mut ledger = Ledger::new();
        let set = TmfSet::load_dir(&corpus.join("tmf"), &mut ledger);
        let mut wanted = 0;
        for file in std::fs::read_dir(corpus.join("tmf")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let mut numbers: Vec<&str> = text
                .lines()
                .filter(|l| l.starts_with("#typev"))
                .filter_map(|l| l.split(' ').nth(2))
                .collect();
            // Each of these files holds the messages twice.
            numbers.sort_unstable();
            numbers.dedup();
            wanted += numbers.len();
        }
        println!("{} of {wanted} messages, {} bad", set.len(), ledger.get(&TMF_BROKEN));
        assert!(set.len() == wanted && ledger.is_empty());
    }
}
