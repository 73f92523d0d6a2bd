//! The picture as a page with zoom and search. One file that asks for nothing: its policy forbids every request.

use super::draw::element;
use super::{Comparison, Options, picture};
use etwhy_analysis::stacks::Tree;
use etwhy_export::escape_markup as escape;
use std::io::{self, Write};

const SCRIPT: &str = include_str!("flame.js");

const STYLE: &str = "\
body{margin:0 auto;max-width:1600px;padding:12px;font:14px system-ui,-apple-system,'Segoe UI',sans-serif;background:#fff;color:#1b1b1b}\
form{display:flex;gap:10px;align-items:center;flex-wrap:wrap;margin:0 0 8px}input{font:inherit;padding:4px 8px;min-width:16em}\
button{font:inherit;padding:4px 10px}#detail{min-height:2.8em;margin:6px 0;overflow-wrap:anywhere}\
.head{position:sticky;top:0;background:#fff;z-index:1;padding-top:4px}.scroll{overflow-x:auto}\
svg.flame{display:block;max-width:none}g.n{cursor:pointer;outline:none}g.n:focus-visible rect,g.n:hover rect{stroke:#111;stroke-width:1.5}\
g.dim{opacity:.35}g.match rect{stroke:#111;stroke-width:1.2}g.caller{opacity:.7}";

/// Writes a page with the picture.
///
/// # Errors
/// Those of `out`.
pub fn html(
    tree: &Tree,
    options: &Options<'_>,
    comparison: Option<&Comparison>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let picture = picture(tree, options, comparison);
    let title = escape(options.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <style>{STYLE}</style></head>\n<body><main>\n\
         <div class=\"head\"><form role=\"search\" onsubmit=\"return false\"><label for=\"search\">Search</label>\n\
         <input id=\"search\" type=\"search\" placeholder=\"function, module (press /)\">\n\
         <button id=\"back\" type=\"button\" hidden>Whole picture (Esc)</button><span id=\"found\" role=\"status\"></span></form>\n\
         <p id=\"detail\" aria-live=\"polite\"></p></div>\n<div class=\"scroll\">\n"
    )?;
    element(&picture, options, out)?;
    write!(out, "</div>\n</main><script>\n{SCRIPT}</script></body></html>\n")
}
