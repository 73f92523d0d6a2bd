//! What probes start in tests of this crate, instead of `etwhy probe child`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match etwhy_probe::probes::ALL.iter().find(|probe| probe.name == name).and_then(|probe| probe.child) {
        Some(child) => child(&rest).into(),
        None => {
            eprintln!("{name}: no such probe, or none with children");
            ExitCode::FAILURE
        }
    }
}
