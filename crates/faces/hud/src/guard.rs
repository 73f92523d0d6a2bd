//! Who may ask: only the page that this server gave out.
//!
//! Any page in the browser can send requests to 127.0.0.1. Without the token it gets nothing; a name that is rebound to this address
//! shows in `Host`, another page in `Origin`.

use crate::connections::Patience;
use crate::peer::Ends;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the page may do: nothing but its own script, style and questions.
/// <https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/Content-Security-Policy>
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src data:; \
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

/// Characters that a token has at least: random ones of [`token`] have twice as many.
pub const LEAST_TOKEN: usize = 16;

/// Why this cannot be a token, if it cannot.
pub fn refuse_token(token: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if token.len() < LEAST_TOKEN || token.len() > 200 || !token.chars().all(plain) {
        return Some(format!(
            "a token has {LEAST_TOKEN} to 200 letters, digits, - and _: whoever guesses it sees everything"
        ));
    }
    None
}

/// Who may come in.
#[derive(Debug)]
pub struct Doors {
    /// What the address begins with.
    pub token: String,
    /// Names that the server is asked under.
    pub hosts: Hosts,
    /// What it puts up with.
    pub patience: Patience,
    /// A word that stands for the token once, and until when: command lines of browsers can be read by others.
    once: Mutex<Option<(String, Instant)>>,
}

/// A browser takes no longer to start.
const ONCE: Duration = Duration::from_secs(60);

impl Doors {
    /// Of a server that listens there.
    pub fn new(token: String, hosts: Hosts, patience: Patience) -> Doors {
        Doors { token, hosts, patience, once: Mutex::default() }
    }

    /// A word that stands for the token once, for a minute.
    ///
    /// # Errors
    /// Those of [`token`].
    pub fn word(&self) -> Result<String, String> {
        let word = token()?;
        *self.once.lock().unwrap_or_else(PoisonError::into_inner) = Some((word.clone(), Instant::now()));
        Ok(word)
    }

    /// True if it is that word; from then on it is nothing. Another user of this machine, who has read it on the command line, comes first in
    /// vain.
    pub fn take(&self, word: &str, ends: Option<Ends>) -> bool {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = once.as_ref().is_some_and(|(own, since)| same(own, word) && since.elapsed() < ONCE)
            && !ends.is_some_and(Ends::are_of_others);
        if fits {
            *once = None;
        }
        fits
    }
}

/// Which hosts the page may be asked under.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    /// The server listens on all addresses of the machine, which are not known: any address with this port is its own. A name is not,
    /// because its owner can let it mean this machine (DNS rebinding).
    any_address: Option<u16>,
}

impl Hosts {
    /// Those of an address that the server listens on, and names that the user gave.
    pub fn new(address: SocketAddr, more: &[String]) -> Hosts {
        let port = address.port();
        let mut names: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].map(|h| format!("{h}:{port}")).into();
        names.push(address.to_string());
        for name in more {
            names.push(name.to_ascii_lowercase());
            names.push(format!("{}:{port}", name.to_ascii_lowercase()));
        }
        Hosts { names, any_address: address.ip().is_unspecified().then_some(port) }
    }

    fn own(&self, host: &str) -> bool {
        let address = |port: u16| match host.parse::<SocketAddr>() {
            Ok(address) => address.port() == port,
            // Without a port it is that of HTTP.
            Err(_) => port == 80 && host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok(),
        };
        self.names.iter().any(|name| name == host) || self.any_address.is_some_and(address)
    }

    /// Why a request is refused, if it is.
    pub fn refuse(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let only = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            let first =
                all.next().map(|value| value.to_str().map(str::to_ascii_lowercase).unwrap_or_default());
            (first, all.next().is_some())
        };
        let (host, hosts) = only(header::HOST);
        let (origin, origins) = only(header::ORIGIN);
        if hosts || origins {
            return Some("a request has one Host and one Origin");
        }
        let Some(host) = host else { return Some("no Host") };
        if !self.own(&host)
            || uri.authority().is_some_and(|other| !other.as_str().eq_ignore_ascii_case(&host))
        {
            return Some("this Host is not the server's; `etwhy serve --host NAME` adds a name");
        }
        let own = |origin: &str| {
            let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            rest == Some(host.as_str())
        };
        if origin.is_some_and(|origin| !own(&origin)) {
            return Some("this Origin is not the server's");
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

    fn refuse(hosts: &Hosts, headers: &HeaderMap) -> Option<&'static str> {
        hosts.refuse(&Uri::from_static("/token/"), headers)
    }

    #[test]
    fn only_the_own_page_may_ask() {
        let hosts = Hosts::new("127.0.0.1:8000".parse().unwrap(), &[]);
        assert_eq!(refuse(&hosts, &headers("127.0.0.1:8000", None)), None);
        assert_eq!(refuse(&hosts, &headers("LOCALHOST:8000", Some("http://localhost:8000"))), None);
        assert!(refuse(&hosts, &headers("evil.example:8000", None)).is_some());
        assert!(refuse(&hosts, &headers("127.0.0.1:8001", None)).is_some());
        assert!(refuse(&hosts, &headers("127.0.0.1:8000", Some("http://evil.example"))).is_some());
        assert!(refuse(&hosts, &headers("127.0.0.1:8000", Some("null"))).is_some());
        assert!(refuse(&hosts, &HeaderMap::new()).is_some());
        let mut twice = headers("127.0.0.1:8000", None);
        twice.append(header::HOST, "127.0.0.1:8000".parse().unwrap());
        assert!(refuse(&hosts, &twice).is_some());
        let mut twice = headers("127.0.0.1:8000", Some("http://127.0.0.1:8000"));
        twice.append(header::ORIGIN, "http://evil.example".parse().unwrap());
        assert!(refuse(&hosts, &twice).is_some());
        let elsewhere = Uri::from_static("http://evil.example/token/");
        assert!(hosts.refuse(&elsewhere, &headers("127.0.0.1:8000", None)).is_some());
    }

    #[test]
    fn other_machines_are_named() {
        let named = Hosts::new("0.0.0.0:80".parse().unwrap(), &["Server".to_owned()]);
        assert_eq!(refuse(&named, &headers("server", Some("https://server"))), None);
        assert!(refuse(&named, &headers("evil.example", None)).is_some());
        let all = Hosts::new("0.0.0.0:8000".parse().unwrap(), &[]);
        assert_eq!(refuse(&all, &headers("192.168.1.7:8000", Some("http://192.168.1.7:8000"))), None);
        assert_eq!(refuse(&all, &headers("[fe80::1]:8000", None)), None);
        for rebound in
            ["evil.example:8000", "192.168.1.7.evil.example:8000", "192.168.1.7:80", "192.168.1.7", ""]
        {
            assert!(refuse(&all, &headers(rebound, None)).is_some(), "{rebound}");
        }
    }

    #[test]
    fn a_word_opens_once() {
        let hosts = Hosts::new("127.0.0.1:8000".parse().unwrap(), &[]);
        let doors = Doors::new("t".to_owned(), hosts, Patience::default());
        let word = doors.word().unwrap();
        assert!(!doors.take("", None) && !doors.take(&token().unwrap(), None));
        assert!(doors.take(&word, None) && !doors.take(&word, None));
    }

    #[test]
    fn weak_tokens_are_refused() {
        for bad in [
            "",
            "short",
            "fifteen-letters",
            "with a space in it",
            "a/slash/in/the/middle",
            "..%2f..%2f..%2f..%2f",
        ] {
            assert!(refuse_token(bad).is_some(), "{bad}");
        }
        assert!(refuse_token(&token().unwrap()).is_none() && refuse_token("sixteen-letters_").is_none());
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert!(a.len() == 32 && !same(&a, &b) && same(&a, &a.clone()));
    }
}
