//! Maps files into memory.
//!
//! # Contract
//!
//! A [`Mapped`] is a read-only view of a file. It is sound as long as nobody overwrites the file while it is mapped;
//! neither Linux, macOS nor Windows let a reader rule that out. We accept it because (1) a trace that is being
//! analysed is a finished file, (2) what comes from a pipe is copied to a temporary file first, and (3) nothing here
//! interprets the bytes as anything but `u8`, for which every bit pattern is valid.
//!
//! A file that becomes shorter, or that the disk cannot read, is another matter: Linux and macOS send `SIGBUS` to who
//! reads what is gone. There [`Mapped`] reads as zeros, and [`Mapped::is_whole`] says so afterwards (`map/guard.rs`).
//! Windows does not let a mapped file become shorter.

#[cfg(unix)]
mod guard;

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A read-only memory map of a file or a part of it.
#[derive(Debug)]
pub struct Mapped(Option<Map>);

/// Fields are dropped in this order: the guard goes before its map.
#[derive(Debug)]
struct Map {
    #[cfg(unix)]
    guard: guard::Guard,
    map: memmap2::Mmap,
}

impl Mapped {
    /// Maps the whole of `file`. An empty file gives an empty slice.
    ///
    /// # Errors
    /// The operating system's, e.g. for pipes and directories.
    pub fn new(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: see the contract in the module's documentation.
        let map = unsafe { memmap2::Mmap::map(file) }?;
        Ok(Mapped::guarded(map))
    }

    /// Maps `len` bytes of `file` from `offset` on, which the file must have.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    pub fn window(file: &File, offset: u64, len: usize) -> io::Result<Mapped> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| file.metadata().map_or(true, |m| m.len() < end)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if len == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: see the contract in the module's documentation.
        let map = unsafe { memmap2::MmapOptions::new().offset(offset).len(len).populate().map(file) }?;
        Ok(Mapped::guarded(map))
    }

    fn guarded(map: memmap2::Mmap) -> Mapped {
        Mapped(Some(Map {
            #[cfg(unix)]
            guard: guard::Guard::over(&map),
            map,
        }))
    }

    /// False if something was read that the system could not give: the file became shorter, or its disk failed. Zeros
    /// were read in its place. A file that lost less than a page may not be noticed here; its length tells.
    pub fn is_whole(&self) -> bool {
        #[cfg(unix)]
        let whole = self.0.as_ref().is_none_or(|map| !map.guard.is_hit());
        #[cfg(not(unix))]
        let whole = true;
        whole
    }

    /// The map as shared bytes, which Arrow buffers can be made of without a copy.
    pub fn into_bytes(self) -> bytes::Bytes {
        match self.0 {
            Some(map) => bytes::Bytes::from_owner(Mapped(Some(map))),
            None => bytes::Bytes::new(),
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |map| &map.map)
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_gone_reads_as_zeros_and_is_noticed() {
        let path = std::env::temp_dir().join(format!("etwhy-os-map-{}", std::process::id()));
        let mut file = File::create_new(&path).unwrap();
        file.write_all(&vec![7; 5 << 20]).unwrap();
        let read = File::open(&path).unwrap();
        // More maps than a block of the list has places.
        let others: Vec<Mapped> = (0..300).map(|_| Mapped::window(&read, 0, 100).unwrap()).collect();
        let whole = Mapped::new(&read).unwrap();
        let window = Mapped::window(&read, 3 << 20, 100_001).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(whole.iter().all(|byte| *byte == 7) && whole.is_whole());
        file.set_len(1 << 20).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let whole = &whole;
                move || (whole[(2 << 20) + n], whole[(5 << 20) - 1 - n], whole[n])
            })
            .collect();
        std::thread::scope(|scope| {
            let running: Vec<_> = threads.into_iter().map(|work| scope.spawn(work)).collect();
            for thread in running {
                assert_eq!(thread.join().unwrap(), (0, 0, 7));
            }
        });
        assert!(!whole.is_whole() && window.is_whole());
        assert!(window.iter().all(|byte| *byte == 0) && !window.is_whole());
        assert!(others.iter().all(|map| map.is_whole() && map.len() == 100));
        drop((whole, window, others));
        let again = Mapped::new(&read).unwrap();
        assert!(again.is_whole() && again.len() == 1 << 20);
    }
}
