//! How events get the name they are shown under, and numbers their type.

use crate::schema::InType;
use std::sync::Arc;

/// The event's name: `Task/Opcode`, the task alone for the opcode Info, else the symbol, else its number.
pub(crate) fn event_name(task: &str, opcode: &str, symbol: &str, id: u16) -> Arc<str> {
    if !task.is_empty() {
        let plain = opcode.is_empty() || matches!(opcode, "Info" | "win:Info");
        // EventSource names the opcode into the task already: task `RequestStart`, opcode `Start`.
        if plain || task.ends_with(opcode) {
            return task.into();
        }
        return format!("{task}/{opcode}").into();
    }
    if !symbol.is_empty() {
        return symbol.into();
    }
    format!("EventID({id})").into()
}

/// Names of the opcodes that `winmeta.xml` predefines.
pub(crate) fn standard_opcode(opcode: u8) -> &'static str {
    match opcode {
        0 => "Info",
        1 => "Start",
        2 => "Stop",
        3 => "DataCollectionStart",
        4 => "DataCollectionStop",
        5 => "Extension",
        6 => "Reply",
        7 => "Resume",
        8 => "Suspend",
        9 => "Send",
        240 => "Receive",
        _ => "",
    }
}

/// The in-type of a `TDH_INTYPE_*` number (`tdh.h`); `None` for numbers that are not defined.
pub(crate) fn tdh_in_type(number: u16) -> Option<InType> {
    use InType::*;
    Some(match number {
        1 => UnicodeString,
        2 => AnsiString,
        3 => Int8,
        4 => UInt8,
        5 => Int16,
        6 => UInt16,
        7 => Int32,
        8 => UInt32,
        9 => Int64,
        10 => UInt64,
        11 => Float,
        12 => Double,
        13 => Boolean,
        14 => Binary,
        15 => Guid,
        16 => Pointer,
        17 => FileTime,
        18 => SystemTime,
        19 => Sid,
        20 => HexInt32,
        21 => HexInt64,
        22 | 300 => CountedString,
        23 | 301 => CountedAnsiString,
        25 => CountedBinary,
        302 => ReversedCountedString,
        303 => ReversedCountedAnsiString,
        304 => NonNullTerminatedString,
        305 => NonNullTerminatedAnsiString,
        306 => UnicodeChar,
        307 => AnsiChar,
        308 => SizeT,
        309 => HexDump,
        310 => WbemSid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(&*event_name("GC", "Start", "GCStart_V2", 1), "GC/Start");
        assert_eq!(&*event_name("GC", "Info", "", 1), "GC");
        assert_eq!(&*event_name("RequestStart", "Start", "RequestStart", 1), "RequestStart");
        assert_eq!(&*event_name("", "Start", "Symbol", 1), "Symbol");
        assert_eq!(&*event_name("", "", "", 7), "EventID(7)");
    }
}
