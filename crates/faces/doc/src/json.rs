//! Documents for programs, where a command has no JSON of its own.

use crate::Doc;
use serde::Serializer;

/// Writes the document: its title, and `blocks` with the kind of each as `block`. Text is exact; who prints it to a terminal escapes it
/// ([`crate::escape_json`]).
///
/// # Errors
/// Those of the serializer.
pub fn write<S: Serializer>(doc: &Doc, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(doc, serializer)
}
