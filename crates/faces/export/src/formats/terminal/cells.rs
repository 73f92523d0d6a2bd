//! How the cells of a column look.

use etwhy_table::{ColumnType, Family, Role, Selection, Unit, Value};

use crate::sanitize;
use etwhy_base::time::filetime_text;
use etwhy_base::units::decimal;
use etwhy_base::units::thousands;

/// A column of the table on the screen.
#[derive(Debug)]
pub(super) struct Column {
    /// The name, in the unit that is shown.
    pub(super) header: String,
    /// Stands to the right.
    pub(super) right: bool,
    /// May lose its middle.
    pub(super) text: bool,
    look: Look,
}

/// What becomes of a number.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// As it is: ids.
    Plain,
    Thousands,
    Hex {
        narrow: bool,
    },
    Date,
    /// Divided, with so many decimals; a point in time or not.
    Scaled {
        by: f64,
        decimals: usize,
        point: bool,
    },
    /// A float.
    Decimals(usize),
    Text,
}

impl Column {
    /// The shown columns, with units that suit the first rows.
    pub(super) fn measure(selection: &Selection<'_>, rows: usize) -> Vec<Column> {
        let reader = selection.reader();
        let specs = &selection.table().spec().columns;
        let mut columns = Vec::new();
        for (shown, column) in selection.shown().iter().enumerate() {
            let Some(spec) = specs.get(column.index) else { continue };
            let mut header = column.name.clone();
            let look = if spec.ty.is_text() || spec.ty == ColumnType::Bool {
                Look::Text
            } else if let Some((family, stored)) = spec.unit.scale() {
                let mut unit = column.unit;
                if column.is_plain() && spec.ty == ColumnType::I64 {
                    let size = |row| reader.stored(row, shown).as_i64().unwrap_or(0).unsigned_abs();
                    let largest = selection.row_ids().take(rows).map(size).max().unwrap_or(0);
                    unit = readable(family, u128::from(largest) * u128::from(stored.unsigned_abs()), unit);
                    header = column.in_unit(spec, unit).name;
                }
                let by = unit.scale().map_or(1, |(_, scale)| scale) as f64 / stored as f64;
                let exact = by == 1.0 && spec.ty != ColumnType::F64;
                let decimals = match (family, unit, spec.role) {
                    _ if exact => 0,
                    // Points in time keep their microseconds, else neighbours look simultaneous.
                    (Family::Time, Unit::S, Role::Time) => 6,
                    (Family::Time, ..) => 3,
                    (Family::Bytes, ..) => 1,
                };
                let point = spec.role == Role::Time;
                if exact { Look::Thousands } else { Look::Scaled { by, decimals, point } }
            } else {
                match (spec.unit, spec.role) {
                    (unit, _) if unit.is_hex() => Look::Hex { narrow: spec.ty == ColumnType::I32 },
                    (Unit::Utc100ns, _) => Look::Date,
                    (Unit::Percent, _) => Look::Decimals(1),
                    _ if spec.ty == ColumnType::F64 => Look::Decimals(3),
                    (_, Role::Count | Role::Weight | Role::Bytes) => Look::Thousands,
                    (Unit::Count | Unit::Ticks, _) => Look::Thousands,
                    _ => Look::Plain,
                }
            };
            let right = !matches!(look, Look::Text | Look::Date);
            let text = matches!(look, Look::Text) && spec.ty.is_text();
            columns.push(Column { header: sanitize(&header).into_owned(), right, text, look });
        }
        columns
    }

    /// A stored cell as text.
    pub(super) fn cell(&self, value: Value<'_>) -> String {
        match (value, self.look) {
            (Value::Null, _) => String::new(),
            (Value::Text(text), _) => sanitize(text).into_owned(),
            (Value::Bool(true), _) => "yes".to_owned(),
            (Value::Bool(false), _) => "no".to_owned(),
            (Value::I64(v), Look::Hex { narrow }) => crate::hex::Hex(v, narrow).to_string(),
            // Windows writes zero for "never".
            (Value::I64(v), Look::Date) if v <= 0 => String::new(),
            (Value::I64(v), Look::Date) => filetime_text(v, 3),
            (Value::I64(v), Look::Thousands) => thousands(i128::from(v)),
            // An exact zero looks different from what is too small for the decimals.
            (Value::I64(0), Look::Scaled { point: false, .. }) => "0".to_owned(),
            (Value::I64(v), Look::Scaled { by, decimals, .. }) => decimal(v as f64 / by, decimals),
            (Value::I64(v), Look::Decimals(decimals)) => decimal(v as f64, decimals),
            (Value::I64(v), Look::Plain | Look::Text) => v.to_string(),
            (Value::F64(v), Look::Scaled { by, decimals, .. }) => decimal(v / by, decimals),
            (Value::F64(v), Look::Decimals(decimals)) => decimal(v, decimals),
            (Value::F64(v), _) => decimal(v, 3),
        }
    }
}

/// The unit in which the largest number of a column has at least two digits before the point.
fn readable(family: Family, largest: u128, stored: Unit) -> Unit {
    let units: &[Unit] = match family {
        Family::Time => &[Unit::S, Unit::Ms, Unit::Us],
        Family::Bytes => &[Unit::GiB, Unit::MiB, Unit::KiB],
    };
    let size = |unit: Unit| unit.scale().map_or(1, |(_, scale)| u128::from(scale.unsigned_abs()));
    let found = units.iter().copied().find(|unit| largest >= 10 * size(*unit));
    // Never a smaller unit than the stored one: that would only add zeros.
    found.filter(|unit| size(*unit) > size(stored)).unwrap_or(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_largest_number() {
        assert_eq!(readable(Family::Time, 9_999, Unit::Ns), Unit::Ns);
        assert_eq!(readable(Family::Time, 10_000, Unit::Ns), Unit::Us);
        assert_eq!(readable(Family::Time, 5_000_000_000, Unit::Ns), Unit::Ms);
        assert_eq!(readable(Family::Time, 10_000_000_000, Unit::Ns), Unit::S);
        assert_eq!(readable(Family::Time, 20_000, Unit::Ms), Unit::Ms);
        assert_eq!(readable(Family::Bytes, 10 << 20, Unit::Bytes), Unit::MiB);
    }
}
