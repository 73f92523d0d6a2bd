//! Which hosts a server may lead to. A server on the internet can redirect to any address, also to one that only this machine can reach
//! (a router, a service of the company), so that a request of ours would do there what its owner never meant. Hosts of private
//! networks are asked only if the symbol path names them, with their port; names are judged by the addresses that they resolve to, at the very
//! look-up that the connection uses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// True for addresses that mean something only here: this machine, private and link-local networks, and what is reserved
/// (<https://www.iana.org/assignments/iana-ipv4-special-registry>, <https://www.iana.org/assignments/iana-ipv6-special-registry>).
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => private_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped().or_else(|| embedded(v6)) {
            Some(v4) => private_v4(v4),
            None => private_v6(v6),
        },
    }
}

fn private_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || a == 0
        || a >= 240
        // Between customers of a provider (RFC 6598), benchmarks (RFC 2544).
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
}

fn private_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        // Site-local, which is no longer given out (RFC 3879).
        || address.segments()[0] & 0xffc0 == 0xfec0
}

/// The address of version 4 that NAT64 (RFC 6052), 6to4 (RFC 3056) and compatible addresses (RFC 4291) lead to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, .., high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(of(high, low)),
        _ => None,
    }
}

/// Hosts with their ports that may be asked wherever they are.
#[derive(Clone, Debug, Default)]
pub struct Named(Vec<(String, u16)>);

impl Named {
    /// Those of these URLs.
    pub fn from_urls<'a>(urls: impl IntoIterator<Item = &'a str>) -> Named {
        Named(urls.into_iter().filter_map(|url| authority(&url.parse().ok()?)).collect())
    }

    fn holds(&self, uri: &Uri) -> bool {
        authority(uri).is_some_and(|wanted| self.0.contains(&wanted))
    }

    /// Why a URL must not be asked that names a private address, or a name that only private networks know. Names that must be resolved
    /// are judged then.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self, url: &str) -> Result<(), String> {
        let uri: Uri = url.parse().map_err(|_| "it redirects to nothing that is a URL".to_owned())?;
        let Some((host, _)) = authority(&uri) else {
            return Err("it redirects to nothing that is a URL".to_owned());
        };
        let local = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => is_private(address),
            Err(_) => is_local_name(&host),
        };
        if local && !self.holds(&uri) { Err(PrivateHost.to_string()) } else { Ok(()) }
    }
}

/// Host in small letters, and port.
fn authority(uri: &Uri) -> Option<(String, u16)> {
    let port = uri.port_u16().or(match uri.scheme_str()? {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    })?;
    Some((uri.host()?.to_ascii_lowercase(), port))
}

/// Names without a dot, and domains that are never public (RFC 6761, RFC 6762, RFC 8375, and ICANN's `internal`).
fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let last = host.rsplit('.').next().unwrap_or(host);
    !host.contains('.')
        || matches!(last, "localhost" | "local" | "internal" | "intranet" | "lan" | "corp" | "home")
        || host.ends_with("home.arpa")
}

/// A server leads into a private network.
#[derive(Debug, thiserror::Error)]
#[error(
    "it redirects to a host of a private network that the symbol path does not name, which is not followed"
)]
pub struct PrivateHost;

/// Looks names up and lets only those through that may be asked.
#[derive(Debug)]
pub struct Guarded {
    pub named: Named,
    pub inner: DefaultResolver,
}

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        if !self.named.holds(uri) && found.iter().any(|address| is_private(address.ip())) {
            return Err(ureq::Error::Other(Box::new(PrivateHost)));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_networks_are_known_in_every_notation() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "::10.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
        {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn what_is_named_may_be_asked_at_its_port() {
        let named = Named::from_urls([
            "http://Store.corp:8080/symbols",
            "https://10.0.0.5/x",
            "http://me:pw@192.168.1.1/",
        ]);
        let asks = |url: &str| named.check(url).is_ok();
        for good in [
            "http://store.corp:8080/other",
            "https://10.0.0.5/y",
            "https://10.0.0.5:443/y",
            "http://192.168.1.1/z",
            "https://msdl.microsoft.com/x",
            "http://8.8.8.8/x",
            "https://[2606:4700::1111]/x",
        ] {
            assert!(asks(good), "{good}");
        }
        for bad in [
            "http://store.corp/other",
            "http://10.0.0.5/y",
            "https://10.0.0.6/",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://localhost/",
            "http://router/",
            "http://nas.local/",
            "http://a.internal./",
            "http://[::ffff:10.0.0.1]/",
            "nonsense",
            "http:///x",
        ] {
            assert!(!asks(bad), "{bad}");
        }
    }
}
