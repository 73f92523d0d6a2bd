//! What a file is, by its first bytes.

use crate::etl_magic::looks_like_etl;

/// How many bytes [`sniff`] wants to see; fewer are fine.
pub const SNIFF_LEN: usize = 4096;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Starts like an event trace log.
    Etl,
    /// A zip archive (`.zip`, `.etl.zip`, `.diagsession`).
    Zip,
    /// A 7z archive.
    SevenZip,
    /// A gzip stream.
    Gzip,
    /// A Zstandard stream.
    Zstd,
    /// An LZ4 stream.
    Lz4,
    /// An xz stream.
    Xz,
    /// A bzip2 stream.
    Bzip2,
    /// No bytes at all.
    Empty,
    /// Known, but no trace: index into the table of confusions.
    Foreign(Foreign),
    /// Anything else; the trace reader has the last word.
    Unknown,
}

/// Files that people mistake for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// A Windows event log.
    Evtx,
    /// A Windows event log of Windows XP and before.
    EvtLegacy,
    /// A performance-counter log.
    PerformanceCounters,
    /// An executable, DLL or driver.
    PortableExecutable,
    /// A crash dump.
    Dump,
    /// A program database with symbols.
    Pdb,
    /// A network capture.
    NetworkCapture,
    /// A Process Monitor log.
    ProcessMonitor,
    /// A .NET EventPipe trace.
    NetTrace,
    /// PerfView's processed form of a trace.
    Etlx,
    /// A Linux `perf` recording.
    PerfData,
    /// A LTTng trace (Common Trace Format).
    CommonTraceFormat,
    /// A cabinet.
    Cabinet,
    /// A RAR archive.
    Rar,
    /// A tar archive.
    Tar,
    /// An OLE compound file (`.msi`, old Office).
    CompoundFile,
    /// An SQLite database.
    Sqlite,
    /// A Parquet table.
    Parquet,
    /// JSON text.
    Json,
    /// XML or HTML text.
    Markup,
    /// Comma- or tab-separated text.
    Csv,
    /// Other text.
    Text,
}

impl Kind {
    /// A noun phrase for messages, e.g. "a zip archive".
    pub fn name(self) -> &'static str {
        match self {
            Kind::Etl => "an event trace",
            Kind::Zip => "zip archive",
            Kind::SevenZip => "7z archive",
            Kind::Gzip => "gzip file",
            Kind::Zstd => "zstd file",
            Kind::Lz4 => "lz4 file",
            Kind::Xz => "xz file",
            Kind::Bzip2 => "bzip2 file",
            Kind::Empty => "an empty file",
            Kind::Foreign(foreign) => foreign.entry().name,
            Kind::Unknown => "something unknown",
        }
    }

    /// One sentence: what to do with it instead.
    pub fn advice(self) -> &'static str {
        match self {
            Kind::Empty => {
                "Was the recording stopped (`wpr -stop`, `xperf -stop`, `logman stop`) before it was copied?"
            }
            Kind::Foreign(foreign) => foreign.entry().advice,
            _ => "etwhy reads .etl files, archives that hold them, and folders of them",
        }
    }

    /// True for the kinds that can hold a trace.
    pub fn is_archive(self) -> bool {
        matches!(self, Kind::Zip | Kind::SevenZip) || self.is_stream()
    }
}

impl Kind {
    /// True for packed streams: one content without a name.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Kind::Gzip | Kind::Zstd | Kind::Lz4 | Kind::Xz | Kind::Bzip2)
    }
}

struct Entry {
    foreign: Foreign,
    name: &'static str,
    advice: &'static str,
}

impl Foreign {
    fn entry(self) -> &'static Entry {
        ENTRIES.iter().find(|e| e.foreign == self).unwrap_or(&OTHER)
    }
}

static OTHER: Entry = Entry { foreign: Foreign::Text, name: "text", advice: GENERAL };

const GENERAL: &str = "etwhy reads .etl files, archives that hold them, and folders of them";
const UNPACK: &str = "Unpack it and name the .etl file inside";

macro_rules! entries {
    ($($foreign:ident: $name:literal, $advice:expr;)*) => {
        static ENTRIES: &[Entry] = &[$(Entry { foreign: Foreign::$foreign, name: $name, advice: $advice }),*];
    };
}

entries! {
    Evtx: "an event log (.evtx)", "Use `etwhy evtx`";
    EvtLegacy: "an event log of Windows XP (.evt)", "Convert it on Windows with `wevtutil epl /lf:true old.evt new.evtx` and use `etwhy evtx`";
    PerformanceCounters: "a performance-counter log (.blg)", "Convert it on Windows with `relog in.blg -f csv -o out.csv`";
    PortableExecutable: "a Windows program, DLL or driver", "Name the trace that was recorded, not the program";
    Dump: "a crash dump", "Open it with WinDbg; `!wmitrace.logsave` extracts the trace sessions that it holds";
    Pdb: "a symbol file (.pdb)", "Name the trace; symbols are found beside it";
    NetworkCapture: "a network capture (.pcap)", "Open it with Wireshark";
    ProcessMonitor: "a Process Monitor log (.pml)", "Open it with Process Monitor";
    NetTrace: "a .NET EventPipe trace (.nettrace)", "Open it with PerfView or `dotnet-trace`";
    Etlx: "PerfView's processed form of a trace (.etlx)", "Name the .etl file it was made of";
    PerfData: "a Linux perf recording", "Open it with `perf report`";
    CommonTraceFormat: "a Common Trace Format trace (LTTng)", "Open it with babeltrace or Trace Compass";
    Cabinet: "a cabinet (.cab)", "Unpack it (`expand -F:* in.cab folder`, or 7-Zip) and name the .etl file inside";
    Rar: "a RAR archive", UNPACK;
    Tar: "a tar archive", UNPACK;
    CompoundFile: "an OLE compound file", GENERAL;
    Sqlite: "an SQLite database", GENERAL;
    Parquet: "a Parquet table", GENERAL;
    Json: "JSON text", GENERAL;
    Markup: "XML or HTML text", "If `tracerpt` wrote it, name the .etl file it was made of";
    Csv: "a text table", "If `xperf -a dumper` or `tracerpt` wrote it, name the .etl file it was made of";
    Text: "text", GENERAL;
}

/// Magic numbers that stand at a fixed offset.
static MAGICS: &[(usize, &[u8], Kind)] = &[
    // APPNOTE.TXT 4.3: local file header, empty archive, spanned archive.
    (0, b"PK\x03\x04", Kind::Zip),
    (0, b"PK\x05\x06", Kind::Zip),
    (0, b"PK\x07\x08PK\x03\x04", Kind::Zip),
    // 7zFormat.txt
    (0, b"7z\xBC\xAF\x27\x1C", Kind::SevenZip),
    // RFC 1952 with the only method there is (8).
    (0, b"\x1F\x8B\x08", Kind::Gzip),
    // RFC 8878
    (0, b"\x28\xB5\x2F\xFD", Kind::Zstd),
    // MS-EVEN6 / libevtx
    (0, b"ElfFile\0", Kind::Foreign(Foreign::Evtx)),
    (4, b"LfLe", Kind::Foreign(Foreign::EvtLegacy)),
    (0, b"MDMP\x93\xA7", Kind::Foreign(Foreign::Dump)),
    (0, b"PAGEDUMP", Kind::Foreign(Foreign::Dump)),
    (0, b"PAGEDU64", Kind::Foreign(Foreign::Dump)),
    (0, b"Microsoft C/C++ MSF 7.00\r\n", Kind::Foreign(Foreign::Pdb)),
    (0, b"BSJB", Kind::Foreign(Foreign::Pdb)),
    (0, b"\xD4\xC3\xB2\xA1", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"\xA1\xB2\xC3\xD4", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"\x4D\x3C\xB2\xA1", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"\xA1\xB2\x3C\x4D", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"\x0A\x0D\x0D\x0A", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"GMBU", Kind::Foreign(Foreign::NetworkCapture)),
    (0, b"PML_", Kind::Foreign(Foreign::ProcessMonitor)),
    (0, b"Nettrace", Kind::Foreign(Foreign::NetTrace)),
    (4, b"!FastSerialization.1", Kind::Foreign(Foreign::Etlx)),
    (0, b"PERFILE2", Kind::Foreign(Foreign::PerfData)),
    (0, b"\xC1\x1F\xFC\xC1", Kind::Foreign(Foreign::CommonTraceFormat)),
    (0, b"MSCF\0\0\0\0", Kind::Foreign(Foreign::Cabinet)),
    (0, b"Rar!\x1A\x07", Kind::Foreign(Foreign::Rar)),
    // lz4_Frame_format.md; the legacy frame is what `lz4 -l` and Linux kernels have.
    (0, b"\x04\x22\x4D\x18", Kind::Lz4),
    (0, b"\x02\x21\x4C\x18", Kind::Lz4),
    // xz-file-format.txt 2.1.1.1
    (0, b"\xFD7zXZ\0", Kind::Xz),
    // A stream's magic, its block size, and the first block's or the end's magic (digits of pi or of its root).
    (4, b"1AY&SY", Kind::Bzip2),
    (4, b"\x17\x72\x45\x38\x50\x90", Kind::Bzip2),
    (257, b"ustar", Kind::Foreign(Foreign::Tar)),
    (0, b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", Kind::Foreign(Foreign::CompoundFile)),
    (0, b"SQLite format 3\0", Kind::Foreign(Foreign::Sqlite)),
    (0, b"PAR1", Kind::Foreign(Foreign::Parquet)),
];

/// What `bytes`, the first [`SNIFF_LEN`] of a file, look like. A file of fewer bytes is fine.
pub fn sniff(bytes: &[u8]) -> Kind {
    if bytes.is_empty() {
        return Kind::Empty;
    }
    // First, because a trace has no magic of its own and its first bytes (a size) could look like one.
    if looks_like_etl(bytes) {
        return Kind::Etl;
    }
    for (at, magic, kind) in MAGICS {
        if bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic)) {
            return *kind;
        }
    }
    if is_zstd_skippable(bytes) {
        return Kind::Zstd;
    }
    if is_executable(bytes) {
        return Kind::Foreign(Foreign::PortableExecutable);
    }
    text_kind(bytes).map_or(Kind::Unknown, Kind::Foreign)
}

/// RFC 8878 3.1.2: magic 0x184D2A50 to 0x184D2A5F, written by `pzstd` in front of frames.
fn is_zstd_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// `IMAGE_DOS_HEADER`: `MZ`, and the offset of the `PE` header at 0x3C.
fn is_executable(bytes: &[u8]) -> bool {
    use etwhy_base::Bytes;
    if !bytes.starts_with(b"MZ") {
        return false;
    }
    match bytes.u32_at(0x3C) {
        Some(at) => match bytes.get(at as usize..) {
            Some(rest) if rest.len() >= 4 => rest.starts_with(b"PE\0\0"),
            _ => true,
        },
        None => false,
    }
}

/// Valid UTF-8, but for a character that the end of the sample may have cut.
fn is_utf8_start(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

fn text_kind(bytes: &[u8]) -> Option<Foreign> {
    let sample: Vec<u8> = match bytes {
        [0xFF, 0xFE, rest @ ..] => rest.iter().copied().step_by(2).collect(),
        [0xFE, 0xFF, rest @ ..] => rest.iter().copied().skip(1).step_by(2).collect(),
        [0xEF, 0xBB, 0xBF, rest @ ..] => rest.to_vec(),
        _ if is_utf8_start(bytes) => bytes.to_vec(),
        _ => return None,
    };
    let control = |b: &&u8| **b < 0x20 && !matches!(**b, b'\t' | b'\n' | b'\r' | 0x0C);
    if sample.iter().any(|b| control(&b)) {
        return None;
    }
    let first = sample.iter().copied().find(|b| !b.is_ascii_whitespace())?;
    let line = sample.split(|b| *b == b'\n').next().unwrap_or(&[]);
    let count = |c: u8| line.iter().filter(|b| **b == c).count();
    Some(match first {
        b'{' | b'[' => Foreign::Json,
        b'<' => Foreign::Markup,
        _ if count(b',') >= 2 || count(b'\t') >= 2 || count(b';') >= 2 => Foreign::Csv,
        _ => Foreign::Text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_confusions_are_named() {
        let mut pe = vec![0u8; 256];
        pe[..2].copy_from_slice(b"MZ");
        pe[0x3C] = 0x80;
        pe[0x80..0x84].copy_from_slice(b"PE\0\0");
        let mut tar = vec![0u8; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let utf16: Vec<u8> =
            "\u{FEFF}<Event a=\"1\"/>".encode_utf16().flat_map(|c| c.to_le_bytes()).collect();
        let cases: &[(&[u8], Foreign)] = &[
            (b"ElfFile\0\0\0\0\0", Foreign::Evtx),
            (&pe, Foreign::PortableExecutable),
            (b"PAGEDU64....", Foreign::Dump),
            (b"MDMP\x93\xA7\0\0", Foreign::Dump),
            (b"\xD4\xC3\xB2\xA1\x02\0\x04\0", Foreign::NetworkCapture),
            (b"  {\"a\": 1}", Foreign::Json),
            (b"time,cpu,process\n1,2,3\n", Foreign::Csv),
            (b"hello\nworld\n", Foreign::Text),
            (b"\x14\0\0\0!FastSerialization.1rest", Foreign::Etlx),
            (&tar, Foreign::Tar),
            (&utf16, Foreign::Markup),
        ];
        for (bytes, foreign) in cases {
            assert_eq!(sniff(bytes), Kind::Foreign(*foreign));
            assert!(!sniff(bytes).advice().is_empty());
        }
    }

    #[test]
    fn archives_and_unknown_bytes() {
        assert_eq!(sniff(b""), Kind::Empty);
        assert_eq!(sniff(b"PK\x03\x04"), Kind::Zip);
        assert_eq!(sniff(b"7z\xBC\xAF\x27\x1C\0\x04"), Kind::SevenZip);
        assert_eq!(sniff(b"\x1F\x8B\x08\0"), Kind::Gzip);
        assert_eq!(sniff(b"\x28\xB5\x2F\xFD\0"), Kind::Zstd);
        assert_eq!(sniff(&[0x53, 0x2A, 0x4D, 0x18, 4]), Kind::Zstd);
        assert_eq!(sniff(b"\x04\x22\x4D\x18\x64"), Kind::Lz4);
        assert_eq!(sniff(b"\xFD7zXZ\0\0\x04"), Kind::Xz);
        assert_eq!(sniff(b"BZh91AY&SY\0"), Kind::Bzip2);
        assert_eq!(sniff(&[0; 4096]), Kind::Unknown);
        // Two letters are text, not a program.
        assert_eq!(sniff(b"MZ"), Kind::Foreign(Foreign::Text));
    }

    #[test]
    fn every_foreign_kind_has_its_own_name() {
        for entry in ENTRIES {
            assert_eq!(ENTRIES.iter().filter(|e| e.name == entry.name).count(), 1, "{}", entry.name);
        }
    }
}
