//! What a profile format is.

use super::Profile;
use crate::{ExportError, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Something that a format carries and that can be left out.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePart {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Tables that it is made from.
    pub tables: &'static [&'static str],
}

/// A way to write a profile for another program.
pub struct ProfileFormat {
    /// Name on the command line.
    pub name: &'static str,
    /// Endings of file names, without the dot; `.gz` may follow.
    pub extensions: &'static [&'static str],
    /// What reads it, in a line.
    pub about: &'static str,
    /// How to open it, in a line.
    pub open: &'static str,
    /// True if it is made of weights; others take samples and events from tables.
    pub weighted: bool,
    /// Most kinds of weights in one file.
    pub most_weights: usize,
    /// True if it is always compressed.
    pub always_gzip: bool,
    /// True if a terminal cannot show it.
    pub binary: bool,
    /// What it carries, beside the stacks of weights.
    pub parts: &'static [ProfilePart],
    /// Writes it.
    pub write: fn(&Profile<'_>, &mut dyn Write) -> Result<()>,
}

/// All profile formats.
pub fn profile_formats() -> impl Iterator<Item = &'static ProfileFormat> {
    crate::profiles::ALL.iter().copied()
}

impl ProfileFormat {
    /// The format called `name`.
    pub fn by_name(name: &str) -> Option<&'static ProfileFormat> {
        profile_formats().find(|format| format.name.eq_ignore_ascii_case(name))
    }

    /// The format that a file's name ends in. The longest ending decides.
    pub fn by_path(path: &Path) -> Option<&'static ProfileFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let endings =
            profile_formats().flat_map(|format| format.extensions.iter().map(move |e| (*e, format)));
        let fits = |ending: &str| name.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.'));
        endings.filter(|(e, _)| fits(e)).max_by_key(|(e, _)| e.len()).map(|(_, format)| format)
    }
}

/// Writes a profile, compressed if `gzip` or the format says so.
///
/// # Errors
/// Those of the writer.
pub fn write_profile(
    format: &ProfileFormat,
    profile: &Profile<'_>,
    gzip: bool,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    if !gzip && !format.always_gzip {
        return (format.write)(profile, out);
    }
    // Serializers write single bytes, which cost a call each in the encoder.
    let mut packed = BufWriter::with_capacity(1 << 16, GzEncoder::new(out, Compression::new(5)));
    (format.write)(profile, &mut packed)?;
    let encoder = packed.into_inner().map_err(|error| ExportError::Io(error.into_error()))?;
    encoder.finish()?;
    Ok(())
}
