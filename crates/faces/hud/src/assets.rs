//! The pages, built from `web/hud` and `web/store` and part of the program: nobody needs Node to build etwhy.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::sync::LazyLock;

const SCRIPT: &str = include_str!("../../../../web/dist/hud.js");
const STYLE: &str = include_str!("../../../../web/dist/hud.css");
/// What is used rarely; the script loads it by its name when somebody asks for it.
const MORE: &str = include_str!("../../../../web/dist/hud-more.js");
const STORE_SCRIPT: &str = include_str!("../../../../web/dist/store.js");
const STORE_STYLE: &str = include_str!("../../../../web/dist/store.css");

/// A file of the page.
pub struct Asset {
    /// Its name: it changes with its content, so that browsers may keep it.
    pub name: String,
    /// Its media type.
    pub media: &'static str,
    /// Its content.
    pub plain: &'static [u8],
    /// The same as gzip.
    pub gzip: Vec<u8>,
}

/// All files.
pub static ALL: LazyLock<[Asset; 5]> = LazyLock::new(|| {
    [
        asset("hud", "js", "text/javascript; charset=utf-8", SCRIPT),
        asset("hud", "css", "text/css; charset=utf-8", STYLE),
        asset("hud-more", "js", "text/javascript; charset=utf-8", MORE),
        asset("store", "js", "text/javascript; charset=utf-8", STORE_SCRIPT),
        asset("store", "css", "text/css; charset=utf-8", STORE_STYLE),
    ]
});

fn asset(stem: &str, ending: &str, media: &'static str, text: &'static str) -> Asset {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing into memory does not fail.
    let gzip = gzip.write_all(text.as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default();
    Asset { name: format!("{stem}-{hash:016x}.{ending}"), media, plain: text.as_bytes(), gzip }
}

/// The page of traces itself. It names its files relative to its address, which holds the token.
pub fn page() -> String {
    let [script, style, ..] = &*ALL;
    document(script, style, "")
}

/// The page of a store, one folder deeper.
pub fn store_page() -> String {
    let [.., script, style] = &*ALL;
    document(script, style, "../")
}

fn document(script: &Asset, style: &Asset, up: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>etwhy</title>\n<link rel=\"icon\" \
         href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{up}assets/{}\">\n<script defer src=\"{up}assets/{}\"></script>\n</head>\n<body>\n<div \
         id=\"app\"></div>\n<noscript>This page draws itself with its own script, which is switched off here.</noscript>\n</body>\n</html>\n",
        style.name, script.name
    )
}
