//! Reserving address space, again and again.

use crate::amount::size;
use crate::clock::nanos;
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::words::time;
use etwhy_os::memory::{Access, Placement, Region};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "virtual-alloc",
    about: "Reserve address space again and again: what each further piece costs when many are there",
    manual: "Asks for pieces of address space one after the other, keeps them all, and gives them back at the end. The figure is what \
             one call took, against how many pieces were there. Memory is not touched, so none is used but for the system's own \
             tables.\n\n\
             reserve: 64 KB of addresses (VirtualAlloc with MEM_RESERVE; mmap with PROT_NONE). commit: one page that may be written \
             (MEM_RESERVE and MEM_COMMIT; PROT_READ and PROT_WRITE). top-down: as reserve, with MEM_TOP_DOWN (Windows only). search: as \
             reserve, but the program itself looks for the place: from the first address on until one is free (an address with \
             MEM_RESERVE; MAP_FIXED_NOREPLACE). merged: as reserve, on Linux, where neighbours with the same rights become one \
             mapping.\n\n\
             How to read it: flat is well. A call that gets slower with the number of pieces makes all calls together cost their \
             square. With MEM_TOP_DOWN 250,000 calls took 25 minutes on Windows, nearly all of it in the kernel's search for the next \
             address. Linux keeps free places in a tree: there only a program that searches itself pays like that.\n\n\
             What fools it: on Linux neighbours merge unless their rights differ, so reserve and commit change the rights from \
             piece to piece to get as many mappings as calls; `merged` shows what happens otherwise. vm.max_map_count limits mappings \
             (65,530 unless set); the probe stays below. A busy machine makes single points jump: the median of the calls (p50) and CPU \
             time tell more than wall time then.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("calls", "Pieces of each curve", "calls", (30_000, 4000), (200, 250_000)),
        Parameter::number(
            "searched",
            "Pieces where the program itself searches; the work grows with the square",
            "calls",
            (2000, 1000),
            (100, 20_000),
        ),
        Parameter::number("seconds", "Each curve ends after so long", "s", (20, 5), (1, 3600)),
        Parameter::choice("variants", "What is measured", DEFAULT, &VARIANTS),
    ],
    grows: Grows::PerCall,
    n_is: "pieces that are there",
    contrasts: &[Contrast {
        title: "top-down against where Windows likes",
        dear: (RESERVE, TOP_DOWN),
        cheap: (RESERVE, SYSTEM),
        meaning: "What MEM_TOP_DOWN costs for each reservation.",
    }],
    run,
    child: None,
    conclude,
};

const VARIANTS: [&str; 5] = ["reserve", "commit", "top-down", "merged", "search"];
const DEFAULT: &str = if cfg!(windows) {
    "reserve,commit,top-down,search"
} else if cfg!(target_os = "linux") {
    "reserve,commit,merged,search"
} else {
    "reserve,commit,search"
};

const RESERVE: &str = "reserve 64 KB";
const COMMIT: &str = "commit a page";
const SYSTEM: &str = "the system places";
const TOP_DOWN: &str = "top-down";

/// Points of each curve: growth laws want 20 and more.
const POINTS: u64 = 40;

/// Windows reserves in such steps (`SYSTEM_INFO.dwAllocationGranularity`).
const PIECE: usize = 64 << 10;

/// Less than the smallest page of any system that probes run on; systems round up.
const PAGE: usize = 4 << 10;

/// Mappings below the limit of Linux that are left for the rest of the program.
const SPARE_MAPS: u64 = 2000;

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let mut variants = run.words("variants");
    if run.round() % 2 == 1 {
        variants.reverse();
    }
    for (done, variant) in variants.iter().enumerate() {
        run.progress(variant, done as u64, variants.len() as u64);
        match variant.as_str() {
            "reserve" => curve(run, RESERVE, SYSTEM, PIECE, Ask::Reserve)?,
            "commit" => curve(run, COMMIT, SYSTEM, PAGE, Ask::Commit)?,
            "merged" if cfg!(target_os = "linux") => curve(run, RESERVE, "merged", PIECE, Ask::Merged)?,
            "top-down" if cfg!(windows) => curve(run, RESERVE, TOP_DOWN, PIECE, Ask::TopDown)?,
            "search" => curve(run, RESERVE, "the program searches", PIECE, Ask::Search)?,
            other => run.note(format!("{other}: this system has nothing of the kind, so it was left out")),
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Reserve,
    Commit,
    Merged,
    TopDown,
    Search,
}

impl Ask {
    /// The rights of piece number `n`. On Linux they alternate, or neighbours would merge into one mapping.
    fn access(self, n: usize) -> Access {
        let odd = n % 2 == 1 && cfg!(target_os = "linux");
        match self {
            Ask::Merged => Access::Nothing,
            Ask::Commit if odd => Access::Write,
            Ask::Commit => Access::ReadWrite,
            _ if odd => Access::Read,
            _ => Access::Nothing,
        }
    }
}

/// Measures one curve, and gives everything back.
fn curve(run: &mut Run<'_>, measure: &str, variant: &str, bytes: usize, ask: Ask) -> Result<(), ProbeError> {
    let wanted = if ask == Ask::Search { run.number("searched") } else { run.number("calls") };
    let calls = allowed(run, wanted);
    let base = if ask == Ask::Search { free_place(calls)? } else { 0 };
    let limit = Duration::from_secs(run.number("seconds"));
    let start = Instant::now();
    // Room for all of them now: growing would ask the system for memory in the middle of the measurement.
    let mut pieces: Vec<Region> = Vec::with_capacity(usize::try_from(calls).unwrap_or(0));
    let step = (calls / POINTS).max(1);
    let mut there = 0;
    let mut ended = None;
    while there < calls && ended.is_none() {
        let until = (there + step).min(calls);
        let before = there;
        run.measure(Case::new(measure).when(variant).at((there + until) as f64 / 2.0), |run, laps| {
            while there < until {
                run.goes_on()?;
                let access = ask.access(pieces.len());
                let began = Instant::now();
                let piece = match ask {
                    Ask::Search => search(run, base, access)?,
                    Ask::TopDown => Region::new(bytes, access, Placement::TopDown),
                    _ => Region::new(bytes, access, Placement::Anywhere),
                };
                laps.push(nanos(began));
                match piece {
                    Ok(piece) => pieces.push(piece),
                    Err(error) => {
                        ended = Some(format!("the system gave no more ({error})"));
                        break;
                    }
                }
                there += 1;
                if start.elapsed() > limit {
                    ended = Some(format!("{} s were over (--set seconds)", limit.as_secs()));
                    break;
                }
            }
            if there == before {
                let why = ended.take().unwrap_or_default();
                return Err(ProbeError::Impossible(format!(
                    "{measure}, {variant}: after {there} pieces {why}"
                )));
            }
            Ok((there - before, 0))
        })?;
    }
    if let Some(why) = ended {
        run.note(format!("{measure}, {variant}: ended after {there} of {calls} pieces: {why}"));
    }
    Ok(())
}

/// Tries places from the first on until one is free, as programs do that want their memory in one corner.
fn search(run: &Run<'_>, base: usize, access: Access) -> Result<std::io::Result<Region>, ProbeError> {
    let mut place = base;
    let mut tries = 0_u64;
    loop {
        match Region::new(PIECE, access, Placement::At(place)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let Some(next) = place.checked_add(PIECE) else { return Ok(Err(error)) };
                place = next;
            }
            result => return Ok(result),
        }
        tries += 1;
        if tries.is_multiple_of(4096) {
            run.goes_on()?;
        }
    }
}

/// An address from which on there is room for `calls` pieces: the system knows one.
fn free_place(calls: u64) -> Result<usize, ProbeError> {
    let bytes = usize::try_from(calls).ok().and_then(|calls| calls.checked_mul(PIECE)).unwrap_or(usize::MAX);
    let place = Region::new(bytes, Access::Nothing, Placement::Anywhere)
        .map_err(ProbeError::system(format!("a free place of {bytes} bytes")))?;
    // Systems give multiples of a page, Windows of 64 KB; searching wants the same everywhere.
    Ok(place.address().next_multiple_of(PIECE))
}

/// As many mappings as Linux allows; as many as are wanted elsewhere.
fn allowed(run: &mut Run<'_>, wanted: u64) -> u64 {
    if cfg!(not(target_os = "linux")) {
        return wanted;
    }
    let number = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let Some(limit) = number.ok().and_then(|text| text.trim().parse::<u64>().ok()) else { return wanted };
    let now = std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count() as u64);
    let room = limit.saturating_sub(now).saturating_sub(SPARE_MAPS).max(100);
    if room < wanted {
        run.note(format!(
            "{room} calls instead of {wanted}: vm.max_map_count is {limit}, and {now} mappings are there already"
        ));
    }
    wanted.min(room)
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for sample in samples {
        let kind = (sample.case.measure.as_str(), sample.case.variant.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort_unstable();
    kinds.into_iter().filter_map(|kind| sentence(samples, kind)).collect()
}

/// What the first and the last calls of a curve cost; by which law they grow is said elsewhere.
fn sentence(samples: &[Sample], (measure, variant): (&str, &str)) -> Option<String> {
    let of_kind = || samples.iter().filter(|s| s.case.measure == measure && s.case.variant == variant);
    let figures = Figures::from_samples(samples);
    let sizes = figures.by_size(measure, variant);
    let (first, last) = (sizes.first()?, sizes.last()?);
    let rounds = crate::words::rounds(of_kind());
    let all: f64 = of_kind().map(|s| s.wall_ns as f64).sum::<f64>() / rounds;
    Some(format!(
        "{measure}, {variant}: {} a call at first, {} when {} were there; all together {}.",
        time(first.median),
        time(last.median),
        size(last.key.n?),
        time(all)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{made, options, tried};

    fn maps() -> usize {
        std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count())
    }

    #[test]
    fn every_variant_measures_all_calls_and_gives_everything_back() {
        let before = maps();
        let options = options(&std::env::temp_dir(), &[("calls", "1000"), ("searched", "200")]);
        let made = made(&PROBE, &options);
        let variants = DEFAULT.split(',').count();
        let calls: u64 = made.samples.iter().map(|s| s.operations).sum();
        assert_eq!(calls, (variants as u64 - 1) * 1000 + 200);
        assert_eq!(conclude(&made.samples).len(), variants);
        // Other tests of this program run at the same time and map a little.
        assert!(maps() < before + 150, "{before} mappings before, {} after", maps());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn rights_that_alternate_keep_mappings_apart() {
        // Counted from addresses, since other tests map at the same time.
        let pieces: Vec<Region> = (0..100)
            .map(|n| Region::new(PIECE, Ask::Reserve.access(n), Placement::Anywhere).unwrap())
            .collect();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let starts = |address: usize| maps.lines().any(|line| line.starts_with(&format!("{address:x}-")));
        assert!(pieces.iter().all(|piece| starts(piece.address())));
        let merged: Vec<Region> = (0..100)
            .map(|n| Region::new(PIECE, Ask::Merged.access(n), Placement::Anywhere).unwrap())
            .collect();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let starts = |address: usize| maps.lines().any(|line| line.starts_with(&format!("{address:x}-")));
        assert!(merged.iter().filter(|piece| starts(piece.address())).count() < 50);
    }

    #[test]
    fn what_the_system_lacks_is_said() {
        let missing = if cfg!(windows) { "merged" } else { "top-down" };
        let options = options(&std::env::temp_dir(), &[("variants", missing)]);
        let made = tried(&PROBE, &options);
        assert!(made.samples.is_empty() && made.notes.iter().any(|note| note.contains(missing)));
    }
}
