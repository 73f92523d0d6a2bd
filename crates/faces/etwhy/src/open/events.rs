//! The rows of table `event`, made when they are wanted: their text is many times the trace, so nobody holds all of it.

use crate::exit::Changed;
use anyhow::anyhow;
use etwhy_etl::read::EtlFile;
use etwhy_table::Table;
use etwhy_trace::LateEvents;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};

/// Parts that are under way from who makes them to who writes them.
const UNDER_WAY: usize = 2;

/// What is needed to make them.
pub struct Events {
    late: LateEvents,
    files: Vec<EtlFile>,
    threads: usize,
}

/// Parts of the table, as somebody else makes them.
pub struct Parts<P>(Receiver<Option<P>>);

impl<P> Parts<P> {
    /// The next part; `None` behind the last.
    ///
    /// # Errors
    /// If the rows end early, whose reason the maker gives.
    pub fn take(&mut self) -> anyhow::Result<Option<P>> {
        self.0.recv().map_err(|_| anyhow!("the rows end early"))
    }
}

impl Events {
    pub(super) fn new(late: LateEvents, files: Vec<EtlFile>, threads: usize) -> Events {
        Events { late, files, threads }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.late.rows()
    }

    /// Threads that may be used.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Makes the rows part by part, at least one (which may have no rows), until `each` has had enough.
    ///
    /// # Errors
    /// Those of the table builder and of `each`; if files have lost records since the pass.
    pub fn each(&self, mut each: impl FnMut(Table) -> anyhow::Result<ControlFlow<()>>) -> anyhow::Result<()> {
        let mut ended = Ok(ControlFlow::Continue(()));
        let made = self.late.each(&self.files, self.threads, &mut |part| {
            ended = each(part);
            ended.as_ref().map_or(ControlFlow::Break(()), |ended| *ended)
        })?;
        if ended?.is_continue() && made < self.rows() {
            return Err(Changed { made, rows: self.rows() }.into());
        }
        Ok(())
    }

    /// Makes the rows part by part; what `prepare` makes of them is written on another thread.
    ///
    /// # Errors
    /// Those of [`Events::each`], and of `write`.
    pub fn write<P: Send>(
        &self,
        mut prepare: impl FnMut(Table) -> anyhow::Result<P>,
        write: impl FnOnce(Parts<P>) -> anyhow::Result<()> + Send,
    ) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let (send, parts) = sync_channel(UNDER_WAY);
            let writer = scope.spawn(move || write(Parts(parts)));
            let made = self.each(|part| {
                // Who no longer takes them has failed, and says why.
                let taken = send.send(Some(prepare(part)?)).is_ok();
                Ok(if taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            });
            if made.is_ok() {
                let _ = send.send(None);
            }
            drop(send);
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            made.and(written)
        })
    }
}
