//! What is known of providers without a registry.

/// Parameters of audits: `ParameterMessageFile` of Microsoft-Windows-Security-Auditing.
const AUDIT_PARAMETERS: &str = "msobjs.dll";
/// Where Windows itself looks for texts of errors (`FORMAT_MESSAGE_FROM_SYSTEM`).
pub(crate) const SYSTEM_MODULES: [&str; 3] = ["kernel32.dll", "kernelbase.dll", "ntdll.dll"];

/// Names of the files that hold a provider's messages, on a Windows 7; none if it is not known.
pub(crate) fn files(provider: &str) -> impl Iterator<Item = &'static str> {
    include_str!("../data/known_files.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .find(|(name, _)| name.eq_ignore_ascii_case(provider))
        .into_iter()
        .flat_map(|(_, files)| files.split(','))
}

/// Where parameters of a provider are, if the registry does not tell: of audits in their own file, of others where
/// Windows has its errors.
pub(crate) fn parameter_files(provider: &str) -> impl Iterator<Item = &'static str> {
    let audits = provider.eq_ignore_ascii_case("Microsoft-Windows-Security-Auditing")
        || provider.eq_ignore_ascii_case("Security");
    audits.then_some(AUDIT_PARAMETERS).into_iter().chain(SYSTEM_MODULES)
}

#[cfg(test)]
mod tests {
    #[test]
    fn audits() {
        let files: Vec<_> = super::files("microsoft-windows-security-auditing").collect();
        assert_eq!(files, ["adtschema.dll"]);
        assert_eq!(super::files("no such provider").count(), 0);
    }
}
