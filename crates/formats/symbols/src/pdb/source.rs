//! The bytes of a file as the container's reader wants them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use etwhy_os::Mapped;
use pdb2::{Source, SourceSlice, SourceView};

/// A file in memory or mapped, shared by what is read from it.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// In memory.
    Owned(Arc<Vec<u8>>),
    /// On disk.
    Mapped(Arc<Mapped>),
}

impl Bytes {
    /// All of it.
    pub fn all(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(mapped) => mapped,
        }
    }
}

/// What is contiguous is not copied.
#[derive(Debug)]
enum View {
    Shared(Bytes, Range<usize>),
    Copied(Vec<u8>),
}

impl SourceView<'_> for View {
    fn as_slice(&self) -> &[u8] {
        match self {
            View::Shared(bytes, range) => bytes.all().get(range.clone()).unwrap_or(&[]),
            View::Copied(bytes) => bytes,
        }
    }
}

impl<'s> Source<'s> for Bytes {
    fn view(&mut self, slices: &[SourceSlice]) -> io::Result<Box<dyn SourceView<'s> + Send + Sync>> {
        let outside = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let all = self.all();
        let range = |slice: &SourceSlice| -> io::Result<Range<usize>> {
            let start = usize::try_from(slice.offset).map_err(|_| outside())?;
            let end = start.checked_add(slice.size).filter(|end| *end <= all.len()).ok_or_else(outside)?;
            Ok(start..end)
        };
        if let [one] = slices {
            return Ok(Box::new(View::Shared(self.clone(), range(one)?)));
        }
        // A page can be named any number of times; no stream is larger than its file.
        let total = slices.iter().map(|s| s.size).fold(0usize, usize::saturating_add);
        if total > all.len() {
            return Err(outside());
        }
        let mut bytes = Vec::with_capacity(total);
        for slice in slices {
            bytes.extend_from_slice(all.get(range(slice)?).unwrap_or(&[]));
        }
        Ok(Box::new(View::Copied(bytes)))
    }
}
