//! `etwhy fleet identify`.

use crate::exit::Exit;
use crate::report::terminal::out;
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_fleet::known::{Known, Line};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Trace files (.etl)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// End when standard input ends: nobody waits any more
    #[arg(long, hide = true)]
    supervised: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.supervised {
        etwhy_child::end_with_standard_input(|| etwhy_scratch::exit(Exit::InPart as i32));
    }
    let mut out = out();
    for (file, path) in args.files.iter().enumerate() {
        let line = match EtlFile::open(path, path, &OpenOptions::default()) {
            Ok(trace) => Line { file, identity: Some(Known::of(&trace)), error: None },
            Err(error) => Line { file, identity: None, error: Some(error.to_string()) },
        };
        etwhy_report::json::to_writer(&mut out, &line)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
