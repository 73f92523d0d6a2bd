//! `percentile(x, p)`: the p-th percentile (0 to 100) of the values of a group, by nearest rank.

use crate::scalar::Scalar;
use etwhy_table::Database;
use etwhy_vtab::{Connection, Result};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};

/// Declaration.
pub static SCALAR: Scalar = Scalar {
    usage: "percentile(x, p)",
    about: "Aggregate: the least value that p percent of the values do not exceed (nearest rank)",
    register,
};

#[derive(Default)]
struct Values {
    values: Vec<f64>,
    p: f64,
}

struct Percentile;

/// Values of one group: 2 GiB.
const MOST_VALUES: usize = 1 << 28;

impl Aggregate<Values, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Values> {
        Ok(Values::default())
    }

    fn step(&self, call: &mut Context<'_>, state: &mut Values) -> Result<()> {
        state.p = call.get(1)?;
        if state.values.len() >= MOST_VALUES {
            return Err(etwhy_vtab::error(format!("percentile: more than {MOST_VALUES} values")));
        }
        state.values.extend(call.get::<Option<f64>>(0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<Values>) -> Result<Option<f64>> {
        let Some(mut state) = state.filter(|state| !state.values.is_empty()) else { return Ok(None) };
        state.values.sort_unstable_by(f64::total_cmp);
        let rank = (state.p.clamp(0.0, 100.0) / 100.0 * state.values.len() as f64).ceil() as usize;
        Ok(state.values.get(rank.max(1) - 1).copied())
    }
}

fn register(connection: &Connection, _: &Database) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("percentile", 2, flags, Percentile)
}
