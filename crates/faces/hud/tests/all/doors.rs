//! Who may connect and for how long, what may be opened, and what survives.

use etwhy_hud::{Host, Hud, Loaded, Options, Patience, Running, start};
use etwhy_table::{Database, TableSpec};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Panics.
struct Odd;

impl Host for Odd {
    fn program(&self) -> String {
        "odd".to_owned()
    }
    fn specs(&self) -> Vec<&'static TableSpec> {
        Vec::new()
    }
    fn why_empty(&self, _: &Database, _: &str) -> Option<String> {
        None
    }
    fn recording_for(&self, _: &str) -> String {
        String::new()
    }
    fn knowledge(&self, name: &str) -> serde_json::Value {
        panic!("{name}")
    }
}

fn loaded(name: &str) -> Loaded {
    let report = etwhy_report::example::report();
    Loaded {
        name: name.to_owned(),
        db: Database::new(),
        report,
        keep: Box::new(()),
        deferred: None,
        within: None,
        part: None,
    }
}

fn serve(patience: Patience) -> Running<Hud> {
    let options = Options {
        address: "127.0.0.1:0".parse().unwrap(),
        hosts: Vec::new(),
        token: Some("token".to_owned()),
        patience,
    };
    start(Box::new(Odd), vec![loaded("first.etl")], &options).unwrap()
}

fn connect(server: &Running<Hud>) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Everything that comes until the connection ends.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended, too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn send(server: &Running<Hud>, name: &str, body: &serde_json::Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = connect(server);
    let head = format!(
        "POST /token/api/v1/{name} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream
}

fn ask(server: &Running<Hud>, name: &str, body: &serde_json::Value) -> String {
    rest(send(server, name, body))
}

fn session(server: &Running<Hud>) -> String {
    ask(server, "schema", &serde_json::json!({}))
}

const SHORT: Patience =
    Patience { connections: 4, head: Duration::from_millis(300), body: Duration::from_millis(300) };

#[test]
fn connections_without_requests_end_and_make_room() {
    let server = serve(SHORT);
    let request = format!("GET /token/ HTTP/1.1\r\nHost: {}\r\n", server.address);
    // Nothing, half a head, a head of a question without its body; many more than there is room for.
    let beginnings = [String::new(), request[..20].to_owned(), request.clone()];
    let body = format!(
        "POST /token/api/v1/schema HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n{{",
        server.address
    );
    let open: Vec<TcpStream> = beginnings
        .iter()
        .chain([&body])
        .cycle()
        .take(16)
        .map(|text| {
            let mut stream = connect(&server);
            let _ = stream.write_all(text.as_bytes());
            stream
        })
        .collect();
    assert!(session(&server).starts_with("HTTP/1.1 200"), "behind all of them");
    for stream in open {
        let said = rest(stream);
        assert!(!said.starts_with("HTTP/1.1 200"), "{said}");
    }
    // A connection that is kept ends as well.
    let mut kept = connect(&server);
    kept.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    assert!(rest(kept).starts_with("HTTP/1.1 200"));
    server.stop();
}

#[test]
fn requests_of_others_are_refused_and_their_connections_closed() {
    let server = serve(Patience::default());
    let own = server.address.to_string();
    for head in [
        format!("GET /wrong/ HTTP/1.1\r\nHost: {own}\r\n"),
        format!("GET /token/ HTTP/1.1\r\nHost: {own}\r\nHost: {own}\r\n"),
        format!("GET /token/ HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n"),
        format!(
            "GET /token/ HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\nOrigin: http://evil.example\r\n"
        ),
        "GET /token/ HTTP/1.1\r\nHost: evil.example\r\n".to_owned(),
        format!("GET http://evil.example/token/ HTTP/1.1\r\nHost: {own}\r\n"),
        "GET /token/ HTTP/1.0\r\n".to_owned(),
    ] {
        let mut stream = connect(&server);
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let said = rest(stream);
        assert!(said.starts_with("HTTP/1.1 403") || said.starts_with("HTTP/1.0 403"), "{head}{said}");
    }
    let mut long = connect(&server);
    let head =
        format!("POST /token/api/v1/schema HTTP/1.1\r\nHost: {own}\r\nContent-Length: 99999999\r\n\r\n");
    long.write_all(head.as_bytes()).unwrap();
    assert!(rest(long).starts_with("HTTP/1.1 413"));
    server.stop();
}

#[test]
fn a_panic_ends_its_question_alone() {
    let server = serve(Patience::default());
    for _ in 0..3 {
        assert!(ask(&server, "knowledge", &serde_json::json!({ "name": "x" })).starts_with("HTTP/1.1 500"));
    }
    assert!(session(&server).starts_with("HTTP/1.1 200"));
    server.stop();
}
