//! What symbols are looked for.

use crate::ModuleKey;

/// An image file as its header says: what symbol servers file it under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    /// File name of the image, perhaps with the path on the machine that was traced. Hostile.
    pub name: String,
    /// `TimeDateStamp` of the PE header.
    pub time_date_stamp: u32,
    /// `SizeOfImage` of the PE header, in bytes.
    pub size_of_image: u32,
}

impl ImageKey {
    /// Time stamp (8 upper-case hex digits) and size (hex without padding), as symbol stores name folders of images.
    /// Source: "SymStore: Unique identifiers", Debugging Tools for Windows documentation.
    pub fn store_id(&self) -> String {
        format!("{:08X}{:x}", self.time_date_stamp, self.size_of_image)
    }
}

/// A module whose symbols are wanted. What is not known of it is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WantedModule {
    /// The PDB that belongs to it, from its `RSDS` record.
    pub pdb: Option<ModuleKey>,
    /// The image itself.
    pub image: Option<ImageKey>,
}
