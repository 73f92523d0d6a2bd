//! How much may still be unpacked.

use std::path::{Path, PathBuf};

use crate::{InputError, InputOptions};

/// Counts unpacked bytes over all inputs, and per archive for the ratio.
#[derive(Debug)]
pub struct Budget {
    max_bytes: u64,
    max_ratio: u64,
    used: u64,
    archive: PathBuf,
    packed: u64,
    unpacked: u64,
}

impl Budget {
    pub fn new(options: &InputOptions) -> Budget {
        Budget {
            max_bytes: options.max_unpacked_bytes,
            max_ratio: options.max_ratio,
            used: 0,
            archive: PathBuf::new(),
            packed: u64::MAX,
            unpacked: 0,
        }
    }

    /// From now on bytes come from `archive`, a file of `packed` bytes. Archives inside it count
    /// against it, so call this for the outermost one only.
    pub fn begin(&mut self, archive: &Path, packed: u64) {
        self.archive = archive.to_path_buf();
        self.packed = packed.max(1);
        self.unpacked = 0;
    }

    /// Refuses a member that says itself that it will not fit.
    pub fn claim(&self, bytes: u64) -> Result<(), InputError> {
        if bytes > self.max_bytes.saturating_sub(self.used) {
            return Err(self.too_large(Some(bytes)));
        }
        Ok(())
    }

    /// Counts bytes that really came out.
    pub fn add(&mut self, bytes: u64) -> Result<(), InputError> {
        self.used = self.used.saturating_add(bytes);
        self.unpacked = self.unpacked.saturating_add(bytes);
        if self.used > self.max_bytes {
            return Err(self.too_large(None));
        }
        let dense = self.unpacked / self.packed > self.max_ratio;
        if dense && self.unpacked > InputOptions::RATIO_FREE_BYTES {
            return Err(InputError::TooDense {
                file: self.archive.clone(),
                packed: self.packed,
                unpacked: self.unpacked,
                limit: self.max_ratio,
            });
        }
        Ok(())
    }

    fn too_large(&self, claimed: Option<u64>) -> InputError {
        InputError::TooLarge { file: self.archive.clone(), limit: self.max_bytes, claimed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(max_unpacked_bytes: u64, max_ratio: u64) -> Budget {
        let mut budget =
            Budget::new(&InputOptions { max_unpacked_bytes, max_ratio, ..InputOptions::default() });
        budget.begin(Path::new("a.zip"), 1 << 20);
        budget
    }

    #[test]
    fn the_ratio_matters_only_above_the_free_bytes() {
        let mut small = budget(u64::MAX, 10);
        assert!(small.add(InputOptions::RATIO_FREE_BYTES).is_ok());
        let error = small.add(1 << 20).unwrap_err();
        assert!(matches!(error, InputError::TooDense { limit: 10, .. }));
        assert!(error.to_string().contains(InputOptions::MAX_RATIO_OPTION));
    }

    #[test]
    fn the_total_counts_over_all_archives() {
        let mut budget = budget(100, 10);
        assert!(budget.add(60).is_ok());
        budget.begin(Path::new("b.zip"), 10);
        assert!(budget.claim(40).is_ok());
        assert!(budget.claim(41).unwrap_err().to_string().contains("b.zip"));
        let error = budget.add(41).unwrap_err();
        assert!(error.to_string().contains(InputOptions::MAX_UNPACKED_OPTION));
        assert!(budget.claim(u64::MAX).is_err());
    }
}
