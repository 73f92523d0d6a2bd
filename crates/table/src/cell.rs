//! Which Rust types a row's fields can have, and which columns they make.

use crate::column::{BoolBuilder, ColumnBuilder, LongTextBuilder, PlainBuilder};
use crate::{ColumnType, Sym};

/// A type that a field of a row can have: `i64`, `i32`, `f64`, `bool`, [`Sym`], `Box<str>`, `String`, and
/// the `Option` of each.
pub trait Cell {
    /// What the column is stored as.
    const TYPE: ColumnType;
    /// True if cells may be empty.
    const NULLABLE: bool;
    /// The column while it grows.
    type Builder: ColumnBuilder + Default;
    /// Appends the cell.
    fn append(self, column: &mut Self::Builder);
}

macro_rules! cells {
    ($($ty:ty => $variant:ident, $builder:ty;)*) => {$(
        impl Cell for $ty {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = false;
            type Builder = $builder;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                column.push(self);
            }
        }

        impl Cell for Option<$ty> {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = true;
            type Builder = $builder;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                column.push_option(self);
            }
        }
    )*};
}

cells! {
    i64 => I64, PlainBuilder<i64>;
    i32 => I32, PlainBuilder<i32>;
    f64 => F64, PlainBuilder<f64>;
    Sym => Text, PlainBuilder<Sym>;
    bool => Bool, BoolBuilder;
}

macro_rules! text_cells {
    ($($ty:ty),*) => {$(
        impl Cell for $ty {
            const TYPE: ColumnType = ColumnType::LongText;
            const NULLABLE: bool = false;
            type Builder = LongTextBuilder;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                column.push(&self);
            }
        }

        impl Cell for Option<$ty> {
            const TYPE: ColumnType = ColumnType::LongText;
            const NULLABLE: bool = true;
            type Builder = LongTextBuilder;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                column.push_option(self.as_deref());
            }
        }
    )*};
}

text_cells!(Box<str>, String);
