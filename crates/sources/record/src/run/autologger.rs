//! Keys of the registry with which Windows begins sessions when it starts.
//!
//! Sources: <https://learn.microsoft.com/en-us/windows/win32/etw/configuring-and-starting-an-autologger-session>,
//! <https://learn.microsoft.com/en-us/windows/win32/etw/configuring-and-starting-the-global-logger-session>.
//!
//! A key is ours as long as a value of ours, which Windows does not look at, names the same file as the value that it does look at.
//! Whoever takes the key over writes another file there, and the key is theirs.

use super::system::{Armed, Boot};
use etwhy_os::windows::registry::{Key, Name, Root, Value, remove};
use std::io;

/// Where all of them are.
const WMI: &str = "SYSTEM\\CurrentControlSet\\Control\\WMI";
/// The value of ours.
const OURS: &str = "etwhy";
const FILE: &str = "FileName";
const START: &str = "Start";
/// Most autologgers that are looked at; a usual machine has some dozens.
const MOST_KEYS: u32 = 4096;
/// Seconds after which a buffer is written although it is not full.
const FLUSH_S: u32 = 1;
/// `QueryPerformanceCounter`, the clock of all sessions of etwhy.
const CLOCK: u32 = 1;
/// `EVENT_ENABLE_PROPERTY_STACK_TRACE` (evntcons.h).
const PROPERTY_STACK: u32 = 4;

fn path(key: &str) -> io::Result<Name> {
    Name::new(&format!("{WMI}\\{key}"))
}

/// The key; none if there is none.
fn open(key: &str) -> io::Result<Option<Key>> {
    match Key::open(Root::Machine, &path(key)?) {
        Ok(key) => Ok(Some(key)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_ours(key: &Key) -> bool {
    match (key.text(OURS), key.text(FILE)) {
        (Ok(ours), Ok(file)) => ours.eq_ignore_ascii_case(&file),
        _ => false,
    }
}

/// Makes a key.
pub(super) fn set(boot: &Boot) -> Result<(), String> {
    if let Some(taken) = open(&boot.key).map_err(|error| error.to_string())?
        && (taken.number(START).is_ok() || taken.text(FILE).is_ok())
    {
        return Err(format!(
            "the key HKLM\\{WMI}\\{} is another program's (the file {}): it is left alone; end that recording, or delete the key if nobody \
             needs it",
            boot.key,
            taken.text(FILE).unwrap_or_else(|_| "is not named".to_owned())
        ));
    }
    write(boot).map_err(|error| format!("HKLM\\{WMI}\\{}: {error}", boot.key))
}

/// First what makes it ours, and at last what makes Windows heed it.
fn write(boot: &Boot) -> io::Result<()> {
    let no_unicode = || io::Error::new(io::ErrorKind::InvalidInput, "the name of the file is no Unicode");
    let file = boot.file.to_str().ok_or_else(no_unicode)?;
    let key = Key::make(Root::Machine, &path(&boot.key)?)?;
    for (name, value) in [
        (OURS, Value::Text(file)),
        (FILE, Value::Text(file)),
        ("LogFileMode", Value::Number(boot.mode)),
        ("MaxFileSize", Value::Number(boot.most_mib)),
        ("BufferSize", Value::Number(boot.buffers.size_kib)),
        ("MinimumBuffers", Value::Number(boot.buffers.min)),
        ("MaximumBuffers", Value::Number(boot.buffers.max)),
        ("FlushTimer", Value::Number(FLUSH_S)),
        ("ClockType", Value::Number(CLOCK)),
    ] {
        key.set(name, value)?;
    }
    match boot.masks {
        Some(masks) => {
            let bytes: Vec<u8> = masks.into_iter().flat_map(u32::to_le_bytes).collect();
            key.set("EnableKernelFlags", Value::Bytes(&bytes))?;
        }
        None => key.set("Guid", Value::Text(&boot.guid.braced()))?,
    }
    for provider in &boot.providers {
        let below = path(&format!("{}\\{}", boot.key, provider.guid.braced()))?;
        let below = Key::make(Root::Machine, &below)?;
        below.set("EnableLevel", Value::Number(u32::from(provider.level)))?;
        below.set("MatchAnyKeyword", Value::Long(provider.keywords))?;
        if provider.stack {
            below.set("EnableProperty", Value::Number(PROPERTY_STACK))?;
        }
        below.set("Enabled", Value::Number(1))?;
    }
    key.set(START, Value::Number(1))
}

/// Removes a key, if it is there and ours.
pub(super) fn clear(key: &str) -> io::Result<()> {
    match open(key)? {
        Some(open) if is_ours(&open) => remove(Root::Machine, &path(key)?),
        _ => Ok(()),
    }
}

/// All keys that are ours.
pub(super) fn all() -> io::Result<Vec<Armed>> {
    let autologgers = open("Autologger")?.map(|key| key.below_names(MOST_KEYS)).transpose()?;
    let autologgers = autologgers.unwrap_or_default().into_iter().map(|name| format!("Autologger\\{name}"));
    let mut all = Vec::new();
    for key in std::iter::once("GlobalLogger".to_owned()).chain(autologgers) {
        // One that cannot be read is nobody's of ours.
        if let Ok(Some(open)) = open(&key)
            && is_ours(&open)
        {
            all.push(Armed { status: open.number("Status").ok(), key });
        }
    }
    Ok(all)
}
