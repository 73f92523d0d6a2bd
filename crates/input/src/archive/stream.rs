//! Gzip and Zstandard: one stream, no names.

use std::fs::File;
use std::io::BufReader;

use crate::InputError;
use crate::collect::{Collector, Package};

const BUFFER: usize = 1 << 18;

pub fn unpack_gzip(
    collector: &mut Collector<'_>,
    package: &mut Package,
    file: File,
) -> Result<(), InputError> {
    // Several members in a row are one stream (RFC 1952 2.2); `pigz` and log rotation write them.
    let mut decoder = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, file));
    collector.only_content(package, &mut decoder)
}

pub fn unpack_zstd(
    collector: &mut Collector<'_>,
    package: &mut Package,
    file: File,
) -> Result<(), InputError> {
    // The decoder's own limit of 128 MiB for the window stays in force: it is what bounds memory.
    match zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, file)) {
        Ok(mut decoder) => collector.only_content(package, &mut decoder),
        Err(error) => {
            package.damage = Some(error.to_string());
            Ok(())
        }
    }
}
