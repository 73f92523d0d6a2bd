//! How servers are asked, and what is reported meanwhile.

use super::proxy::Proxies;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is told while files come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// The file, as it is called in a store: `name.pdb`.
    pub name: &'a str,
    /// Bytes that are there, those of an earlier try among them.
    pub done: u64,
    /// Bytes in all, if the server says.
    pub total: Option<u64>,
    /// True once nothing more will come.
    pub over: bool,
}

/// Called while files come in, from any thread.
pub type OnTransfer = Arc<dyn Fn(&Transfer<'_>) + Send + Sync>;

/// How servers are asked.
#[derive(Clone)]
pub struct ServerOptions {
    /// To connect.
    pub connect: Duration,
    /// Without a byte coming in.
    pub idle: Duration,
    /// For one file, all tries together.
    pub whole: Duration,
    /// Tries after the first one, when the server fails or the connection breaks.
    pub retries: u32,
    /// Before the first of them; doubled for each further one.
    pub backoff: Duration,
    /// Redirections that are followed.
    pub redirects: u32,
    /// Most bytes of one file, compressed or not.
    pub max_bytes: u64,
    /// Requests at the same time, to one server.
    pub jobs: usize,
    /// How long a file that a server does not have is not asked for again.
    pub missing: Duration,
    /// Ask again for what was missing.
    pub retry_missing: bool,
    /// Proxies.
    pub proxies: Proxies,
    /// URLs whose hosts a server may redirect to although they are of a private network: all servers of the symbol path.
    pub named: Vec<String>,
    /// Told about what comes in.
    pub on_transfer: Option<OnTransfer>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            connect: Duration::from_secs(15),
            idle: Duration::from_secs(30),
            whole: Duration::from_secs(1800),
            retries: 3,
            backoff: Duration::from_millis(500),
            redirects: 5,
            max_bytes: 4 << 30,
            jobs: 4,
            missing: Duration::from_secs(24 * 3600),
            retry_missing: false,
            proxies: Proxies::from_env(),
            named: Vec::new(),
            on_transfer: None,
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("connect", &self.connect)
            .field("idle", &self.idle)
            .field("whole", &self.whole)
            .field("retries", &self.retries)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
