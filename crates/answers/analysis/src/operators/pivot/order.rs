//! Order of cells and groups: nulls last in either direction.

use etwhy_table::Value;
use std::cmp::Ordering;

/// Compares two cells of one column.
pub(super) fn cells(a: &Value<'_>, b: &Value<'_>, down: bool) -> Ordering {
    let order = match (a, b) {
        (Value::Null, Value::Null) => return Ordering::Equal,
        (Value::Null, _) => return Ordering::Greater,
        (_, Value::Null) => return Ordering::Less,
        (Value::I64(a), Value::I64(b)) => a.cmp(b),
        (Value::F64(a), Value::F64(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    };
    if down { order.reverse() } else { order }
}

/// Puts the `count` first ones in order and drops the others.
pub(super) fn top<T>(list: &mut Vec<T>, count: usize, mut compare: impl FnMut(&T, &T) -> Ordering) {
    if count == 0 {
        list.clear();
    } else if count < list.len() {
        list.select_nth_unstable_by(count - 1, &mut compare);
        list.truncate(count);
    }
    list.sort_unstable_by(compare);
}
