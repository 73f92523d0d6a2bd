//! How far recording has been tried.

use etwhy_doc::Doc;
use etwhy_record::run::{NO_WINDOWS, evidence};

/// The ladder of evidence.
pub fn ladder() -> Doc {
    let mut doc = Doc::default();
    doc.text(NO_WINDOWS);
    for (step, evidence) in (1..).zip(evidence()) {
        doc.heading(format!("{step}: {}.", evidence.what));
        doc.note("shows", format!("{}.", evidence.shows));
        doc.note("state", format!("{}.", evidence.state));
    }
    doc
}
