//! What users give for single analyses besides the trace.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

/// Values by their type: the pass hands them over, and whoever knows the type reads them.
#[derive(Default)]
pub struct Inputs(BTreeMap<TypeId, Box<dyn Any>>);

impl Inputs {
    /// Adds values of a type; they replace those given before.
    pub fn with<T: Any>(mut self, values: Vec<T>) -> Inputs {
        self.0.insert(TypeId::of::<T>(), Box::new(values));
        self
    }

    /// The values of a type.
    pub fn all<T: Any>(&self) -> &[T] {
        let values = self.0.get(&TypeId::of::<T>()).and_then(|values| values.downcast_ref::<Vec<T>>());
        values.map_or(&[], Vec::as_slice)
    }
}

/// The part of a trace that analyses see, ns; the end does not belong to it. Trackers see all of it, so that it is known who is who; those
/// of what runs and waits stand still from the end on. What began earlier and ends within counts where it ends, as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Only {
    /// First moment.
    pub from_ns: i64,
    /// End.
    pub to_ns: i64,
}

impl Inputs {
    /// The part that analyses see; all of it unless one was given.
    pub(crate) fn only(&self) -> Only {
        self.all().first().copied().unwrap_or(Only { from_ns: i64::MIN, to_ns: i64::MAX })
    }
}

impl Only {
    /// The part of a span within it; a moment where there is none.
    pub(crate) fn clip(self, (first, last): (i64, i64)) -> (i64, i64) {
        let from = first.max(self.from_ns).min(last);
        (from, last.min(self.to_ns).max(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_type() {
        let inputs = Inputs::default().with(vec![1u8, 2]).with(vec!["a"]);
        assert_eq!((inputs.all::<u8>(), inputs.all::<&str>()), (&[1, 2][..], &["a"][..]));
        assert!(inputs.all::<u16>().is_empty());
    }

    #[test]
    fn a_part_lies_within_the_trace() {
        let clip = |from_ns, to_ns| Only { from_ns, to_ns }.clip((10, 20));
        assert_eq!(Inputs::default().only().clip((10, 20)), (10, 20));
        assert_eq!((clip(12, 15), clip(0, 15), clip(12, 99)), ((12, 15), (10, 15), (12, 20)));
        assert_eq!((clip(30, 40), clip(0, 5)), ((20, 20), (10, 10)));
    }
}
