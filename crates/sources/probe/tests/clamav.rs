//! A real antivirus: ClamAV scans on access, `file-open` shows what that costs, and names it.
//!
//! Needs root, loop devices, and clamd with clamonacc (Debian: clamav-daemon), which `scripts/test` installs where it may. The
//! database has two signatures only, so this is the least that ClamAV can cost.
//!
//! A process of its own: a scanner holds up every program that opens files on its mount.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use etwhy_probe::Sample;
use etwhy_probe::run::{Made, Options};
use etwhy_probe::who::{self, LIKELY, PROVEN, Seen, Watch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The test file that all scanners agree on (eicar.org), in two parts: this source must not be taken for it.
const EICAR: (&str, &str) = (r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR", "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*");

fn skip(why: &str) {
    let why = why.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    etwhy_testkit::skipped(&format!("ClamAV on access: {why}"));
}

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{program} {}` failed ({}): {}", words.join(" "), output.status, said.trim()))
    }
}

/// An ext4 of its own in a file: whatever ClamAV marks, nobody else's files are on it.
struct Lab {
    folder: tempfile::TempDir,
    mount: PathBuf,
    /// With their names.
    daemons: Vec<(&'static str, Child)>,
}

/// Lines of each log that are told.
const LAST_LINES: usize = 4;

/// For how long a daemon may take.
const LIMIT: Duration = Duration::from_secs(40);

impl Lab {
    fn new() -> Result<Lab, String> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let mount = folder.path().join("mount");
        fs::File::create(&image).and_then(|file| file.set_len(256 << 20)).unwrap();
        fs::create_dir(&mount).unwrap();
        let lab = Lab { folder, mount, daemons: Vec::new() };
        run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()])?;
        run("mount", &["-o", "loop", image.to_str().unwrap(), lab.mount.to_str().unwrap()])?;
        fs::create_dir(lab.mount.join("watched")).unwrap();
        Ok(lab)
    }

    /// Starts the scanner and its listener; the folder is scanned when this returns.
    fn scan(&mut self) -> Result<(), String> {
        use std::os::unix::fs::PermissionsExt;
        let path = |name: &str| self.folder.path().join(name);
        // The scanner runs as a user of its own.
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(path("db")).unwrap();
        fs::create_dir(path("run")).unwrap();
        fs::write(path("db/custom.hdb"), "44d88612fea8a8f36de82e1278abb02f:68:Eicar-Test-Signature\n")
            .unwrap();
        run("chown", &["-R", "clamav", path("db").to_str().unwrap(), path("run").to_str().unwrap()])?;
        let socket = path("run/clamd.socket");
        let config = format!(
            "LocalSocket {}\nUser clamav\nForeground yes\nDatabaseDirectory {}\nTemporaryDirectory {}\nOnAccessIncludePath {}\n\
             OnAccessPrevention yes\nOnAccessExcludeUname clamav\nOnAccessMaxFileSize 5M\nOnAccessMaxThreads 5\n",
            socket.display(),
            path("db").display(),
            path("run").display(),
            self.mount.join("watched").display()
        );
        let file = path("clamd.conf");
        fs::write(&file, config).unwrap();
        self.start("clamd", &["-c", file.to_str().unwrap()])?;
        self.wait_for("clamd's socket to be there", || socket.exists())?;
        self.start("clamonacc", &["-c", file.to_str().unwrap(), "--fdpass", "-F"])?;
        let bad = self.mount.join("watched/eicar.txt");
        fs::write(&bad, format!("{}{}", EICAR.0, EICAR.1)).unwrap();
        let denied =
            || fs::read(&bad).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        self.wait_for("the test file to be denied", denied)
    }

    /// Starts a daemon that stays in the foreground; what it says goes to a log.
    fn start(&mut self, name: &'static str, words: &[&str]) -> Result<(), String> {
        let log = fs::File::create(self.log(name)).unwrap();
        let started = Command::new(name).args(words).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        let daemon =
            started.map_err(|error| format!("`{name} {}` cannot be started: {error}", words.join(" ")))?;
        self.daemons.push((name, daemon));
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    /// Waits; says how the daemons are and what they said last if it was in vain.
    fn wait_for(&mut self, what: &str, done: impl Fn() -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !done() {
            let ended = self.daemons.iter_mut().any(|(_, daemon)| !matches!(daemon.try_wait(), Ok(None)));
            if ended || start.elapsed() > LIMIT {
                let waited = format!("waited {:.1} s for {what}", start.elapsed().as_secs_f64());
                return Err([vec![waited], self.states()].concat().join("; "));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Of each daemon how it is and its last lines.
    fn states(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for at in 0..self.daemons.len() {
            let (name, daemon) = &mut self.daemons[at];
            let (name, state) = match daemon.try_wait() {
                Ok(None) => (*name, "runs".to_owned()),
                Ok(Some(status)) => (*name, format!("ended ({status})")),
                Err(error) => (*name, error.to_string()),
            };
            let log = String::from_utf8_lossy(&fs::read(self.log(name)).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
            all.push(format!(
                "{name} {state} and said last: {}",
                if last.is_empty() { "nothing" } else { &last }
            ));
        }
        all
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The listener first: with it gone nobody waits for answers.
        for (_, daemon) in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        let _ = Command::new("umount").arg("-l").arg(&self.mount).output();
    }
}

fn file_open(folder: &Path) -> (Made, Seen) {
    let probe = support::probe("file-open");
    let set = [("files", "200"), ("operations", "list,open,read-64k")];
    let options = Options { rounds: 3, ..support::options(folder, &set) };
    let watch = Watch::start(folder);
    let made = support::made(probe, &options);
    let seen = watch.finish();
    println!("{}", (probe.conclude)(&made.samples).join("\n"));
    (made, seen)
}

fn p50(samples: &[Sample], variant: &str) -> u64 {
    let of = |s: &&Sample| s.case.measure == "open" && s.case.variant == variant;
    let mut all: Vec<u64> = samples.iter().filter(of).filter_map(|s| s.p50_ns).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

#[test]
fn clamav_on_access() {
    if !rustix::process::geteuid().is_root() {
        return skip("root is needed");
    }
    for program in ["clamd", "clamonacc", "mkfs.ext4"] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).map(|folder| folder.join(program)).any(|path| path.is_file()) {
            return skip(&format!("no {program} (scripts/test installs clamav-daemon where it may)"));
        }
    }
    if !Path::new("/dev/loop-control").exists() {
        return skip("no loop devices");
    }
    let mut lab = match Lab::new() {
        Ok(lab) => lab,
        Err(why) => return skip(&why),
    };
    let folder = lab.mount.join("watched");
    println!("without ClamAV:");
    let (off, nobody) = file_open(&folder);
    if let Err(why) = lab.scan() {
        return skip(&why);
    }
    println!("with ClamAV:");
    // The listener adds folders that the probe makes when it hears of them, which may be after the files in them were opened.
    let slower =
        |on: &Made, variant| p50(&on.samples, variant) > p50(&off.samples, variant).saturating_mul(20);
    let (mut on, mut seen) = file_open(&folder);
    for _ in 0..4 {
        if slower(&on, "first run") && slower(&on, "second run") {
            break;
        }
        (on, seen) = file_open(&folder);
    }
    let products = who::products();
    drop(lab);

    for variant in ["first run", "second run"] {
        let (off, on) = (p50(&off.samples, variant), p50(&on.samples, variant));
        println!(
            "{variant}: open p50 {off} ns without, {on} ns with ClamAV: {:.0} times",
            on as f64 / off as f64
        );
        // Measured on Debian 12 with ClamAV 1.4.6, tiny database: first 1.8 ms, again 0.6 ms, against 2 to 7 us. What it takes to
        // ask clamd at all is two orders above an open; a tenth of that is asked for.
        assert!(on > off.saturating_mul(20), "{variant}: {off} ns, then {on} ns");
    }
    for suspect in &seen.suspects {
        println!("{} ({}): {}", suspect.name, suspect.confidence, suspect.evidence.join("; "));
    }
    let first = &seen.suspects[0];
    assert_eq!((first.name.as_str(), first.confidence.as_str()), ("clamonacc", PROVEN));
    assert!(
        seen.suspects.iter().any(|s| s.name == "clamd" && s.confidence == LIKELY),
        "{:#?}",
        seen.suspects
    );
    let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
    assert!(
        names.contains(&"ClamAV on-access scanner") && names.contains(&"ClamAV scanner"),
        "{products:#?}"
    );
    println!("{products:?}");
    let guilty: Vec<_> = nobody.suspects.iter().filter(|s| s.confidence != who::POSSIBLE).collect();
    assert!(guilty.is_empty(), "{guilty:#?}");
}
