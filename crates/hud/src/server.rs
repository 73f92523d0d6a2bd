//! The server: addresses, the token, work on blocking threads.

use crate::api;
use crate::assets;
use crate::call::{Call, Cancel, Endpoint, Fault};
use crate::guard::{self, Hosts};
use crate::host::{Host, Loaded};
use crate::reply::{fault, response};
use crate::trace::Trace;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use std::net::SocketAddr;
use std::sync::{Arc, RwLock};
use tokio::sync::{Semaphore, oneshot};

/// Bodies are questions; this is much for one.
const MAX_BODY: usize = 1 << 20;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// More names that the server is asked under (behind a proxy).
    pub hosts: Vec<String>,
    /// Nothing may be opened from the page.
    pub readonly: bool,
    /// The token, instead of a random one.
    pub token: Option<String>,
}

/// What all requests share.
pub struct Hud {
    /// The program around.
    pub host: Box<dyn Host>,
    /// Nothing may be opened from the page.
    pub readonly: bool,
    traces: RwLock<Vec<Arc<Trace>>>,
    token: String,
    hosts: Hosts,
    slots: Arc<Semaphore>,
}

impl Hud {
    /// The traces, in order of their numbers.
    pub fn traces(&self) -> Vec<Arc<Trace>> {
        self.traces.read().map(|list| list.clone()).unwrap_or_default()
    }

    /// Adds a trace; its number.
    pub fn add(&self, loaded: Loaded) -> usize {
        let trace = Arc::new(Trace::new(loaded));
        let Ok(mut list) = self.traces.write() else { return 0 };
        list.push(trace);
        list.len() - 1
    }
}

/// A server that runs.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The address of the page.
    pub url: String,
    /// What requests share.
    pub hud: Arc<Hud>,
    runtime: tokio::runtime::Runtime,
    stop: Option<oneshot::Sender<()>>,
}

impl Running {
    /// Waits until Ctrl-C.
    pub fn wait(mut self) {
        self.runtime.block_on(async {
            // Without signals the server runs until it is killed.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        });
        self.end();
    }

    /// Ends it.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// Starts a server with traces.
///
/// # Errors
/// If it cannot listen there, in words.
pub fn start(host: Box<dyn Host>, traces: Vec<Loaded>, options: &Options) -> Result<Running, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind(options.address)).map_err(|error| {
        format!("cannot listen on {}: {error}; --port 0 takes a free port", options.address)
    })?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let token = match &options.token {
        Some(token) => token.clone(),
        None => guard::token()?,
    };
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let hud = Arc::new(Hud {
        host,
        readonly: options.readonly,
        traces: RwLock::new(traces.into_iter().map(|loaded| Arc::new(Trace::new(loaded))).collect()),
        token: token.clone(),
        hosts: Hosts::of(address, &options.hosts),
        slots: Arc::new(Semaphore::new(processors.max(2))),
    });
    let app = router(hud.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    runtime.spawn(async move {
        let ended = async {
            let _ = stopped.await;
        };
        // Errors of single connections are theirs; the listener goes on.
        let _ = axum::serve(listener, app).with_graceful_shutdown(ended).await;
    });
    let shown = if address.ip().is_unspecified() {
        SocketAddr::new([127, 0, 0, 1].into(), address.port())
    } else {
        address
    };
    Ok(Running { address, url: format!("http://{shown}/{token}/"), hud, runtime, stop: Some(stop) })
}

/// All addresses.
pub fn router(hud: Arc<Hud>) -> Router {
    Router::new()
        .route("/{token}", get(redirect))
        .route("/{token}/", get(page))
        .route("/{token}/assets/{name}", get(asset))
        .route("/{token}/api/v1/{name}", post(ask))
        .fallback(nothing)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(hud.clone(), admit))
        .with_state(hud)
}

async fn nothing() -> Response {
    fault(&Fault::Missing("there is nothing at this address".to_owned()))
}

/// Refuses everything that is not from the own page.
async fn admit(State(hud): State<Arc<Hud>>, request: Request, next: Next) -> Response {
    if let Some(why) = hud.hosts.refuse(request.headers()) {
        return fault(&Fault::Forbidden(why.to_owned()));
    }
    let token = request.uri().path().split('/').nth(1).unwrap_or("");
    if !guard::same(token, &hud.token) {
        return fault(&Fault::Forbidden("the address lacks the token that `etwhy serve` printed".to_owned()));
    }
    next.run(request).await
}

async fn redirect(State(hud): State<Arc<Hud>>) -> Response {
    let mut response = response(StatusCode::SEE_OTHER, "text/plain", Vec::new());
    if let Ok(value) = HeaderValue::from_str(&format!("/{}/", hud.token)) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

async fn page() -> Response {
    response(StatusCode::OK, "text/html; charset=utf-8", assets::page().into_bytes())
}

async fn asset(Path((_, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(asset) = assets::ALL.iter().find(|asset| asset.name == name) else { return nothing().await };
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or("");
    let gzip = accepts.split(',').any(|one| one.trim().split(';').next() == Some("gzip"));
    let mut response = response(StatusCode::OK, asset.media, Vec::new());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    *response.body_mut() = if gzip { Body::from(asset.gzip.clone()) } else { Body::from(asset.plain) };
    response
}

/// Sets the cancel when the request is dropped, which is what happens when its connection goes.
struct GivenUp(Cancel);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.set();
    }
}

async fn ask(State(hud): State<Arc<Hud>>, Path((_, name)): Path<(String, String)>, body: Bytes) -> Response {
    let Some(endpoint) = api::ALL.iter().find(|endpoint| endpoint.name == name) else {
        return nothing().await;
    };
    let body = if body.is_empty() { Ok(serde_json::json!({})) } else { serde_json::from_slice(&body) };
    let body = match body {
        Ok(body) => body,
        Err(error) => return fault(&Fault::wrong(error)),
    };
    let Ok(slot) = hud.slots.clone().acquire_owned().await else { return fault(&Fault::Cancelled) };
    let cancel = Cancel::default();
    let given_up = GivenUp(cancel.clone());
    let work = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        answer(endpoint, &Call { hud: &hud, body, cancel })
    });
    let answer = work.await;
    drop(given_up);
    answer.unwrap_or_else(|_| {
        let body = serde_json::json!({ "error": format!("{name}: the work ended in a fault of etwhy's own; please report it") });
        response(StatusCode::INTERNAL_SERVER_ERROR, "application/json", body.to_string().into_bytes())
    })
}

fn answer(endpoint: &Endpoint, call: &Call<'_>) -> Response {
    match (endpoint.answer)(call) {
        Ok(reply) => reply.response(),
        Err(error) => fault(&error),
    }
}
