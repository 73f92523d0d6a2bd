//! Which Rust types a row's fields can have, which columns they make, and as what they are read.

use crate::column::{BoolBuilder, ColumnBuilder, LongTextBuilder, PlainBuilder};
use crate::view::{string, valid};
use crate::{ColumnType, ColumnView, Sym};
use arrow_array::{Array, BooleanArray, StringArray};
use arrow_buffer::NullBuffer;

/// A type that a field of a row can have: `i64`, `i32`, `f64`, `bool`, [`Sym`], `Box<str>`, `String`, and
/// the `Option` of each.
pub trait Cell {
    /// What the column is stored as.
    const TYPE: ColumnType;
    /// True if cells may be empty.
    const NULLABLE: bool;
    /// The column while it grows.
    type Builder: ColumnBuilder + Default;
    /// The column of one finished batch.
    type View<'a>: Copy;
    /// What is read from it: `i64` for integers of either width, `&str` for texts.
    type Read<'a>;
    /// Appends the cell.
    fn append(self, column: &mut Self::Builder);
    /// The column, if it is of this type.
    fn view(column: ColumnView<'_>) -> Option<Self::View<'_>>;
    /// A cell. Where one that cannot be empty is, or there is no such row: zero, false, no text.
    fn read<'a>(view: &Self::View<'a>, row: usize) -> Self::Read<'a>;
}

/// Numbers of one batch.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a, T>(&'a [T], Option<&'a NullBuffer>);

/// Texts of one batch that repeat.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a>(Numbers<'a, i32>, &'a StringArray);

impl Names<'_> {
    /// The number of the text: equal texts have equal numbers in all tables of one analysis.
    #[inline]
    pub fn sym(&self, row: usize) -> Option<Sym> {
        valid(self.0.0, self.0.1, row).map(|key| Sym(key as u32))
    }
}

macro_rules! cells {
    ($($ty:ty => $builder:ty, $view:ty, $read:ty, $variant:ident $parts:tt => $make:expr,
        $push:ident => $pushed:expr, $option:ident => $optional:expr, |$of:ident, $row:ident| $get:expr;)*
    ) => {$(
        impl Cell for $ty {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = false;
            type Builder = $builder;
            type View<'a> = $view;
            type Read<'a> = $read;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                let $push = self;
                column.push($pushed);
            }
            fn view(column: ColumnView<'_>) -> Option<Self::View<'_>> {
                match column {
                    ColumnView::$variant $parts => Some($make),
                    _ => None,
                }
            }
            #[inline]
            fn read<'a>(view: &Self::View<'a>, row: usize) -> Self::Read<'a> {
                <Option<$ty>>::read(view, row).unwrap_or_default()
            }
        }

        impl Cell for Option<$ty> {
            const TYPE: ColumnType = ColumnType::$variant;
            const NULLABLE: bool = true;
            type Builder = $builder;
            type View<'a> = $view;
            type Read<'a> = Option<$read>;
            #[inline]
            fn append(self, column: &mut Self::Builder) {
                let $option = self;
                column.push_option($optional);
            }
            fn view(column: ColumnView<'_>) -> Option<Self::View<'_>> {
                <$ty>::view(column)
            }
            #[inline]
            fn read<'a>($of: &Self::View<'a>, $row: usize) -> Self::Read<'a> {
                $get
            }
        }
    )*};
}

cells! {
    i64 => PlainBuilder<i64>, Numbers<'a, i64>, i64, I64(v, n) => Numbers(v, n),
        cell => cell, cell => cell, |of, row| valid(of.0, of.1, row);
    i32 => PlainBuilder<i32>, Numbers<'a, i32>, i64, I32(v, n) => Numbers(v, n),
        cell => cell, cell => cell, |of, row| valid(of.0, of.1, row).map(i64::from);
    f64 => PlainBuilder<f64>, Numbers<'a, f64>, f64, F64(v, n) => Numbers(v, n),
        cell => cell, cell => cell, |of, row| valid(of.0, of.1, row);
    Sym => PlainBuilder<Sym>, Names<'a>, &'a str, Text(v, texts, n) => Names(Numbers(v, n), texts),
        cell => cell, cell => cell, |of, row| string(of.1, of.sym(row)?.0 as usize);
    bool => BoolBuilder, &'a BooleanArray, bool, Bool(a) => a,
        cell => cell, cell => cell, |of, row| (row < of.len() && !of.is_null(row)).then(|| of.value(row));
    Box<str> => LongTextBuilder, &'a StringArray, &'a str, LongText(a) => a,
        cell => &cell, cell => cell.as_deref(), |of, row| string(of, row);
    String => LongTextBuilder, &'a StringArray, &'a str, LongText(a) => a,
        cell => &cell, cell => cell.as_deref(), |of, row| string(of, row);
}
