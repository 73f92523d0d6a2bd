//! Proxies, as environment variables name them.

use ureq::{Proxy, ProxyProtocol};

/// Proxies by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Hosts that are asked directly, separated by commas.
    pub except: Option<String>,
}

impl Proxies {
    /// From `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case, as curl reads them.
    pub fn from_env() -> Proxies {
        let variable = |name: &str| {
            let either = std::env::var(name.to_lowercase()).or_else(|_| std::env::var(name));
            either.ok().filter(|value| !value.trim().is_empty())
        };
        let all = || variable("ALL_PROXY");
        Proxies {
            http: variable("HTTP_PROXY").or_else(all),
            https: variable("HTTPS_PROXY").or_else(all),
            except: variable("NO_PROXY"),
        }
    }

    /// The URLs of all proxies.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.http.iter().chain(&self.https).map(|url| url.trim())
    }

    /// The proxy for servers with this URL.
    pub fn for_url(&self, url: &str) -> Result<Option<Proxy>, String> {
        let secure = url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
        let Some(text) = (if secure { &self.https } else { &self.http }) else { return Ok(None) };
        let shown = super::shown(text);
        let wrong = || format!("the proxy `{shown}` is not understood; write http://HOST:PORT");
        let parsed = Proxy::new(text.trim()).map_err(|_| wrong())?;
        if !matches!(parsed.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
            return Err(format!("the proxy `{shown}` is neither http:// nor https://"));
        }
        let mut proxy = Proxy::builder(parsed.protocol()).host(parsed.host()).port(parsed.port());
        if let Some(name) = parsed.username() {
            proxy = proxy.username(name);
        }
        if let Some(password) = parsed.password() {
            proxy = proxy.password(password);
        }
        for host in self.except.iter().flat_map(|list| list.split(',')) {
            let host = host.trim().trim_start_matches('.');
            if !host.is_empty() {
                // With curl a name stands for what lies below it too.
                proxy = proxy.no_proxy(host).no_proxy(&format!(".{host}"));
            }
        }
        proxy.build().map(Some).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_scheme_and_host() {
        let proxies = Proxies {
            http: Some("http://me:pw@proxy:3128".to_owned()),
            https: None,
            except: Some("localhost, .corp".to_owned()),
        };
        assert!(proxies.for_url("https://a/").unwrap().is_none());
        let proxy = proxies.for_url("http://a/").unwrap().unwrap();
        assert_eq!((proxy.host(), proxy.port()), ("proxy", 3128));
        assert_eq!((proxy.username(), proxy.password()), (Some("me"), Some("pw")));
        let direct = |url: &str| proxy.is_no_proxy(&url.parse().unwrap());
        assert!(direct("http://localhost/x") && direct("http://corp/") && direct("http://a.corp/"));
        assert!(!direct("http://a/") && !direct("http://xcorp/"));
        let bad =
            |text: &str| Proxies { http: Some(text.to_owned()), ..Proxies::default() }.for_url("http://a");
        assert!(bad("socks5://x").unwrap_err().contains("socks5://x"));
        assert!(!bad("ftp://me:secret@x").unwrap_err().contains("secret"));
    }
}
