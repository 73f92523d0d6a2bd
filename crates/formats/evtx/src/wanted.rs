//! Which fields of a record are wanted, decided once for each layout.

use crate::binxml::{Cell, Name};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Decides about fields. What decides that all are wanted costs nothing.
pub(crate) trait Wanted {
    /// The next fields are those of this layout: what has the same number has the same fields.
    fn look_at(&mut self, layout: u64, cells: &[Cell]);

    /// The n-th field of the layout is wanted.
    fn takes(&self, n: usize) -> bool;

    /// A field of this name is wanted.
    fn takes_name(&self, name: Name<'_>) -> bool;
}

/// All fields are wanted.
pub(crate) struct Every;

impl Wanted for Every {
    #[inline(always)]
    fn look_at(&mut self, _: u64, _: &[Cell]) {}

    #[inline(always)]
    fn takes(&self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn takes_name(&self, _: Name<'_>) -> bool {
        true
    }
}

/// Layouts that are remembered: a log has some hundreds, unless somebody made it for this.
const MOST_LAYOUTS: usize = 8_192;

/// Fields of some names are wanted; `Data3` is the third of those without.
pub(crate) struct Named {
    names: &'static [&'static str],
    /// For each layout which of its fields are wanted, by place in `places`.
    known: HashMap<u64, usize, RandomState>,
    places: Vec<Box<[bool]>>,
    /// The layout of the record before, and its place.
    last: Option<u64>,
    at: usize,
}

impl Named {
    pub(crate) fn new(names: &'static [&'static str]) -> Named {
        Named { names, known: HashMap::default(), places: Vec::new(), last: None, at: 0 }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }
}

impl Wanted for Named {
    #[inline]
    fn look_at(&mut self, layout: u64, cells: &[Cell]) {
        if self.last == Some(layout) {
            return;
        }
        self.last = Some(layout);
        if let Some(at) = self.known.get(&layout) {
            self.at = *at;
            return;
        }
        if self.places.len() >= MOST_LAYOUTS {
            self.known.clear();
            self.places.clear();
        }
        let takes = |(n, cell): (usize, &Cell)| match &cell.name {
            Some(name) => self.has(name),
            None => self.has(&format!("Data{}", n + 1)),
        };
        let places = cells.iter().enumerate().map(takes).collect();
        self.at = self.places.len();
        self.places.push(places);
        self.known.insert(layout, self.at);
    }

    #[inline]
    fn takes(&self, n: usize) -> bool {
        self.places.get(self.at).and_then(|places| places.get(n)).copied().unwrap_or(false)
    }

    fn takes_name(&self, name: Name<'_>) -> bool {
        match name {
            Name::Named(name) => self.has(name),
            Name::Nth(n) => self.has(&format!("Data{n}")),
        }
    }
}
