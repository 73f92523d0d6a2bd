//! Symbol servers that fail in every way: what is missing is told, and nothing wrong is kept.
//!
//! A process of its own: its servers and clients give up after fractions of a second.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "all/support/mod.rs"]
mod support;

use etwhy_base::Guid;
use etwhy_symbols::server::{Proxies, ServerOptions};
use etwhy_symbols::source::{Attempt, Outcome};
use etwhy_symbols::verify::identify;
use etwhy_symbols::{
    FileKind, Locate as _, ModuleKey, SourceOptions, Sources, SymbolPath, WantedModule, parse_store_id,
};
use std::time::Duration;
use support::{Faulty, Serve, Temp, cabinet, pdb};

const ID: &str = "00112233445566778899AABBCCDDEEFF1";
const FILE: &str = "app.pdb/00112233445566778899AABBCCDDEEFF1/app.pdb";
const PACKED: &str = "app.pdb/00112233445566778899AABBCCDDEEFF1/app.pd_";
const SYM: &str = "app.pdb/00112233445566778899AABBCCDDEEFF1/app.sym";
const LOWER: &str = "app.pdb/00112233445566778899aabbccddeeff1/app.pdb";
const POINTER: &str = "app.pdb/00112233445566778899AABBCCDDEEFF1/file.ptr";

fn key(name: &str) -> ModuleKey {
    let (guid, age) = parse_store_id(ID).unwrap();
    ModuleKey { pdb_name: name.to_owned(), guid, age }
}

fn wanted() -> WantedModule {
    WantedModule { pdb: Some(key(r"d:\build\app.pdb")), image: None }
}

fn good(bytes: usize) -> Vec<u8> {
    pdb(key("").guid, 1, bytes)
}

fn options(temp: &Temp) -> SourceOptions {
    SourceOptions {
        default_store: temp.path().join("default"),
        max_unpacked: 1 << 20,
        server: ServerOptions {
            connect: Duration::from_secs(5),
            idle: Duration::from_millis(300),
            whole: Duration::from_secs(20),
            retries: 2,
            backoff: Duration::from_millis(1),
            max_bytes: 2 << 20,
            proxies: Proxies::default(),
            ..ServerOptions::default()
        },
        ..SourceOptions::default()
    }
}

fn sources(server: &Faulty, temp: &Temp) -> Sources {
    with(server, options(temp))
}

fn with(server: &Faulty, options: SourceOptions) -> Sources {
    let cache = options.default_store.parent().unwrap().join("cache");
    let path = format!("srv*{}*{}", cache.display(), server.url);
    SymbolPath::parse(&path).unwrap().sources(options)
}

/// The account, in lines.
fn told(sources: &Sources) -> String {
    sources.problems().into_iter().map(|problem| problem.text).collect::<Vec<_>>().join("\n")
}

fn last(attempts: &[Attempt]) -> &Outcome {
    &attempts.last().unwrap().outcome
}

/// The file is fetched, whole, and lies in the cache and nowhere else.
fn fetched(server: &Faulty, temp: &Temp, expected: &[u8]) -> Vec<Attempt> {
    let (candidates, attempts) = sources(server, temp).search(&wanted());
    assert_eq!(candidates.len(), 1, "{attempts:#?}");
    assert_eq!(candidates[0].kind, FileKind::Pdb);
    assert_eq!(candidates[0].file, temp.path().join("cache").join(FILE));
    assert!(std::fs::read(&candidates[0].file).unwrap() == expected, "other bytes");
    assert_eq!(temp.files(false), vec![format!("cache/{FILE}")]);
    attempts
}

/// Nothing is kept; the account holds this.
fn refused(server: &Faulty, temp: &Temp, text: &str) {
    let sources = sources(server, temp);
    assert!(sources.candidates(&wanted()).is_empty());
    let problems = told(&sources);
    assert!(problems.contains(text), "expected `{text}` in `{problems}`");
    assert_eq!(temp.files(false), Vec::<String>::new());
    let own = format!("http://127.0.0.1:{}/sym/", server.port());
    assert!(problems.contains(&own), "the account names the URL: {problems}");
}

#[test]
fn a_file_comes_with_a_request_that_says_nothing_else() {
    let (server, temp) = (Faulty::new(), Temp::new("plain"));
    server.serve(FILE, Serve::File(good(5000)));
    let attempts = fetched(&server, &temp, &good(5000));
    assert!(matches!(last(&attempts), Outcome::Fetched { bytes: 8704, .. }), "{attempts:?}");
    let seen = server.seen();
    assert_eq!(server.targets(), vec![format!("/sym/{FILE}")]);
    let mut names: Vec<&str> = seen[0].headers.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    assert_eq!(seen[0].headers["user-agent"], "etwhy");
    // The second time it is there.
    server.forget();
    let (candidates, attempts) = sources(&server, &temp).search(&wanted());
    assert_eq!(candidates.len(), 1);
    assert!(matches!(last(&attempts), Outcome::Found(_)));
    assert!(server.seen().is_empty());
}

#[test]
fn what_is_missing_is_asked_once_a_day() {
    let (server, temp) = (Faulty::new(), Temp::new("missing"));
    let (candidates, attempts) = sources(&server, &temp).search(&wanted());
    assert!(candidates.is_empty());
    assert_eq!(*last(&attempts), Outcome::NotFound);
    let asked = [FILE, PACKED, POINTER, SYM, LOWER, "index2.txt"].map(|file| format!("/sym/{file}"));
    assert_eq!(server.targets(), asked);
    server.forget();
    let (_, attempts) = sources(&server, &temp).search(&wanted());
    assert!(matches!(last(&attempts), Outcome::KnownMissing(seconds) if *seconds < 3600));
    assert!(server.seen().is_empty());
    // Unless the user wants it, or the day is over.
    server.serve(FILE, Serve::File(good(10)));
    let mut never = options(&temp);
    never.server.missing = Duration::ZERO;
    assert_eq!(with(&server, never).search(&wanted()).0.len(), 1);
    std::fs::remove_file(temp.path().join("cache").join(FILE)).unwrap();
    server.serve(FILE, Serve::Status(404));
    let mut again = options(&temp);
    again.server.retry_missing = true;
    assert_eq!(with(&server, again.clone()).search(&wanted()).0.len(), 0);
    server.serve(FILE, Serve::File(good(10)));
    assert_eq!(with(&server, again).search(&wanted()).0.len(), 1);
    // Found: what was remembered is forgotten.
    std::fs::remove_file(temp.path().join("cache").join(FILE)).unwrap();
    assert_eq!(sources(&server, &temp).search(&wanted()).0.len(), 1);
}

#[test]
fn failures_of_the_moment_are_tried_again() {
    for (n, statuses) in [vec![500], vec![503, 429], vec![502, 500]].into_iter().enumerate() {
        let (server, temp) = (Faulty::new(), Temp::new(&format!("again{n}")));
        let count = statuses.len();
        server.serve(FILE, Serve::After(statuses, good(100)));
        fetched(&server, &temp, &good(100));
        assert_eq!(server.seen().len(), count + 1);
    }
    let (server, temp) = (Faulty::new(), Temp::new("always"));
    server.serve(FILE, Serve::Status(500));
    refused(&server, &temp, "the server answers 500, after 3 tries");
    // A failing server is not taken for one without the file.
    assert_eq!(server.seen().len(), 3);
    server.serve(FILE, Serve::File(good(1)));
    fetched(&server, &temp, &good(1));
}

#[test]
fn a_refusal_is_not_repeated() {
    let (server, temp) = (Faulty::new(), Temp::new("403"));
    server.serve(FILE, Serve::Status(403));
    refused(&server, &temp, "the server answers 403");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_cut_download_goes_on_where_it_broke_off() {
    let (server, temp) = (Faulty::new(), Temp::new("cut"));
    let file = good(200_000);
    server.serve(FILE, Serve::Cut(file.clone(), 80_000));
    fetched(&server, &temp, &file);
    let ranges: Vec<Option<String>> =
        server.seen().iter().map(|seen| seen.headers.get("range").cloned()).collect();
    assert_eq!(ranges, [None, Some("bytes=80000-".to_owned()), Some("bytes=160000-".to_owned())]);
    assert!(server.seen()[1].headers["if-range"] == "\"v1\"");
    assert_eq!(temp.files(true), vec![format!("cache/{FILE}")], "nothing is left over");
}

#[test]
fn a_later_run_goes_on_too() {
    let (server, temp) = (Faulty::new(), Temp::new("later"));
    let file = good(200_000);
    server.serve(FILE, Serve::Cut(file.clone(), 30_000));
    refused(&server, &temp, "after 90000 of 203776 bytes, after 3 tries");
    server.forget();
    server.serve(FILE, Serve::File(file.clone()));
    fetched(&server, &temp, &file);
    assert_eq!(server.seen()[0].headers["range"], "bytes=90000-");
}

#[test]
fn another_version_is_never_joined_to_the_first() {
    let (server, temp) = (Faulty::new(), Temp::new("changing"));
    let file = good(200_000);
    server.serve(FILE, Serve::CutChanging(file.clone(), 150_000));
    refused(&server, &temp, "after 150000 of 203776 bytes");
    let (server, temp) = (Faulty::new(), Temp::new("norange"));
    server.serve(FILE, Serve::CutPlain(file, 150_000));
    refused(&server, &temp, "after 150000 of 203776 bytes");
    assert!(server.seen().iter().all(|seen| !seen.headers.contains_key("range")));
}

#[test]
fn stalls_and_resets_end() {
    let (server, temp) = (Faulty::new(), Temp::new("stall"));
    server.serve(FILE, Serve::Stall(good(100_000), 1000));
    refused(&server, &temp, "no answer for 0.3 s");
    let (server, temp) = (Faulty::new(), Temp::new("reset"));
    server.serve(FILE, Serve::Reset);
    refused(&server, &temp, "after 3 tries");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_slow_file_comes_and_a_too_slow_one_does_not() {
    let (server, temp) = (Faulty::new(), Temp::new("drip"));
    server.serve(FILE, Serve::Drip(good(1)));
    fetched(&server, &temp, &good(1));
    let temp = Temp::new("drips");
    server.serve(FILE, Serve::Drip(good(1_000_000)));
    let mut short = options(&temp);
    short.server.whole = Duration::from_millis(400);
    let sources = with(&server, short);
    assert!(sources.candidates(&wanted()).is_empty());
    let problems = told(&sources);
    assert!(problems.contains("not whole after 0.4 s"), "{problems}");
}

#[test]
fn another_build_is_told_and_not_kept() {
    let (server, temp) = (Faulty::new(), Temp::new("guid"));
    server.serve(FILE, Serve::File(pdb(Guid([7; 16]), 1, 100)));
    let sources = sources(&server, &temp);
    assert!(sources.candidates(&wanted()).is_empty());
    assert!(sources.problems().iter().all(|problem| problem.mismatch));
    refused(&server, &temp, "is PDB 07070707070707070707070707070707");
    let (server, temp) = (Faulty::new(), Temp::new("age"));
    server.serve(FILE, Serve::File(pdb(key("").guid, 2, 100)));
    refused(&server, &temp, "is PDB 00112233445566778899AABBCCDDEEFF2, not app.pdb");
    let (server, temp) = (Faulty::new(), Temp::new("html"));
    server.serve(FILE, Serve::File(b"<html>please log in</html>".to_vec()));
    refused(&server, &temp, "it looks like a web page");
    let (server, temp) = (Faulty::new(), Temp::new("empty"));
    server.serve(FILE, Serve::File(Vec::new()));
    refused(&server, &temp, "it is empty");
    let (server, temp) = (Faulty::new(), Temp::new("broken"));
    server.serve(FILE, Serve::File(good(0)[..600].to_vec()));
    refused(&server, &temp, "damaged MSF directory map at offset 1536: needs 4 bytes, has 0");
}

#[test]
fn cabinets_are_unpacked_into_the_cache() {
    let (server, temp) = (Faulty::new(), Temp::new("cab"));
    let file = good(50_000);
    server.serve(PACKED, Serve::File(cabinet(&[("app.pdb", &file)])));
    fetched(&server, &temp, &file);
    assert_eq!(temp.files(true), vec![format!("cache/{FILE}")], "the cabinet is gone");
}

#[test]
fn cabinets_that_hold_something_else_are_refused() {
    let file = good(10);
    let bomb = vec![0; 3 << 20];
    for (n, (bytes, text)) in [
        (cabinet(&[("evil.pdb", &file)]), "holds evil.pdb instead of app.pdb"),
        (cabinet(&[(r"..\..\evil.pdb", &file)]), r"holds ..\..\evil.pdb instead of app.pdb"),
        (cabinet(&[("app.pdb", &file), ("x.exe", b"MZ")]), "holds app.pdb, x.exe instead"),
        (cabinet(&[("app.pdb", &bomb)]), "unpacks to 3145728 bytes, more than the limit of 1048576"),
        (b"MSCF but not really a cabinet, as it has no header".to_vec(), "cannot unpack"),
        (b"PK\x03\x04".to_vec(), "does not begin with MSCF"),
        (cabinet(&[("app.pdb", &file)])[..300].to_vec(), "cannot unpack"),
        (cabinet(&[("app.pdb", &pdb(Guid([9; 16]), 1, 10))]), "is PDB 0909"),
    ]
    .into_iter()
    .enumerate()
    {
        let (server, temp) = (Faulty::new(), Temp::new(&format!("cab{n}")));
        server.serve(PACKED, Serve::File(bytes));
        refused(&server, &temp, text);
        assert_eq!(temp.files(true), Vec::<String>::new(), "nothing is left over");
    }
}

#[test]
fn redirections_lead_to_web_servers_only() {
    let (server, temp) = (Faulty::new(), Temp::new("redirect"));
    server.serve(FILE, Serve::Redirect("/blobs/1".to_owned()));
    server.serve_at("/blobs/1", Serve::Redirect(format!("http://127.0.0.1:{}/blobs/2", server.port())));
    server.serve_at("/blobs/2", Serve::File(good(10)));
    fetched(&server, &temp, &good(10));
    let (server, temp) = (Faulty::new(), Temp::new("loop"));
    server.serve(FILE, Serve::Redirect(format!("/sym/{FILE}")));
    refused(&server, &temp, "more than 5 redirections");
    assert_eq!(server.seen().len(), 6);
    for (n, to) in ["file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:1"].into_iter().enumerate() {
        let (server, temp) = (Faulty::new(), Temp::new(&format!("elsewhere{n}")));
        server.serve(FILE, Serve::Redirect(to.to_owned()));
        refused(&server, &temp, "which is not followed");
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn other_hosts_of_private_networks_are_asked_only_if_they_are_named() {
    let (outer, inner, temp) = (Faulty::new(), Faulty::new(), Temp::new("inner"));
    inner.serve_at("/deep", Serve::File(good(10)));
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0.0.0.0"] {
        outer.serve(FILE, Serve::Redirect(format!("http://{host}:{}/deep", inner.port())));
        refused(&outer, &temp, "");
        assert_eq!(inner.seen().len(), 0, "{host}");
    }
    for away in [
        "http://10.255.255.1/",
        "http://[fd00::1]/",
        "http://169.254.169.254/latest",
        "http://router/",
        "//192.168.0.1/",
    ] {
        outer.serve(FILE, Serve::Redirect(away.to_owned()));
        refused(&outer, &temp, "a host of a private network that the symbol path does not name");
    }
    outer.serve(FILE, Serve::Redirect(format!("http://127.0.0.1:{}/deep", inner.port())));
    let path = format!("srv*{0}*{1};srv*{0}*{2}", temp.path().join("cache").display(), outer.url, inner.url);
    let found = SymbolPath::parse(&path).unwrap().sources(options(&temp)).candidates(&wanted());
    assert_eq!((found.len(), inner.seen().len()), (1, 1), "the path names both");
}

/// Whatever a server sends, where it sends it: nothing of it comes back in a message, for the server may stand where only we can ask.
#[test]
fn messages_hold_nothing_of_an_answer() {
    const MARK: &str = "hunter2";
    let (server, temp) = (Faulty::new(), Temp::new("mark"));
    let head = |more: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}")
    };
    let redirect = |to: &str| {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    };
    let answers = [
        head("", MARK),
        head("", &format!("<html>{MARK}")),
        head("", &format!("{{\"password\":\"{MARK}\"}}")),
        head("", &format!("MODULE {MARK} {MARK} {MARK} {MARK}\n")),
        head("", &format!("MZ{MARK}")),
        head("", &format!("BSJB{MARK}")),
        head("", &format!("MSCF{MARK}")),
        head("", &format!("Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0{MARK}")),
        head("", &format!("\0\x01{MARK}")),
        head(&format!("X: {MARK}\r\n"), ""),
        head(&format!("{MARK}\r\n"), "x"),
        head(&format!("Content-Encoding: {MARK}\r\n"), "x"),
        head(&format!("Transfer-Encoding: {MARK}\r\n"), "x"),
        format!("HTTP/1.1 500 {MARK}\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{MARK}"),
        format!("HTTP/1.1 404 {MARK}\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{MARK}"),
        format!("HTTP/1.1 {MARK}\r\n\r\n"),
        format!("{MARK}\r\n\r\n"),
        format!("{MARK}/1.1 200 OK\r\nContent-Length: {MARK}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nContent-Length: {MARK}\r\nConnection: close\r\n\r\n{MARK}"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{MARK}\r\n{MARK}"),
        redirect(&format!("{MARK}://x/")),
        redirect(&format!("http://{MARK}/")),
        redirect(&format!("http://{MARK}.local/")),
        redirect(&format!("http://10.0.0.1/{MARK}")),
        redirect(&format!("http://[{MARK}]/")),
        redirect(&format!("http:// {MARK}")),
    ];
    for answer in answers {
        server.serve(FILE, Serve::Raw(answer.clone().into_bytes()));
        let mut quick = options(&temp);
        quick.server.retries = 0;
        quick.server.retry_missing = true;
        let sources = with(&server, quick);
        let found = sources.candidates(&wanted());
        let said = told(&sources);
        // What a server has not is no problem.
        let quiet = answer.starts_with("HTTP/1.1 404");
        assert!(found.is_empty() && (quiet || !said.is_empty()) && !said.contains(MARK), "{answer}: {said}");
    }
}

#[test]
fn sizes_are_limited() {
    let (server, temp) = (Faulty::new(), Temp::new("huge"));
    server.serve(FILE, Serve::Huge(1 << 60));
    refused(&server, &temp, "1152921504606846976 bytes are more than the limit of 2097152");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_server_that_is_not_there_is_asked_once() {
    let temp = Temp::new("down");
    let server = Faulty::new();
    let gone = format!("http://127.0.0.1:{}/sym", server.port());
    drop(server);
    // The port is free again once the listener's thread has gone.
    while std::net::TcpStream::connect(gone.trim_start_matches("http://").trim_end_matches("/sym")).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let path = SymbolPath::parse(&format!("srv*{}*{gone}", temp.path().join("cache").display())).unwrap();
    let sources = path.sources(options(&temp));
    assert!(sources.candidates(&wanted()).is_empty());
    let first = told(&sources);
    assert!(first.contains("refused"), "{first}");
    let other = WantedModule { pdb: Some(key("other.pdb")), image: None };
    assert!(sources.candidates(&other).is_empty());
    let second = told(&sources);
    assert!(second.contains("is not asked any more"), "{second}");
}

#[test]
fn offline_asks_nobody() {
    let (server, temp) = (Faulty::new(), Temp::new("offline"));
    server.serve(FILE, Serve::File(good(10)));
    let offline = SourceOptions { offline: true, ..options(&temp) };
    let sources = with(&server, offline);
    let (candidates, attempts) = sources.search(&wanted());
    assert!(candidates.is_empty());
    assert_eq!(*last(&attempts), Outcome::Offline);
    let plan = sources.plan(&wanted());
    assert_eq!(plan.len(), 2);
    assert_eq!(plan[1].server.as_ref(), Some(&server.url));
    assert_eq!(plan[1].target, format!("{}/{FILE}", server.url));
    assert!(server.seen().is_empty());
}

#[test]
fn what_comes_is_copied_into_every_store_on_the_way() {
    let (server, temp) = (Faulty::new(), Temp::new("chain"));
    server.serve(FILE, Serve::File(good(10)));
    let at = |name: &str| temp.path().join(name).display().to_string();
    let path = format!("cache*{};srv*{}*{}*{}", at("left"), at("a"), at("b"), server.url);
    let sources = SymbolPath::parse(&path).unwrap().sources(options(&temp));
    assert_eq!(sources.candidates(&wanted()).len(), 1);
    let all = ["a", "b", "left"].map(|dir| format!("{dir}/{FILE}"));
    assert_eq!(temp.files(false), all);
    // The nearest is healed from the next one.
    std::fs::remove_dir_all(temp.path().join("left")).unwrap();
    std::fs::remove_dir_all(temp.path().join("a")).unwrap();
    server.forget();
    let sources = SymbolPath::parse(&path).unwrap().sources(options(&temp));
    assert_eq!(sources.candidates(&wanted()).len(), 1);
    assert_eq!(temp.files(false), all);
    assert!(server.seen().is_empty());
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let (server, temp) = (Faulty::new(), Temp::new("heal"));
    temp.write(&format!("cache/{FILE}"), &pdb(Guid([1; 16]), 1, 10));
    server.serve(FILE, Serve::File(good(10)));
    fetched(&server, &temp, &good(10));
}

#[test]
fn stores_with_two_tiers() {
    let (server, temp) = (Faulty::new(), Temp::new("tiers"));
    server.serve("index2.txt", Serve::File(Vec::new()));
    server.serve(&format!("ap/{FILE}"), Serve::File(good(10)));
    fetched(&server, &temp, &good(10));
}

#[test]
fn servers_that_mind_the_case() {
    let (server, temp) = (Faulty::new(), Temp::new("lower"));
    server.serve(LOWER, Serve::File(good(10)));
    fetched(&server, &temp, &good(10));
}

#[test]
fn breakpad_files_of_a_server() {
    let (server, temp) = (Faulty::new(), Temp::new("breakpad"));
    server
        .serve(SYM, Serve::File(format!("MODULE windows x86_64 {ID} app.pdb\nFUNC 10 1 0 f\n").into_bytes()));
    let candidates = sources(&server, &temp).candidates(&wanted());
    assert_eq!(candidates.len(), 1);
    assert_eq!(candidates[0].kind, FileKind::Breakpad);
    assert_eq!(temp.files(false), vec![format!("cache/{SYM}")]);
}

#[test]
fn debuginfod_servers_file_by_build_id() {
    let (server, temp) = (Faulty::new(), Temp::new("debuginfod"));
    server.serve("buildid/00112233445566778899aabbccddeeff/debuginfo", Serve::File(good(10)));
    let cache = temp.path().join("cache");
    let path = SymbolPath::parse(&format!("DebugInfoD*{}*{}", cache.display(), server.url)).unwrap();
    let candidates = path.sources(options(&temp)).candidates(&wanted());
    assert_eq!(candidates.len(), 1);
    assert_eq!(temp.files(false), vec![format!("cache/{FILE}")]);
    assert_eq!(server.targets(), ["/sym/buildid/00112233445566778899aabbccddeeff/debuginfo"]);
}

#[test]
fn pointers_of_a_server_lead_into_named_folders_only() {
    let (server, temp) = (Faulty::new(), Temp::new("pointer"));
    let secret = temp.write("secret/app.pdb", &good(10));
    let shared = temp.write("share/build 7/app.pdb", &good(10));
    server.serve(POINTER, Serve::File(format!("PATH:{}", secret.display()).into_bytes()));
    let path = |temp: &Temp, server: &Faulty| {
        let at = |name: &str| temp.path().join(name).display().to_string();
        SymbolPath::parse(&format!("srv*{}*{};{}", at("cache"), server.url, at("share"))).unwrap()
    };
    let sources = path(&temp, &server).sources(options(&temp));
    assert!(sources.candidates(&wanted()).is_empty());
    assert!(told(&sources).contains("outside of the folders in the symbol path"));
    server.serve(POINTER, Serve::File(b"MSG: ask the build team".to_vec()));
    let sources = path(&temp, &server).sources(options(&temp));
    assert!(sources.candidates(&wanted()).is_empty());
    assert!(told(&sources).contains("the store says: ask the build team"));
    server.serve(POINTER, Serve::File(shared.display().to_string().into_bytes()));
    let sources = path(&temp, &server).sources(options(&temp));
    assert_eq!(sources.candidates(&wanted())[0].file, shared);
}

#[test]
fn several_modules_come_at_the_same_time_and_one_only_once() {
    let (server, temp) = (Faulty::new(), Temp::new("many"));
    for n in 0..12 {
        let file = format!("m{n}.pdb/{ID}/m{n}.pdb");
        server.serve(&file, Serve::File(good(1000)));
    }
    let sources = sources(&server, &temp);
    std::thread::scope(|scope| {
        for thread in 0..24 {
            let sources = &sources;
            scope.spawn(move || {
                let wanted = WantedModule { pdb: Some(key(&format!("m{}.pdb", thread % 12))), image: None };
                let found = sources.candidates(&wanted);
                assert!(identify(&found[0].file).unwrap().fits(&wanted));
            });
        }
    });
    assert_eq!(server.seen().len(), 12);
    assert_eq!(temp.files(true).len(), 12);
}

#[test]
fn a_proxy_is_asked_instead() {
    let (proxy, temp) = (Faulty::new(), Temp::new("proxy"));
    let mut options = options(&temp);
    options.server.retries = 0;
    options.server.proxies.http = Some(format!("http://127.0.0.1:{}", proxy.port()));
    let cache = temp.path().join("cache");
    let path = SymbolPath::parse(&format!("srv*{}*http://symbols.invalid/s", cache.display())).unwrap();
    assert!(path.sources(options.clone()).candidates(&wanted()).is_empty());
    let seen = proxy.targets();
    assert!(!seen.is_empty() && seen.iter().all(|target| target.contains("symbols.invalid")), "{seen:?}");
    proxy.forget();
    options.server.retry_missing = true;
    options.server.proxies.except = Some("invalid".to_owned());
    let sources = path.sources(options.clone());
    assert!(sources.candidates(&wanted()).is_empty());
    let problems = told(&sources);
    assert!(problems.contains("symbols.invalid/s/app.pdb") && !problems.contains("answers"), "{problems}");
    options.server.proxies = Proxies { http: Some("socks5://x".to_owned()), ..Proxies::default() };
    let sources = path.sources(options);
    assert!(sources.candidates(&wanted()).is_empty());
    assert!(told(&sources).contains("the proxy `socks5://x`"));
    assert!(proxy.seen().is_empty());
}
