//! The server in front of processes that do what a trace that took one over might: say nonsense, say too much, die, or never answer.

use etwhy_hud::{Front, Launcher, Options, Patience, Policy, Running, Source};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Starts a script of the shell in the place of a reader: the path is the script.
struct Shell;

impl Launcher for Shell {
    fn program(&self) -> String {
        "shell".to_owned()
    }

    fn command(&self, sources: &[Source]) -> Command {
        let script = sources.iter().filter_map(|source| source.path.as_ref());
        let mut command = Command::new("sh");
        command.arg("-c").args(script.take(1));
        command
    }
}

fn serve(policy: Policy) -> Running<Front> {
    let options = Options {
        address: "127.0.0.1:0".parse().unwrap(),
        hosts: Vec::new(),
        token: Some("token".to_owned()),
        patience: Patience::default(),
    };
    etwhy_hud::front::start(Box::new(Shell), policy, &options).unwrap()
}

fn add(server: &Running<Front>, script: &str) -> usize {
    let source = Source { path: Some(PathBuf::from(script)), number: None };
    server.state.add("a.etl".to_owned(), vec![source], None).unwrap()
}

fn send(server: &Running<Front>, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "{method} /token/api/v1/{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        server.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Who is refused may be cut off while he sends.
    let _ = stream.write_all(body);
    stream
}

/// Status and body.
fn read(mut stream: TcpStream) -> (u16, Value) {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn ask(server: &Running<Front>, name: &str, body: &Value) -> (u16, Value) {
    read(send(server, "POST", name, "", body.to_string().as_bytes()))
}

/// The trace once it is at one of these stages.
fn at(server: &Running<Front>, number: usize, stages: &[&str]) -> Value {
    let begin = Instant::now();
    loop {
        let trace = ask(server, "session", &json!({})).1["traces"][number].clone();
        if stages.contains(&trace["stage"].as_str().unwrap_or("")) {
            return trace;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{trace}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_that_dies_costs_its_trace_alone() {
    let server = serve(Policy::default());
    let first = add(
        &server,
        "echo noise; echo '{\"said\":\"doing\",\"what\":\"reading\",\"done\":3,\"total\":9}'; kill -9 $$",
    );
    let failed = at(&server, first, &["failed"]);
    assert_eq!((failed["doing"].as_str(), failed["done"].as_u64()), (Some("reading"), Some(3)));
    assert!(failed["error"].as_str().unwrap().contains("fault"), "{failed}");
    let second = add(&server, "printf '\\033[31mwhy\\n' >&2; exit 3");
    assert!(
        at(&server, second, &["failed"])["error"]
            .as_str()
            .unwrap()
            .ends_with("exit code 3. It said:  [31mwhy")
    );
    // It is said where it is asked, and begun anew where that is wanted.
    let (status, body) = ask(&server, "sql", &json!({ "trace": first, "sql": "SELECT 1" }));
    assert!(status == 409 && body["error"].as_str().unwrap().contains("could not be read"), "{body}");
    assert_eq!(ask(&server, "open", &json!({ "trace": first })).0, 200);
    at(&server, first, &["failed"]);
    assert_eq!(ask(&server, "sql", &json!({ "trace": 9 })).0, 404);
    server.stop();
}

#[test]
fn a_process_may_say_any_amount() {
    let server = serve(Policy { memory: Some(1 << 30), ..Policy::default() });
    let endless = add(
        &server,
        "yes '{}' | head -c 300000000 | tr -d '\\n'; echo; echo '{\"said\":\"failed\",\"text\":\"done\"}'; sleep 60",
    );
    assert_eq!(at(&server, endless, &["failed"])["error"], "done");
    server.stop();
}

#[test]
fn a_trace_that_is_closed_ends_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    let server = serve(Policy::default());
    // It does not look at its standard input.
    let number = add(&server, &format!("while true; do echo >> {}; sleep 0.02; done", alive.display()));
    at(&server, number, &["reading"]);
    while !alive.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(&server, "close", &json!({ "trace": number })).1["stage"], "closed");
    let begin = Instant::now();
    loop {
        let lines = || std::fs::metadata(&alive).unwrap().len();
        let before = lines();
        std::thread::sleep(Duration::from_millis(300));
        if before == lines() {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "it goes on");
    }
    server.stop();
}

#[test]
fn what_a_process_answers_is_data_for_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    // A process that was taken over answers with a page of its own.
    std::fs::write(
        &script,
        r#"
import json, socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8)
facts = dict(trace_id="", machine_id="", start_ms=None, first_ns=0, last_ns=1, cpus=1, sentence="")
print(json.dumps(dict(said="ready", port=s.getsockname()[1], in_part=False, facts=facts)), flush=True)
while True:
    c, _ = s.accept()
    if b"/sql " not in c.recv(65536): c.close(); continue
    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: none\r\nSet-Cookie: a=b\r\nContent-Length: 8\r\n\r\n<script>")
    c.close()
"#,
    )
    .unwrap();
    let server = serve(Policy::default());
    let number = add(&server, &format!("exec python3 {}", script.display()));
    at(&server, number, &["ready"]);
    let mut stream = send(&server, "POST", "sql", "", b"{}");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let text = text.to_ascii_lowercase();
    assert!(
        text.starts_with("http/1.1 200") && text.contains("content-type: application/octet-stream"),
        "{text}"
    );
    assert!(text.contains("default-src 'none'") && !text.contains("set-cookie"), "{text}");
    // One that goes away without an answer is a reason.
    assert_eq!(ask(&server, "report", &json!({})).0, 502);
    server.stop();
}

#[test]
fn a_port_of_a_service_is_none_of_a_process() {
    let server = serve(Policy::default());
    let say = |said: &str, port: u16| {
        format!(
            r#"echo '{{"said":"{said}","port":{port},"in_part":false,"facts":{{"trace_id":"","machine_id":"","start_ms":null,"first_ns":0,"last_ns":1,"cpus":1,"sentence":""}}}}'"#
        )
    };
    let scripts = [
        format!("{}; sleep 60", say("ready", 0)),
        format!("{}; sleep 60", say("ready", 631)),
        format!("{}; {}; sleep 60", say("verdict", 40_000), say("ready", 40_001)),
    ];
    for script in scripts {
        let number = add(&server, &script);
        let error = at(&server, number, &["failed"])["error"].as_str().unwrap().to_owned();
        assert!(error.contains("cannot be its own"), "{error}");
    }
    server.stop();
}

#[test]
fn files_that_are_sent_have_limits() {
    let sent = tempfile::tempdir().unwrap();
    let temp_dir = Some(sent.path().to_path_buf());
    let server = serve(Policy { upload_bytes: 100_000, temp_dir, ..Policy::default() });
    let put = |name: &str, bytes: &[u8]| read(send(&server, "PUT", &format!("upload/{name}"), "", bytes));
    let (status, body) = put("large.etl", &[1; 100_001]);
    assert!(status == 413 && body["error"].as_str().unwrap().contains("--max-upload"), "{status} {body}");
    // One that does not say how long it is.
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "PUT /token/api/v1/upload/x.etl HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..20 {
        let _ = stream.write_all(format!("2710\r\n{}\r\n", "x".repeat(10_000)).as_bytes());
    }
    assert_eq!(read(stream).0, 413);
    assert_eq!(put("empty.etl", &[]).0, 400);
    let (status, opened) = put("%2e%2e%2fsmall.etl", b"some");
    assert_eq!((status, opened["name"].as_str()), (200, Some("../small.etl")), "a name, not a path");
    let readonly = serve(Policy { readonly: true, upload_bytes: 100, ..Policy::default() });
    assert_eq!(read(send(&readonly, "PUT", "upload/a.etl", "", b"x")).0, 403);
    // Each may have a process: there are not more than this server holds. The shell runs none of them.
    let mut status = 200;
    for _ in 0..40 {
        status = put("a.etl", b"x").0;
    }
    assert_eq!(status, 409);
    // One that is closed makes room, and its file goes.
    for number in 0..40 {
        ask(&server, "close", &json!({ "trace": number }));
    }
    let begin = Instant::now();
    while std::fs::read_dir(sent.path()).unwrap().next().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(20), "files of closed traces are there");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (status, body) = ask(&server, "open", &json!({ "trace": 0 }));
    assert!(status == 404 && body["error"].as_str().unwrap().contains("send it again"), "{status} {body}");
    assert_eq!(put("a.etl", b"x").0, 200);
    server.stop();
}

#[test]
fn pages_hear_what_changes() {
    let server = serve(Policy::default());
    let mut stream = send(&server, "GET", "events", "", b"");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
    let mut data =
        |what: &str| lines.find(|line| line.starts_with("data: ") && line.contains(what)).is_some();
    assert!(data("\"traces\":[]"));
    add(&server, "exec sleep 60");
    assert!(data("\"stage\":\"reading\""));
    // As many as may listen; the next is told to ask.
    let listen: Vec<TcpStream> = (0..31).map(|_| send(&server, "GET", "events", "", b"")).collect();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(read(send(&server, "GET", "events", "", b"")).0, 503);
    drop(listen);
    server.stop();
}
