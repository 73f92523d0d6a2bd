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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_type() {
        let inputs = Inputs::default().with(vec![1u8, 2]).with(vec!["a"]);
        assert_eq!((inputs.all::<u8>(), inputs.all::<&str>()), (&[1, 2][..], &["a"][..]));
        assert!(inputs.all::<u16>().is_empty());
    }
}
