//! `etwhy symbols` on a real trace whose PDBs are served over loopback, and on written ones.

use crate::{Are as _, Json as _, Str as _};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// Serves the files of a folder, whatever the case of what is asked for.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn of(folder: PathBuf) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, seen) = (folder.clone(), Arc::clone(&seen));
                std::thread::spawn(move || answer(stream, &folder, &seen));
            }
        });
        Server { url, asked }
    }

    /// What was asked for since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(mut stream: TcpStream, folder: &Path, seen: &Mutex<Vec<String>>) {
    let mut line = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut line).unwrap();
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).unwrap_or(0) <= 2 {
            break;
        }
    }
    let target = line.split(' ').nth(1).unwrap_or("").to_owned();
    seen.lock().unwrap().push(target.clone());
    let mut path = folder.to_path_buf();
    for part in target.split('/').filter(|part| !part.is_empty()) {
        let entry = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let name = entry.map(|e| e.file_name()).find(|n| n.to_string_lossy().eq_ignore_ascii_case(part));
        path.push(name.unwrap_or_else(|| "nothing".into()));
    }
    let (status, body) = match std::fs::read(&path) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}

fn etwhy(folder: &Path, columns: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env("XDG_CACHE_HOME", folder.join("caches"))
        .env("APPDATA", folder.join("config"))
        .env("LOCALAPPDATA", folder.join("caches"))
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("_NT_ALT_SYMBOL_PATH")
        .env_remove("_NT_SYMCACHE_PATH")
        .env_remove("ETWHY_CACHE")
        .env("NO_PROXY", "127.0.0.1")
        .env("COLUMNS", columns)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(folder: &Path, code: i32, arguments: &[&str]) -> Value {
    let output = etwhy(folder, "100", arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The folder with the trace of .NET 4.5 and its PDBs.
fn perfview() -> Option<PathBuf> {
    etwhy_testkit::corpus_file("etl/microsoft+perfview/symbols")?.parent().map(Path::to_path_buf)
}

const PDBS: [&str; 3] = ["System.Xml.ni.pdb", "System.ni.pdb", "mscorlib.ni.pdb"];

/// Modules in JSON whose `key` has this value.
fn with<'v>(modules: &'v Value, key: &str, value: &str) -> Vec<&'v str> {
    let all = modules.list().iter();
    let mut names: Vec<&str> =
        all.filter(|m| m[key] == value).map(|m| m["pdb"].as_str().unwrap_or("")).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_pdbs_of_a_real_trace_come_from_a_server() {
    let Some(perfview) = perfview() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Away from the folder `symbols` beside it.
    std::fs::copy(perfview.join("net.4.5.x86_PerfViewData.etl"), folder.join("t.etl")).unwrap();
    let server = Server::of(perfview.join("symbols"));
    let path = format!("srv*{}*{}", folder.join("cache").display(), server.url);
    let symbols = |word: &'static str| vec!["symbols", word, "t.etl", "--symbols", path.as_str(), "--json"];

    // Looking asks nobody.
    let plan = json(folder, 0, &symbols("plan"));
    let missing = json(folder, 0, &symbols("missing"));
    assert_eq!(server.asked(), Vec::<String>::new());
    // All of whom a frame is known: of stacks, routines and starts of threads.
    let total = plan["total"].uint() as usize;
    assert!(total > 130, "{total}");
    let first = &plan["modules"][0];
    assert_eq!(
        (&first["module"], &first["pdb_id"]),
        (&"clr.dll".into(), &"10792B14288A4AD082160B6825ECCC032".into())
    );
    let weights: Vec<i64> = plan["modules"].list().iter().map(|m| m["cpu_inclusive_ns"].int()).collect();
    assert!(weights.is_sorted_by(|a, b| a >= b));
    let lacking = with(&missing["missing"], "reason", "offline");
    assert!(PDBS.iter().all(|pdb| lacking.contains(pdb)), "{lacking:?}");

    // Fetching gets what is there, and says what is not.
    let fetch = json(folder, 1, &symbols("fetch"));
    assert_eq!(with(&fetch["modules"], "state", "fetched"), PDBS);
    // A module without an id cannot be asked for.
    let modules = plan["modules"].list();
    let wanted = modules.iter().filter(|m| m["pdb_id"].is_string()).count() - PDBS.len();
    assert!(wanted > 130 && wanted + PDBS.len() + 2 > total, "{wanted} of {total}");
    assert_eq!(with(&fetch["modules"], "state", "missing").len(), total - PDBS.len());
    assert_eq!(with(&fetch["modules"], "reason", "not found").len(), wanted);
    for module in fetch["modules"].list().iter().filter(|m| m["state"] == "fetched") {
        let (name, id) = (module["pdb"].str(), module["pdb_id"].str());
        let kept = folder.join("cache").join(name).join(id).join(name);
        assert_eq!(module["file"].str(), kept.str());
        let original = perfview.join("symbols").join(name).join(id.to_lowercase()).join(name);
        assert!(std::fs::read(kept).unwrap() == std::fs::read(original).unwrap(), "{name}");
    }
    let asked = server.asked();
    let index = asked.iter().filter(|target| *target == "/index2.txt").count();
    assert_eq!(index, 1, "asked once for all");
    assert!(
        asked.iter().all(|target| target == "/index2.txt" || target.split('/').count() == 4),
        "{asked:?}"
    );

    // The second time nobody is asked: it is there, or known to be missing.
    let again = json(folder, 1, &symbols("fetch"));
    assert_eq!(with(&again["modules"], "state", "present"), PDBS);
    assert_eq!(with(&again["modules"], "reason", "known missing").len(), wanted);
    let missing = json(folder, 0, &symbols("missing"));
    assert!(with(&missing["missing"], "reason", "known missing").len() >= 130);
    assert_eq!(server.asked(), Vec::<String>::new());

    // The names are used.
    let query = "SELECT count(*) AS n FROM frame WHERE module = 'mscorlib.ni.dll' AND function IS NOT NULL";
    let named =
        json(folder, 0, &["sql", "t.etl", query, "--symbols", &path, "--offline", "--format", "json"]);
    assert!(named[0]["n"].int() > 100, "{named}");

    let verified = json(folder, 0, &["symbols", "verify", "cache", "t.etl", "--json"]);
    let fits: Vec<&str> = verified["files"].list().iter().map(|file| file["module"].str()).collect();
    assert_eq!(fits.len(), 3);
    assert!(fits.contains(&"mscorlib.ni.dll"));

    // Screens keep their width.
    for columns in [80, 200] {
        for word in ["plan", "missing", "fetch"] {
            let width = columns.to_string();
            let shown =
                text(&etwhy(folder, &width, &["symbols", word, "t.etl", "--symbols", &path, "--top", "12"]));
            assert!(shown.contains("clr.pdb"), "{shown}");
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{word} is {widest} wide:\n{shown}");
        }
    }
}

#[test]
fn offline_means_that_no_server_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::of(folder.join("nothing"));
    let path = format!("srv*{}*{}", folder.join("cache").display(), server.url);
    let fetch = json(folder, 1, &["symbols", "fetch", "--demo", "--symbols", &path, "--offline", "--json"]);
    let modules = fetch["modules"].list();
    assert!(!modules.is_empty() && modules.iter().all(|module| module["state"] == "missing"));
    assert!(etwhy(folder, "100", &["why", "--demo", "--symbols", &path, "--offline"]).status.success());
    assert_eq!(server.asked(), Vec::<String>::new());
    // A path without a server asks nobody either, and says so.
    let output = etwhy(folder, "100", &["symbols", "fetch", "--demo", "--symbols", "cache"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("names no server"));
    // With one, `why` asks for what stands on stacks.
    assert!(etwhy(folder, "100", &["why", "--demo", "--symbols", &path]).status.success());
    assert!(!server.asked().is_empty());
}

#[test]
fn the_path_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = Server::of(folder.to_path_buf());
    std::fs::create_dir(folder.join("here")).unwrap();
    let path = format!("srv*there*{};here;cache*", server.url);
    let value = json(folder, 0, &["symbols", "path", "--check", "--symbols", &path, "--json"]);
    let elements: Vec<(&str, &str)> =
        value["elements"].list().iter().map(|e| (e["kind"].str(), e["state"].str())).collect();
    let later = "does not exist yet, is made when a file comes";
    elements.are(&[("cache", later), ("server", "answers"), ("folder", "exists"), ("default store", later)]);
    assert_eq!(value["asks_servers"], true);
    assert_eq!(server.asked(), ["/index2.txt"]);
    let output = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["symbols", "path", "--json", "--offline"])
        .env("_NT_SYMBOL_PATH", "srv*http://a*http://b;srv*")
        .env("_NT_ALT_SYMBOL_PATH", "/first")
        .env("_NT_SYMCACHE_PATH", folder.join("compact"))
        .env_remove("ETWHY_CACHE")
        .output()
        .unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["elements"][0]["origin"], "_NT_ALT_SYMBOL_PATH");
    assert_eq!(value["elements"][2]["place"], "https://msdl.microsoft.com/download/symbols");
    assert_eq!(value["asks_servers"], false);
    assert_eq!(value["compact_cache"].str(), folder.join("compact").str());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("_NT_SYMBOL_PATH: symbol path, element 1").count(), 1, "{told}");
    let wrong = etwhy(folder, "100", &["symbols", "path", "--symbols", "srv*ftp://x"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn written_symbols_fit_their_trace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/syscall_hook.toml");
    std::fs::copy(scenario, folder.join("hook.toml")).unwrap();
    assert!(
        etwhy(folder, "100", &["synth", "hook.toml", "-o", "hook.etl", "--scale", "0.002"]).status.success()
    );
    let verified = json(folder, 0, &["symbols", "verify", "symbols", "hook.etl", "--json"]);
    let files = verified["files"].list();
    assert!(files.len() > 2 && files.iter().all(|file| file["fits"] == true), "{verified:#}");
    // Another trace has none of them, or another build.
    std::fs::write(folder.join("junk.pdb"), "junk").unwrap();
    let junk = json(folder, 1, &["symbols", "verify", "junk.pdb", "--json"]);
    assert!(junk["files"][0]["error"].str().contains("it looks like text"));
    let plan = json(folder, 0, &["symbols", "plan", "hook.etl", "--json"]);
    let present = plan["modules"].list().iter().filter(|m| !m["present"].is_null()).count();
    assert!(present > 2, "what lies beside the trace is found");
}
