//! Input that is not damaged but made to do harm: few bytes that ask for much work or memory.

mod archives;
mod traces;

pub use archives::{seven_zip, seven_zip_contents, stored_gzip, stored_zip, stored_zstd};
pub use traces::{ALL, Bomb};
