//! `etwhy serve` as a child process, and a client that sends what browsers would not.
#![allow(dead_code)] // Each program uses a part of it.

use crate::ETWHY;
use etwhy_testkit::{Run as _, Str as _, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A server that ends with its test.
pub struct Server {
    child: Child,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    /// What its addresses begin with.
    pub token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn error(&self) -> String {
        self.json()["error"].str().to_owned()
    }
}

impl Server {
    /// Starts it and waits until all of its traces are read, or cannot be.
    pub fn start<T: AsRef<OsStr>>(arguments: &[T]) -> Server {
        let server = Server::at_once(arguments);
        server.settle();
        server
    }

    /// Waits until no trace is being read; the session then.
    pub fn settle(&self) -> Value {
        loop {
            let session = self.ask("session", &serde_json::json!({})).json();
            let under_way = |trace: &Value| ["waiting", "reading", "verdict"].contains(&trace["stage"].str());
            if session["traces"]
                .as_array()
                .is_some_and(|list| !list.is_empty() && !list.iter().any(under_way))
            {
                return session;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts it and waits until it answers.
    pub fn at_once<T: AsRef<OsStr>>(arguments: &[T]) -> Server {
        // What the user saved is none of the tests' business.
        let nowhere = std::env::temp_dir().join(format!("etwhy-no-configuration-{}", std::process::id()));
        let mut command = ETWHY.command(&["serve", "--quiet"]);
        command.args(arguments).env("XDG_CONFIG_HOME", &nowhere).env("APPDATA", &nowhere);
        let mut child = command.stdout(Stdio::piped()).started();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{line:?}"));
        let (port, path) = rest.split_once('/').unwrap();
        // Behind the token a store has its page.
        let token = path.split('/').next().unwrap();
        Server { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    /// The address that it printed.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Sends a request; the connection is the caller's.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let host = if headers.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("Host: 127.0.0.1:{}\r\n", self.port)
        };
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
            .unwrap();
        stream
    }

    /// Sends a request and reads the response.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers, body).read_to_end(&mut bytes).unwrap();
        let at = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("an answer");
        let head = text(&bytes[..at]);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[at + 4..].to_vec() }
    }

    /// Asks what the page may ask.
    pub fn ask(&self, name: &str, body: &Value) -> Answer {
        self.request("POST", &format!("/{}/api/v1/{name}", self.token), "", &body.to_string())
    }
}
