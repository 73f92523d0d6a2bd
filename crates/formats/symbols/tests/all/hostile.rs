//! Names from traces are hostile: they never leave the cache folder and never change what a server is asked.

use crate::support::{Faulty, Serve, Temp, pdb};
use etwhy_symbols::server::{Proxies, ServerOptions};
use etwhy_symbols::{
    ImageKey, Locate as _, ModuleKey, SafeName, SourceOptions, Sources, SymbolPath, WantedModule,
    parse_store_id,
};
use std::time::Duration;

const ID: &str = "00112233445566778899AABBCCDDEEFF1";

fn key(name: &str) -> ModuleKey {
    let (guid, age) = parse_store_id(ID).unwrap();
    ModuleKey { pdb_name: name.to_owned(), guid, age }
}

fn good(bytes: usize) -> Vec<u8> {
    pdb(key("").guid, 1, bytes)
}

fn options(temp: &Temp) -> SourceOptions {
    let server = ServerOptions {
        retries: 0,
        backoff: Duration::from_millis(1),
        proxies: Proxies::default(),
        ..ServerOptions::default()
    };
    SourceOptions { default_store: temp.path().join("default"), server, ..SourceOptions::default() }
}

fn with(server: &Faulty, options: SourceOptions) -> Sources {
    let cache = options.default_store.parent().unwrap().join("cache");
    SymbolPath::parse(&format!("srv*{}*{}", cache.display(), server.url)).unwrap().sources(options)
}

fn sources(server: &Faulty, temp: &Temp) -> Sources {
    with(server, options(temp))
}

/// Names that a trace could give to a PDB.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = [
        r"..\..\evil.pdb",
        "../../evil.pdb",
        r"..\..",
        "..",
        ".",
        "",
        "http://evil/",
        "http://evil/x.pdb",
        "//evil/x.pdb",
        r"\\evil\share\x.pdb",
        "%2e%2e",
        "%2e%2e%2fevil.pdb",
        "a%00.pdb",
        "a\0.pdb",
        "CON",
        "con.pdb",
        "NUL.pdb",
        "COM1",
        "\u{2215}..\u{2215}evil.pdb",
        "\u{ff0f}evil.pdb",
        "\u{202e}bdp.live",
        "x.pdb?y=z",
        "x.pdb#y",
        "x@evil.pdb",
        "x.pdb\r\nHost: evil",
        "x.pdb HTTP/1.1",
        "C:evil.pdb",
        "x.pdb:stream",
        "file.ptr",
        "index2.txt",
        ".etwhy",
        "~",
        "$(id).pdb",
        "-x.pdb",
        " x.pdb",
        "x.pdb.",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(30_000));
    names.push(format!("{}.pdb", "é".repeat(120)));
    names.push("../".repeat(10_000));
    names
}

#[test]
fn hostile_names_stay_in_the_cache_and_on_the_server() {
    let (server, temp) = (Faulty::new(), Temp::new("hostile"));
    // What an escape would find.
    temp.write("evil.pdb", &good(10));
    for name in hostile() {
        let hostile = WantedModule { pdb: Some(key(&name)), image: None };
        server.forget();
        let sources = sources(&server, &temp);
        assert!(sources.candidates(&hostile).is_empty(), "{name:?}");
        for seen in server.seen() {
            let (target, host) = (&seen.target, &seen.headers["host"]);
            assert_eq!(*host, format!("127.0.0.1:{}", server.port()), "{name:?}");
            let segments: Vec<&str> = target.split('/').collect();
            let well_formed = match segments.as_slice() {
                ["", "sym", "index2.txt"] => true,
                ["", "sym", folder, id, file] => {
                    let plain = |s: &&str| {
                        !s.is_empty()
                            && *s != "."
                            && *s != ".."
                            && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b))
                    };
                    id.eq_ignore_ascii_case(ID) && plain(folder) && plain(file)
                }
                _ => false,
            };
            assert!(well_formed, "{name:?} was asked for as {target}");
        }
    }
    let outside: Vec<String> =
        temp.files(true).into_iter().filter(|file| !file.starts_with("cache/.etwhy/")).collect();
    assert_eq!(outside, ["evil.pdb"]);
}

#[test]
fn files_of_hostile_names_stay_in_the_cache() {
    // Every name that may be asked for at all gets its file, and that lies where it belongs.
    let mut kept = 0;
    for (n, name) in hostile().into_iter().enumerate() {
        let Some(safe) = SafeName::of_path(&name) else { continue };
        if ["file.ptr", "index2.txt", ".etwhy"].contains(&safe.as_str()) {
            // A store's own files.
            continue;
        }
        let (server, temp) = (Faulty::new(), Temp::new(&format!("kept{n}")));
        let encoded = etwhy_symbols::server::encode(safe.as_str());
        server.serve(&format!("{encoded}/{ID}/{encoded}"), Serve::File(good(10)));
        let hostile = WantedModule { pdb: Some(key(&name)), image: None };
        let candidates = sources(&server, &temp).candidates(&hostile);
        assert_eq!(candidates.len(), 1, "{name:?}");
        assert_eq!(temp.files(false), [format!("cache/{safe}/{ID}/{safe}")], "{name:?}");
        kept += 1;
    }
    assert!(kept >= 10, "{kept}");
}

#[test]
fn hostile_names_of_images_too() {
    let (server, temp) = (Faulty::new(), Temp::new("images"));
    temp.write("evil.dll", b"MZ");
    temp.write("images/fine/x.dll", b"MZ");
    for name in hostile() {
        server.forget();
        let image = ImageKey { name: name.clone(), time_date_stamp: 0x5000_0000, size_of_image: 0x1000 };
        let wanted = WantedModule { pdb: None, image: Some(image) };
        let fetch =
            SourceOptions { fetch_images: true, images: vec![temp.path().join("images")], ..options(&temp) };
        assert!(with(&server, fetch).candidates(&wanted).is_empty(), "{name:?}");
        for seen in server.seen() {
            let inside = seen.target.starts_with("/sym/") && !seen.target.split('/').any(|part| part == "..");
            assert!(inside, "{name:?} was asked for as {}", seen.target);
        }
    }
    let outside: Vec<String> =
        temp.files(true).into_iter().filter(|file| !file.starts_with("cache/.etwhy/")).collect();
    assert_eq!(outside, ["evil.dll", "images/fine/x.dll"]);
}
