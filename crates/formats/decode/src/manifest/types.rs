//! Words of manifests for types, opcodes and levels (`winmeta.xml` and `EventManifest.xsd`, Windows SDK).

use crate::schema::InType;

/// In-type of a word such as `win:UInt32`.
pub(super) fn in_type(word: &str) -> Option<InType> {
    use InType::*;
    let word = word.rsplit(':').next().unwrap_or(word);
    Some(match word {
        "UnicodeString" => UnicodeString,
        "AnsiString" => AnsiString,
        "Int8" => Int8,
        "UInt8" => UInt8,
        "Int16" => Int16,
        "UInt16" => UInt16,
        "Int32" => Int32,
        "UInt32" => UInt32,
        "Int64" => Int64,
        "UInt64" => UInt64,
        "Float" => Float,
        "Double" => Double,
        "Boolean" => Boolean,
        "Binary" => Binary,
        "GUID" => Guid,
        "Pointer" => Pointer,
        "FILETIME" => FileTime,
        "SYSTEMTIME" => SystemTime,
        "SID" => Sid,
        "HexInt32" => HexInt32,
        "HexInt64" => HexInt64,
        "CountedUnicodeString" => CountedString,
        "CountedAnsiString" => CountedAnsiString,
        "CountedBinary" => CountedBinary,
        "SizeT" => SizeT,
        _ => return None,
    })
}

/// `TDH_OUTTYPE_*` of a word such as `xs:string`; 0 for unknown ones and for plain integers.
pub(super) fn out_type(word: &str) -> u16 {
    let word = word.rsplit(':').next().unwrap_or(word);
    match word {
        "string" => 1,
        "dateTime" => 2,
        "boolean" => 13,
        "GUID" => 14,
        "hexBinary" => 15,
        "HexInt8" => 16,
        "HexInt16" => 17,
        "HexInt32" => 18,
        "HexInt64" => 19,
        "PID" => 20,
        "TID" => 21,
        "Port" => 22,
        "IPv4" => 23,
        "IPv6" => 24,
        "SocketAddress" => 25,
        "CIMDateTime" => 26,
        "ETWTIME" => 27,
        "Xml" => 28,
        "ErrorCode" => 29,
        "Win32Error" => 30,
        "NTSTATUS" => 31,
        "HResult" => 32,
        "DateTimeCultureInsensitive" => 33,
        "Json" => 34,
        "Utf8" => 35,
        "Pkcs7WithTypeInfo" => 36,
        "CodePointer" => 37,
        "DateTimeUtc" => 38,
        "NoPrint" => 301,
        _ => 0,
    }
}

/// Value and shown name of an opcode that `winmeta.xml` predefines.
pub(super) fn standard_opcode(word: &str) -> Option<(u8, &'static str)> {
    Some(match word.strip_prefix("win:")? {
        "Info" => (0, "Info"),
        "Start" => (1, "Start"),
        "Stop" => (2, "Stop"),
        "DC_Start" => (3, "DCStart"),
        "DC_Stop" => (4, "DCStop"),
        "Extension" => (5, "Extension"),
        "Reply" => (6, "Reply"),
        "Resume" => (7, "Resume"),
        "Suspend" => (8, "Suspend"),
        "Send" => (9, "Send"),
        "Receive" => (240, "Receive"),
        _ => return None,
    })
}

/// A decimal or `0x` number.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
