//! The pages, built from `web/hud` and `web/store` and part of the program: nobody needs Node to build etwhy.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::sync::LazyLock;

const JS: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// `hud.js` imports `hud-base.js`, and `hud-more.js` when somebody asks for what is used rarely.
const FILES: [(&str, &str, &str); 6] = [
    ("hud.js", JS, include_str!("../../../../web/dist/hud.js")),
    ("hud-base.js", JS, include_str!("../../../../web/dist/hud-base.js")),
    ("hud-more.js", JS, include_str!("../../../../web/dist/hud-more.js")),
    ("hud.css", CSS, include_str!("../../../../web/dist/hud.css")),
    ("store.js", JS, include_str!("../../../../web/dist/store.js")),
    ("store.css", CSS, include_str!("../../../../web/dist/store.css")),
];

/// A file of the page.
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// Its content.
    pub plain: &'static [u8],
    /// The same as gzip.
    pub gzip: Vec<u8>,
}

/// All files.
pub static ALL: LazyLock<[Asset; 6]> = LazyLock::new(|| {
    FILES.map(|(name, media, text)| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        // Writing into memory does not fail.
        let gzip = gzip.write_all(text.as_bytes()).and_then(|()| gzip.finish()).unwrap_or_default();
        Asset { name, media, plain: text.as_bytes(), gzip }
    })
});

/// The folder of all files: it changes with what they hold, so that browsers may keep them. Scripts name each other without it.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = FILES.iter().flat_map(|(.., text)| text.bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
});

/// The page of traces itself. It names its files relative to its address, which holds the token.
pub fn page() -> String {
    document("hud", "", &["hud-base"])
}

/// The page of a store, one folder deeper.
pub fn store_page() -> String {
    document("store", "../", &[])
}

/// A page: its script and style have its name, `imports` are what the script asks for first.
fn document(name: &str, up: &str, imports: &[&str]) -> String {
    let folder = format!("{up}assets/{}", *VERSION);
    let first = |import: &&str| format!("<link rel=\"modulepreload\" href=\"{folder}/{import}.js\">\n");
    let imports: String = imports.iter().map(first).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>etwhy</title>\n<link rel=\"icon\" \
         href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{folder}/{name}.css\">\n{imports}<script type=\"module\" \
         src=\"{folder}/{name}.js\"></script>\n</head>\n<body>\n<div id=\"app\"></div>\n<noscript>This page draws itself with its own \
         script, which is switched off here.</noscript>\n</body>\n</html>\n"
    )
}
