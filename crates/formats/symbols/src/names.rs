//! Forms of a function's name.
//!
//! Symbol files have three kinds of names: a procedure's plain one (`ns::Class<int>::method`), a linker's decorated
//! one (`?method@?$Class@H@ns@@QEAAXH@Z`), and what other compilers write there: Rust's mangled names, .NET's with
//! parameters. The form shown is chosen when a name is looked up, so the cache serves all of them.

use std::borrow::Cow;
use std::str::FromStr;

use msvc_demangler::DemangleFlags;

use crate::decorated::is_bounded;

/// `IMAGE_FILE_MACHINE_I386`: the only one whose C names are decorated ("Decorated names", Microsoft C++ documentation).
const I386: u16 = 0x14C;
/// Longest decorated name that is taken apart: MSVC itself cuts names at 4096 characters.
const MAX_DECORATED: usize = 4096;

/// How functions are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameStyle {
    /// Without parameters and return types, as WPA shows them: `ns::Class<int>::method`.
    #[default]
    Short,
    /// With parameters: `ns::Class<int>::method(int)`.
    Full,
    /// As the linker has them: `?method@?$Class@H@ns@@QEAAXH@Z`.
    Raw,
}

impl FromStr for NameStyle {
    type Err = String;

    fn from_str(text: &str) -> Result<NameStyle, String> {
        match text {
            "short" => Ok(NameStyle::Short),
            "full" => Ok(NameStyle::Full),
            "raw" => Ok(NameStyle::Raw),
            _ => Err(format!("{text:?} is no form of names; there are short, full and raw")),
        }
    }
}

/// Name without parameters and return type.
pub fn short(plain: &str, machine: u16) -> Cow<'_, str> {
    if plain.starts_with('?') {
        let flags = DemangleFlags::NAME_ONLY | DemangleFlags::SPACE_AFTER_COMMA | full_flags();
        return demangle(plain, flags);
    }
    if let Some(name) = rust(plain) {
        return name.into();
    }
    let plain = undecorated(plain, machine);
    let plain = plain.strip_prefix("[COLD] ").unwrap_or(plain);
    Cow::Borrowed(without_parameters(plain))
}

/// Name with parameters, as far as they are known.
pub fn full<'a>(plain: &'a str, linkage: Option<&'a str>, machine: u16) -> Cow<'a, str> {
    let decorated = linkage.filter(|l| l.starts_with('?')).unwrap_or(plain);
    if decorated.starts_with('?') {
        return demangle(decorated, full_flags());
    }
    if let Some(name) = rust(plain) {
        return name.into();
    }
    Cow::Borrowed(undecorated(plain, machine))
}

fn full_flags() -> DemangleFlags {
    DemangleFlags::NO_ACCESS_SPECIFIERS
        | DemangleFlags::NO_FUNCTION_RETURNS
        | DemangleFlags::NO_MEMBER_TYPE
        | DemangleFlags::NO_MS_KEYWORDS
        | DemangleFlags::NO_MS_THISTYPE
        | DemangleFlags::NO_CLASS_TYPE
        | DemangleFlags::MS_TYPENAMES
        | DemangleFlags::SPACE_AFTER_COMMA
        | DemangleFlags::SPACE_BEFORE_POINTER
        | DemangleFlags::HUG_TYPE
}

fn demangle(decorated: &str, flags: DemangleFlags) -> Cow<'_, str> {
    if decorated.len() > MAX_DECORATED || !is_bounded(decorated) {
        return Cow::Borrowed(decorated);
    }
    match msvc_demangler::demangle(decorated, flags) {
        Ok(name) if !name.is_empty() => Cow::Owned(name),
        _ => Cow::Borrowed(decorated),
    }
}

/// A mangled Rust name without its hash.
fn rust(name: &str) -> Option<String> {
    if !(name.starts_with("_R") || name.starts_with("_ZN")) || name.len() > MAX_DECORATED {
        return None;
    }
    let name = rustc_demangle::try_demangle(name).ok()?;
    Some(format!("{name:#}"))
}

/// A C name of x86 without `_`, `@` and the bytes of parameters behind `@`.
fn undecorated(name: &str, machine: u16) -> &str {
    if machine != I386 {
        return name;
    }
    let bare = match name.rsplit_once('@') {
        Some((bare, bytes)) if !bytes.is_empty() && bytes.bytes().all(|b| b.is_ascii_digit()) => bare,
        _ if name.starts_with('_') => name,
        _ => return name,
    };
    bare.strip_prefix('_').or_else(|| bare.strip_prefix('@')).filter(|b| !b.is_empty()).unwrap_or(bare)
}

/// Cuts a list of parameters and what follows it, but not the `()` of `operator()` or of a name in parentheses.
fn without_parameters(name: &str) -> &str {
    let mut rest = name.trim_end();
    // NGEN: method{shared}{requires-mt-arg}
    while let Some((before, _)) = rest.strip_suffix('}').and_then(|r| r.rsplit_once('{')) {
        rest = before.trim_end();
    }
    for qualifier in [" noexcept", " &&", " &", " volatile", " const"] {
        rest = rest.strip_suffix(qualifier).unwrap_or(rest);
    }
    if !rest.ends_with(')') {
        return if name.ends_with('}') && !rest.is_empty() { rest } else { name };
    }
    let mut depth = 0usize;
    for (at, byte) in rest.bytes().enumerate().rev() {
        match byte {
            b')' => depth = depth.saturating_add(1),
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let before = rest.get(..at).unwrap_or("").trim_end();
            let is_name = before.is_empty() || before.ends_with("operator") || before.ends_with("::");
            return if is_name { name } else { before };
        }
    }
    name
}

/// Whether a decorated name may be that of the procedure `plain`: several procedures share an address when the
/// linker folds identical code.
pub fn may_be_of(decorated: &str, plain: &str) -> bool {
    if !decorated.starts_with('?') {
        // Rust's hashes, C: the plain name stands in the decorated one.
        let last = plain.rsplit("::").next().unwrap_or(plain);
        let last = last.split('<').next().unwrap_or(last);
        return decorated.contains(last);
    }
    let end = plain.find(['<', '`', '(']).unwrap_or(plain.len());
    let bare = plain.get(..end).unwrap_or(plain);
    let last = bare.rsplit("::").next().unwrap_or(bare);
    if last.is_empty() || last.contains('~') || last.starts_with("operator") {
        return true;
    }
    // Constructors have no name of their own: ??0Class@@.
    let rest = decorated.trim_start_matches(['?', '$', '0', '1']);
    rest.starts_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_compilers() {
        let cases = [
            // decorated or plain, short, full
            ("?method@?$Class@H@ns@@QEAAXH@Z", "ns::Class<int>::method", "ns::Class<int>::method(int)"),
            ("??0A@@QEAA@PEBD@Z", "A::A", "A::A(char const *)"),
            ("KiSwapContext", "KiSwapContext", "KiSwapContext"),
            ("ns::f", "ns::f", "ns::f"),
            ("ns::f(int, char const *)", "ns::f", "ns::f(int, char const *)"),
            (
                "(anonymous namespace)::f(int) const",
                "(anonymous namespace)::f",
                "(anonymous namespace)::f(int) const",
            ),
            ("a::operator()(int)", "a::operator()", "a::operator()(int)"),
            ("a::operator()", "a::operator()", "a::operator()"),
            (
                "std::function<void (int)>::go",
                "std::function<void (int)>::go",
                "std::function<void (int)>::go",
            ),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write", "core::fmt::write"),
            (
                "[COLD] System.Collections.Generic.List`1[System.Boolean].GetRange(Int32, Int32)",
                "System.Collections.Generic.List`1[System.Boolean].GetRange",
                "[COLD] System.Collections.Generic.List`1[System.Boolean].GetRange(Int32, Int32)",
            ),
            (
                "System.ArraySegment`1[System.__Canon].Get(System.__Canon){shared}{requires-mt-arg}",
                "System.ArraySegment`1[System.__Canon].Get",
                "System.ArraySegment`1[System.__Canon].Get(System.__Canon){shared}{requires-mt-arg}",
            ),
            ("?broken", "?broken", "?broken"),
            ("", "", ""),
            (")", ")", ")"),
        ];
        for (name, wanted_short, wanted_full) in cases {
            assert_eq!(short(name, 0x8664), wanted_short, "{name}");
            assert_eq!(full(name, None, 0x8664), wanted_full, "{name}");
        }
    }

    #[test]
    fn c_names_of_x86() {
        for (name, bare) in [
            ("_main", "main"),
            ("_WinMain@16", "WinMain"),
            ("@fast@8", "fast"),
            ("odd@x", "odd@x"),
            ("_", "_"),
        ] {
            assert_eq!(short(name, I386), bare);
        }
        assert_eq!(short("_main", 0x8664), "_main");
    }

    #[test]
    fn a_linkage_name_tells_the_parameters() {
        assert_eq!(full("ns::f", Some("?f@ns@@YAHH@Z"), 0), "ns::f(int)");
        assert_eq!(short("ns::f", 0), "ns::f");
        assert!(may_be_of("?f@ns@@YAHH@Z", "ns::f") && may_be_of("??$f@H@ns@@YAXXZ", "ns::f<int>"));
        assert!(may_be_of("??0A@@QEAA@XZ", "A::A") && may_be_of("_main", "main"));
        assert!(!may_be_of("?g@ns@@YAHH@Z", "ns::f"));
        assert_eq!("full".parse::<NameStyle>(), Ok(NameStyle::Full));
        assert!("long".parse::<NameStyle>().is_err());
    }
}
