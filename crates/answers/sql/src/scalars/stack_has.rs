//! `stack_has(stack_id, pattern)`: does a stack contain a function, module or category?
//!
//! The pattern is compared with `module!function`, with the module and with the category of each frame; `*` stands for
//! anything, letter case does not matter. `stack_has(stack_id, 'tedrdrv.sys!*')`, `stack_has(stack_id, 'antivirus')`.
//! The stacks that match a pattern are found once; the query must name the table `stack_frame` or any with stacks.

use crate::matching::stacks_with;
use crate::scalar::Scalar;
use etwhy_table::Database;
use etwhy_vtab::{Connection, Result};
use foldhash::HashMap;
use rusqlite::functions::FunctionFlags;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

/// Declaration.
pub static SCALAR: Scalar = Scalar {
    usage: "stack_has(stack_id, pattern)",
    about: "1 if a frame of the stack is in that function (`module!function`), module or category; * stands for anything",
    register,
};

/// For each pattern asked: whether stack n matches.
type PatternMatches = Mutex<HashMap<String, Arc<Vec<bool>>>>;

/// Patterns whose stacks are remembered.
const MOST_PATTERNS: usize = 64;

fn register(connection: &Connection, db: &Database) -> Result<()> {
    let state = AssertUnwindSafe((db.clone(), PatternMatches::default()));
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("stack_has", 2, flags, move |call| {
        let (db, known) = &*state;
        let (Some(stack), Some(pattern)) = (call.get::<Option<i64>>(0)?, call.get::<Option<String>>(1)?)
        else {
            return Ok(None);
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        // A query may make up patterns without end.
        if known.len() >= MOST_PATTERNS && !known.contains_key(&pattern) {
            known.clear();
        }
        let stacks = known.entry(pattern).or_insert_with_key(|pattern| Arc::new(stacks_with(db, pattern)));
        let found = usize::try_from(stack).ok().and_then(|n| stacks.get(n)).copied().unwrap_or(false);
        Ok(Some(found))
    })
}
