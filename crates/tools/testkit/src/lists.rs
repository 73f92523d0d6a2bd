//! Lists that are found and those that are wanted.

use std::fmt::Debug;

/// What is found is what is wanted, one by one: `found.are(&[…])`.
pub trait Are<T> {
    /// Fails, showing both lists, if they differ.
    fn are<W: Debug>(&self, wanted: &[W])
    where
        T: PartialEq<W>;
}

impl<T: Debug> Are<T> for [T] {
    #[track_caller]
    fn are<W: Debug>(&self, wanted: &[W])
    where
        T: PartialEq<W>,
    {
        assert_eq!(self, wanted);
    }
}

/// The list in order, for what comes in none.
pub fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}
