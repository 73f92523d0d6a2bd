//! Helpers of this crate's tests.

use crate::schema::{DecodedBy, EventSchema};
use etwhy_base::{Bytes, Guid};
use etwhy_etl::abi::{buffer, header};
use etwhy_etl::{HeaderKind, Record};
pub(crate) use etwhy_testkit::corpus;

/// A schema without fields.
pub(crate) fn empty_schema() -> EventSchema {
    EventSchema {
        guid: Guid::ZERO,
        provider: "P".into(),
        name: "E".into(),
        task: "".into(),
        opcode: "".into(),
        message: "".into(),
        decoded_by: DecodedBy::None,
        verified: false,
        fields: Vec::new(),
    }
}

/// The bytes of a trace of the corpus.
pub(crate) fn trace(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(corpus()?.join("etl").join(name)).unwrap())
}

/// The smallest reader that serves tests: raw files, in the order of the file.
pub(crate) fn walk(file: &[u8], mut each: impl FnMut(&Record<'_>)) {
    let mut at = 0;
    while let Some(size) = file.u32_at(at + buffer::BUFFER_SIZE) {
        let size = size as usize;
        let Some(bytes) = file.sub(at, size).filter(|_| size > buffer::LEN) else { return };
        let used = bytes.u32_at(buffer::OFFSET).unwrap() as usize;
        let saved = bytes.u32_at(buffer::SAVED_OFFSET).unwrap() as usize;
        let end = if used == 0 || used > size { saved.min(size) } else { used };
        let mut next = buffer::LEN;
        while let Some(mark) = bytes.u32_at(next).filter(|_| next < end) {
            let (flags, kind) = ((mark >> 24) as u8, (mark >> 16) as u8);
            let kind = match flags {
                header::FLAGS_TRACE_HEADER => HeaderKind::from_type(kind),
                header::FLAGS_MESSAGE => Some(HeaderKind::Message),
                _ => None,
            };
            let Some(kind) = kind else { break };
            let size_at = if kind.is_system() { header::SYSTEM_SIZE } else { header::GUID_SIZE };
            let len = usize::from(bytes.u16_at(next + size_at).unwrap());
            let Some(record) = bytes.sub(next, len).filter(|_| len >= 8) else { break };
            each(&Record { bytes: record, kind, ticks: 0, cpu: 0, logger_id: 0, file: 0 });
            next += len.next_multiple_of(8);
        }
        at += size;
    }
}

/// A kernel record with a 64-bit header.
pub(crate) fn kernel(hook: u16, version: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; header::SYSTEM_LEN];
    bytes[0..2].copy_from_slice(&version.to_le_bytes());
    bytes[2..4].copy_from_slice(&[2, 0xC0]);
    bytes[6..8].copy_from_slice(&hook.to_le_bytes());
    bytes.extend(payload);
    let len = bytes.len() as u16;
    bytes[4..6].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// An `EVENT_HEADER` record with extended items.
pub(crate) fn event(
    provider: Guid,
    id: u16,
    version: u8,
    opcode: u8,
    items: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0u8; header::EVENT_LEN];
    bytes[2..4].copy_from_slice(&[19, 0xC0]);
    bytes[4] = u8::from(!items.is_empty());
    bytes[0x18..0x28].copy_from_slice(&provider.0);
    bytes[0x28..0x2A].copy_from_slice(&id.to_le_bytes());
    bytes[0x2A] = version;
    bytes[0x2D] = opcode;
    for (i, (kind, data)) in items.iter().enumerate() {
        let size = (8 + data.len()).next_multiple_of(8);
        bytes.extend((size as u16).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(u16::from(i + 1 < items.len()).to_le_bytes());
        bytes.extend((data.len() as u16).to_le_bytes());
        bytes.extend(*data);
        bytes.resize(bytes.len() + size - 8 - data.len(), 0);
    }
    bytes.extend(payload);
    let len = bytes.len() as u16;
    bytes[0..2].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// A WPP message with a GUID and nothing else.
pub(crate) fn message(guid: Guid, number: u16, arguments: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0x90];
    bytes.extend(number.to_le_bytes());
    bytes.extend((header::MESSAGE_FLAG_GUID | header::MESSAGE_FLAG_64BIT_POINTER).to_le_bytes());
    bytes.extend(guid.0);
    bytes.extend(arguments);
    let len = bytes.len() as u16;
    bytes[0..2].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// A classic record.
pub(crate) fn classic(guid: Guid, opcode: u8, version: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; header::FULL_LEN];
    bytes[2..4].copy_from_slice(&[20, 0xC0]);
    bytes[4] = opcode;
    bytes[6..8].copy_from_slice(&version.to_le_bytes());
    bytes[0x18..0x28].copy_from_slice(&guid.0);
    bytes.extend(payload);
    let len = bytes.len() as u16;
    bytes[0..2].copy_from_slice(&len.to_le_bytes());
    bytes
}
