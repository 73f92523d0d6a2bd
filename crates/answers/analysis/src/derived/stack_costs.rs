//! CPU time folded along stacks, in six tables: by module, function, driver, stack tag, API, and by whose work the System process does.
//!
//! # How it is computed
//!
//! One scan over `stack_cost`; what each table counts stands in its own file in `crates/answers/analysis/src/fold`.

use crate::derive::DerivedSpec;
use crate::fold::api_cost::{API_COST, ApiCosts};
use crate::fold::driver_cost::{DRIVER_COST, DriverCosts};
use crate::fold::function_cost::{FUNCTION_COST, FunctionCosts};
use crate::fold::module_cost::{MODULE_COST, ModuleCosts};
use crate::fold::system_work::{SYSTEM_WORK, SystemWork};
use crate::fold::tag_cost::{TAG_COST, TagCosts};
use crate::fold::{Fold, FoldRows, Seen};
use crate::operators::ProcessRow;
use etwhy_table::{Database, Memory, Table, reads};
use etwhy_trace::catalog::disk_io::DiskIoRow;

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&MODULE_COST, &FUNCTION_COST, &DRIVER_COST, &TAG_COST, &API_COST, &SYSTEM_WORK],
    reads: reads::<(ProcessRow, DiskIoRow, FoldRows)>,
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let fold = Fold::read(db, true);
    let mut modules = ModuleCosts::new(&fold, memory);
    let mut functions = FunctionCosts::new(&fold, memory);
    let mut drivers = DriverCosts::new(&fold, memory);
    let mut tags = TagCosts::new(&fold, memory);
    let mut apis = ApiCosts::new(memory);
    let mut work = SystemWork::new(db);
    for group in &fold.groups {
        for &row in &group.rows {
            let part = fold.part(group.class, row.stack);
            let seen = Seen { class: group.class, part, owner: fold.owner(&part), row };
            modules.stack(&fold, &seen);
            functions.stack(&fold, &seen);
            drivers.stack(&fold, &seen);
            tags.stack(&fold, &seen);
            apis.stack(&fold, &seen);
            work.stack(&fold, group, &seen);
        }
        modules.flush(&fold, group);
        functions.flush(&fold, group);
        drivers.flush(&fold, group);
        tags.flush(&fold, group);
        apis.flush(&fold, group);
    }
    work.disks(&fold, db);
    Ok(vec![
        modules.finish(db)?,
        functions.finish(db)?,
        drivers.finish(db)?,
        tags.finish(db)?,
        apis.finish(db)?,
        work.finish(&fold, db, memory)?,
    ])
}
