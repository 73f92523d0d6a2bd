//! Input that is not damaged but made to do harm: few bytes that ask for much work or memory.

mod archives;
mod documents;
mod machines;
mod pdb;
mod traces;

pub use archives::{seven_zip, seven_zip_contents, stored_gzip, stored_zip, stored_zstd};
pub use documents::{LOGGERS, MANIFESTS};
pub use machines::MACHINES;
pub use pdb::{image, pdb};
pub use traces::TRACES;

/// Hostile input.
pub struct Bomb {
    /// Its name.
    pub name: &'static str,
    /// What it tries.
    pub about: &'static str,
    /// Makes it.
    ///
    /// # Errors
    /// None but those of a bug here: everything is written to memory.
    pub make: fn() -> std::io::Result<Vec<u8>>,
}

impl Bomb {
    const fn new(name: &'static str, about: &'static str, make: fn() -> std::io::Result<Vec<u8>>) -> Bomb {
        Bomb { name, about, make }
    }
}
