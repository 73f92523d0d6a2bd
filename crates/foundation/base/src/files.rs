//! Files that may be anything.

use crate::units;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The bytes of a file, which may come from anybody: a link to a device has no end, and a sparse file may be larger than the memory.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidData`] if there are more than `most` bytes.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("has more than {}", units::bytes(i64::try_from(most).unwrap_or(i64::MAX)));
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_not_read() {
        let path = std::env::temp_dir().join(format!("etwhy-files-{}", std::process::id()));
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        assert_eq!(read_at_most(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
        #[cfg(unix)]
        assert!(read_at_most(Path::new("/dev/zero"), 1000).is_err());
    }
}
