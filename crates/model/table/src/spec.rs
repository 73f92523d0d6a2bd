//! The declaration of a table: what its columns are called, hold, mean and are measured in.

use std::borrow::Cow;

use crate::Unit;
use crate::named_enum::named_enum;

/// A table's declaration. [`define_table!`](crate::define_table) writes it from the row's source text.
///
/// Texts and the column list are [`Cow`]s so that a declaration can be a `static` and the result of a
/// query can have one too.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSpec {
    /// The name in SQL, file names and metadata, e.g. `sample`.
    pub name: Cow<'static, str>,
    /// One line for people; the first line of the documentation unless given.
    pub title: Cow<'static, str>,
    /// The manual page, in Markdown. Lines may begin with one space; [`TableSpec::manual`] removes it.
    pub doc: Cow<'static, str>,
    /// The columns, in order.
    pub columns: Cow<'static, [ColumnSpec]>,
    /// The column by which rows stand in ascending order, if any.
    pub sorted_by: Option<Cow<'static, str>>,
    /// Raised whenever the meaning of a column changes or a column goes.
    pub version: u32,
    /// How it is known that the rows are right.
    pub evidence: Evidence,
}

impl TableSpec {
    /// The column called `name`, by exact spelling.
    pub fn column(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The position of the column called `name`, by exact spelling.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The manual page as Markdown, without the leading space that doc comments leave on each line.
    pub fn manual(&self) -> String {
        let lines = self.doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A column's declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// The name; it ends in its unit where it has one (`wait_ns`).
    pub name: Cow<'static, str>,
    /// What a cell is stored as.
    pub ty: ColumnType,
    /// What a number is measured in.
    pub unit: Unit,
    /// What the column means to filters, joins and pictures.
    pub role: Role,
    /// What the column says, in a sentence or two.
    pub doc: Cow<'static, str>,
    /// True if cells may be empty.
    pub nullable: bool,
}

/// What a cell is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// 64-bit floating point.
    F64,
    /// True or false.
    Bool,
    /// Text that repeats: Arrow `Dictionary(Int32, Utf8)` over the values of the analysis.
    Text,
    /// Text that is mostly unique: Arrow `Utf8`.
    LongText,
}

impl ColumnType {
    /// The name for messages and metadata.
    pub const fn name(self) -> &'static str {
        match self {
            ColumnType::I64 => "i64",
            ColumnType::I32 => "i32",
            ColumnType::F64 => "f64",
            ColumnType::Bool => "bool",
            ColumnType::Text => "text",
            ColumnType::LongText => "long text",
        }
    }

    /// True for the three number types.
    pub const fn is_number(self) -> bool {
        matches!(self, ColumnType::I64 | ColumnType::I32 | ColumnType::F64)
    }

    /// True for both kinds of text.
    pub const fn is_text(self) -> bool {
        matches!(self, ColumnType::Text | ColumnType::LongText)
    }
}

/// How it is known that a table's rows are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Compared with something independent; says with what.
    Verified(&'static str),
    /// Follows documentation alone; no real input has confirmed it.
    Documented,
}

impl Evidence {
    /// One line for people and metadata.
    pub fn text(self) -> String {
        match self {
            Evidence::Verified(with) => format!("verified: {with}"),
            Evidence::Documented => "documented".to_owned(),
        }
    }
}

named_enum! {
    /// What a column means to filters, joins and pictures.
    pub enum Role {
        /// A point in time.
        Time = "time",
        /// A span of time.
        Duration = "duration",
        /// A logical processor's number.
        Cpu = "cpu",
        /// A process, as the dense id `upid` of table `process`.
        Process = "process",
        /// A thread, as the dense id `utid` of table `thread`.
        Thread = "thread",
        /// The operating system's process id, which is reused.
        Pid = "pid",
        /// The operating system's thread id, which is reused.
        Tid = "tid",
        /// A stack, as an id of table `stack`.
        Stack = "stack",
        /// A frame, as an id of table `frame`.
        Frame = "frame",
        /// A loaded image (module, driver), as an id of table `image`.
        Image = "image",
        /// This table's own dense id, or a reference to one that has no role of its own.
        Id = "id",
        /// A file or key path.
        Path = "path",
        /// A name.
        Name = "name",
        /// A kind out of a small set: operation, state, category.
        Kind = "kind",
        /// A GUID as text.
        Guid = "guid",
        /// A count of bytes.
        Bytes = "bytes",
        /// A count of things.
        Count = "count",
        /// What a sample or row weighs when rows are added up.
        Weight = "weight",
        /// A result code.
        Status = "status",
        /// True or false, or bits.
        Flag = "flag",
        /// A virtual or physical address.
        Address = "address",
        /// Free text: a command line, a message, the fields of an event.
        Message = "message",
        /// None of the above.
        Other = "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(*role));
        }
        for unit in Unit::ALL {
            assert_eq!(Unit::from_name(unit.name()), Some(*unit));
        }
    }
}
