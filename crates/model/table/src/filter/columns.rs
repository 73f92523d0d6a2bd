//! Finds the column that a user means, also when spelled in another unit.

use crate::{ColumnSpec, TableSpec, Unit, Value};

use super::FilterError;

/// A column as it was asked for: `wait_ms` is the column `wait_ns`, seen in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnRef {
    /// Position of the column in the table.
    pub index: usize,
    /// The name to show.
    pub name: String,
    /// The unit to show.
    pub unit: Unit,
    /// What turns a stored number into a shown one: multiply, then divide.
    ratio: (i64, i64),
}

impl ColumnRef {
    /// The column as it is declared.
    pub fn plain(index: usize, column: &ColumnSpec) -> ColumnRef {
        ColumnRef { index, name: column.name.to_string(), unit: column.unit, ratio: (1, 1) }
    }

    /// The column that `asked` means in `table`.
    ///
    /// Tried in this order: the exact name; the name in other case of letters; the same stem in another
    /// unit of the same family (`wait_ms`, `size_mb`); the stem alone (`wait`).
    ///
    /// # Errors
    /// If there is none; the error names those there are.
    pub fn find(asked: &str, table: &TableSpec) -> Result<ColumnRef, FilterError> {
        let columns = || table.columns.iter().enumerate();
        let named = columns()
            .find(|(_, c)| c.name == asked)
            .or_else(|| columns().find(|(_, c)| c.name.eq_ignore_ascii_case(asked)));
        if let Some((index, column)) = named {
            return Ok(ColumnRef::plain(index, column));
        }
        let lower = asked.to_ascii_lowercase();
        if let Some((stem, unit)) = Unit::of_name(&lower) {
            let derived = columns().find_map(|(index, column)| {
                let ratio = unit.ratio(column.unit)?;
                (stem_of(column) == stem || column.name == stem).then_some((index, ratio))
            });
            if let Some((index, ratio)) = derived {
                return Ok(ColumnRef { index, name: lower, unit, ratio });
            }
        }
        let mut by_stem = columns().filter(|(_, c)| c.unit.scale().is_some() && stem_of(c) == lower);
        if let (Some((index, column)), None) = (by_stem.next(), by_stem.next()) {
            return Ok(ColumnRef::plain(index, column));
        }
        Err(FilterError::unknown_column(asked, table))
    }

    /// This column in another unit of its family, under the name that [`ColumnRef::find`] understands;
    /// unchanged if the unit is of another family.
    pub fn in_unit(&self, column: &ColumnSpec, unit: Unit) -> ColumnRef {
        match unit.ratio(column.unit) {
            Some(ratio) if unit != self.unit => {
                let stem = stem_of(column);
                let name =
                    if stem.is_empty() { unit.name().to_owned() } else { format!("{stem}_{}", unit.name()) };
                ColumnRef { index: self.index, name, unit, ratio }
            }
            _ => self.clone(),
        }
    }

    /// True if the stored numbers are shown as they are.
    pub fn is_plain(&self) -> bool {
        self.ratio == (1, 1)
    }

    /// A stored cell as it is to be shown.
    #[inline]
    pub fn show<'a>(&self, cell: Value<'a>) -> Value<'a> {
        if self.is_plain() {
            return cell;
        }
        let (up, down) = (self.ratio.0 as f64, self.ratio.1 as f64);
        cell.as_f64().map_or(Value::Null, |v| Value::F64(v * up / down))
    }
}

/// The name without its unit.
fn stem_of(column: &ColumnSpec) -> &str {
    match Unit::of_name(&column.name) {
        Some((stem, unit)) if unit == column.unit => stem,
        _ => &column.name,
    }
}

/// The candidate that is most like `name`, if one is like it at all.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(64).map(|c| c.to_ascii_lowercase()).collect();
    let score = |candidate: &str| {
        let text: Vec<char> = candidate.chars().take(64).map(|c| c.to_ascii_lowercase()).collect();
        let begins = name.len() >= 3 && text.starts_with(&name);
        if begins { 1 } else { distance(&name, &text) }
    };
    let best = candidates.map(|c| (score(c), c)).min_by_key(|(score, _)| *score)?;
    // A third of the letters may be wrong, as in rustc's and git's suggestions.
    (best.0 <= (name.len() / 3).max(1)).then_some(best.1)
}

/// Levenshtein's edit distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let cost = (diagonal + usize::from(x != y)).min(left + 1).min(*above + 1);
            diagonal = *above;
            *above = cost;
            left = cost;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::EXAMPLE;

    #[test]
    fn other_units_find_their_column() {
        let wait = ColumnRef::find("wait_ms", &EXAMPLE).unwrap();
        assert_eq!((wait.index, wait.unit), (2, Unit::Ms));
        assert_eq!(wait.show(Value::I64(1_500_000)), Value::F64(1.5));
        assert_eq!(wait.show(Value::Null), Value::Null);
        assert_eq!(ColumnRef::find("WAIT_NS", &EXAMPLE).unwrap().name, "wait_ns");
        assert_eq!(ColumnRef::find("wait", &EXAMPLE).unwrap().name, "wait_ns");
        assert_eq!(
            ColumnRef::find("size_mb", &EXAMPLE).unwrap().show(Value::I64(3_000_000)),
            Value::F64(3.0)
        );
        assert_eq!(ColumnRef::find("ts_s", &EXAMPLE).unwrap().index, 0);
        assert!(ColumnRef::find("cpu_ms", &EXAMPLE).is_err());
        assert!(ColumnRef::find("size_ms", &EXAMPLE).is_err());
    }

    #[test]
    fn a_shown_unit_is_a_name_that_is_found() {
        let plain = ColumnRef::find("wait_ns", &EXAMPLE).unwrap();
        let shown = plain.in_unit(&EXAMPLE.columns[plain.index], Unit::Us);
        assert_eq!(shown, ColumnRef::find("wait_us", &EXAMPLE).unwrap());
        let size = ColumnRef::find("size", &EXAMPLE).unwrap();
        let shown = size.in_unit(&EXAMPLE.columns[size.index], Unit::MiB);
        assert_eq!(shown, ColumnRef::find("size_mib", &EXAMPLE).unwrap());
    }

    #[test]
    fn unknown_columns_name_the_known_ones() {
        let error = ColumnRef::find("cpuu", &EXAMPLE).unwrap_err().to_string();
        assert!(error.contains("unknown column `cpuu` in table `example`; it has: ts_ns, cpu,"), "{error}");
        assert!(error.ends_with("did you mean `cpu`?"), "{error}");
        let error = ColumnRef::find("zzzzzzzz", &EXAMPLE).unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn edit_distance() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
        assert_eq!(distance(&chars("abc"), &chars("")), 3);
        assert_eq!(closest("proces", ["process", "thread"].into_iter()), Some("process"));
        assert_eq!(closest("targetlogon", ["TargetLogonId", "x"].into_iter()), Some("TargetLogonId"));
    }
}
