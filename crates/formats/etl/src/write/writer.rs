//! The writer: per-processor buffers, flushed when full.

use super::buffer::{BufferHead, Open};
use super::logfile_record::logfile_record;
use super::{RecordBuf, TraceSetup, xpress};
use crate::abi::buffer as abi;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Writes a trace. Records go to the open buffer of their processor; a full buffer goes to the file.
///
/// The caller brings the records of one processor in time order; the writer checks nothing there, because
/// damaged order is something tests want to write too.
pub struct TraceWriter<W: Write + Seek> {
    out: W,
    setup: TraceSetup,
    /// Indexed by processor.
    open: Vec<Option<Open>>,
    header: Vec<u8>,
    /// Where this session starts in the file: not 0 when appended.
    origin: u64,
    limit: usize,
    sequence: i64,
    position: u64,
    data_buffers: u64,
    written: Written,
    newest: i64,
    scratch: RecordBuf,
    padding: Vec<u8>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records, the header record included.
    pub records: u64,
    /// Buffers flushed, buffer 0 included (overwritten ones too).
    pub buffers: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl TraceWriter<BufWriter<File>> {
    /// Creates the file at `path` and writes its buffer 0.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn create(path: &Path, setup: TraceSetup) -> io::Result<TraceWriter<BufWriter<File>>> {
        TraceWriter::new(BufWriter::with_capacity(1 << 20, File::create(path)?), setup)
    }
}

impl<W: Write + Seek> TraceWriter<W> {
    /// Writes buffer 0 at the current position of `out`.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn new(mut out: W, setup: TraceSetup) -> io::Result<TraceWriter<W>> {
        let origin = out.stream_position()?;
        let limit = setup.rounded_buffer_size();
        let newest = setup.first_ticks();
        let mut writer = TraceWriter {
            out,
            setup,
            open: Vec::new(),
            header: Vec::new(),
            origin,
            limit,
            sequence: 1,
            position: origin,
            data_buffers: 0,
            written: Written::default(),
            newest,
            scratch: RecordBuf::new(),
            padding: vec![0xFF; limit],
        };
        writer.header.resize(abi::LEN, 0);
        writer.add_header_record(0, 0)?;
        writer.write_header_buffer()?;
        Ok(writer)
    }

    /// Appends a session to a finished file: sequence numbers start again at 0. With
    /// [`TraceSetup::append_header`] it begins with a header buffer of its own.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn append(mut out: W, mut setup: TraceSetup) -> io::Result<TraceWriter<W>> {
        out.seek(SeekFrom::End(0))?;
        setup.log_file_mode |= crate::abi::logfile::MODE_APPEND;
        let with_header = setup.append_header;
        let mut writer = TraceWriter::new(out, setup)?;
        if !with_header {
            writer.out.seek(SeekFrom::Start(writer.origin))?;
            writer.position = writer.origin;
            writer.sequence = 0;
            writer.written = Written::default();
            writer.header.clear();
        }
        Ok(writer)
    }

    fn add_header_record(&mut self, buffers: u32, end_time: i64) -> io::Result<()> {
        logfile_record(&self.setup, &mut self.scratch, buffers, end_time);
        let record = self.scratch.finish()?;
        self.header.truncate(abi::LEN);
        self.header.extend_from_slice(record);
        let padded = self.header.len().next_multiple_of(8);
        self.header.resize(padded, 0);
        self.written.records = 1;
        Ok(())
    }

    /// Adds a record to buffer 0 behind the header record (build lab, group masks, PDB identities); before
    /// the first ordinary record.
    ///
    /// # Errors
    /// `InvalidInput` when buffer 0 is full or records were written already.
    pub fn write_header_record(&mut self, record: &mut RecordBuf) -> io::Result<()> {
        let bytes = record.finish()?;
        let end = self.header.len() + bytes.len().next_multiple_of(8);
        if end > self.limit || self.data_buffers > 0 || self.header.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no room in the header buffer"));
        }
        self.header.extend_from_slice(bytes);
        self.header.resize(end, 0);
        self.written.records += 1;
        self.position = self.origin;
        self.out.seek(SeekFrom::Start(self.origin))?;
        self.write_header_buffer()
    }

    /// Writes buffer 0 at the current position, which is the session's origin.
    fn write_header_buffer(&mut self) -> io::Result<()> {
        let used = self.header.len();
        // Compressed files keep no slack in buffer 0: its size is what it holds, rounded.
        let size = if self.setup.compressed { used.next_multiple_of(1024) } else { self.limit };
        let head = BufferHead {
            size,
            saved_offset: if self.setup.windows7 { 0 } else { used },
            offset: used,
            time_stamp: 0,
            sequence: 0,
            processor: 0,
            logger_id: self.setup.logger_id,
            flags: abi::FLAG_FLUSH_MARKER,
            kind: abi::TYPE_HEADER,
            windows7: self.setup.windows7,
        };
        self.out.write_all(&head.bytes())?;
        self.out.write_all(self.header.get(abi::LEN..).unwrap_or(&[]))?;
        self.out.write_all(self.padding.get(used..size).unwrap_or(&[]))?;
        self.position = self.origin + size as u64;
        self.written.buffers = self.written.buffers.max(1);
        self.written.bytes = self.written.bytes.max(self.position - self.origin);
        Ok(())
    }

    /// Writes a record to a processor's buffer.
    ///
    /// # Errors
    /// `InvalidInput` when it is larger than a buffer, and whatever the file says.
    pub fn write(&mut self, cpu: u16, record: &mut RecordBuf) -> io::Result<()> {
        let ticks = record.ticks();
        let bytes = record.finish()?;
        self.write_bytes(cpu, ticks, bytes)
    }

    /// Writes the bytes of a finished record.
    ///
    /// # Errors
    /// As [`TraceWriter::write`].
    pub fn write_bytes(&mut self, cpu: u16, ticks: i64, bytes: &[u8]) -> io::Result<()> {
        let index = usize::from(cpu);
        if self.open.len() <= index {
            self.open.resize_with(index + 1, || None);
        }
        let limit = self.limit;
        loop {
            match self.open.get_mut(index) {
                Some(Some(open)) => {
                    if open.is_empty() {
                        open.sequence = self.sequence;
                    }
                    if open.add(bytes, ticks, limit) {
                        if open.sequence == self.sequence {
                            self.sequence += 1;
                        }
                        break;
                    }
                    if open.is_empty() {
                        let text =
                            format!("a record of {} bytes does not fit a buffer of {limit}", bytes.len());
                        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                    }
                    self.flush(cpu, 0)?;
                }
                _ => self.begin(index),
            }
        }
        self.newest = self.newest.max(ticks);
        self.written.records += 1;
        Ok(())
    }

    fn begin(&mut self, index: usize) {
        if let Some(slot) = self.open.get_mut(index) {
            let mut open = Open { bytes: Vec::with_capacity(self.limit), sequence: -1, newest: 0, flags: 0 };
            open.restart();
            *slot = Some(open);
        }
    }

    /// Marks the open buffer of a processor: events were lost while it was filled, or a buffer before it.
    pub fn mark_lost(&mut self, cpu: u16, events: bool, buffer: bool) {
        if let Some(Some(open)) = self.open.get_mut(usize::from(cpu)) {
            open.flags |= if events { abi::FLAG_EVENTS_LOST } else { 0 };
            open.flags |= if buffer { abi::FLAG_BUFFER_LOST } else { 0 };
        }
    }

    /// Flushes the open buffer of a processor, full or not. A new one gets the next sequence number with
    /// its first record: numbers are given when a buffer is taken into use, not when it is flushed.
    ///
    /// # Errors
    /// Whatever the file says.
    pub fn flush_cpu(&mut self, cpu: u16) -> io::Result<()> {
        let full = matches!(self.open.get(usize::from(cpu)), Some(Some(open)) if !open.is_empty());
        if !full {
            return Ok(());
        }
        self.flush(cpu, 0)
    }

    fn flush(&mut self, cpu: u16, extra_flags: u16) -> io::Result<()> {
        let Some(Some(mut open)) = self.open.get_mut(usize::from(cpu)).map(Option::take) else {
            return Ok(());
        };
        self.flush_open(cpu, &mut open, extra_flags)?;
        // The allocation is kept for this processor's next buffer.
        open.restart();
        if let Some(slot) = self.open.get_mut(usize::from(cpu)) {
            *slot = Some(open);
        }
        Ok(())
    }

    fn flush_open(&mut self, cpu: u16, open: &mut Open, extra_flags: u16) -> io::Result<()> {
        let used = open.bytes.len();
        let packed = if self.setup.compressed {
            Some(xpress::compress(open.bytes.get(abi::LEN..).unwrap_or(&[])))
        } else {
            None
        };
        // A buffer that does not shrink is stored as it is.
        let packed = packed.filter(|p| p.len() + abi::LEN < used);
        let size = match (&packed, self.setup.compressed) {
            (Some(packed), _) => packed.len() + abi::LEN,
            (None, true) => used,
            (None, false) => self.limit,
        };
        let compressed = if packed.is_some() { abi::FLAG_COMPRESSED } else { 0 };
        let head = BufferHead {
            size,
            saved_offset: used,
            offset: used,
            time_stamp: open.newest,
            sequence: open.sequence,
            processor: cpu,
            logger_id: self.setup.logger_id,
            flags: open.flags | extra_flags | compressed,
            kind: abi::TYPE_GENERIC,
            windows7: self.setup.windows7,
        };
        self.place(size)?;
        match &packed {
            Some(packed) => {
                self.out.write_all(&head.bytes())?;
                self.out.write_all(packed)?;
            }
            None => {
                if let Some(place) = open.bytes.get_mut(..abi::LEN) {
                    place.copy_from_slice(&head.bytes());
                }
                self.out.write_all(&open.bytes)?;
                self.out.write_all(self.padding.get(used..size).unwrap_or(&[]))?;
            }
        }
        self.position += size as u64;
        self.data_buffers += 1;
        self.written.buffers += 1;
        self.written.bytes = self.written.bytes.max(self.position - self.origin);
        Ok(())
    }

    /// Moves to where the next buffer belongs: behind the last one, or over the oldest of a full ring.
    fn place(&mut self, size: usize) -> io::Result<()> {
        let Some(ring) = self.setup.circular_buffers.filter(|_| !self.setup.compressed) else {
            return Ok(());
        };
        let slot = self.data_buffers % u64::from(ring.max(1));
        let position = self.origin + self.limit as u64 + slot * size as u64;
        if position != self.position {
            self.out.seek(SeekFrom::Start(position))?;
            self.position = position;
        }
        Ok(())
    }

    /// Flushes all buffers, patches buffer 0 and returns what was written with the inner writer.
    ///
    /// # Errors
    /// Whatever the file says.
    pub fn finish_into(mut self) -> io::Result<(Written, W)> {
        let last = self.open.iter().rposition(|o| o.as_ref().is_some_and(|o| !o.is_empty()));
        for cpu in 0..self.open.len() {
            let Some(Some(mut open)) = self.open.get_mut(cpu).map(Option::take) else { continue };
            if !open.is_empty() {
                let marker = if Some(cpu) == last { abi::FLAG_FLUSH_MARKER } else { 0 };
                self.flush_open(cpu as u16, &mut open, marker)?;
            }
        }
        let mut written = self.written;
        let ring = self.setup.circular_buffers.map_or(u64::MAX, |n| u64::from(n.max(1)) + 1);
        if !self.setup.unfinalised && !self.header.is_empty() {
            let end = match self.setup.end_time {
                0 => self.setup.file_time(self.newest),
                given => given,
            };
            let extra = self.header.split_off(self.first_record_end());
            self.add_header_record(written.buffers.min(ring).min(u64::from(u32::MAX)) as u32, end)?;
            self.header.extend_from_slice(&extra);
            self.out.seek(SeekFrom::Start(self.origin))?;
            self.write_header_buffer()?;
        }
        written.bytes = self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok((written, self.out))
    }

    fn first_record_end(&self) -> usize {
        let at = abi::LEN + crate::abi::header::SYSTEM_SIZE;
        let size = etwhy_base::Bytes::u16_at(self.header.as_slice(), at).map_or(0, usize::from);
        (abi::LEN + size.next_multiple_of(8)).min(self.header.len())
    }

    /// Flushes all buffers and patches BuffersWritten and EndTime into buffer 0.
    ///
    /// # Errors
    /// Whatever the file says.
    pub fn finish(self) -> io::Result<Written> {
        self.finish_into().map(|(written, _)| written)
    }

    /// What was written so far; open buffers are not counted in `bytes`.
    pub fn written(&self) -> Written {
        self.written
    }

    /// The setup, for its clock.
    pub fn setup(&self) -> &TraceSetup {
        &self.setup
    }

    /// Changes the counts of lost events and buffers that `finish` writes.
    pub fn set_lost(&mut self, events: u32, buffers: u32) {
        self.setup.events_lost = events;
        self.setup.buffers_lost = buffers;
    }
}
