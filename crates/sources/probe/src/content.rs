//! Content of files that probes make: nobody has seen it before, so nobody can know the verdict on it.

use crate::error::ProbeError;
use etwhy_base::rng::Rng;

/// What a file begins with. Scanners take files apart by it: an archive is unpacked, a program is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Random from the first byte on.
    None,
    /// A 64-bit Windows program.
    Pe,
    /// An archive with one stored file.
    Zip,
    /// A PDF document.
    Pdf,
}

impl Header {
    /// The words of parameters.
    pub const WORDS: &'static [&'static str] = &["none", "pe", "zip", "pdf"];

    /// By its word.
    pub fn from_word(word: &str) -> Header {
        match word {
            "pe" => Header::Pe,
            "zip" => Header::Zip,
            "pdf" => Header::Pdf,
            _ => Header::None,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Header::None => "none",
            Header::Pe => "pe",
            Header::Zip => "zip",
            Header::Pdf => "pdf",
        }
    }

    /// The first bytes of a file of `size` bytes.
    fn bytes(self, size: usize) -> Vec<u8> {
        match self {
            Header::None => Vec::new(),
            Header::Pe => pe(size),
            Header::Zip => zip(size),
            Header::Pdf => b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n".to_vec(),
        }
    }
}

/// DOS header, `PE` signature, COFF header and an optional header of one section, as the PE format (Microsoft,
/// *PE Format*, learn.microsoft.com/windows/win32/debug/pe-format) has them; what follows is random.
fn pe(size: usize) -> Vec<u8> {
    const AT: usize = 0x80;
    let mut bytes = vec![0_u8; AT];
    let mut put = |at: usize, value: &[u8]| {
        for (n, byte) in value.iter().enumerate() {
            if let Some(place) = bytes.get_mut(at + n) {
                *place = *byte;
            }
        }
    };
    put(0, b"MZ");
    put(0x3c, &(AT as u32).to_le_bytes());
    bytes.extend_from_slice(b"PE\0\0");
    // Machine x64, one section, no symbols, size of the optional header 240, executable image.
    for word in [0x8664_u16, 1, 0, 0, 0, 0, 0, 0, 240, 0x0022] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let mut optional = vec![0_u8; 240];
    let image = u32::try_from(size).unwrap_or(u32::MAX).saturating_add(0x1000);
    let fields: [(usize, &[u8]); 9] = [
        (0, &0x020b_u16.to_le_bytes()),         // PE32+
        (16, &0x1000_u32.to_le_bytes()),        // entry point
        (24, &0x1_4000_0000_u64.to_le_bytes()), // image base
        (32, &0x1000_u32.to_le_bytes()),        // section alignment
        (36, &0x200_u32.to_le_bytes()),         // file alignment
        (48, &6_u16.to_le_bytes()),             // subsystem version
        (56, &image.to_le_bytes()),             // size of image
        (60, &0x200_u32.to_le_bytes()),         // size of headers
        (68, &3_u16.to_le_bytes()),             // console
    ];
    for (at, value) in fields {
        for (n, byte) in value.iter().enumerate() {
            if let Some(place) = optional.get_mut(at + n) {
                *place = *byte;
            }
        }
    }
    bytes.extend_from_slice(&optional);
    bytes.extend_from_slice(b".text\0\0\0");
    let code = u32::try_from(size.saturating_sub(0x200)).unwrap_or(u32::MAX);
    for word in [code, 0x1000, code, 0x200, 0, 0, 0, 0x6000_0020] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.resize(0x200, 0);
    bytes
}

/// A local file header with one stored entry that fills the file (PKWARE APPNOTE 4.3.7).
fn zip(size: usize) -> Vec<u8> {
    let name = b"data.bin";
    let body = u32::try_from(size.saturating_sub(30 + name.len())).unwrap_or(u32::MAX);
    let mut bytes = b"PK\x03\x04".to_vec();
    for word in [20_u16, 0, 0, 0, 0x5a21] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for word in [0_u32, body, body] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&0_u16.to_le_bytes());
    bytes.extend_from_slice(name);
    bytes
}

/// Makes random bytes fast, from a seed of the operating system.
#[derive(Debug)]
pub struct Random(Rng);

impl Random {
    /// A generator that nobody had before.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new() -> Result<Random, ProbeError> {
        let mut seed = [0_u8; 8];
        getrandom::fill(&mut seed).map_err(|error| {
            ProbeError::Impossible(format!("the system gives no random numbers: {error}"))
        })?;
        Ok(Random(Rng::new(u64::from_le_bytes(seed))))
    }

    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Fills `bytes` as a file: `header`, then random bytes.
    pub fn file(&mut self, bytes: &mut [u8], header: Header) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.copy_from_slice(word.get(..chunk.len()).unwrap_or_default());
        }
        let head = header.bytes(bytes.len());
        let length = head.len().min(bytes.len());
        if let (Some(to), Some(from)) = (bytes.get_mut(..length), head.get(..length)) {
            to.copy_from_slice(from);
        }
    }

    /// A random order of `0..count` (Fisher and Yates).
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, (self.bits() % (last as u64 + 1)) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_differ_and_begin_as_they_should() {
        let mut random = Random::new().unwrap();
        let mut first = vec![0; 4099];
        let mut second = first.clone();
        random.file(&mut first, Header::Pe);
        random.file(&mut second, Header::Pe);
        assert_eq!((&first[..2], &first[0x80..0x86]), (&b"MZ"[..], &b"PE\0\0\x64\x86"[..]));
        assert_eq!(first[..0x200], second[..0x200]);
        assert_ne!(first[0x200..], second[0x200..]);
        random.file(&mut first, Header::Zip);
        // Compressed and real size at 18 and 22: what is left of the file.
        assert_eq!(u32::from_le_bytes(first[18..22].try_into().unwrap()), 4099 - 38);
        assert!(first[30..].starts_with(b"data.bin"));
        let mut tiny = [0; 5];
        random.file(&mut tiny, Header::Pdf);
        assert_eq!(&tiny, b"%PDF-");
        for word in Header::WORDS {
            assert_eq!(Header::from_word(word).word(), *word);
        }
    }

    #[test]
    fn orders_are_permutations() {
        let mut order = Random::new().unwrap().order(50);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
        assert!(Random::new().unwrap().order(0).is_empty());
    }
}
