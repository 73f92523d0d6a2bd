//! How many files may be open: all logs of a folder and all segments of a recording are open together, and some systems allow only 256.

/// What is asked for, the most first: macOS refuses more than the last.
#[cfg(unix)]
const WANTED: [u64; 2] = [65_536, 10_240];

/// Allows many, as far as the system lets this process.
#[cfg(unix)]
pub fn allow_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    for wanted in WANTED {
        let most = limit.maximum.map_or(wanted, |hard| hard.min(wanted));
        let enough = limit.current.is_none_or(|now| now >= most);
        if enough
            || setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).is_ok()
        {
            return;
        }
    }
}

/// Windows has no such limit for what is opened here.
#[cfg(not(unix))]
pub fn allow_many() {}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn as_many_as_the_system_lets_a_process_have() {
        super::allow_many();
        let limit = getrlimit(Resource::Nofile);
        let least = super::WANTED.iter().copied().min().unwrap_or(0);
        assert!(
            limit.current.is_none_or(|now| now >= limit.maximum.unwrap_or(least).min(least)),
            "{limit:?}"
        );
    }
}
