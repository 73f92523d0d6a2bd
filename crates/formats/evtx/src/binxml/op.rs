//! The instructions of a compiled template.

use std::sync::Arc;

/// An instruction.
#[derive(Clone, Debug)]
pub enum Op {
    /// An element begins. `end` is the place behind its `End`.
    Open {
        /// Its name.
        name: Arc<str>,
        /// It is left out if this value is null.
        depends: Option<u16>,
        /// Place behind its `End`.
        end: usize,
        /// Substitutions that stand in its content (first) and attributes, not in elements within.
        own: Box<[u16]>,
    },
    /// An attribute begins; its value ends before `end`.
    Attribute(Arc<str>, usize),
    /// Content begins.
    Content,
    /// The element ends.
    End,
    /// A literal, not escaped.
    Text(Box<str>),
    /// A CDATA section.
    CData(Box<str>),
    /// `&name;`.
    Entity(Box<str>),
    /// `<?target data?>`.
    Instruction(Box<str>, Box<str>),
    /// A value of the instance.
    Substitution {
        /// Which.
        number: u16,
        /// Nothing is written if it is empty.
        optional: bool,
    },
}
