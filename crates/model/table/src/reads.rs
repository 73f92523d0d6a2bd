//! Which tables code reads, said by the types of their rows.
//!
//! What is made from tables declares the types of the rows that it reads, and gets a database that has these tables only
//! ([`Database::limited_to`]): a name can neither be wrong nor missing.

use crate::{Database, Row, TableSpec};

/// What code reads: the rows of a table, or of several. What is read in many places has a name for its tuple.
pub trait Reads {
    /// Adds the tables.
    fn add_to(tables: &mut Vec<&'static TableSpec>);
}

impl<R: Row> Reads for R {
    fn add_to(tables: &mut Vec<&'static TableSpec>) {
        tables.push(R::spec());
    }
}

macro_rules! several {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Reads, $($rest: Reads),*> Reads for ($first, $($rest,)*) {
            fn add_to(tables: &mut Vec<&'static TableSpec>) {
                $first::add_to(tables);
                $($rest::add_to(tables);)*
            }
        }
        several!($($rest)*);
    };
    () => {};
}
several!(A B C D E F G H I J K L M N O P);

/// The tables that are read by `T`, in the order of the types: what a declaration holds.
pub fn reads<T: Reads>() -> Vec<&'static TableSpec> {
    let mut tables = Vec::new();
    T::add_to(&mut tables);
    tables
}

impl Database {
    /// The database with these tables only, if it has them. Rows are shared. Asking it for another table is a mistake of the code
    /// that declared what it reads: builds for tests fail there, others find no such table.
    pub fn limited_to(&self, tables: &[&'static TableSpec]) -> Database {
        let names: Vec<&'static str> = tables.iter().map(|table| table.name.as_ref()).collect();
        let mut out = Database::new();
        for table in names.iter().filter_map(|name| self.get(name)) {
            out.insert(table.clone());
        }
        self.metadata().for_each(|(key, value)| out.set_metadata(key, value));
        out.limit(names);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_table;
    use crate::test_table::{ExampleRow, example};

    define_table! {
        /// Another table.
        table OTHER: OtherRow = "other" {
            version: 1,
            /// Processor.
            cpu: i32 [None, Cpu],
        }
    }

    type Both = (ExampleRow, OtherRow);

    #[test]
    fn types_name_their_tables() {
        let names = |tables: Vec<&TableSpec>| tables.iter().map(|t| t.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(reads::<OtherRow>()), ["other"]);
        assert_eq!(names(reads::<(Both, ExampleRow)>()), ["example", "other", "example"]);
    }

    #[test]
    fn a_limited_database_has_what_was_declared() {
        let mut db = Database::new();
        db.insert(example());
        db.set_metadata("file", "a.etl");
        let limited = db.limited_to(&reads::<Both>());
        assert_eq!(limited.read::<ExampleRow>().unwrap().len(), 4);
        assert!(limited.read_or_empty::<OtherRow>().is_empty());
        assert_eq!(limited.metadata().collect::<Vec<_>>(), [("file", "a.etl")]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "table example is read but not declared")]
    fn what_is_read_is_declared() {
        let mut db = Database::new();
        db.insert(example());
        db.limited_to(&reads::<OtherRow>()).read_or_empty::<ExampleRow>();
    }
}
