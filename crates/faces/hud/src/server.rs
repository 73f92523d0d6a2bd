//! The server of one trace: addresses, work on blocking threads; and what it shares with the one in front of it.

use crate::api;
use crate::assets;
use crate::call::{Call, Endpoint};
use crate::connections::{self, Patience};
use crate::fault::{Cancel, Fault};
use crate::guard::{self, Doors, Hosts};
use crate::host::{Host, Loaded};
use crate::hud::Hud;
use crate::lines::Lines;
use crate::peer::Ends;
use crate::reply::{fault, response};
use crate::trace::Trace;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::task::Poll;
use tokio::sync::oneshot;

/// Bodies are questions; this is much for one.
const MAX_BODY: usize = 1 << 20;

/// What is read of a body that is too long: who still sends does not read the answer, and a connection that ends meanwhile loses it.
const MAX_READ: usize = 8 << 20;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// More names that the server is asked under (behind a proxy).
    pub hosts: Vec<String>,
    /// The token, instead of a random one.
    pub token: Option<String>,
    /// What it puts up with.
    pub patience: Patience,
}

/// A server that runs.
pub struct Running<S> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The address of the page.
    pub url: String,
    /// What requests share.
    pub state: Arc<S>,
    runtime: tokio::runtime::Runtime,
    stop: Option<oneshot::Sender<()>>,
    interrupt: Option<Interrupt>,
}

/// Ends with Ctrl-C.
type Interrupt = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>;

impl<S> Running<S> {
    /// From now on Ctrl-C ends the server in order, in [`Running::wait`]. To be called before somebody is told that it runs.
    pub fn take_interrupts(&mut self) {
        let mut interrupt: Interrupt = Box::pin(tokio::signal::ctrl_c());
        // The signal is taken when the future is asked for the first time.
        let ended = self.runtime.block_on(poll_fn(|cx| Poll::Ready(interrupt.as_mut().poll(cx).is_ready())));
        // Without signals the server runs until it is killed.
        self.interrupt = if ended { Some(Box::pin(std::future::pending())) } else { Some(interrupt) };
    }

    /// Waits until Ctrl-C; what requests shared.
    pub fn wait(mut self) -> Arc<S> {
        if self.interrupt.is_none() {
            self.take_interrupts();
        }
        if let Some(interrupt) = self.interrupt.take() {
            let _ = self.runtime.block_on(interrupt);
        }
        self.end();
        Arc::clone(&self.state)
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

/// A port that is open, before it is known what is behind it.
pub(crate) struct Port {
    pub(crate) doors: Arc<Doors>,
    address: SocketAddr,
    patience: Patience,
    runtime: tokio::runtime::Runtime,
    listener: tokio::net::TcpListener,
}

impl Port {
    /// Opens it.
    pub(crate) fn open(options: &Options) -> Result<Port, String> {
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
        let doors = Arc::new(Doors::new(token, Hosts::new(address, &options.hosts), options.patience));
        Ok(Port { doors, address, patience: options.patience, runtime, listener })
    }

    /// Serves on it.
    pub(crate) fn serve<S>(self, app: Router, state: Arc<S>) -> Running<S> {
        let Port { doors, address, patience, runtime, listener } = self;
        let (stop, stopped) = oneshot::channel::<()>();
        runtime.spawn(connections::serve(listener, app, patience, stopped));
        let shown = if address.ip().is_unspecified() {
            SocketAddr::new([127, 0, 0, 1].into(), address.port())
        } else {
            address
        };
        let url = format!("http://{shown}/{}/", doors.token);
        Running { address, url, state, runtime, stop: Some(stop), interrupt: None }
    }
}

/// Starts a server with traces: what the process of a trace does.
///
/// # Errors
/// If it cannot listen there, in words.
pub fn start(host: Box<dyn Host>, traces: Vec<Loaded>, options: &Options) -> Result<Running<Hud>, String> {
    let port = Port::open(options)?;
    let traces = traces.into_iter().map(|loaded| Arc::new(Trace::new(loaded))).collect();
    let hud =
        Arc::new(Hud { host, traces: RwLock::new(traces), doors: port.doors.clone(), lines: Lines::new() });
    Ok(port.serve(router(hud.clone()), hud))
}

/// All addresses.
pub fn router(hud: Arc<Hud>) -> Router {
    Router::new()
        .route("/{token}", get(redirect))
        .route("/{token}/", get(page))
        .route("/{token}/assets/{version}/{name}", get(asset))
        .route("/{token}/api/v1/{name}", post(ask))
        .fallback(nothing)
        .layer(from_fn_with_state(hud.doors.clone(), admit))
        .with_state(hud)
}

pub(crate) async fn nothing() -> Response {
    fault(&Fault::Missing("there is nothing at this address".to_owned()))
}

/// Refuses everything that is not from the own page.
pub(crate) async fn admit(State(doors): State<Arc<Doors>>, request: Request, next: Next) -> Response {
    let mut path = request.uri().path().split('/').skip(1);
    let (token, rest) = (path.next().unwrap_or(""), path.next().unwrap_or(""));
    let why = match doors.hosts.refuse(request.uri(), request.headers()) {
        None if guard::same(token, &doors.token) => return next.run(request).await,
        None if token == "open" && doors.take(rest, ends_of(&request)) => return to_page(&doors),
        None => "the address lacks the token that `etwhy serve` printed",
        Some(why) => why,
    };
    // Whoever may not ask keeps no connection.
    close(fault(&Fault::Forbidden(why.to_owned())))
}

/// Both ends of the connection of a request.
fn ends_of(request: &Request) -> Option<Ends> {
    request.extensions().get::<Option<Ends>>().copied().flatten()
}

/// The last response of its connection.
pub(crate) fn close(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The body of a question, if it comes in time and is not too large.
pub(crate) async fn body_of(request: Request, patience: &Patience) -> Result<serde_json::Value, Response> {
    let refused = |status: StatusCode, text: &str| {
        let body = serde_json::json!({ "error": text }).to_string();
        close(response(status, "application/json", body.into_bytes()))
    };
    let declared =
        request.headers().get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|bytes| bytes > MAX_READ as u64) {
        return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the question is too long"));
    }
    let bytes = match tokio::time::timeout(patience.body, to_bytes(request.into_body(), MAX_READ)).await {
        Ok(Ok(bytes)) if bytes.len() <= MAX_BODY => bytes,
        Ok(_) => {
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the question is too long or was cut off"));
        }
        Err(_) => return Err(refused(StatusCode::REQUEST_TIMEOUT, "the question did not come in time")),
    };
    if bytes.is_empty() {
        return Ok(serde_json::json!({}));
    }
    serde_json::from_slice(&bytes).map_err(|error| fault(&Fault::wrong(error)))
}

pub(crate) fn to_page(doors: &Doors) -> Response {
    to_address(&format!("/{}/", doors.token))
}

/// Sends the browser to another address of this server.
pub(crate) fn to_address(path: &str) -> Response {
    let mut response = response(StatusCode::SEE_OTHER, "text/plain", Vec::new());
    if let Ok(value) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

async fn redirect(State(hud): State<Arc<Hud>>) -> Response {
    to_page(&hud.doors)
}

pub(crate) async fn page() -> Response {
    response(StatusCode::OK, "text/html; charset=utf-8", assets::page().into_bytes())
}

pub(crate) async fn asset(
    Path((_, version, name)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let known = assets::ALL.iter().find(|asset| version == *assets::VERSION && asset.name == name);
    let Some(asset) = known else { return nothing().await };
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

async fn ask(
    State(hud): State<Arc<Hud>>,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    let Some(endpoint) = api::ALL.iter().find(|endpoint| endpoint.name == name) else {
        return nothing().await;
    };
    let body = match body_of(request, &hud.doors.patience).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let line = hud.lines.of_work(endpoint.work);
    let Ok(slot) = line.acquire_owned().await else { return fault(&Fault::Cancelled) };
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
        Err(Fault::Missing(_)) if call.is_of_passed_window() => fault(&Fault::Passed),
        Err(error) => fault(&error),
    }
}
