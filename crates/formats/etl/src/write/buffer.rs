//! One buffer being filled, and its header.

use crate::abi::buffer as abi;

/// Everything a buffer header says that is not constant.
pub(super) struct BufferHead {
    pub(super) size: usize,
    pub(super) saved_offset: usize,
    pub(super) offset: usize,
    pub(super) time_stamp: i64,
    pub(super) sequence: i64,
    pub(super) processor: u16,
    pub(super) logger_id: u16,
    pub(super) flags: u16,
    pub(super) kind: u16,
    pub(super) windows7: bool,
}

impl BufferHead {
    /// The 72 bytes.
    pub(super) fn bytes(&self) -> [u8; abi::LEN] {
        let mut out = [0u8; abi::LEN];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = out.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(abi::BUFFER_SIZE, &(self.size as u32).to_le_bytes());
        put(abi::SAVED_OFFSET, &(self.saved_offset as u32).to_le_bytes());
        put(0x08, &(self.offset as u32).to_le_bytes());
        put(abi::TIME_STAMP, &self.time_stamp.to_le_bytes());
        put(abi::SEQUENCE_NUMBER, &self.sequence.to_le_bytes());
        let mut flags = self.flags;
        if self.windows7 {
            // Before Windows 8: processor number in a byte, then the alignment.
            put(abi::PROCESSOR_INDEX, &[self.processor as u8, 8]);
        } else {
            flags |= abi::FLAG_PROCESSOR_INDEX;
            put(abi::PROCESSOR_INDEX, &(self.processor & abi::PROCESSOR_INDEX_MASK).to_le_bytes());
        }
        put(abi::LOGGER_ID, &self.logger_id.to_le_bytes());
        // 3 (flushed) is what kernel-written files carry; in buffer 0 of compressed files the same number
        // means plain XPRESS.
        put(abi::STATE, &3u32.to_le_bytes());
        put(abi::OFFSET, &(self.offset as u32).to_le_bytes());
        put(abi::BUFFER_FLAG, &flags.to_le_bytes());
        put(abi::BUFFER_TYPE, &self.kind.to_le_bytes());
        out
    }
}

/// The open buffer of one processor: header space, then records.
pub(super) struct Open {
    pub(super) bytes: Vec<u8>,
    pub(super) sequence: i64,
    pub(super) newest: i64,
    pub(super) flags: u16,
}

impl Open {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() <= abi::LEN
    }

    /// Makes it an empty buffer. Its sequence number comes with its first record.
    pub(super) fn restart(&mut self) {
        self.bytes.clear();
        self.bytes.resize(abi::LEN, 0);
        self.sequence = -1;
        self.newest = 0;
        self.flags = 0;
    }

    /// Adds a record, padded to 8 bytes; false when it does not fit.
    #[inline]
    pub(super) fn add(&mut self, record: &[u8], ticks: i64, limit: usize) -> bool {
        let padded = record.len().next_multiple_of(8);
        if self.bytes.len() + padded > limit {
            return false;
        }
        self.bytes.extend_from_slice(record);
        self.bytes.resize(self.bytes.len() + padded - record.len(), 0);
        self.newest = self.newest.max(ticks);
        true
    }
}
