//! How sure a fact is.

/// How sure a fact is; the least sure comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// General knowledge that no other text was found for; say "probably".
    Low,
    /// One list, or the name also occurs elsewhere.
    Medium,
    /// The vendor's own registration with Microsoft, or two lists agree.
    High,
}

impl Confidence {
    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    pub(crate) fn parse(text: &str) -> Confidence {
        match text {
            "high" => Confidence::High,
            "medium" => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}
