//! What a policy says of one subcategory.

/// A setting of the system's audit policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// No auditing.
    None,
    /// Successes.
    Success,
    /// Failures.
    Failure,
    /// Successes and failures.
    Both,
    /// The policy leaves it as it is.
    Unspecified,
    /// The file says something that is not understood.
    Unknown,
}

impl Setting {
    /// The setting for two switches.
    pub const fn new(success: bool, failure: bool) -> Setting {
        match (success, failure) {
            (false, false) => Setting::None,
            (true, false) => Setting::Success,
            (false, true) => Setting::Failure,
            (true, true) => Setting::Both,
        }
    }

    /// The number of `Setting Value` for a system policy (MS-GPAC 2.2.1.3.1). 0 is "unchanged" there, but Group Policy's console and
    /// `auditpol /backup` write it for No Auditing, so the words beside it decide; without words that are known it says nothing.
    pub fn of_value(value: u32, words: Option<Setting>) -> Setting {
        match (value, words) {
            (0, None) => Setting::Unknown,
            (0, Some(Setting::Unspecified)) => Setting::Unspecified,
            (0 | 4, _) => Setting::None,
            (1, _) => Setting::Success,
            (2, _) => Setting::Failure,
            (3, _) => Setting::Both,
            _ => Setting::Unknown,
        }
    }

    /// True, false, or `None` where the policy does not say.
    pub const fn success(self) -> Option<bool> {
        match self {
            Setting::Success | Setting::Both => Some(true),
            Setting::None | Setting::Failure => Some(false),
            Setting::Unspecified | Setting::Unknown => None,
        }
    }

    /// True, false, or `None` where the policy does not say.
    pub const fn failure(self) -> Option<bool> {
        match self {
            Setting::Failure | Setting::Both => Some(true),
            Setting::None | Setting::Success => Some(false),
            Setting::Unspecified | Setting::Unknown => None,
        }
    }

    /// The switch of an outcome.
    pub const fn outcome(self, success: bool) -> Option<bool> {
        if success { self.success() } else { self.failure() }
    }

    /// The word in tables: none, success, failure, both, unspecified, unknown.
    pub const fn name(self) -> &'static str {
        match self {
            Setting::None => "none",
            Setting::Success => "success",
            Setting::Failure => "failure",
            Setting::Both => "both",
            Setting::Unspecified => "unspecified",
            Setting::Unknown => "unknown",
        }
    }

    /// The setting with this word.
    pub fn from_name(name: &str) -> Option<Setting> {
        let all = [
            Setting::None,
            Setting::Success,
            Setting::Failure,
            Setting::Both,
            Setting::Unspecified,
            Setting::Unknown,
        ];
        all.into_iter().find(|setting| setting.name() == name)
    }

    /// As an English Windows writes it.
    pub const fn text(self) -> &'static str {
        match self {
            Setting::None => "No Auditing",
            Setting::Success => "Success",
            Setting::Failure => "Failure",
            Setting::Both => "Success and Failure",
            Setting::Unspecified => "Not Specified",
            Setting::Unknown => "?",
        }
    }

    /// The number that `auditpol /restore` reads, where there is one.
    pub const fn value(self) -> Option<u32> {
        match self {
            Setting::None => Some(0),
            Setting::Success => Some(1),
            Setting::Failure => Some(2),
            Setting::Both => Some(3),
            Setting::Unspecified | Setting::Unknown => None,
        }
    }
}

/// What a policy says for one account, by the bits of `Setting Value` (MS-GPAC 2.2.1.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerUser {
    /// Written even if the system's policy does not ask for it.
    pub include: Setting,
    /// Not written although the system's policy asks for it; ignored for administrators.
    pub exclude: Setting,
}

impl PerUser {
    /// From the number.
    pub fn of_value(value: u32) -> Option<PerUser> {
        if value > 31 {
            return None;
        }
        let bit = |mask: u32| value & mask != 0;
        Some(PerUser { include: Setting::new(bit(1), bit(4)), exclude: Setting::new(bit(2), bit(8)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_ms_gpac() {
        let system: Vec<&str> = (0..6).map(|value| Setting::of_value(value, None).name()).collect();
        assert_eq!(Setting::of_value(0, Some(Setting::None)), Setting::None);
        assert_eq!(system, ["unknown", "success", "failure", "both", "none", "unknown"]);
        assert_eq!(Setting::of_value(0, Some(Setting::Unspecified)), Setting::Unspecified);
        let user = |value| PerUser::of_value(value).map(|user| (user.include.name(), user.exclude.name()));
        assert_eq!(user(0), Some(("none", "none")));
        assert_eq!(user(5), Some(("both", "none")));
        assert_eq!(user(10), Some(("none", "both")));
        assert_eq!(user(16), Some(("none", "none")));
        assert_eq!(user(32), None);
    }
}
