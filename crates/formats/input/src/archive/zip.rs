//! Zip archives, among them `.etl.zip` of PerfView and `.diagsession` of Visual Studio (an OPC package:
//! the trace is a member with a GUID-like name, so members are judged by their first bytes).

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::local_headers;
use crate::collect::{Collector, Package, is_named_archive};
use crate::{InputError, anomaly};

const BUFFER: usize = 1 << 18;

pub fn unpack(collector: &mut Collector<'_>, package: &mut Package, file: File) -> Result<(), InputError> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    // The list of contents stands at the end, so a truncated copy has none; every member has a header of
    // its own in front, though.
    let mut archive = match ZipArchive::new(&mut file) {
        Ok(archive) => archive,
        Err(error) => {
            let rewound = file.seek(SeekFrom::Start(0));
            rewound.map_err(|source| InputError::Io { file: package.shown.clone(), what: "read", source })?;
            package.damage = Some(error.to_string());
            collector
                .ledger
                .note(&anomaly::ARCHIVE_WITHOUT_DIRECTORY, 1, || package.shown.display().to_string());
            return local_headers::unpack(collector, package, &mut file);
        }
    };
    for index in 0..archive.len() {
        let name = match archive.by_index_data(index) {
            Ok(data) => data.name().map_or_else(
                |_| String::from_utf8_lossy(data.name_raw()).into_owned(),
                |name| name.into_owned(),
            ),
            Err(_) => continue,
        };
        let member = archive.by_index(index);
        one_member(collector, package, &name, member)?;
    }
    Ok(())
}

fn one_member<R: std::io::Read>(
    collector: &mut Collector<'_>,
    package: &mut Package,
    name: &str,
    member: Result<ZipFile<'_, R>, ZipError>,
) -> Result<(), InputError> {
    match member {
        Ok(member) if member.is_dir() => Ok(()),
        Ok(mut member) => {
            let claimed = Some(member.size());
            collector.member(package, name, claimed, &mut member)
        }
        Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword) => {
            collector.encrypted(package, name);
            Ok(())
        }
        Err(ZipError::CompressionMethodNotSupported(method)) => {
            collector.unsupported(package, name, local_headers::method_name(method));
            Ok(())
        }
        Err(ZipError::UnsupportedArchive(what)) => {
            collector.unsupported(package, name, what.to_owned());
            Ok(())
        }
        Err(error) => {
            if collector.options.wanted.is_named(name) || is_named_archive(name) {
                collector.damaged(package, name, error.to_string());
            }
            Ok(())
        }
    }
}
