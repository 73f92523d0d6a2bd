//! Symbol servers over HTTP and HTTPS.
//!
//! A request holds the URL with the names asked for, `Range` and `If-Range` when a download is resumed, and a fixed
//! `User-Agent`: nothing of the trace, the user or the machine.

mod download;
mod gate;
mod missing;
mod network;
mod options;
mod partial;
mod proxy;
mod redirect;
mod url;

pub use download::{Failure, Received};
pub use options::{OnTransfer, ServerOptions, Transfer};
pub use proxy::Proxies;
pub use url::{encode, shown, target};

use gate::Gate;
use network::{Guarded, Named};
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::DefaultConnector;

/// What every request says of its sender. It must not tell systems apart.
const USER_AGENT: &str = "etwhy";
/// Files in a row that a server fails to give before it is not asked any more.
const FAILURES_BEFORE_SILENCE: u32 = 3;

/// A server.
pub struct Server {
    base: String,
    agent: Agent,
    named: Named,
    options: ServerOptions,
    gate: Gate,
    health: Mutex<Health>,
    two_tiers: OnceLock<bool>,
}

#[derive(Debug, Default)]
struct Health {
    failures: u32,
    /// Why it is not asked any more.
    given_up: Option<String>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.shown())
    }
}

impl Server {
    /// A server below this URL, which [`SymbolPath`](crate::SymbolPath) has checked.
    pub fn new(base: &str, options: ServerOptions) -> Server {
        // A proxy that cannot be used must not be passed by.
        let (proxy, given_up) = match options.proxies.for_url(base) {
            Ok(proxy) => (proxy, None),
            Err(reason) => (None, Some(reason)),
        };
        let config = Config::builder()
            .proxy(proxy)
            .http_status_as_error(false)
            // Redirections are followed here, where their targets are checked.
            .max_redirects(0)
            .user_agent(USER_AGENT)
            // A partial download of compressed bytes could not be resumed.
            .accept_encoding("identity")
            .timeout_connect(Some(options.connect))
            .timeout_resolve(Some(options.connect))
            .timeout_recv_response(Some(options.idle))
            .timeout_per_read(Some(options.idle))
            .timeout_per_write(Some(options.idle))
            .max_idle_connections_per_host(options.jobs.max(1))
            .build();
        let urls = options.named.iter().map(String::as_str).chain([base]);
        let named = Named::from_urls(urls.chain(options.proxies.all()));
        let guarded = Guarded { named: named.clone(), inner: DefaultResolver::default() };
        Server {
            base: base.trim_end_matches('/').to_owned(),
            agent: Agent::with_parts(config, DefaultConnector::default(), guarded),
            named,
            gate: Gate::new(options.jobs.max(1)),
            options,
            health: Mutex::new(Health { failures: 0, given_up }),
            two_tiers: OnceLock::new(),
        }
    }

    /// The URL without a password.
    pub fn shown(&self) -> String {
        shown(&self.base)
    }

    /// How it is asked.
    pub fn options(&self) -> &ServerOptions {
        &self.options
    }

    /// Fetches `base/part/part/part`; the last one is the file. It lands in a file in `folder`, which the caller moves.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn fetch(&self, parts: &[&str], folder: &Path) -> Result<Received, Failure> {
        if let Some(reason) = &self.health().given_up {
            return Err(Failure::GivenUp { server: self.shown(), reason: reason.clone() });
        }
        let url = target(&self.base, parts);
        let name = parts.last().copied().unwrap_or("");
        let pass = self.gate.enter();
        let result = download::download(&self.agent, &self.options, &self.named, &url, name, folder);
        drop(pass);
        let mut health = self.health();
        match &result {
            Err(failure) if failure.is_of_the_server() => {
                health.failures += 1;
                if health.failures >= FAILURES_BEFORE_SILENCE || failure.is_final() {
                    health.given_up = Some(failure.to_string());
                }
            }
            _ => health.failures = 0,
        }
        result
    }

    /// True if the server says that its store has two tiers. Asked once, and only after something was not found.
    pub fn has_two_tiers(&self, folder: &Path) -> bool {
        *self.two_tiers.get_or_init(|| {
            let key = format!("{}/index2.txt", self.base);
            if self.remembers_missing(&key, folder).is_some() {
                return false;
            }
            match self.fetch(&["index2.txt"], folder) {
                Ok(received) => {
                    let _ = std::fs::remove_file(received.file);
                    true
                }
                Err(Failure::NotFound { .. }) => {
                    self.remember_missing(&key, folder);
                    false
                }
                Err(_) => false,
            }
        })
    }

    /// The key under which it is remembered that a module is missing.
    pub fn missing_key(&self, parts: &[&str]) -> String {
        target(&self.base, parts)
    }

    /// Seconds since this was last found to be missing, if that was not too long ago.
    pub fn remembers_missing(&self, key: &str, folder: &Path) -> Option<u64> {
        if self.options.retry_missing {
            return None;
        }
        missing::since(folder, key).filter(|seconds| *seconds < self.options.missing.as_secs())
    }

    /// The URL of these names, for messages.
    pub fn shown_target(&self, parts: &[&str]) -> String {
        shown(&target(&self.base, parts))
    }

    /// Forgets that it was missing.
    pub fn forget_missing(&self, key: &str, folder: &Path) {
        missing::forget(folder, key);
    }

    /// Remembers that the server has no such file.
    pub fn remember_missing(&self, key: &str, folder: &Path) {
        missing::remember(folder, key);
    }

    /// Why it is not asked any more, if so.
    pub fn given_up(&self) -> Option<String> {
        self.health().given_up.clone()
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
