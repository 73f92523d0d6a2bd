//! One file per archive format; each feeds members to the [`Collector`](crate::collect::Collector).

mod local_headers;
mod seven_zip;
mod stream;
mod zip;

use std::fs::File;
use std::path::Path;

use crate::collect::{Collector, Package};
use crate::{InputError, Kind};

/// Unpacks what is of use from the archive at `path`.
pub fn unpack(collector: &mut Collector<'_>, package: &mut Package, path: &Path) -> Result<(), InputError> {
    let file = File::open(path).map_err(|source| InputError::Io {
        file: package.shown.clone(),
        what: "open",
        source,
    })?;
    match package.kind {
        Kind::Zip => zip::unpack(collector, package, file),
        Kind::SevenZip => seven_zip::unpack(collector, package, file),
        kind if kind.is_stream() => stream::unpack(collector, package, kind, file),
        _ => Ok(()),
    }
}
