//! Whatever happens in whatever order: never two recordings of ours, never an end of somebody else's session, and at last none of
//! ours is left.

use crate::fake::{Crash, Fake};
use etwhy_record::run::{Choice, Mode, Options, Recorder, Watch};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};

/// A hundred thousand in builds that are optimised, as tests are.
const SCHEDULES: u64 = 100_000;

fn options(fake: &Fake) -> Options {
    let mut world = fake.0.borrow_mut();
    let rng = &mut world.rng;
    let names = [["cpu"], ["network"], ["dotnet"], ["session"]];
    let mode = match rng.below(4) {
        0 => Mode::Rotate { every_ms: 5_000, keep: 250 },
        1 => Mode::Ring { mebibytes: 256 },
        _ => Mode::File,
    };
    let kernel = *rng.pick(&[Choice::Auto, Choice::Auto, Choice::NtKernelLogger, Choice::Private]).unwrap();
    let for_ms = (rng.below(3) == 0).then_some(30_000);
    let profiles = rng.pick(&names).unwrap().iter().map(|n| (*n).to_owned()).collect();
    Options { for_ms, kernel, ..Options::new(profiles, mode, PathBuf::from("D:/traces")) }
}

/// One command or a few steps of the guard. Errors are answers too.
fn step(fake: &mut Fake, watch: &mut Watch) {
    let what = fake.0.borrow_mut().rng.below(19);
    let options = options(fake);
    let (mut sessions, mut machine) = (fake.clone(), fake.clone());
    let mut recorder = Recorder { sessions: &mut sessions, machine: &mut machine };
    match what {
        0..=3 => drop(recorder.start(&options)),
        4..=9 => drop(recorder.tick(watch)),
        10 => drop(recorder.mark("here")),
        11 => drop(recorder.keep()),
        12 => drop(recorder.status()),
        13 => drop(recorder.stop()),
        14 => drop(recorder.stop().and_then(|_| recorder.collect(Path::new("D:/x.etl"), true))),
        15 => {
            // Into files, as the command line has it.
            let boot =
                Options { boot: true, mode: Mode::File, for_ms: None, kernel: Choice::Auto, ..options };
            drop(recorder.start(&boot));
        }
        16 => fake.0.borrow_mut().reboot(),
        _ => drop(recorder.cancel()),
    }
    fake.0.borrow_mut().now_ms += 700;
}

fn schedule(seed: u64) -> Result<(), String> {
    let mut fake = Fake::new(seed);
    let mut watch = Watch::default();
    let steps = {
        let mut world = fake.0.borrow_mut();
        world.trouble = [0, 4, 10, 40][world.rng.index(4)];
        world.is_windows_8 = world.rng.below(8) > 0;
        if world.rng.below(4) == 0 {
            world.boots.insert("GlobalLogger".to_owned(), None);
        }
        3 + world.rng.below(12)
    };
    for _ in 0..steps {
        {
            let mut world = fake.0.borrow_mut();
            world.crash_in = if world.rng.below(4) == 0 { Some(world.rng.below(40) as u32) } else { None };
        }
        let ended = catch_unwind(AssertUnwindSafe(|| step(&mut fake, &mut watch)));
        if let Err(panic) = ended {
            if !panic.is::<Crash>() {
                resume_unwind(panic);
            }
            watch = Watch::default();
        }
        let world = fake.0.borrow();
        for word in ["kernel", "user", "names"] {
            if world.count_ours(word) > 1 {
                return Err(format!("two sessions of ours: {:?}", world.sessions));
            }
        }
    }
    // Quiet now: one `stop` or `cancel` is enough, and whoever else was there stays.
    let foreign_boots = fake.0.borrow().boots.values().filter(|boot| boot.is_none()).count();
    let foreign = {
        let mut world = fake.0.borrow_mut();
        (world.crash_in, world.trouble) = (None, 0);
        world.sessions.iter().filter(|s| !s.is_ours).map(|s| s.live.handle).collect::<Vec<_>>()
    };
    let (mut sessions, mut machine) = (fake.clone(), fake.clone());
    let mut recorder = Recorder { sessions: &mut sessions, machine: &mut machine };
    let there = recorder.status().map_err(|e| e.to_string())?.is_some();
    if there {
        match recorder.stop() {
            Ok(_) => {
                recorder.collect(Path::new("D:/last.etl"), true).map_err(|e| format!("collect: {e}"))?;
            }
            // A start of Windows was to be recorded, and there was none.
            Err(why) if why.0.contains("has not been restarted") => {
                recorder.cancel().map_err(|e| format!("cancel: {e}"))?;
            }
            Err(why) => return Err(format!("stop: {why}")),
        }
    }
    let world = fake.0.borrow();
    if let Some(violation) = &world.violation {
        return Err(violation.clone());
    }
    if let Some(left) = world.sessions.iter().find(|s| s.is_ours) {
        return Err(format!("left: {left:?}"));
    }
    if world.boots.values().any(Option::is_some) {
        return Err(format!("keys are left: {:?}", world.boots));
    }
    if world.boots.len() != foreign_boots {
        return Err(format!("{foreign_boots} keys of others became {:?}", world.boots));
    }
    let now: Vec<u64> = world.sessions.iter().map(|s| s.live.handle).collect();
    if now != foreign {
        return Err(format!("foreign sessions {foreign:?} became {now:?}"));
    }
    Ok(())
}

#[test]
fn ours_end_and_those_of_others_stay_in_any_order_of_events() {
    // Crashes are panics here, thousands of them: they are not printed.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let failed = (0..SCHEDULES).find_map(|seed| match catch_unwind(|| schedule(seed)) {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(format!("schedule {seed}: {why}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Some(format!("schedule {seed}: {}", text.unwrap_or_default()))
        }
    });
    set_hook(hook);
    if let Some(failed) = failed {
        panic_any(failed);
    }
}
