//! Facts of the knowledge base about modules and programs, as tables show them.

/// Vendor and category of a driver or program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) vendor: &'static str,
    pub(crate) category: &'static str,
}

/// What is known of a driver by its file name.
pub(crate) fn driver(_name: &str) -> Option<Fact> {
    None
}

/// What is known of a program by its image name.
pub(crate) fn process(_name: &str) -> Option<Fact> {
    None
}

/// Tag of a function on a stack.
pub(crate) fn stack_tag(_module: &str, _function: &str) -> Option<&'static str> {
    None
}
