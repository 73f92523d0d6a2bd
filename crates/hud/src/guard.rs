//! Who may ask: only the page that this server gave out.
//!
//! Any page in the browser can send requests to 127.0.0.1. Without the token it gets nothing; a name that is rebound to this address
//! shows in `Host`, another page in `Origin`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::{IpAddr, SocketAddr};

/// What the page may do: nothing but its own script, style and questions.
/// <https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Content-Security-Policy>
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers that every response has.
pub fn harden(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// A token that nobody can guess: 128 random bits.
///
/// # Errors
/// If the system has no random numbers.
pub fn token() -> Result<String, String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// True if two texts are equal; takes the same time wherever they differ.
pub fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

/// Which hosts the page may be asked under.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    /// The server was told to listen to other machines: their names for this one are not known.
    any_host: bool,
}

impl Hosts {
    /// Those of an address that the server listens on, and names that the user gave.
    pub fn of(address: SocketAddr, more: &[String]) -> Hosts {
        let port = address.port();
        let mut names: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].map(|h| format!("{h}:{port}")).into();
        names.push(address.to_string());
        for name in more {
            names.push(name.to_ascii_lowercase());
            names.push(format!("{}:{port}", name.to_ascii_lowercase()));
        }
        let any_host = match address.ip() {
            IpAddr::V4(ip) => ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_unspecified(),
        };
        Hosts { names, any_host: any_host && more.is_empty() }
    }

    /// Why a request is refused, if it is.
    pub fn refuse(&self, headers: &HeaderMap) -> Option<&'static str> {
        let text =
            |name: HeaderName| headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_ascii_lowercase);
        let Some(host) = text(header::HOST) else { return Some("no Host") };
        if !self.any_host && !self.names.contains(&host) {
            return Some("this Host is not the server's");
        }
        if headers.contains_key(header::ORIGIN) {
            let own = text(header::ORIGIN).is_some_and(|origin| {
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
                    == Some(host.as_str())
            });
            if !own {
                return Some("this Origin is not the server's");
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            map.insert(header::ORIGIN, origin.parse().unwrap());
        }
        map
    }

    #[test]
    fn only_the_own_page_may_ask() {
        let hosts = Hosts::of("127.0.0.1:8000".parse().unwrap(), &[]);
        assert_eq!(hosts.refuse(&headers("127.0.0.1:8000", None)), None);
        assert_eq!(hosts.refuse(&headers("LOCALHOST:8000", Some("http://localhost:8000"))), None);
        assert!(hosts.refuse(&headers("evil.example:8000", None)).is_some());
        assert!(hosts.refuse(&headers("127.0.0.1:8001", None)).is_some());
        assert!(hosts.refuse(&headers("127.0.0.1:8000", Some("http://evil.example"))).is_some());
        assert!(hosts.refuse(&headers("127.0.0.1:8000", Some("null"))).is_some());
        assert!(hosts.refuse(&HeaderMap::new()).is_some());
    }

    #[test]
    fn other_machines_are_named() {
        let named = Hosts::of("0.0.0.0:80".parse().unwrap(), &["Server".to_owned()]);
        assert_eq!(named.refuse(&headers("server", Some("https://server"))), None);
        assert!(named.refuse(&headers("evil.example", None)).is_some());
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert!(a.len() == 32 && !same(&a, &b) && same(&a, &a.clone()));
    }
}
