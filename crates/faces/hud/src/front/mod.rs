//! The server in front: it owns the port, the page, who may come in and what is opened. Each trace is read and queried in a process of its
//! own (`process.rs`), to which its questions are handed on (`relay.rs`): a trace that brings its reader down costs only itself.
//!
//! The process of a trace is the same program. Its token comes over its standard input, it serves on a port of 127.0.0.1, says on standard
//! output how far it is ([`said`]), and ends when its standard input does. What it answers reaches the browser as data only.

pub(crate) mod notes;
mod opening;
mod process;
mod relay;
pub mod said;
pub(crate) mod session;
pub mod slot;
pub mod store;
mod views;

use crate::fault::Fault;
use crate::folders::Folders;
use crate::guard::Doors;
use crate::reply::{Reply, fault};
use crate::server::{self, Options, Port, Running, admit, body_of, nothing, to_page};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post, put};
use etwhy_child::Limits;
use etwhy_scratch::Scratch;
use process::Turns;
use slot::{Slot, Source, Stage};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};

/// The program around the server.
pub trait Launcher: Send + Sync {
    /// Name and version of the program.
    fn program(&self) -> String;
    /// The process that reads these: one trace, or two that are compared.
    fn command(&self, sources: &[Source]) -> Command;
    /// The store whose page is shown, if there is one.
    fn store(&self) -> Option<&dyn store::Many> {
        None
    }
}

/// What the page may do, and what a trace may cost.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Nothing may be opened from the page.
    pub readonly: bool,
    /// Folders whose traces the page may open.
    pub folders: Vec<PathBuf>,
    /// Bytes that a file may have that the page sends; 0: it may send none.
    pub upload_bytes: u64,
    /// Where such files go; none: where the system has its temporary files.
    pub temp_dir: Option<PathBuf>,
    /// Memory that the process of a trace may take.
    pub memory: Option<u64>,
    /// Folder of views that are saved; none: they stay in the browser.
    pub views: Option<PathBuf>,
}

/// What all requests share.
pub struct Front {
    launcher: Box<dyn Launcher>,
    readonly: bool,
    folders: Folders,
    upload_bytes: u64,
    temp_dir: Option<PathBuf>,
    views: Option<PathBuf>,
    limits: Limits,
    doors: Arc<Doors>,
    slots: RwLock<Vec<Arc<Slot>>>,
    /// Processes that hold two traces, the latest last.
    pairs: Mutex<Vec<(usize, usize, Arc<Slot>)>>,
    turns: Turns,
    changed: watch::Sender<u64>,
    streams: Arc<Semaphore>,
    uploads: Semaphore,
    /// Questions to a store that are answered at a time.
    questions: Semaphore,
}

/// Pages that listen at a time.
const STREAMS: usize = 32;
/// Files that come at a time.
const UPLOADS: usize = 2;
/// Time that processes have to end before the server does; what they still hold, a later run removes.
const LEAVING: Duration = Duration::from_secs(2);
/// Comparisons whose processes are kept.
const PAIRS: usize = 2;

/// Starts it; traces are given to [`Front::add`].
///
/// # Errors
/// If it cannot listen there, in words.
pub fn start(
    launcher: Box<dyn Launcher>,
    policy: Policy,
    options: &Options,
) -> Result<Running<Front>, String> {
    let port = Port::open(options)?;
    let Policy { readonly, folders, upload_bytes, temp_dir, memory, views } = policy;
    let front = Arc::new(Front {
        launcher,
        readonly,
        folders: Folders::new(&folders),
        upload_bytes,
        temp_dir,
        views,
        limits: Limits { time: None, memory },
        doors: port.doors.clone(),
        slots: RwLock::default(),
        pairs: Mutex::default(),
        turns: Turns::default(),
        changed: watch::Sender::new(0),
        streams: Arc::new(Semaphore::new(STREAMS)),
        uploads: Semaphore::new(UPLOADS),
        questions: Semaphore::new(1),
    });
    Ok(port.serve(router(front.clone()), front))
}

impl Front {
    /// The traces, in order of their numbers.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads another trace; its number.
    ///
    /// # Errors
    /// If there are too many.
    pub fn add(
        self: &Arc<Self>,
        name: String,
        sources: Vec<Source>,
        keep: Option<Arc<Scratch>>,
    ) -> Result<usize, Fault> {
        let slot = Arc::new(Slot::new(name, sources, keep));
        let number = {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            opening::check_room(&slots)?;
            slots.push(Arc::clone(&slot));
            slots.len().saturating_sub(1)
        };
        self.read(&slot);
        Ok(number)
    }

    /// Reads a trace again that failed, ended or was closed; nothing if it is under way or there.
    fn again(self: &Arc<Self>, slot: &Arc<Slot>) -> Result<(), Fault> {
        if slot.is_gone() {
            return Err(Fault::Missing(format!(
                "{}: its file went when it was closed; send it again",
                slot.name
            )));
        }
        let slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slot.is_closed() {
            opening::check_open(&slots)?;
        }
        self.read(slot);
        Ok(())
    }

    /// A word that opens the page once, for a command line that others can read.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn word(&self) -> Result<String, String> {
        self.doors.word()
    }

    /// Ends all processes, and removes what was sent.
    pub fn close(&self) {
        let kept: Vec<Arc<Scratch>> = self.slots().iter().filter_map(|slot| slot.close()).collect();
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let begun = Instant::now();
        // Their processes are on their way out.
        while kept.iter().any(|scratch| Arc::strong_count(scratch) > 1) && begun.elapsed() < LEAVING {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// True if something could not be read, or in part.
    pub fn in_part(&self) -> bool {
        self.slots().iter().any(|slot| {
            let state = slot.state();
            state.in_part || matches!(state.stage, Stage::Failed | Stage::Ended)
        })
    }

    /// Everyone who listens looks again.
    fn tell(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The process that compares two traces.
    fn pair(self: &Arc<Self>, one: usize, other: usize) -> Result<Arc<Slot>, Fault> {
        let slots = self.slots();
        let (Some(a), Some(b)) = (slots.get(one), slots.get(other)) else {
            return Err(Fault::wrong("the trace went away"));
        };
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pairs.iter().position(|(a, b, _)| (*a, *b) == (one, other)) {
            let known = pairs.remove(at);
            let pair = Arc::clone(&known.2);
            pairs.push(known);
            // One that ended is begun anew.
            self.read(&pair);
            return Ok(pair);
        }
        if pairs.len() >= PAIRS {
            pairs.remove(0).2.close();
        }
        let sources = a.sources.iter().chain(&b.sources).cloned().collect();
        let pair = Arc::new(Slot::new(format!("{} and {}", a.name, b.name), sources, None));
        pairs.push((one, other, Arc::clone(&pair)));
        drop(pairs);
        self.read(&pair);
        Ok(pair)
    }
}

fn router(front: Arc<Front>) -> Router {
    Router::new()
        .route("/{token}", get(redirect))
        .route("/{token}/", get(store::first))
        .route("/{token}/store/", get(store::page))
        .route("/{token}/api/v1/store/{name}", post(store::ask))
        .route("/{token}/assets/{version}/{name}", get(server::asset))
        .route("/{token}/api/v1/events", get(events))
        .route("/{token}/api/v1/upload/{name}", put(upload))
        .route("/{token}/api/v1/{name}", post(ask))
        .fallback(nothing)
        .layer(from_fn_with_state(front.doors.clone(), admit))
        .with_state(front)
}

async fn redirect(State(front): State<Arc<Front>>) -> Response {
    to_page(&front.doors)
}

async fn events(State(front): State<Arc<Front>>) -> Response {
    session::events(&front)
}

async fn upload(
    State(front): State<Arc<Front>>,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    opening::upload(front, &name, request).await
}

async fn ask(
    State(front): State<Arc<Front>>,
    Path((_, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    let body = match body_of(request, &front.doors.patience).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let reply = match name.as_str() {
        "session" => Reply::json(&session::session(&front)),
        "open" => opening::open(&front, body),
        "close" => opening::close_trace(&front, body),
        "folder" => opening::folder(&front, body),
        "notes" => notes::notes(&front, body),
        "views" => views::views(&front, body),
        _ if crate::api::ALL.iter().any(|endpoint| endpoint.name == name) => {
            return relay::ask(front, &name, body).await;
        }
        _ => return nothing().await,
    };
    match reply {
        Ok(reply) => reply.response(),
        Err(error) => fault(&error),
    }
}
