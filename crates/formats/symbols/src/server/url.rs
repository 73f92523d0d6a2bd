//! URLs: names from traces become path segments and nothing else.

use std::fmt::Write as _;

/// `base` with these segments behind it. Whatever a segment holds, scheme, host and the base's path stay as they are.
pub fn target(base: &str, parts: &[&str]) -> String {
    let mut url = base.trim_end_matches('/').to_owned();
    for part in parts {
        url.push('/');
        url.push_str(&encode(part));
    }
    url
}

/// Everything but the unreserved characters of RFC 3986 as `%XX`, so that `/`, `?`, `#`, `%` and `\` mean nothing.
pub fn encode(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// For messages: without the password that a URL may hold.
pub fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
    let Some((_, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    match path {
        Some(path) => format!("{scheme}://…@{host}/{path}"),
        None => format!("{scheme}://…@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_segment() {
        assert_eq!(
            target("http://h/s/", &["a b.pdb", "ID", "ü+.pd_"]),
            "http://h/s/a%20b.pdb/ID/%C3%BC%2B.pd_"
        );
        assert_eq!(target("http://h", &["../x?y#z"]), "http://h/..%2Fx%3Fy%23z");
        assert_eq!(target("http://h", &["%2e%2e"]), "http://h/%252e%252e");
        assert_eq!(
            target("http://h", &["http://evil/", r"..\evil"]),
            "http://h/http%3A%2F%2Fevil%2F/..%5Cevil"
        );
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("https://me:pw@host/x"), "https://…@host/x");
        assert_eq!(shown("https://me:p@w@host"), "https://…@host");
        assert_eq!(shown("https://host/x@y"), "https://host/x@y");
    }
}
