//! Damage done to a finished trace: buffers that were never written, as on a machine that was too busy.

use etwhy_base::Bytes;
use etwhy_base::rng::Xoshiro;
use etwhy_etl::abi::buffer as abi;
use std::fs::{File, OpenOptions, rename};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How many buffers there were and how many are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Buffers of the trace before, the header's not counted.
    pub of: u64,
    /// Buffers removed.
    pub buffers: u64,
}

/// Removes a share (0 to 1) of the buffers of a trace, chosen at random; never the first, which holds the
/// header, and never the last ones of the rundown (a twentieth), without which nothing has a name. Sequence
/// numbers keep their gaps.
///
/// # Errors
/// Whatever the file system says, and `InvalidData` when the file is no trace.
pub fn drop_buffers(trace: &Path, share: f64, seed: u64) -> io::Result<Dropped> {
    let total = count(trace)?;
    let keep_from = total - total / 20;
    let mut rng = Xoshiro::seeded(seed ^ 0xD40B);
    remove_buffers(trace, total, |number, _| number < keep_from && rng.uniform() < share)
}

/// Removes the buffers whose records lie in ranges of time: processor and timestamp of the newest record say so.
pub(crate) fn lose_buffers(trace: &Path, lost: impl Fn(u16, i64) -> bool) -> io::Result<Dropped> {
    remove_buffers(trace, count(trace)?, |_, buffer| {
        let cpu = buffer.u16_at(abi::PROCESSOR_INDEX).map_or(0, |cpu| cpu & abi::PROCESSOR_INDEX_MASK);
        buffer.i64_at(abi::TIME_STAMP).is_some_and(|ticks| lost(cpu, ticks))
    })
}

/// Removes buffers behind the first, by number and bytes.
fn remove_buffers(
    trace: &Path,
    total: u64,
    mut removed: impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<Dropped> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a buffer's size is wrong");
    let part = trace.with_extension("part");
    let mut from = BufReader::with_capacity(1 << 20, File::open(trace)?);
    let mut to = BufWriter::with_capacity(1 << 20, create(&part)?);
    let mut dropped = Dropped { of: total.saturating_sub(1), buffers: 0 };
    let mut buffer = Vec::new();
    for number in 0..total {
        buffer.resize(4, 0);
        from.read_exact(&mut buffer)?;
        let size = buffer.as_slice().try_into().map(u32::from_le_bytes).map_err(|_| wrong())? as usize;
        buffer.resize(size, 0);
        from.read_exact(buffer.get_mut(4..).ok_or_else(wrong)?)?;
        if number > 0 && removed(number, &buffer) {
            dropped.buffers += 1;
        } else {
            to.write_all(&buffer)?;
        }
    }
    to.flush()?;
    let file = to.get_mut();
    let mut written = [0; 4];
    file.seek(SeekFrom::Start(BUFFERS_WRITTEN))?;
    file.read_exact(&mut written)?;
    // 0 in a file that was never finalised.
    let left = u64::from(u32::from_le_bytes(written)).saturating_sub(dropped.buffers) as u32;
    file.seek(SeekFrom::Start(BUFFERS_WRITTEN))?;
    file.write_all(&left.to_le_bytes())?;
    drop((from, to));
    rename(part, trace)?;
    Ok(dropped)
}

/// `TRACE_LOGFILE_HEADER.BuffersWritten`: behind buffer header (72), record header (32) and nine 32-bit fields.
const BUFFERS_WRITTEN: u64 = 72 + 32 + 36;

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)
}

/// Number of buffers.
fn count(trace: &Path) -> io::Result<u64> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(trace)?);
    let length = file.get_ref().metadata()?.len();
    let (mut at, mut count) = (0, 0);
    while at < length {
        let mut size = [0; 4];
        file.read_exact(&mut size)?;
        let size = u64::from(u32::from_le_bytes(size));
        if !(72..=64 << 20).contains(&size) || at + size > length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("no buffer at {at}")));
        }
        at += size;
        count += 1;
        file.seek_relative(size as i64 - 4)?;
    }
    Ok(count)
}
