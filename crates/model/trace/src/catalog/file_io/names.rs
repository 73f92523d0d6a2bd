//! Words for the numbers in file events.

use etwhy_decode::kernel::names::{bit_names, create_disposition, value_name};
use etwhy_knowledge::ntstatus_name;
use etwhy_table::{Strings, Sym};
use foldhash::HashMap;

/// `IO_STATUS_BLOCK.Information` of a create that succeeded (`FILE_SUPERSEDED` and so on in wdm.h).
pub(super) fn create_result(information: u64) -> Option<&'static str> {
    Some(match information {
        0 => "superseded",
        1 => "opened",
        2 => "created",
        3 => "overwritten",
        _ => return None,
    })
}

/// Words that were looked up before, by kind and number.
#[derive(Default)]
pub(crate) struct Names {
    known: HashMap<(u8, u32), Option<Sym>>,
}

/// Distinct values of hostile traces do not fill the memory: the cache begins anew.
const MOST_KNOWN: usize = 1 << 16;

impl Names {
    fn word(
        &mut self,
        kind: u8,
        value: u32,
        strings: &mut Strings,
        make: impl FnOnce() -> Option<String>,
    ) -> Option<Sym> {
        if self.known.len() > MOST_KNOWN {
            self.known.clear();
        }
        let make = || make().map(|text| strings.intern(&text));
        *self.known.entry((kind, value)).or_insert_with(make)
    }

    pub(super) fn disposition(&mut self, options: u32, strings: &mut Strings) -> Option<Sym> {
        let name = || create_disposition(options).map(str::to_owned);
        self.word(0, options & 0xFF00_0000, strings, name)
    }

    pub(super) fn options(&mut self, options: u32, strings: &mut Strings) -> Sym {
        let options = options & 0x00FF_FFFF;
        self.word(1, options, strings, || Some(bits("CreateOptions", options))).unwrap_or_default()
    }

    pub(super) fn attributes(&mut self, value: u32, strings: &mut Strings) -> Sym {
        self.word(2, value, strings, || Some(bits("FileAttributes", value))).unwrap_or_default()
    }

    pub(super) fn share(&mut self, value: u32, strings: &mut Strings) -> Sym {
        self.word(3, value, strings, || Some(bits("ShareAccess", value))).unwrap_or_default()
    }

    /// None for 0: the operation has no class.
    pub(super) fn info_class(&mut self, value: u32, strings: &mut Strings) -> Option<Sym> {
        let name =
            || value_name("FileInformationClass", value).map_or_else(|| value.to_string(), str::to_owned);
        self.word(4, value, strings, || (value != 0).then(name))
    }

    pub(super) fn control(&mut self, value: u32, strings: &mut Strings) -> Sym {
        self.word(5, value, strings, || Some(format!("{value:#010x}"))).unwrap_or_default()
    }

    /// The name of an NTSTATUS.
    pub(crate) fn status(&mut self, value: u32, strings: &mut Strings) -> Option<Sym> {
        self.word(6, value, strings, || ntstatus_name(value).map(str::to_owned))
    }
}

/// Names of bits, and the rest in hex.
fn bits(map: &str, value: u32) -> String {
    let names = bit_names(map, value);
    let known = etwhy_decode::kernel::names::value_map(map).map_or(0, |m| {
        m.entries.iter().filter(|(bit, _)| value & bit == *bit).fold(0, |all, (bit, _)| all | bit)
    });
    let mut text = names.join("|");
    if value & !known != 0 {
        let separator = if text.is_empty() { "" } else { "|" };
        text.push_str(&format!("{separator}{:#x}", value & !known));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_words_of_the_headers() {
        let mut strings = Strings::new();
        let mut names = Names::default();
        let open = names.disposition(0x0100_0020, &mut strings).unwrap();
        assert_eq!(strings.get(open), "FILE_OPEN");
        let options = names.options(0x0100_0061, &mut strings);
        assert_eq!(
            strings.get(options),
            "FILE_DIRECTORY_FILE|FILE_SYNCHRONOUS_IO_NONALERT|FILE_NON_DIRECTORY_FILE"
        );
        let share = names.share(7, &mut strings);
        assert_eq!(strings.get(share), "FILE_SHARE_READ|FILE_SHARE_WRITE|FILE_SHARE_DELETE");
        assert_eq!(bits("ShareAccess", 0x81), "FILE_SHARE_READ|0x80");
        let class = names.info_class(37, &mut strings).unwrap();
        assert_eq!(strings.get(class), "FileIdBothDirectoryInformation");
        let class = names.info_class(9999, &mut strings).unwrap();
        assert_eq!(strings.get(class), "9999");
        assert_eq!(names.info_class(0, &mut strings), None);
        let control = names.control(0x900A8, &mut strings);
        assert_eq!(strings.get(control), "0x000900a8");
        let status = names.status(0xC000_0034, &mut strings).unwrap();
        assert_eq!(strings.get(status), "STATUS_OBJECT_NAME_NOT_FOUND");
        assert_eq!(names.status(0xC012_3456, &mut strings), None);
    }
}
