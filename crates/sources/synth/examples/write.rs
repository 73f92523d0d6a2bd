//! Writes a scenario: `write SCENARIO OUT.etl [BYTES]`. The program proper is `etwhy synth`.

use etwhy_synth::{DEMO, Scenario, write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(name), Some(out)) = (args.first(), args.get(1)) else {
        eprintln!("usage: write SCENARIO.toml|demo OUT.etl [BYTES]");
        return ExitCode::from(2);
    };
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let text = if name == "demo" { DEMO.to_string() } else { std::fs::read_to_string(name)? };
        let mut scenario = Scenario::parse(&text, name)?;
        let start = Instant::now();
        if let Some(bytes) = args.get(2) {
            scenario.scale_to_bytes(bytes.parse()?)?;
        }
        let scaled = start.elapsed();
        let report = write(&scenario, Path::new(out), &mut |_| ())?;
        println!(
            "{} bytes, {} records, {} buffers, {:.1} s of trace, {} symbol files; {:.2} s (of it {:.2} s to scale)",
            report.bytes,
            report.records,
            report.buffers,
            report.duration_s,
            report.symbol_files,
            start.elapsed().as_secs_f64(),
            scaled.as_secs_f64(),
        );
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}
