//! Where a redirection leads.

/// The URL that `location` means, seen from `from`.
///
/// # Errors
/// It leads to something else than HTTP, or from HTTPS to HTTP.
pub fn resolve(from: &str, location: &str) -> Result<String, String> {
    let location = location.trim();
    if location.is_empty() || location.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("it redirects to nothing that is a URL".to_owned());
    }
    let (scheme, rest) = from.split_once("://").unwrap_or(("http", from));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let to = if let Some((to, _)) = location.split_once(':').filter(|(s, _)| is_scheme(s)) {
        if !to.eq_ignore_ascii_case("http") && !to.eq_ignore_ascii_case("https") {
            return Err("it redirects to something else than HTTP, which is not followed".to_owned());
        }
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let path = rest.split(['?', '#']).next().unwrap_or(rest);
        let folder = path.rsplit_once('/').map_or(authority, |(folder, _)| folder);
        format!("{scheme}://{folder}/{location}")
    };
    let lower = to.to_ascii_lowercase();
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err("it redirects to nothing that is a URL".to_owned());
    }
    if scheme.eq_ignore_ascii_case("https") && lower.starts_with("http://") {
        return Err("it redirects from https to http, which is not followed".to_owned());
    }
    Ok(to)
}

fn is_scheme(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn only_to_http() {
        let to = |location| resolve("https://h:1/a/b?c", location);
        assert_eq!(to("https://x/y"), Ok("https://x/y".to_owned()));
        assert_eq!(to("/y?z"), Ok("https://h:1/y?z".to_owned()));
        assert_eq!(to("y"), Ok("https://h:1/a/y".to_owned()));
        assert_eq!(to("//x/y"), Ok("https://x/y".to_owned()));
        for bad in ["file:///etc/passwd", "http://x/", "ftp://x", "", "javascript:1", "a b", "https:x"] {
            assert!(to(bad).is_err(), "{bad}");
        }
        assert_eq!(resolve("http://h/a", "http://x/"), Ok("http://x/".to_owned()));
        assert_eq!(resolve("http://h", "a"), Ok("http://h/a".to_owned()));
    }
}
