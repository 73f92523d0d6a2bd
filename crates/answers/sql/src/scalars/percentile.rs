//! `percentile(x, p)`: the p-th percentile (0 to 100) of the values of a group, by nearest rank.

use crate::limits::{HELD, Share};
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

struct Values {
    values: Vec<f64>,
    p: f64,
    share: Share<'static>,
}

impl Values {
    fn push(&mut self, value: f64) -> std::result::Result<(), String> {
        if self.values.len() == self.values.capacity() {
            let more = self.values.len().max(LEAST_ROOM);
            self.share.more(more.saturating_mul(size_of::<f64>()))?;
            self.values.reserve_exact(more);
        }
        self.values.push(value);
        Ok(())
    }
}

struct Percentile;

/// Values for which there is room at first.
const LEAST_ROOM: usize = 16;

impl Aggregate<Values, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Values> {
        Ok(Values { values: Vec::new(), p: 0.0, share: HELD.nothing() })
    }

    fn step(&self, call: &mut Context<'_>, state: &mut Values) -> Result<()> {
        state.p = call.get(1)?;
        let Some(value) = call.get::<Option<f64>>(0)? else { return Ok(()) };
        state.push(value).map_err(|text| etwhy_vtab::error(format!("percentile: {text}")))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Held;

    #[test]
    fn values_are_kept_within_a_limit_of_all() {
        // For two calls in one query.
        static SMALL: Held = Held::at_most(100 * size_of::<f64>());
        let values = || Values { values: Vec::new(), p: 50.0, share: SMALL.nothing() };
        let (mut one, mut other) = (values(), values());
        assert!((0..64).all(|n| one.push(f64::from(n)).is_ok()));
        assert!((0..32).all(|n| other.push(f64::from(n)).is_ok()));
        assert!(other.push(32.0).unwrap_err().contains("shorter time"));
        drop(one);
        assert_eq!(other.values.len(), 32);
    }
}
