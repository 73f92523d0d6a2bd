//! Files: the names behind the keys that disk and fault events carry.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use crate::model::image::base_name;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Files by key. Keys are reused; a name holds from its file's first mention to its deletion.
    pub table FILE: FileRow = "file" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// Number of the file.
        file_id: i32 [None, Id],
        /// Path, with drive letters where the trace maps them; none if no name was recorded.
        path: Option<Sym> [None, Path],
        /// File name.
        name: Option<Sym> [None, Name],
        /// Extension in lower case.
        extension: Option<Sym> [None, Kind],
        /// Key (FsContext) under which events refer to it.
        file_key: i64 [Address, Address],
        /// First event that names it.
        first_ns: i64 [Ns, Time],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&FILE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Files { rows: TableBuilder::new(memory) }),
};

struct Files {
    rows: TableBuilder<FileRow>,
}

impl Analysis for Files {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for (number, file) in end.model.files.all().iter().enumerate() {
            let path = file.path.map(|p| end.model.volumes.drive_path(end.strings.get(p)));
            let name = path.as_deref().map(base_name).unwrap_or_default().to_owned();
            let extension = name.rsplit_once('.').map(|(_, e)| e.to_lowercase()).filter(|e| e.len() <= 16);
            self.rows.push(FileRow {
                file_id: number as i32,
                name: (!name.is_empty()).then(|| end.strings.intern(&name)),
                path: path.map(|p| end.strings.intern(&p)),
                extension: extension.filter(|e| !e.is_empty()).map(|e| end.strings.intern(&e)),
                file_key: file.key as i64,
                first_ns: file.first_ns,
            });
        }
        Ok(vec![self.rows.into()])
    }
}
