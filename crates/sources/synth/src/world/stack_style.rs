//! How stacks are recorded.

/// How stacks are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `StackWalk/Stack` (32), the kernel half and the user half apart, the user half late.
    Walk,
    /// `StackWalk/Stack` (32) with both halves.
    Full,
    /// `StackWalk/KeyKernel` and `KeyUser` (37, 38); the stacks themselves at the end of the trace (36).
    Keys,
    /// No stacks.
    None,
}

impl Style {
    pub(crate) fn parse(text: Option<&str>) -> Result<Style, String> {
        Ok(match text.unwrap_or("walk") {
            "walk" | "split" => Style::Walk,
            "full" => Style::Full,
            "keys" | "key" => Style::Keys,
            "none" => Style::None,
            other => return Err(format!("stack_style = {other:?}: allowed are walk, full, keys and none")),
        })
    }
}
