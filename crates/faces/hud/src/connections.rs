//! Connections: how many at a time, and how long they may stay without a request.
//!
//! Whoever can reach the port can open connections, with or without the token. Each of them must send the head of a request within
//! [`Patience::head`], also behind an earlier request; others wait until one of the [`Patience::connections`] is over.

use crate::peer::Ends;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

/// What a server puts up with.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Connections at a time. A browser opens six to a server.
    pub connections: usize,
    /// From the begin of a connection, or the end of an answer, until the head of a request is there.
    pub head: Duration,
    /// From the head of a request until its body is there.
    pub body: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { connections: 128, head: Duration::from_secs(20), body: Duration::from_secs(20) }
    }
}

/// Answers requests until `stopped`; connections end with the runtime.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    patience: Patience,
    mut stopped: oneshot::Receiver<()>,
) {
    let room = Arc::new(Semaphore::new(patience.connections.max(1)));
    loop {
        let next = async {
            let place = room.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            _ = &mut stopped => return,
            next = next => next,
        };
        let Ok((stream, client)) = accepted else {
            // As many files open as the system allows: some will be closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let ends = stream.local_addr().ok().map(|server| Ends { client, server });
        let service = TowerToHyperService::new(app.clone().layer(Extension(ends)));
        tokio::spawn(async move {
            let _place = place;
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(patience.head);
            // Errors of a connection are its own.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
