//! Extended items of `EVENT_HEADER` records under construction.

use super::RecordBuf;
use crate::HeaderKind;
use crate::abi::{ext, header::*};
use etwhy_base::Guid;

impl RecordBuf {
    /// Adds an extended item; only in `EVENT_HEADER` records, and before any payload. On disk the traits
    /// item stands before the TraceLogging schema.
    pub fn ext(&mut self, kind: u16, data: &[u8]) -> &mut RecordBuf {
        if !matches!(self.kind(), HeaderKind::Event32 | HeaderKind::Event64) {
            return self;
        }
        if let Some(last) = self.last_ext {
            self.patch_u16(last + 4, 1);
        }
        let flags = self.bytes.get(EVENT_FLAGS).copied().unwrap_or(0);
        if let Some(place) = self.bytes.get_mut(EVENT_FLAGS) {
            *place = flags | EVENT_FLAG_EXTENDED_INFO as u8;
        }
        self.last_ext = Some(self.bytes.len());
        let size = (data.len() + 8).next_multiple_of(8);
        self.u16(size as u16)
            .u16(kind)
            .u16(0)
            .u16(data.len() as u16)
            .bytes(data)
            .zeros(size - 8 - data.len());
        self.payload_starts()
    }

    /// Adds a stack: 32- or 64-bit frames as the record's pointer size says, innermost frame first.
    /// `match_id` is 0 unless the user half comes in a later event.
    pub fn stack(&mut self, match_id: u64, frames: &[u64]) -> &mut RecordBuf {
        let mut data = match_id.to_le_bytes().to_vec();
        let wide = self.pointer_size() == 8;
        for frame in frames {
            if wide {
                data.extend_from_slice(&frame.to_le_bytes());
            } else {
                data.extend_from_slice(&(*frame as u32).to_le_bytes());
            }
        }
        self.ext(if wide { ext::STACK_TRACE64 } else { ext::STACK_TRACE32 }, &data)
    }

    /// Adds the key of a cached stack.
    pub fn stack_key(&mut self, match_id: u64, key: u64) -> &mut RecordBuf {
        let mut data = match_id.to_le_bytes().to_vec();
        if self.pointer_size() == 8 {
            data.extend_from_slice(&key.to_le_bytes());
            self.ext(ext::STACK_KEY64, &data)
        } else {
            data.extend_from_slice(&(key as u32).to_le_bytes());
            self.ext(ext::STACK_KEY32, &data)
        }
    }

    /// Adds the user's SID.
    pub fn sid(&mut self, sid: &[u8]) -> &mut RecordBuf {
        self.ext(ext::SID, sid)
    }

    /// Adds the related activity.
    pub fn related_activity(&mut self, guid: Guid) -> &mut RecordBuf {
        self.ext(ext::RELATED_ACTIVITYID, &guid.0)
    }
}
