//! A trace that is followed, on the page in the browser: the process that follows it, and the server in front of it.

use super::run::{FollowArgs, What};
use super::show::{Sink, bias_ns};
use crate::commands::serve::page::{self, Own};
use crate::commands::serve::reader::{Reader, TOP, save_part, within};
use crate::commands::serve::worker::{failed, leave_interrupts, say, start};
use crate::exit::Exit;
use crate::report::why::verdict;
use anyhow::{Context as _, anyhow};
use etwhy_analysis::cpu::Scope;
use etwhy_hud::{
    Episode, Facts, Host, Hud, Live, Loaded, Options, Patience, Policy, Ready, Running, Said, Source,
};
use etwhy_live::{Episode as Seen, Fired, Follower, Look, Range, Watch};
use etwhy_rules::Rule;
use etwhy_table::{Database, TableSpec};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks at whether a look back is over, once the trace has ended.
const NAP: Duration = Duration::from_millis(200);
/// Episodes that the page is told, of those that are over.
const OVER: usize = 60;

impl FollowArgs {
    /// Serves the page; a process of its own follows.
    pub(super) fn page(&self, name: &'static str, what: &What) -> anyhow::Result<Exit> {
        let path = what.path();
        std::fs::metadata(path).with_context(|| format!("{}: cannot open", path.display()))?;
        let options = Options {
            address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port.unwrap_or(0)),
            hosts: Vec::new(),
            token: page::token(None)?,
            patience: Patience::default(),
        };
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let policy = Policy {
            folders: vec![folder.to_owned()],
            memory: etwhy_child::machine_memory().map(|all| all / 4 * 3),
            views: crate::knowledge::folder().map(|folder| folder.join("views")),
            ..Policy::default()
        };
        let shown = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let show = page::Show { opens: self.open, quiet: false, path: "" };
        page::run(Box::new(Own::new(name)?), policy, &options, &show, |front| {
            front.add(shown, vec![Source::default()], None).map_err(|fault| anyhow!("{fault}"))?;
            Ok(())
        })
    }

    /// Follows for a server in front, until standard input ends.
    pub(super) fn worker(&self, what: &What) -> anyhow::Result<Exit> {
        let token = crate::commands::serve::worker::begin()?;
        let window = match Page::new(self, what, token) {
            Ok(window) => window,
            Err(error) => return Ok(failed(&error)),
        };
        let shared = Arc::new(Mutex::new(window));
        let followed = self.watched(what, Box::new(Shared(Arc::clone(&shared))));
        let mut window = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = followed {
            match &window.running {
                None => return Ok(failed(&error)),
                // What was seen stays.
                Some(_) => say!("etwhy: {error:#}"),
            }
        }
        let Some(running) = &mut window.running else {
            return Ok(failed(&anyhow!("{}: the trace ended and holds nothing", what.path().display())));
        };
        leave_interrupts(running);
        window.end();
        loop {
            std::thread::sleep(NAP);
            if let Err(error) = window.go_on() {
                say!("etwhy: {error:#}");
            }
        }
    }
}

/// The page of one trace.
struct Page {
    name: String,
    path: PathBuf,
    token: String,
    rules: Vec<Rule>,
    within: Option<crate::open::TraceArgs>,
    paused: Arc<AtomicBool>,
    running: Option<Running<Hud>>,
    facts: Facts,
    /// The newest window, which a look back kept from the page.
    held: Option<Loaded>,
}

impl Page {
    fn new(args: &FollowArgs, what: &What, token: String) -> anyhow::Result<Page> {
        let path = what.path().to_owned();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let within = path.is_file().then(|| args.trace_args(&path));
        let paused = Arc::new(AtomicBool::new(false));
        let facts = Facts::default();
        Ok(Page { name, path, token, rules: args.rules()?, within, paused, running: None, facts, held: None })
    }

    /// A window as what the page asks of a trace.
    fn loaded(&self, look: &Look) -> Loaded {
        let db = look.db.clone();
        let mut report = verdict(&db, &Scope::default(), TOP, look.outcomes.clone());
        report.add_charts(&db);
        let single = self.within.clone();
        let part = single.is_some().then(|| save_part(self.path.clone()));
        let within = single.map(|trace| within(self.rules.clone(), trace, 0));
        Loaded { name: self.name.clone(), db, report, keep: Box::new(()), deferred: None, within, part }
    }

    /// What is known of the trace now; of the window, if it is the one that was looked at.
    fn live(&self, look: &Look, watch: &Watch, follower: &Follower) -> Live {
        let (history, now, sum) = (watch.history(), watch.now_unix_ns(), &look.sum);
        let before = self.facts.live.clone().unwrap_or_default();
        let window = match sum.range {
            Range::Last => before,
            Range::Whole => Live {
                window_ns: sum.window.length_ns(),
                window_end_ms: sum.window.end_unix_ns() as f64 / 1e6,
                events: sum.events,
                busy_percent: sum.busy_percent,
                cost_ms: sum.cost.as_secs_f64() * 1e3,
                ..before
            },
        };
        let last = watch.latest(Range::Last);
        let episode = |seen: &Seen| episode(seen, sum.window.start_unix_ns, now);
        Live {
            paused: self.paused.load(Ordering::Acquire),
            ended: follower.has_ended(),
            now_ms: now as f64 / 1e6,
            last_ns: last.map(|last| last.window.length_ns()),
            last_busy_percent: last.and_then(|last| last.busy_percent),
            offset_ms: bias_ns(follower) as f64 / 1e6,
            late_buffers: sum.late.0,
            too_late: follower.too_late(),
            lasting: history.lasting().iter().map(episode).collect(),
            over: history.ended().iter().rev().take(OVER).map(episode).collect(),
            path: self.path.display().to_string(),
            ..window
        }
    }

    /// Puts a window in the place of the last one, unless somebody looks back.
    fn put(&mut self, loaded: Loaded, mut live: Live) -> anyhow::Result<()> {
        live.number = live.number.saturating_add(1);
        let Some(running) = &self.running else {
            let host =
                LiveHost { reader: Reader::plain(self.rules.clone()), paused: Arc::clone(&self.paused) };
            let running = start(host, vec![loaded], &self.token)?;
            self.facts = facts_of(&running, live);
            let ready = Ready { port: running.address.port(), in_part: false, facts: self.facts.clone() };
            self.running = Some(running);
            say(&Said::Ready(ready));
            return Ok(());
        };
        running.state.put(0, loaded);
        self.facts = facts_of(running, live);
        say(&Said::Grown(Box::new(self.facts.clone())));
        Ok(())
    }

    /// Sends the findings of the last seconds to the page; the window that can be asked stays.
    fn tell_of_last(&mut self, look: &Look, watch: &Watch, follower: &Follower) -> anyhow::Result<()> {
        if self.running.is_none() {
            return Ok(());
        }
        self.facts.live = Some(self.live(look, watch, follower));
        if self.held.is_some() && !self.paused.load(Ordering::Acquire) {
            return self.go_on();
        }
        say(&Said::Grown(Box::new(self.facts.clone())));
        Ok(())
    }

    /// Nothing more comes: what is known of the trace is all.
    fn end(&mut self) {
        if let Some(live) = &mut self.facts.live {
            live.ended = true;
        }
        say(&Said::Grown(Box::new(self.facts.clone())));
    }

    /// Shows what a look back held, once it is over.
    fn go_on(&mut self) -> anyhow::Result<()> {
        if self.paused.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.held.take() {
            Some(loaded) => {
                let live = self.facts.live.clone().unwrap_or_default();
                self.put(loaded, Live { paused: false, ..live })
            }
            None => Ok(()),
        }
    }
}

fn facts_of(running: &Running<Hud>, live: Live) -> Facts {
    let facts = running.state.traces().first().map(|trace| Facts::of(trace)).unwrap_or_default();
    Facts { live: Some(live), ..facts }
}

fn episode(seen: &Seen, start: i64, now: i64) -> Episode {
    let said = &seen.said;
    Episode {
        id: seen.id.clone(),
        severity: seen.severity.name().to_owned(),
        culprit: said.culprit.clone(),
        headline: said.headline.clone(),
        range: said.range.name().to_owned(),
        range_ns: said.to_unix_ns.saturating_sub(said.from_unix_ns),
        age_ns: now.saturating_sub(said.to_unix_ns),
        began_ms: seen.began_unix_ns as f64 / 1e6,
        began_ns: seen.began_unix_ns.saturating_sub(start),
        seen_ns: seen.seen_unix_ns.saturating_sub(start),
        quiet_ms: seen.quiet_unix_ns.map(|at| at as f64 / 1e6),
        over_ms: seen.over_unix_ns.map(|at| at as f64 / 1e6),
        lasted_ns: seen.lasted_ns(),
    }
}

/// The page as what windows are shown on.
struct Shared(Arc<Mutex<Page>>);

impl Sink for Shared {
    fn window(
        &mut self,
        look: &Look,
        watch: &Watch,
        follower: &Follower,
        _fired: Option<&Fired>,
    ) -> anyhow::Result<()> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if look.sum.range == Range::Last {
            return page.tell_of_last(look, watch, follower);
        }
        let (loaded, live) = (page.loaded(look), page.live(look, watch, follower));
        if page.running.is_some() && live.paused && !live.ended {
            // The axis stays; what is found goes on being told.
            let facts = Facts { live: Some(live), ..page.facts.clone() };
            page.facts = facts.clone();
            page.held = Some(loaded);
            say(&Said::Grown(Box::new(facts)));
            return Ok(());
        }
        page.held = None;
        page.put(loaded, live)
    }
}

/// What the program knows besides tables, and whether somebody looks back.
struct LiveHost {
    reader: Reader,
    paused: Arc<AtomicBool>,
}

impl Host for LiveHost {
    fn program(&self) -> String {
        self.reader.program()
    }

    fn specs(&self) -> Vec<&'static TableSpec> {
        self.reader.specs()
    }

    fn why_empty(&self, db: &Database, table: &str) -> Option<String> {
        self.reader.why_empty(db, table)
    }

    fn recording_for(&self, table: &str) -> String {
        self.reader.recording_for(table)
    }

    fn knowledge(&self, name: &str) -> serde_json::Value {
        self.reader.knowledge(name)
    }

    fn pause(&self, paused: bool) -> Result<(), String> {
        self.paused.store(paused, Ordering::Release);
        Ok(())
    }
}
