//! Packed streams (gzip, Zstandard, LZ4, xz, bzip2): one content, no names.
//!
//! Each decoder takes several streams in a row as one, as the tools do that write them, and has a limit on the memory that a file can
//! make it take. How much comes out is limited by the [`Budget`](crate::budget::Budget), for all formats alike.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::collect::{Collector, Package};
use crate::spool::Fused;
use crate::{InputError, Kind};

const BUFFER: usize = 1 << 18;

/// Memory for the dictionary of an xz stream, in KiB: `xz -9` needs 65 MiB to unpack.
const XZ_MEMORY_KB: u32 = 256 << 10;

/// Unpacks a stream of this kind.
pub fn unpack(
    collector: &mut Collector<'_>,
    package: &mut Package,
    kind: Kind,
    file: File,
) -> Result<(), InputError> {
    match decoder(kind, BufReader::with_capacity(BUFFER, file)) {
        Ok(mut decoder) => collector.only_content(package, &mut Fused::new(&mut *decoder)),
        Err(error) => {
            package.damage = Some(error.to_string());
            Ok(())
        }
    }
}

fn decoder(kind: Kind, source: BufReader<File>) -> io::Result<Box<dyn Read>> {
    Ok(match kind {
        // RFC 1952 2.2; `pigz` and log rotation write several members in a row.
        Kind::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
        // The decoder's own limit of 128 MiB for the window stays in force: it is what bounds memory.
        Kind::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(source)?),
        // Blocks of at most 4 MiB (lz4_Frame_format.md, Block Maximum Size), 8 MiB in the legacy format.
        Kind::Lz4 => Box::new(Lz4Frames { frame: lz4_flex::frame::FrameDecoder::new(source) }),
        Kind::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(source, true, XZ_MEMORY_KB)),
        // Blocks of at most 900 kB.
        Kind::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(source)),
        _ => return Err(io::Error::other("no packed stream")),
    })
}

/// Frames in a row, as `cat a.lz4 b.lz4` and `lz4 -c` leave them. The decoder ends at the end of each.
struct Lz4Frames {
    frame: lz4_flex::frame::FrameDecoder<BufReader<File>>,
}

impl Read for Lz4Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.frame.read(buffer)? {
                // A frame without content is read over; the source decides whether another comes.
                0 if !self.frame.get_mut().fill_buf()?.is_empty() => {}
                n => return Ok(n),
            }
        }
    }
}
