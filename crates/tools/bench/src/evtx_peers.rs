//! Other readers of event logs, as far as `ETWHY_PYTHON` names a Python that has them (`pip install evtx python-evtx
//! libevtx-python dissect.eventlog`): all records with their fields, as JSON or XML, CPU time of one thread.

use std::path::Path;
use std::process::Command;

/// Prints name, records and CPU seconds of each reader that is there; a slow one gets a share of the chunks.
const SCRIPT: &str = r#"
import sys, time, os, tempfile
path = sys.argv[1]
data = open(path, "rb").read()
chunks = (len(data) - 4096) // 65536

def part(n):
    # The first n chunks under the same header.
    n = max(1, min(n, chunks))
    out = tempfile.NamedTemporaryFile(suffix=".evtx", delete=False)
    head = bytearray(data[:4096])
    head[16:24] = (n - 1).to_bytes(8, "little")
    head[42:44] = n.to_bytes(2, "little")
    import zlib
    head[124:128] = zlib.crc32(bytes(head[:120])).to_bytes(4, "little")
    out.write(head)
    out.write(data[4096:4096 + n * 65536])
    out.close()
    return out.name

def crate_evtx(path):
    from evtx import PyEvtxParser
    return sum(1 for _ in PyEvtxParser(path).records_json())

def libevtx(path):
    import pyevtx
    log, n = pyevtx.open(path), 0
    for record in log.records:
        try:
            record.xml_string
            n += 1
        except OSError:
            pass
    return n

def dissect(path):
    from dissect.eventlog.evtx import Evtx
    with open(path, "rb") as f:
        return sum(1 for record in Evtx(f) if dict(record) is not None)

def python_evtx(path):
    from Evtx.Evtx import Evtx
    n = 0
    with Evtx(path) as log:
        for record in log.records():
            try:
                record.xml()
                n += 1
            except Exception:
                pass
    return n

for name, read, share in [("evtx (PyPI), JSON", crate_evtx, chunks), ("libevtx, XML", libevtx, 400),
                          ("dissect.eventlog", dissect, 60), ("python-evtx, XML", python_evtx, 12)]:
    file = part(share)
    try:
        start = time.process_time()
        n = read(file)
        print(name, n, time.process_time() - start, os.path.getsize(file), sep="\t")
    except ImportError:
        print(name, 0, 0, 0, sep="\t")
    except Exception as error:
        print(name, -1, 0, 0, sep="\t")
    finally:
        os.unlink(file)
"#;

/// Prints how fast other readers are, beside what the second and third tier take for a record here.
pub fn compare(file: &Path, tiers: &[(&str, f64)]) -> anyhow::Result<()> {
    let Some(python) = std::env::var_os("ETWHY_PYTHON") else {
        println!("  other readers: ETWHY_PYTHON names no Python that has them");
        return Ok(());
    };
    let output = Command::new(&python).arg("-c").arg(SCRIPT).arg(file).output()?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut parts = line.split('\t');
        let name = parts.next().unwrap_or("");
        let mut number = || parts.next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        let (records, seconds, bytes) = (number(), number(), number());
        if records == 0.0 {
            println!("  {name:<20} is not there");
        } else if records < 0.0 {
            println!("  {name:<20} failed on this log");
        } else {
            let each = seconds / records;
            let ratios: Vec<String> =
                tiers.iter().map(|(tier, own)| format!("{tier} {:.0}x", each / own)).collect();
            println!(
                "  {name:<20} {records:>7} records ({:.0} MB) in {seconds:>6.2} s CPU, {:>6.1} k/s; here: {}",
                bytes / 1e6,
                records / seconds / 1e3,
                ratios.join(", ")
            );
        }
    }
    Ok(())
}
