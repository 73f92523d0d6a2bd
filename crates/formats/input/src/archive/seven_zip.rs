//! 7z archives.

use std::fs::File;
use std::io::{BufReader, Read};

use sevenz_rust2::{ArchiveEntry, BlockDecoder, Error, Password};

use crate::collect::{Collector, Package, is_named_archive, is_symbol_file};
use crate::seven_zip::{THREADS, check_block, contents};
use crate::spool::{self, Fused};
use crate::{InputError, WantedFiles};

const BUFFER: usize = 1 << 18;

pub fn unpack(collector: &mut Collector<'_>, package: &mut Package, file: File) -> Result<(), InputError> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let password = Password::empty();
    let archive = match contents(&mut file) {
        Ok(archive) => archive,
        Err(error) => {
            failed(collector, package, "the archive", error);
            return Ok(());
        }
    };
    // Names decide if any is a trace's; only an archive without such a name is unpacked to look inside.
    let wanted = collector.options.wanted;
    let by_name = archive.files.iter().any(|f| wanted.is_named(&f.name));
    for (index, block) in archive.blocks.iter().enumerate() {
        let decoder = BlockDecoder::new(THREADS, index, &archive, &password, &mut file);
        // The names of the wanted members, at their places in the block.
        let block_names: Vec<Option<String>> =
            decoder.entries().iter().map(|e| is_wanted(e, by_name, wanted).then(|| e.name.clone())).collect();
        let Some(last) = block_names.iter().rposition(Option::is_some) else { continue };
        let label = block_names.iter().flatten().next().cloned().unwrap_or_default();
        if let Err(error) = check_block(block) {
            failed(collector, package, &label, error);
            continue;
        }
        let mut stopped = None;
        let mut position = 0;
        let mut broken_at = None;
        let result = decoder.for_each_entries(&mut |entry: &ArchiveEntry, source: &mut dyn Read| {
            let at = position;
            position += 1;
            let mut source = Fused::new(source);
            let mut step = Ok(());
            if block_names.get(at).is_some_and(Option::is_some) {
                step = collector.member(package, &entry.name, Some(entry.size), &mut source);
            }
            if step.is_ok() && at < last && !source.is_broken() {
                step = spool::drain(&mut source, &mut collector.budget);
            }
            if source.is_broken() {
                broken_at = Some(at);
            }
            let go_on = at < last && !source.is_broken();
            match step {
                Ok(()) => Ok(go_on),
                Err(error) => {
                    stopped = Some(error);
                    Ok(false)
                }
            }
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        let lost = broken_at.map_or(&[][..], |at| block_names.get(at.saturating_add(1)..).unwrap_or(&[]));
        for name in lost.iter().flatten() {
            collector.damaged(package, name, "it follows damage in the same block".to_owned());
        }
        if let Err(error) = result {
            failed(collector, package, &label, error);
        }
    }
    Ok(())
}

fn is_wanted(entry: &ArchiveEntry, by_name: bool, wanted: WantedFiles) -> bool {
    let name = &entry.name;
    !entry.is_directory
        && (!by_name || wanted.is_named(name) || is_symbol_file(name) || is_named_archive(name))
}

fn failed(collector: &mut Collector<'_>, package: &mut Package, name: &str, error: Error) {
    match error {
        Error::PasswordRequired | Error::MaybeBadPassword(_) => collector.encrypted(package, name),
        Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            collector.encrypted(package, name)
        }
        Error::UnsupportedCompressionMethod(method) => collector.unsupported(package, name, method),
        Error::Unsupported(what) => collector.unsupported(package, name, what.into_owned()),
        Error::Io(error, _) => collector.damaged(package, name, error.to_string()),
        Error::NextHeaderCrcMismatch | Error::BadTerminatedHeader(_) => {
            collector.damaged(
                package,
                name,
                "its list of contents (at the end) is damaged or missing".to_owned(),
            );
        }
        Error::ChecksumVerificationFailed => {
            collector.damaged(package, name, "wrong checksum".to_owned());
        }
        Error::Other(what) => collector.damaged(package, name, what.into_owned()),
        other => collector.damaged(package, name, other.to_string()),
    }
}
