//! A symbol server on loopback that misbehaves as it is told, and files to serve.
#![allow(dead_code)] // Each program uses a part of it.

use etwhy_base::Guid;
use etwhy_base::rng::Rng;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Cursor, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How one file is served.
#[derive(Clone, Debug)]
pub enum Serve {
    /// Whole; with ranges and an ETag.
    File(Vec<u8>),
    /// Whole, without ranges and ETag.
    Plain(Vec<u8>),
    /// These statuses first, one for each request, then the file.
    After(Vec<u16>, Vec<u8>),
    /// A status for ever.
    Status(u16),
    /// Announces all, sends this many bytes and closes; ranges work, and each request gets as many.
    Cut(Vec<u8>, usize),
    /// As `Cut`, but ranges are ignored.
    CutPlain(Vec<u8>, usize),
    /// As `Cut`, but every request sees another version (ETag).
    CutChanging(Vec<u8>, usize),
    /// Sends this many bytes and then nothing, with the connection open.
    Stall(Vec<u8>, usize),
    /// A few bytes at a time, with pauses.
    Drip(Vec<u8>),
    /// Closes without an answer.
    Reset,
    /// Redirects.
    Redirect(String),
    /// Announces this many bytes.
    Huge(u64),
    /// These bytes and nothing else, head and body.
    Raw(Vec<u8>),
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request line's target.
    pub target: String,
    /// Header lines, names in lower case.
    pub headers: HashMap<String, String>,
}

/// The server; it ends with this value.
pub struct Faulty {
    pub url: String,
    port: u16,
    files: Arc<Mutex<HashMap<String, Serve>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
}

impl Faulty {
    pub fn new() -> Faulty {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let files: Arc<Mutex<HashMap<String, Serve>>> = Arc::default();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let stop = Arc::new(AtomicBool::new(false));
        let (f, s, x) = (Arc::clone(&files), Arc::clone(&seen), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if x.load(Ordering::SeqCst) {
                    return;
                }
                let (f, s, x) = (Arc::clone(&f), Arc::clone(&s), Arc::clone(&x));
                if let Ok(stream) = stream {
                    std::thread::spawn(move || answer(stream, &f, &s, &x));
                }
            }
        });
        Faulty { url: format!("http://127.0.0.1:{port}/sym"), port, files, seen, stop }
    }

    pub fn serve(&self, path: &str, how: Serve) {
        self.files.lock().unwrap().insert(format!("/sym/{path}"), how);
    }

    /// Serves at a path from the root.
    pub fn serve_at(&self, path: &str, how: Serve) {
        self.files.lock().unwrap().insert(path.to_owned(), how);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn targets(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.target).collect()
    }

    pub fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn answer(
    mut stream: TcpStream,
    files: &Mutex<HashMap<String, Serve>>,
    seen: &Mutex<Vec<Seen>>,
    stop: &AtomicBool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let target = line.split(' ').nth(1).unwrap_or("").to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    seen.lock().unwrap().push(Seen { target: target.clone(), headers: headers.clone() });
    let count = seen.lock().unwrap().len();
    let how = {
        let mut files = files.lock().unwrap();
        match files.get_mut(&target) {
            None => Serve::Status(404),
            Some(Serve::After(statuses, file)) => {
                if statuses.is_empty() {
                    Serve::File(file.clone())
                } else {
                    Serve::Status(statuses.remove(0))
                }
            }
            Some(how) => how.clone(),
        }
    };
    let range =
        headers.get("range").and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let mut send =
        |etag: Option<&str>, file: &[u8], range: Option<usize>, most: usize| -> std::io::Result<()> {
            let range =
                range.filter(|_| etag.is_some() && headers.get("if-range").map(String::as_str) == etag);
            let from = range.unwrap_or(0).min(file.len());
            let body = &file[from..];
            let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
            let mut head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
            if range.is_some() {
                head += &format!("Content-Range: bytes {from}-{}/{}\r\n", file.len() - 1, file.len());
            }
            if let Some(etag) = etag {
                head += &format!("ETag: {etag}\r\nAccept-Ranges: bytes\r\n");
            }
            stream.write_all(head.as_bytes())?;
            stream.write_all(b"\r\n")?;
            stream.write_all(&body[..body.len().min(most)])?;
            stream.flush()
        };
    // What the client does not read any more is its affair.
    let _ = match how {
        Serve::File(file) => send(Some("\"v1\""), &file, range, usize::MAX),
        Serve::Plain(file) => send(None, &file, None, usize::MAX),
        Serve::After(..) => Ok(()),
        Serve::Status(status) => {
            let text = "<html>no</html>";
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            stream.write_all(head.as_bytes())
        }
        Serve::Cut(file, most) => send(Some("\"v1\""), &file, range, most),
        Serve::CutPlain(file, most) => send(None, &file, None, most),
        Serve::CutChanging(file, most) => send(Some(&format!("\"v{count}\"")), &file, range, most),
        Serve::Stall(file, most) => {
            let sent = send(None, &file, None, most);
            while !stop.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
            }
            sent
        }
        Serve::Drip(file) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
            let mut sent = stream.write_all(head.as_bytes());
            for piece in file.chunks(16) {
                if sent.is_err() || stop.load(Ordering::SeqCst) {
                    break;
                }
                sent = stream.write_all(piece).and_then(|()| stream.flush());
                std::thread::sleep(Duration::from_millis(20));
            }
            sent
        }
        Serve::Reset => Ok(()),
        Serve::Redirect(to) => {
            let head = format!(
                "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes())
        }
        Serve::Huge(bytes) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\nx");
            stream.write_all(head.as_bytes())
        }
        Serve::Raw(bytes) => stream.write_all(&bytes),
    };
}

/// A native PDB of about `bytes` bytes that holds no symbols: an MSF file with the streams PDB and DBI.
pub fn pdb(guid: Guid, age: u32, bytes: usize) -> Vec<u8> {
    const PAGE: usize = 512;
    let pages = 7 + bytes.div_ceil(PAGE);
    let mut file = vec![0u8; pages * PAGE];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let word = |n: usize| u32::try_from(n).unwrap().to_le_bytes();
    put(0, b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    put(32, &word(PAGE));
    put(36, &word(1));
    put(40, &word(pages));
    // Directory: 4 streams, their sizes, the pages of those that have any.
    let directory: Vec<u8> = [4, 0, 32, 0, 64, 5, 6].iter().flat_map(|n| word(*n)).collect();
    put(44, &word(directory.len()));
    put(52, &word(3));
    put(3 * PAGE, &word(4));
    put(4 * PAGE, &directory);
    // PDB stream: version VC70, signature, age, GUID. Its age is that of the last write, not the image's.
    put(5 * PAGE, &20_000_404u32.to_le_bytes());
    put(5 * PAGE + 8, &(age + 5).to_le_bytes());
    put(5 * PAGE + 12, &guid.0);
    // DBI stream: signature, version V70, age.
    put(6 * PAGE, &u32::MAX.to_le_bytes());
    put(6 * PAGE + 4, &19_990_903u32.to_le_bytes());
    put(6 * PAGE + 8, &age.to_le_bytes());
    // Something that does not compress to nothing.
    let mut rng = Rng::new(1);
    file[7 * PAGE..].fill_with(|| rng.bits() as u8);
    file
}

/// A cabinet with these members.
pub fn cabinet(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(cab::CompressionType::MsZip);
    for (name, _) in members {
        folder.add_file(*name);
    }
    let mut writer = builder.build(Cursor::new(Vec::new())).unwrap();
    let mut n = 0;
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(members[n].1).unwrap();
        n += 1;
    }
    writer.finish().unwrap().into_inner()
}

/// A folder that goes with this value.
pub struct Temp(pub PathBuf);

impl Temp {
    pub fn new(name: &str) -> Temp {
        let dir = std::env::temp_dir().join(format!("etwhy-where-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Temp(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// All files, from this folder, sorted; those for the cache's own use left out if asked.
    pub fn files(&self, hidden: bool) -> Vec<String> {
        fn walk(root: &Path, dir: &Path, out: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(root, &path, out);
                } else {
                    out.push(path.strip_prefix(root).unwrap().display().to_string().replace('\\', "/"));
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.0, &self.0, &mut out);
        out.retain(|file| hidden || !file.contains(".etwhy/"));
        out.sort();
        out
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
