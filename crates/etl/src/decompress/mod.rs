//! decompress
