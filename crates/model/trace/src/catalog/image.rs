//! Images: programs, libraries and drivers, where and when they were loaded, and which build they are.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use crate::model::image::base_name;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Images by process, and drivers (without process).
    ///
    /// PDB identity and version resource stand in traces that were merged on the recording machine only.
    pub table IMAGE: ImageRow = "image" {
        version: 1, evidence: Verified("PerfView baselines; corpus traces of Windows 7 to 11"),
        /// Number of the image.
        image_id: i32 [None, Image],
        /// Process that loaded it; none for the kernel and its drivers.
        upid: Option<i32> [None, Process],
        /// File name.
        name: Sym [None, Name],
        /// Path, with drive letters where the trace maps them.
        path: Sym [None, Path],
        /// First address.
        base: i64 [Address, Address],
        /// Size in memory.
        size_bytes: i64 [Bytes, Bytes],
        /// Load, if it happened within the trace.
        load_ns: Option<i64> [Ns, Time],
        /// Unload, if it happened within the trace.
        unload_ns: Option<i64> [Ns, Time],
        /// `TimeDateStamp` of its PE header; a hash in reproducible builds.
        time_date_stamp: i32 [Hex32, Other],
        /// `CheckSum` of its PE header.
        checksum: i32 [Hex32, Other],
        /// Name of its PDB, as recorded.
        pdb_name: Option<Sym> [None, Name],
        /// GUID of its PDB.
        pdb_guid: Option<Sym> [None, Guid],
        /// Age of its PDB.
        pdb_age: Option<i32> [None, Other],
        /// PDB of managed code compiled ahead of time.
        il_pdb_name: Option<Sym> [None, Name],
        /// GUID of `il_pdb_name`.
        il_pdb_guid: Option<Sym> [None, Guid],
        /// File version from its version resource.
        file_version: Option<Sym> [None, Other],
        /// Product from its version resource.
        product: Option<Sym> [None, Name],
        /// Company from its version resource.
        company: Option<Sym> [None, Name],
        /// Description from its version resource.
        description: Option<Sym> [None, Name],
        /// Vendor, from the knowledge base of drivers, else the company of the version resource.
        vendor: Option<Sym> [None, Name],
        /// Category (antivirus, edr, backup, network, ...), from the knowledge base.
        category: Option<Sym> [None, Kind],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&IMAGE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Images { rows: TableBuilder::new(memory) }),
};

struct Images {
    rows: TableBuilder<ImageRow>,
}

impl Analysis for Images {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for (number, image) in end.model.images.all().iter().enumerate() {
            let raw = image.path.map_or(String::new(), |p| end.strings.get(p).to_owned());
            let path = end.model.volumes.drive_path(&raw);
            let name = base_name(&path).to_owned();
            let version = end.model.images.version(image).copied();
            let company = version.and_then(|v| v.company);
            let company_text = company.map_or("", |c| end.strings.get(c));
            let fact = etwhy_knowledge::category_of(&name, company_text);
            let vendor = fact.map(|f| f.vendor).filter(|v| !v.is_empty());
            let category = fact.map(|f| f.category).filter(|c| !c.is_empty());
            self.rows.push(ImageRow {
                image_id: number as i32,
                upid: image.upid.map(|u| u as i32),
                name: end.strings.intern(&name),
                path: end.strings.intern(&path),
                base: image.base as i64,
                size_bytes: image.size as i64,
                load_ns: image.load_ns,
                unload_ns: image.unload_ns,
                time_date_stamp: image.time_date_stamp as i32,
                checksum: image.checksum as i32,
                pdb_name: image.pdb.map(|p| p.name),
                pdb_guid: image.pdb.map(|p| end.strings.intern(&p.guid.to_string())),
                pdb_age: image.pdb.map(|p| p.age as i32),
                il_pdb_name: image.il_pdb.map(|p| p.name),
                il_pdb_guid: image.il_pdb.map(|p| end.strings.intern(&p.guid.to_string())),
                file_version: version.and_then(|v| v.file_version),
                product: version.and_then(|v| v.product),
                company,
                description: version.and_then(|v| v.description),
                vendor: vendor.map(|v| end.strings.intern(v)).or(company),
                category: category.map(|c| end.strings.intern(c)),
            });
        }
        Ok(vec![self.rows.into()])
    }
}
