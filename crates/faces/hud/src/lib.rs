//! The server behind `etwhy serve`: one page, and what the page may ask.
//!
//! # The central decision: the server adds up, the page draws
//!
//! No event ever travels. The page asks for rows that are added up already (a pivot, a tree, a lane with as many columns as the
//! screen has), as Arrow, and draws them. Each [`Endpoint`](call::Endpoint) is a file in `api/`; each is asked by `POST` with a JSON body
//! that names the trace and the range, so that an address, a log or a bookmark never holds what was asked.
//!
//! # Who may ask
//!
//! The server listens on this machine alone unless told otherwise; its path holds a random token; `Host` and `Origin` must be its own
//! ([`guard`]). The page is forbidden to load anything from elsewhere.
//!
//! # Work and its end
//!
//! Answers are computed on blocking threads. Each kind of [`Work`](call::Work) has a line of its own, so that questions in SQL
//! and traces that are read never keep the frame and the panels waiting. When the page gives a question up, its connection goes, and with it
//! the [`Cancel`](call::Cancel) of the work is set. A panic ends the question it belongs to.
#![forbid(unsafe_code)]

pub mod api;
pub mod assets;
pub mod cache;
pub mod call;
pub mod connections;
pub mod fault;
pub mod folders;
pub mod front;
pub mod guard;
pub mod host;
pub mod hud;
pub mod identity;
mod lines;
pub mod part;
pub mod peer;
pub mod pivot;
pub mod reply;
pub mod server;
pub mod stacks;
pub mod trace;
pub mod who;
#[cfg(test)]
mod wire;

pub use connections::Patience;
pub use front::said::{Episode, Facts, Live, Ready, Said};
pub use front::slot::Source;
pub use front::store::Many;
pub use front::{Front, Launcher, Policy};
pub use host::{Deferred, Host, Loaded, MakeDeferred, SavePart, Within};
pub use hud::Hud;
pub use server::{Options, Running, start};
