//! The bridge between [`Source`] and SQLite's C structs.
//!
//! # The contract
//!
//! rusqlite's traits `VTab` and `VTabCursor` are unsafe because SQLite casts pointers to our structs into pointers
//! to its own. It is upheld here as follows, and nothing else in this crate or behind it needs to know of it:
//!
//! 1. `Bridge` and `BridgeCursor` are `#[repr(C)]` and begin with SQLite's struct, zeroed, which we never read or write
//!    again.
//! 2. A cursor borrows from its `Bridge`. SQLite closes all cursors of a table before it disconnects the table, and
//!    rusqlite's `open` ties the two lifetimes together.
//! 3. Only safe functions of rusqlite are called.
//! 4. rusqlite calls us from `extern "C"` functions, where a panic would end the program: none leaves this file ([`guarded`]).

use crate::{Ask, Constraint, Cursor, Op, Source};
use rusqlite::vtab::{
    Context, DistinctMode, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    VTabCursor,
};
use rusqlite::{Connection, Result, ffi};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[repr(C)]
struct Bridge {
    /// Must be first.
    base: ffi::sqlite3_vtab,
    source: Arc<dyn Source>,
}

#[repr(C)]
struct BridgeCursor<'t> {
    /// Must be first.
    base: ffi::sqlite3_vtab_cursor,
    cursor: Box<dyn Cursor + 't>,
}

/// A panic as an error of the query. What it left half done is the cursor's, which SQLite closes then.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(crate::error("a fault of etwhy's own; please report it")))
}

/// Makes `source` a table (or table function) of the connection, without a `CREATE` statement.
///
/// # Errors
/// If SQLite refuses the name.
pub fn register(connection: &Connection, name: &str, source: Arc<dyn Source>) -> Result<()> {
    const MODULE: Module<'static, Bridge> = Module::eponymous_only_module();
    connection.create_module(name, &MODULE, Some(source))
}

// SAFETY: `#[repr(C)]` with `sqlite3_vtab` first (contract 1).
unsafe impl<'vtab> VTab<'vtab> for Bridge {
    type Aux = Arc<dyn Source>;
    type Cursor = BridgeCursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Arc<dyn Source>>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Bridge)> {
        let Some(source) = aux.cloned() else { return Err(crate::error("a table without a source")) };
        db.config(VTabConfig::Innocuous)?;
        let declaration = CString::new(guarded(|| Ok(source.declaration()))?)?;
        Ok((Cow::Owned(declaration), Bridge { base: ffi::sqlite3_vtab::default(), source }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut usable = Vec::new();
        let mut places = Vec::new();
        let mut unusable = Vec::new();
        for (place, constraint) in info.constraints().enumerate() {
            // Negative columns are the row number.
            let Ok(column) = usize::try_from(constraint.column()) else { continue };
            if !constraint.is_usable() {
                unusable.push(column);
            } else if let Some(op) = op(constraint.operator()) {
                usable.push(Constraint { column, op, binary: true });
                places.push(place);
            }
        }
        for (constraint, place) in usable.iter_mut().zip(&places) {
            constraint.binary = info.collation(*place).is_ok_and(|name| name == "BINARY");
        }
        let order: Option<Vec<(usize, bool)>> = info
            .order_bys()
            .map(|o| Some((usize::try_from(o.column()).ok()?, o.is_order_by_desc())))
            .collect();
        let grouped = matches!(info.distinct(), DistinctMode::Grouped | DistinctMode::Distinct);
        let ask = Ask {
            constraints: &usable,
            unusable: &unusable,
            order: order.as_deref().unwrap_or_default(),
            grouped,
        };
        let Some(plan) = guarded(|| Ok(self.source.plan(&ask)))? else { return Ok(false) };
        for (n, taken) in plan.take.iter().enumerate() {
            let Some(place) = places.get(*taken) else { continue };
            let mut usage = info.constraint_usage(*place);
            usage.set_argv_index(c_int::try_from(n + 1).unwrap_or(c_int::MAX));
            usage.set_omit(plan.exact);
        }
        info.set_idx_str(&plan.text);
        info.set_estimated_cost(plan.cost);
        info.set_estimated_rows(plan.rows);
        info.set_order_by_consumed(plan.ordered && order.is_some_and(|order| !order.is_empty()));
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<BridgeCursor<'vtab>> {
        let cursor = guarded(|| Ok(self.source.open()))?;
        Ok(BridgeCursor { base: ffi::sqlite3_vtab_cursor::default(), cursor })
    }
}

fn op(op: IndexConstraintOp) -> Option<Op> {
    match op {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(Op::Eq),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(Op::Gt),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(Op::Ge),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(Op::Lt),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(Op::Le),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_ISNULL => Some(Op::IsNull),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_ISNOTNULL => Some(Op::NotNull),
        _ => None,
    }
}

// SAFETY: `#[repr(C)]` with `sqlite3_vtab_cursor` first (contract 1).
unsafe impl VTabCursor for BridgeCursor<'_> {
    fn filter(&mut self, _number: c_int, text: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let args: Vec<_> = args.iter().collect();
        guarded(|| self.cursor.filter(text.unwrap_or_default(), &args))
    }

    fn next(&mut self) -> Result<()> {
        guarded(|| self.cursor.next())
    }

    fn eof(&self) -> bool {
        guarded(|| Ok(self.cursor.eof())).unwrap_or(true)
    }

    fn column(&self, out: &mut Context, column: c_int) -> Result<()> {
        guarded(|| self.cursor.column(usize::try_from(column).unwrap_or(usize::MAX), out))
    }

    fn rowid(&self) -> Result<i64> {
        guarded(|| Ok(self.cursor.rowid()))
    }
}
