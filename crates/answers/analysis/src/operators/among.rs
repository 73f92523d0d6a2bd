//! Values that a question names of one thing: processes, threads, processors.
//!
//! A row has one of them, so two that are wanted can never hold at once: either is enough. What is not wanted is left out one by one.

use std::fmt::Display;

/// Values of one thing, wanted and not wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Among<T = i64> {
    wanted: Vec<T>,
    unwanted: Vec<T>,
}

impl<T> Default for Among<T> {
    fn default() -> Among<T> {
        Among { wanted: Vec::new(), unwanted: Vec::new() }
    }
}

impl<T: PartialEq> FromIterator<(T, bool)> for Among<T> {
    /// Values, each with whether it is wanted.
    fn from_iter<I: IntoIterator<Item = (T, bool)>>(values: I) -> Among<T> {
        let mut made = Among::default();
        for (value, is) in values {
            let list = if is { &mut made.wanted } else { &mut made.unwanted };
            if !list.contains(&value) {
                list.push(value);
            }
        }
        made
    }
}

impl<T: PartialEq> Among<T> {
    /// True if everything is wanted.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.unwanted.is_empty()
    }

    /// Those that are wanted; none: all but [`Among::unwanted`].
    pub fn wanted(&self) -> &[T] {
        &self.wanted
    }

    /// Those that are not wanted.
    pub fn unwanted(&self) -> &[T] {
        &self.unwanted
    }

    /// True if a row with this value counts. What has no value is none of those that are wanted, nor of the others.
    pub fn has(&self, value: Option<T>) -> bool {
        let among = |list: &[T]| value.as_ref().is_some_and(|value| list.contains(value));
        (self.wanted.is_empty() || among(&self.wanted)) && !among(&self.unwanted)
    }
}

impl<T: Display> Among<T> {
    /// That a column holds one that is wanted, in SQL.
    pub fn wanted_sql(&self, column: &str) -> Option<String> {
        match self.wanted.as_slice() {
            [] => None,
            [one] => Some(format!("{column} = {one}")),
            list => {
                let list: Vec<String> = list.iter().map(T::to_string).collect();
                Some(format!("{column} IN ({})", list.join(", ")))
            }
        }
    }

    /// [`Among::has`] as conditions of SQL.
    pub fn sql(&self, column: &str) -> Vec<String> {
        let unwanted = self.unwanted.iter().map(|one| format!("{column} IS NOT {one}"));
        self.wanted_sql(column).into_iter().chain(unwanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_of_those_wanted_and_none_of_the_others() {
        let of = |values: &[(i64, bool)]| values.iter().copied().collect::<Among>();
        let counted = |among: &Among| [Some(1), Some(2), Some(3), None].map(|value| among.has(value));
        assert_eq!(counted(&of(&[])), [true; 4]);
        assert_eq!(counted(&of(&[(1, true), (2, true)])), [true, true, false, false]);
        assert_eq!(counted(&of(&[(1, false), (2, false)])), [false, false, true, true]);
        assert_eq!(counted(&of(&[(1, true), (2, true), (2, false)])), [true, false, false, false]);
        let all = of(&[(1, true), (2, true), (1, true), (4, false), (5, false)]);
        assert_eq!(all.sql("upid"), ["upid IN (1, 2)", "upid IS NOT 4", "upid IS NOT 5"]);
        assert_eq!(of(&[(7, true)]).sql("cpu"), ["cpu = 7"]);
    }
}
