//! [`define_table!`](crate::define_table).

/// Declares a table: the row struct, its [`TableSpec`](crate::TableSpec), and the code that appends and reads rows.
///
/// The documentation of the declaration is the table's manual page, the documentation of a field that of
/// the column. `title`, `sorted_by` and `evidence` may be left out (the first line of the manual page, no
/// order, [`Evidence::Documented`](crate::Evidence::Documented)).
///
/// ```
/// etwhy_table::define_table! {
///     /// One row per event of the profiling timer.
///     pub table SAMPLE: SampleRow = "sample" {
///         sorted_by: "ts_ns", version: 1, evidence: Verified("two other readers"),
///         /// When the sample was taken.
///         ts_ns: i64 [Ns, Time],
///         /// Logical processor.
///         cpu: i32 [None, Cpu],
///         /// Name of the image, if the address lies in one.
///         image: Option<etwhy_table::Sym> [None, Name],
///     }
/// }
/// assert_eq!(SAMPLE.title, "One row per event of the profiling timer");
/// assert_eq!(SAMPLE.columns[0].doc, "When the sample was taken.");
/// let mut strings = etwhy_table::Strings::new();
/// let mut rows = etwhy_table::TableBuilder::<SampleRow>::new(&Default::default());
/// rows.push(SampleRow { ts_ns: 5, cpu: 0, image: Some(strings.intern("ntoskrnl.exe")) });
/// let table = rows.finish(&strings.freeze()?)?;
/// let mut db = etwhy_table::Database::new();
/// db.insert(table);
/// for sample in &db.read::<SampleRow>()? {
///     assert_eq!((sample.ts_ns(), sample.image()), (5, Some("ntoskrnl.exe")));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! define_table {
    (
        $(#[doc = $table_doc:literal])+
        $vis:vis table $SPEC:ident : $Row:ident = $name:literal {
            $(title: $title:literal,)?
            $(sorted_by: $sorted_by:literal,)?
            version: $version:literal,
            $(evidence: $evidence:ident $(($with:literal))?,)?
            $(
                $(#[doc = $doc:literal])+
                $column:ident : $ty:ty [$unit:ident, $role:ident]
            ),+ $(,)?
        }
    ) => {
        $(#[doc = $table_doc])+
        $vis static $SPEC: $crate::TableSpec = $crate::TableSpec {
            name: ::std::borrow::Cow::Borrowed($name),
            title: ::std::borrow::Cow::Borrowed(
                $crate::__private::title(&[$($title,)? concat!($($table_doc, "\n"),+)])
            ),
            doc: ::std::borrow::Cow::Borrowed(concat!($($table_doc, "\n"),+).trim_ascii()),
            columns: ::std::borrow::Cow::Borrowed(&[$(
                $crate::ColumnSpec {
                    name: ::std::borrow::Cow::Borrowed(stringify!($column)),
                    ty: <$ty as $crate::Cell>::TYPE,
                    unit: $crate::Unit::$unit,
                    role: $crate::Role::$role,
                    doc: ::std::borrow::Cow::Borrowed(concat!($($doc),+).trim_ascii()),
                    nullable: <$ty as $crate::Cell>::NULLABLE,
                }
            ),+]),
            sorted_by: $crate::__private::sorted_by(&[$($sorted_by)?]),
            version: $version,
            evidence: $crate::__private::evidence(&[$($crate::Evidence::$evidence $(($with))?)?]),
        };

        $(#[doc = $table_doc])+
        #[derive(Debug, Clone)]
        $vis struct $Row {
            $( $(#[doc = $doc])+ pub $column: $ty, )+
        }

        const _: () = {
            #[doc(hidden)]
            pub struct Views<'a> {
                $( pub $column: <$ty as $crate::Cell>::View<'a>, )+
            }

            #[doc(hidden)]
            #[derive(Clone, Copy)]
            pub struct Ref<'r, 'a> {
                /// The columns of the row's batch.
                pub views: &'r Views<'a>,
                /// Which row of the batch.
                pub at: usize,
            }

            #[allow(dead_code)]
            impl<'a> Ref<'_, 'a> {
                $(
                    $(#[doc = $doc])+
                    #[inline]
                    pub fn $column(self) -> <$ty as $crate::Cell>::Read<'a> {
                        <$ty as $crate::Cell>::read(&self.views.$column, self.at)
                    }
                )+
            }

            impl $crate::Row for $Row {
                type Columns = ( $( <$ty as $crate::Cell>::Builder, )+ );

                fn spec() -> &'static $crate::TableSpec {
                    &$SPEC
                }

                fn columns() -> Self::Columns {
                    ( $( <<$ty as $crate::Cell>::Builder as ::std::default::Default>::default(), )+ )
                }

                #[inline]
                fn append(self, columns: &mut Self::Columns) {
                    let ( $( $column, )+ ) = columns;
                    $( $crate::Cell::append(self.$column, $column); )+
                }

                #[inline]
                fn text_bytes(columns: &Self::Columns) -> usize {
                    let ( $( $column, )+ ) = columns;
                    0 $( + $crate::ColumnBuilder::text_bytes($column) )+
                }

                fn finish_chunk(columns: &mut Self::Columns) -> ::std::vec::Vec<$crate::ColumnChunk> {
                    let ( $( $column, )+ ) = columns;
                    vec![ $( $crate::ColumnBuilder::finish_chunk($column), )+ ]
                }

                type Views<'a> = Views<'a>;
                type Ref<'r, 'a: 'r> = Ref<'r, 'a>;

                fn views<'a>(table: &'a $crate::Table, batch: usize, at: &[usize]) -> Option<Views<'a>> {
                    let mut at = at.iter();
                    Some(Views { $( $column: <$ty as $crate::Cell>::view(table.view(batch, *at.next()?))?, )+ })
                }

                #[inline]
                fn at<'r, 'a: 'r>(views: &'r Views<'a>, at: usize) -> Ref<'r, 'a> {
                    Ref { views, at }
                }
            }
        };
    };
}

/// What the macro needs at compile time.
pub mod private {
    use crate::Evidence;
    use std::borrow::Cow;

    /// The first text, up to its first line's end and without a final full stop.
    pub const fn title(texts: &'static [&'static str]) -> &'static str {
        let text = texts[0].trim_ascii();
        let bytes = text.as_bytes();
        let mut end = 0;
        while end < bytes.len() && bytes[end] != b'\n' {
            end += 1;
        }
        let line = text.split_at(end).0.trim_ascii();
        match line.as_bytes() {
            [head @ .., b'.'] => line.split_at(head.len()).0,
            _ => line,
        }
    }

    /// The column by which the table is sorted, if one is declared.
    pub const fn sorted_by(columns: &'static [&'static str]) -> Option<Cow<'static, str>> {
        match columns {
            [column, ..] => Some(Cow::Borrowed(column)),
            [] => None,
        }
    }

    /// The evidence, if declared.
    pub const fn evidence(evidence: &'static [Evidence]) -> Evidence {
        match evidence {
            [evidence, ..] => *evidence,
            [] => Evidence::Documented,
        }
    }
}
