//! A field of a layout: its name, and which value it has.

use super::piece::Piece;
use std::sync::Arc;

/// A field: its name, and which value it has.
#[derive(Clone, Debug)]
pub struct Cell {
    /// `None` for the n-th of those without.
    pub name: Option<Arc<str>>,
    /// Number of the value, or [`Cell::NOTHING`].
    pub(super) value: u16,
    /// It is left out if its value is null.
    pub optional: bool,
    /// It belongs to the text that came with a forwarded event.
    pub forwarded: bool,
    /// Comma, name and colon in an object of JSON, unless the name has what must be escaped there.
    pub json: Option<Piece>,
}

/// Fields of a layout, and bytes of their names; more are read the long way, where what a chunk hands over is counted.
const MOST: usize = 2048;
const MOST_NAMES: usize = 64 << 10;
/// Fields that have the same value: more would make a small record large.
const MOST_SHARED: usize = 4;

impl Cell {
    /// It has no value.
    pub(super) const NOTHING: u16 = u16::MAX;

    pub(super) fn new(name: Option<Arc<str>>, value: u16, optional: bool) -> Cell {
        let forwarded = name.as_ref().is_some_and(|name| name.starts_with("RenderingInfo."));
        let json = name.as_deref().and_then(json_name);
        Cell { name, value, optional, forwarded, json }
    }

    /// Numbers those that have no name.
    pub(super) fn numbered(mut cells: Vec<Cell>) -> Box<[Cell]> {
        for (n, cell) in cells.iter_mut().filter(|cell| cell.name.is_none()).enumerate() {
            cell.json = json_name(&format!("Data{}", n + 1));
        }
        cells.into()
    }

    /// True if these can be read as cells: all have names or none has.
    pub(super) fn are_simple(cells: &[Cell]) -> bool {
        let named = cells.iter().filter(|cell| cell.name.is_some()).count();
        let names: usize = cells.iter().filter_map(|cell| cell.name.as_ref().map(|name| name.len())).sum();
        let small = cells.len() <= MOST && names <= MOST_NAMES;
        small && (named == 0 || named == cells.len()) && !Cell::share(cells)
    }

    /// True if too many have the same value.
    fn share(cells: &[Cell]) -> bool {
        let mut values: Vec<u16> =
            cells.iter().map(|cell| cell.value).filter(|value| *value != Cell::NOTHING).collect();
        values.sort_unstable();
        values.chunk_by(|a, b| a == b).any(|same| same.len() > MOST_SHARED)
    }

    /// True if value n is that of cell n.
    pub(super) fn are_straight(cells: &[Cell]) -> bool {
        cells.iter().enumerate().all(|(n, cell)| usize::from(cell.value) == n)
    }
}

/// A name as it stands before a value in JSON.
fn json_name(name: &str) -> Option<Piece> {
    let plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    plain.then(|| Piece::new(format!(",\"{name}\":").as_bytes()))
}
