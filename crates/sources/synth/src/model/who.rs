//! `[[image]]` and `[[process]]`, and the short forms that lists may hold.

use crate::value::{Dist, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Value;

/// `[[image]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) path: Option<String>,
    pub(crate) size: Option<Dist>,
    pub(crate) base: Option<Dist>,
    pub(crate) functions: Vec<Function>,
    pub(crate) pdb: Option<String>,
    pub(crate) guid: Option<String>,
    pub(crate) age: Option<u32>,
    pub(crate) company: Option<String>,
    pub(crate) product: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) kernel: Option<bool>,
    pub(crate) symbols: Option<bool>,
    pub(crate) timestamp: Option<u32>,
    pub(crate) checksum: Option<u32>,
    pub(crate) cause: Option<bool>,
}

/// A function: a name, or a table with `name`, `rva`, `size`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) rva: Option<u32>,
    pub(crate) size: Option<u32>,
}

/// `[[process]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    pub(crate) parent: Option<String>,
    pub(crate) command_line: Option<String>,
    pub(crate) sid: Option<String>,
    pub(crate) session: Option<u32>,
    pub(crate) path: Option<String>,
    pub(crate) images: Vec<LoadedImage>,
    pub(crate) threads: Threads,
    pub(crate) start: Option<Time>,
    pub(crate) end: Option<Time>,
    #[serde(deserialize_with = "exit_code")]
    pub(crate) exit_code: Option<i32>,
    pub(crate) wow64: Option<bool>,
    pub(crate) bits: Option<u8>,
    pub(crate) package: Option<String>,
    pub(crate) app_id: Option<String>,
    pub(crate) rundown: Option<String>,
    pub(crate) services: Vec<String>,
    pub(crate) count: Option<u32>,
    pub(crate) every: Option<Dist>,
    pub(crate) life: Option<Dist>,
    pub(crate) reuse_ids: bool,
    pub(crate) cause: Option<bool>,
}

/// An exit code as people write it: `1`, `-1`, `0xC0000005`, also as a text.
fn exit_code<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let value = Value::deserialize(from)?;
    let number = match &value {
        Value::Integer(number) => Some(*number),
        Value::String(text) => match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    };
    // Windows keeps 32 bits, with a sign or without.
    let code =
        number.and_then(|number| i32::try_from(number).or(u32::try_from(number).map(u32::cast_signed)).ok());
    code.map(Some).ok_or_else(|| {
        D::Error::custom(format!(
            "exit_code = {value:?}: allowed is a number of 32 bits, such as 1, -1 or 0xC0000005"
        ))
    })
}

/// An image of a process: a name, or a table with `name`, `load`, `unload`.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedImage {
    pub(crate) name: String,
    pub(crate) load: Option<Time>,
    pub(crate) unload: Option<Time>,
}

/// Threads of a process: a number, or a list of names and tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads(pub(crate) Vec<Thread>);

/// A thread: a name (`"worker*4"` for four), or a table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) tid: Option<u32>,
    pub(crate) count: Option<u32>,
    pub(crate) start: Option<Time>,
    pub(crate) end: Option<Time>,
    pub(crate) priority: Option<u8>,
    pub(crate) start_address: Option<String>,
    pub(crate) service_tag: Option<u32>,
}

/// A value in quotes or a table: the two forms every short form has.
fn text_or<'de, D, T, U>(deserializer: D, what: &str, text: impl Fn(String) -> T) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    U: serde::de::DeserializeOwned + Into<T>,
{
    match Value::deserialize(deserializer)? {
        Value::String(name) => Ok(text(name)),
        Value::Table(table) => {
            table.try_into::<U>().map(Into::into).map_err(|e| D::Error::custom(e.message().trim()))
        }
        other => Err(D::Error::custom(format!(
            "expected {what} in quotes or as a table, found {}",
            other.type_str()
        ))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionTable {
    name: String,
    rva: Option<u32>,
    size: Option<u32>,
}

impl From<FunctionTable> for Function {
    fn from(t: FunctionTable) -> Function {
        Function { name: t.name, rva: t.rva, size: t.size }
    }
}

impl<'de> Deserialize<'de> for Function {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Function, D::Error> {
        let plain = |name| Function { name, ..Function::default() };
        text_or::<D, Function, FunctionTable>(d, "a function", plain)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadedTable {
    name: String,
    load: Option<Time>,
    unload: Option<Time>,
}

impl From<LoadedTable> for LoadedImage {
    fn from(t: LoadedTable) -> LoadedImage {
        LoadedImage { name: t.name, load: t.load, unload: t.unload }
    }
}

impl<'de> Deserialize<'de> for LoadedImage {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<LoadedImage, D::Error> {
        let plain = |name| LoadedImage { name, ..LoadedImage::default() };
        text_or::<D, LoadedImage, LoadedTable>(d, "an image", plain)
    }
}

/// `worker*4` or `worker x4`: name and count.
fn counted(name: &str) -> (String, Option<u32>) {
    for separator in ["*", " x"] {
        if let Some((name, Ok(n))) = name.rsplit_once(separator).map(|(a, b)| (a, b.trim().parse::<u32>())) {
            return (name.trim().to_string(), Some(n));
        }
    }
    (name.to_string(), None)
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Threads, D::Error> {
        let named = |text: &str| {
            let (name, count) = counted(text);
            Thread { name, count, ..Thread::default() }
        };
        let one = |value: Value| match value {
            Value::String(text) => Ok(named(&text)),
            Value::Table(table) => {
                table.try_into::<Thread>().map_err(|e| D::Error::custom(e.message().trim().to_string()))
            }
            other => Err(D::Error::custom(format!(
                "expected a thread's name or table, found {}",
                other.type_str()
            ))),
        };
        match Value::deserialize(d)? {
            Value::Integer(n) if (0..=100_000).contains(&n) => Ok(Threads(vec![Thread {
                name: "thread".into(),
                count: Some(n as u32),
                ..Thread::default()
            }])),
            Value::Array(items) => items.into_iter().map(one).collect::<Result<_, _>>().map(Threads),
            single => one(single).map(|t| Threads(vec![t])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Process;

    #[test]
    fn exit_codes_are_written_as_people_know_them() {
        let code =
            |text: &str| toml::from_str::<Process>(&format!("exit_code = {text}")).map(|p| p.exit_code);
        for (text, expected) in [
            ("0", 0),
            ("-1", -1),
            ("0xC0000005", -0x3FFF_FFFB),
            ("3221225477", -0x3FFF_FFFB),
            ("'0xC0000005'", -0x3FFF_FFFB),
            ("'0xc0000409'", -0x3FFF_FBF7),
        ] {
            assert_eq!(code(text).unwrap(), Some(expected), "{text}");
        }
        assert_eq!(toml::from_str::<Process>("").unwrap().exit_code, None);
        for text in ["0x1_0000_0000", "'0xC000000G'", "'crash'", "1.5", "true"] {
            let error = code(text).unwrap_err().to_string();
            assert!(error.contains("allowed is a number of 32 bits"), "{error}");
        }
    }
}
