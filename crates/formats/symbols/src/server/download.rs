//! One file from a server: retries, resuming, limits.

use super::network::{Named, PrivateHost};
use super::options::{ServerOptions, Transfer};
use super::partial::Partial;
use super::redirect;
use super::url::shown;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

/// A file that has come in whole, as far as HTTP can tell.
#[derive(Debug)]
pub struct Received {
    /// Where it is. Whoever receives it moves or deletes it.
    pub file: PathBuf,
    /// Bytes.
    pub bytes: u64,
}

/// Why a file did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server has no such file: 404 or 410.
    #[error("{url}: not found ({status})")]
    NotFound {
        /// What was asked for.
        url: String,
        /// The status.
        status: u16,
    },
    /// The server answered with another status.
    #[error("{url}: the server answers {status}{}", after(*tries))]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: u16,
        /// How often it was asked.
        tries: u32,
    },
    /// The connection failed, or the answer was cut short.
    #[error("{url}: {reason}{}", after(*tries))]
    Connection {
        /// What was asked for.
        url: String,
        /// What happened.
        reason: String,
        /// How often it was tried.
        tries: u32,
        /// True if there was no connection at all.
        unreachable: bool,
    },
    /// The file is larger than is allowed.
    #[error("{url}: {bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// Bytes that the server announces or sent.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It redirects in circles, or to what is no web server.
    #[error("{url}: {reason}")]
    Redirect {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The file could not be written.
    #[error("{}: cannot write: {reason}", file.display())]
    Disk {
        /// The file or folder.
        file: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The server failed before and is not asked any more in this run.
    #[error("{server} is not asked any more: {reason}")]
    GivenUp {
        /// The server.
        server: String,
        /// How it failed.
        reason: String,
    },
}

fn after(tries: u32) -> String {
    if tries > 1 { format!(", after {tries} tries") } else { String::new() }
}

impl Failure {
    /// True if other files would fail in the same way.
    pub fn is_of_the_server(&self) -> bool {
        match self {
            Failure::Connection { .. } => true,
            Failure::Status { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }

    /// True if asking again is pointless.
    pub fn is_final(&self) -> bool {
        matches!(self, Failure::Connection { unreachable: true, .. })
    }
}

/// What to do after a try.
enum Trouble {
    /// Try again, after this time at least.
    Again(Failure, Option<Duration>),
    Final(Failure),
}

struct Job<'a> {
    agent: &'a Agent,
    options: &'a ServerOptions,
    named: &'a Named,
    url: &'a str,
    name: &'a str,
    deadline: Instant,
    tries: u32,
}

/// Fetches `url` into a file in `folder`.
pub fn download(
    agent: &Agent,
    options: &ServerOptions,
    named: &Named,
    url: &str,
    name: &str,
    folder: &Path,
) -> Result<Received, Failure> {
    let disk = |error: io::Error| Failure::Disk { file: folder.to_path_buf(), reason: error.to_string() };
    let deadline = Instant::now().checked_add(options.whole).unwrap_or_else(Instant::now);
    let mut job = Job { agent, options, named, url, name, deadline, tries: 0 };
    let mut partial = Partial::open(folder, url).map_err(disk)?;
    let mut pause = options.backoff;
    let result = loop {
        job.tries += 1;
        match job.attempt(&mut partial) {
            Ok(bytes) => break Ok(bytes),
            Err(Trouble::Final(failure)) => break Err(failure),
            Err(Trouble::Again(failure, least)) => {
                let wait = least.map_or(pause, |least| least.max(pause)).min(MAX_PAUSE);
                // A host that cannot be reached will hardly be there half a second later.
                let retries = if failure.is_final() { options.retries.min(1) } else { options.retries };
                if job.tries > retries || Instant::now() + wait >= deadline {
                    break Err(failure);
                }
                std::thread::sleep(wait);
                pause = pause.saturating_mul(2);
            }
        }
    };
    job.tell(partial.len().unwrap_or(0), None, true);
    match result {
        Ok(bytes) => partial.finish().map(|file| Received { file, bytes }).map_err(disk),
        Err(failure) => {
            // What broke off is resumed next time, if the server can.
            let keep = matches!(failure, Failure::Connection { .. } | Failure::Status { .. });
            if !(keep && partial.validator.is_some() && partial.len().is_ok_and(|n| n > 0)) {
                partial.discard();
            }
            Err(failure)
        }
    }
}

/// Longest pause between two tries, whatever a server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl Job<'_> {
    fn tell(&self, done: u64, total: Option<u64>, over: bool) {
        if let Some(on_transfer) = &self.options.on_transfer {
            on_transfer(&Transfer { name: self.name, done, total, over });
        }
    }

    fn url(&self) -> String {
        shown(self.url)
    }

    fn broken(&self, reason: impl Into<String>) -> Trouble {
        let (url, tries) = (self.url(), self.tries);
        Trouble::Again(Failure::Connection { url, reason: reason.into(), tries, unreachable: false }, None)
    }

    fn disk(partial: &Partial, error: &io::Error) -> Trouble {
        Trouble::Final(Failure::Disk { file: partial.path.clone(), reason: error.to_string() })
    }

    /// One request with its redirections.
    fn request(&self, offset: u64, validator: Option<&str>) -> Result<Response<Body>, Trouble> {
        let mut url = self.url.to_owned();
        for _ in 0..=self.options.redirects {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Final(self.timed_out()));
            }
            let mut request = self.agent.get(&url).config().timeout_global(Some(left)).build();
            if let Some(validator) = validator.filter(|_| offset > 0) {
                request = request.header("Range", format!("bytes={offset}-")).header("If-Range", validator);
            }
            let response = request.call().map_err(|error| self.failed(&error))?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let location = header(response.headers(), "location").unwrap_or_default();
            url = redirect::resolve(&url, &location)
                .and_then(|to| self.named.check(&to).map(|()| to))
                .map_err(|reason| Trouble::Final(Failure::Redirect { url: self.url(), reason }))?;
        }
        let reason = format!("more than {} redirections", self.options.redirects);
        Err(Trouble::Final(Failure::Redirect { url: self.url(), reason }))
    }

    fn timed_out(&self) -> Failure {
        let reason = format!("not whole after {} s", self.options.whole.as_secs_f64());
        Failure::Connection { url: self.url(), reason, tries: self.tries, unreachable: false }
    }

    /// What an error of the connection means.
    fn failed(&self, error: &ureq::Error) -> Trouble {
        if Instant::now() >= self.deadline {
            return Trouble::Final(self.timed_out());
        }
        if matches!(error, ureq::Error::Other(why) if why.is::<PrivateHost>()) {
            return Trouble::Final(Failure::Redirect { url: self.url(), reason: PrivateHost.to_string() });
        }
        let refused = matches!(error, ureq::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused);
        let unreachable = refused
            || matches!(error, ureq::Error::HostNotFound | ureq::Error::ConnectionFailed)
            || matches!(error, ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve));
        let hopeless = matches!(
            error,
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_)
        );
        let failure = Failure::Connection {
            url: self.url(),
            reason: reason(error, self.options),
            tries: self.tries,
            unreachable: unreachable || hopeless,
        };
        if hopeless { Trouble::Final(failure) } else { Trouble::Again(failure, None) }
    }

    /// One try. Returns the size of the whole file.
    fn attempt(&self, partial: &mut Partial) -> Result<u64, Trouble> {
        let disk = |partial: &Partial, error: &io::Error| Job::disk(partial, error);
        let have = partial.len().map_err(|e| disk(partial, &e))?;
        let have = if partial.validator.is_some() { have } else { 0 };
        let mut response = self.request(have, partial.validator.as_deref())?;
        let status = response.status().as_u16();
        let mut offset = 0;
        match status {
            200 => {}
            206 if have > 0 && range_start(response.headers()) == Some(have) => offset = have,
            // Not what was asked for: begin anew.
            206 | 416 => {
                partial.restart(None).map_err(|e| disk(partial, &e))?;
                return Err(self.broken(format!("the server cannot resume at byte {have}")));
            }
            404 | 410 => return Err(Trouble::Final(Failure::NotFound { url: self.url(), status })),
            _ => {
                let failure = Failure::Status { url: self.url(), status, tries: self.tries };
                let wait =
                    header(response.headers(), "retry-after").and_then(|text| text.trim().parse().ok());
                return Err(if status == 429 || status >= 500 {
                    Trouble::Again(failure, wait.map(Duration::from_secs))
                } else {
                    Trouble::Final(failure)
                });
            }
        }
        if offset == 0 {
            partial.restart(validator(response.headers())).map_err(|e| disk(partial, &e))?;
        }
        let length =
            header(response.headers(), "content-length").and_then(|text| text.trim().parse::<u64>().ok());
        // What ureq unpacks on the way has another length.
        let length = if header(response.headers(), "content-encoding").is_some() { None } else { length };
        let total = length.map(|length| length.saturating_add(offset));
        let limit = self.options.max_bytes;
        let too_large = |bytes| Trouble::Final(Failure::TooLarge { url: self.url(), bytes, limit });
        if let Some(total) = total.filter(|total| *total > limit) {
            return Err(too_large(total));
        }
        partial.file.seek(SeekFrom::Start(offset)).map_err(|e| disk(partial, &e))?;
        let mut reader = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; 1 << 16];
        let mut done = offset;
        loop {
            self.tell(done, total, false);
            let got = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.cut(error, done, total)),
            };
            done = done.saturating_add(got as u64);
            if done > limit {
                return Err(too_large(done));
            }
            let bytes = buffer.get(..got).unwrap_or_default();
            partial.file.write_all(bytes).map_err(|e| disk(partial, &e))?;
        }
        match total {
            Some(total) if done < total => Err(self.broken(format!("it sent {done} of {total} bytes"))),
            _ => Ok(done),
        }
    }

    /// The connection broke while bytes came in.
    fn cut(&self, error: io::Error, done: u64, total: Option<u64>) -> Trouble {
        if Instant::now() >= self.deadline {
            return Trouble::Final(self.timed_out());
        }
        let why = ureq::Error::from(error);
        let of = total.map_or(String::new(), |total| format!(" of {total}"));
        self.broken(format!("{} after {done}{of} bytes", reason(&why, self.options)))
    }
}

/// In words for users. Nothing that the server sent stands in them: it may come from where only this machine can ask.
fn reason(error: &ureq::Error, options: &ServerOptions) -> String {
    match error {
        ureq::Error::HostNotFound => "the host is not known".to_owned(),
        ureq::Error::Timeout(ureq::Timeout::Connect) => {
            format!("no connection within {} s", options.connect.as_secs_f64())
        }
        ureq::Error::Timeout(_) => format!("no answer for {} s", options.idle.as_secs_f64()),
        ureq::Error::Io(error) => format!("the connection broke ({})", error.kind()),
        ureq::Error::Http(_) | ureq::Error::Protocol(_) => "the answer is not HTTP".to_owned(),
        ureq::Error::BadUri(_) => "the URL is not one that can be asked".to_owned(),
        other => other.to_string(),
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// A strong `ETag`, else the date: what `If-Range` may hold (RFC 9110, 13.1.5).
fn validator(headers: &HeaderMap) -> Option<String> {
    if header(headers, "content-encoding").is_some() {
        return None;
    }
    let etag = header(headers, "etag").filter(|tag| tag.starts_with('"'));
    etag.or_else(|| header(headers, "last-modified")).filter(|text| !text.contains(['\r', '\n']))
}

/// First byte of `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = header(headers, "content-range")?;
    text.trim().strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}
