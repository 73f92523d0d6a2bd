//! The static picture.

use super::{Cell, Comparison, Options, Picture, picture};
use etwhy_analysis::stacks::Tree;
use etwhy_export::text::{truncate_end, width as columns};
use etwhy_export::{escape_markup as escape, sanitize};
use std::io::{self, Write};

/// Height of a row in pixels.
pub(super) const ROW: u32 = 18;
/// Pixels of a letter, at a size of 12.
pub(super) const LETTER: f64 = 7.1;
const MARGIN: u32 = 10;
const HEAD: u32 = 54;

/// Colours of classes: dark text on them has a contrast above 4.5 (WCAG 2.1, 1.4.3). Kinds follow the report's
/// page; red to blue is told apart by colour-blind eyes.
pub(super) const STYLE: &str = "\
.flame text{font:12px system-ui,-apple-system,'Segoe UI',Verdana,sans-serif;fill:#1b1b1b}\
.flame .title{font-size:16px;font-weight:600}.flame .sub{fill:#444}\
.flame rect{stroke:#fff;stroke-width:.5}.flame .paper{fill:#fff;stroke:none}\
.group rect,rect.group{fill:#d5d9e0}.user rect,rect.user{fill:#9cc3ee}.managed rect,rect.managed{fill:#9fd6a8}\
.kernel rect,rect.kernel{fill:#f2b48b}.watched rect,rect.watched{fill:#ef8f8f}.interrupt rect,rect.interrupt{fill:#cbb2ea}\
.unknown rect,rect.unknown{fill:#d9d4c7}\
.more3 rect,rect.more3{fill:#e8746a}.more2 rect,rect.more2{fill:#f3a398}.more1 rect,rect.more1{fill:#f9d3cd}\
.new rect,rect.new{fill:#e39ad0}.same rect,rect.same{fill:#e6e6e6}\
.less1 rect,rect.less1{fill:#d0e0f4}.less2 rect,rect.less2{fill:#a3c4ea}.less3 rect,rect.less3{fill:#74a6e0}\
.c0 rect,rect.c0{fill:#9cc3ee}.c1 rect,rect.c1{fill:#f2b48b}.c2 rect,rect.c2{fill:#9fd6a8}.c3 rect,rect.c3{fill:#ef8f8f}\
.c4 rect,rect.c4{fill:#cbb2ea}.c5 rect,rect.c5{fill:#e8d27f}.c6 rect,rect.c6{fill:#8fd3d6}.c7 rect,rect.c7{fill:#efaecb}\
.c8 rect,rect.c8{fill:#c3cf8b}.c9 rect,rect.c9{fill:#bdbdbd}";

/// Writes a picture of the tree.
///
/// # Errors
/// Those of `out`.
pub fn svg(
    tree: &Tree,
    options: &Options<'_>,
    comparison: Option<&Comparison>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    element(&picture(tree, options, comparison), options, out)
}

/// The `svg` element.
pub(super) fn element(picture: &Picture, options: &Options<'_>, out: &mut dyn Write) -> io::Result<()> {
    let width = options.width.max(400);
    let inner = f64::from(width - 2 * MARGIN);
    let legend = legend(picture, width);
    let rows = legend.iter().map(|(_, row, ..)| row + 1).max().unwrap_or(0);
    let note = u32::from(!picture.note.is_empty());
    let graph = picture.levels * ROW;
    let height = HEAD + graph + 16 + rows * 20 + note * 18 + MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-labelledby=\"flame-title flame-desc\">"
    )?;
    let (title, subtitle) = (escape(options.title), escape(options.subtitle));
    writeln!(out, "<title id=\"flame-title\">{title}</title>")?;
    let shape = if options.icicle { "callers above what they call" } else { "callers below what they call" };
    let largest: Vec<String> = picture.cells.iter().skip(1).take(5).map(|cell| escape(&cell.title)).collect();
    writeln!(
        out,
        "<desc id=\"flame-desc\">{subtitle}. {} boxes, {shape}; width is weight. The widest at the outside: {}.</desc>",
        picture.cells.len(),
        largest.join("; ")
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, "<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>")?;
    let room = (inner / LETTER) as usize;
    writeln!(
        out,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"24\">{}</text>",
        escape(&truncate_end(&sanitize(options.title), room * 3 / 4))
    )?;
    writeln!(
        out,
        "<text class=\"sub\" x=\"{MARGIN}\" y=\"43\">{}</text>",
        escape(&truncate_end(&sanitize(options.subtitle), room))
    )?;
    writeln!(out, "<g class=\"graph\">")?;
    for cell in &picture.cells {
        put(cell, picture.levels, inner, options.icicle, out)?;
    }
    writeln!(out, "</g>\n<g class=\"legend\">")?;
    let top = HEAD + graph + 16;
    for (left, row, class, meaning) in &legend {
        let y = top + row * 20;
        writeln!(
            out,
            "<rect class=\"{class}\" x=\"{left}\" y=\"{y}\" width=\"13\" height=\"13\"/><text x=\"{}\" y=\"{}\">{}</text>",
            left + 18,
            y + 11,
            escape(meaning)
        )?;
    }
    if note > 0 {
        let y = top + rows * 20 + 11;
        writeln!(out, "<text class=\"sub\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escape(&picture.note))?;
    }
    writeln!(out, "</g>\n</svg>")
}

/// Places of the legend: left, row, class, meaning.
fn legend(picture: &Picture, width: u32) -> Vec<(u32, u32, &str, &str)> {
    let (mut left, mut row) = (MARGIN, 0);
    let mut out = Vec::new();
    for (class, meaning) in &picture.legend {
        let needed = 34 + (columns(meaning) as f64 * LETTER) as u32;
        if left > MARGIN && left + needed > width {
            (left, row) = (MARGIN, row + 1);
        }
        out.push((left, row, class.as_str(), meaning.as_str()));
        left += needed;
    }
    out
}

fn put(cell: &Cell, levels: u32, inner: f64, icicle: bool, out: &mut dyn Write) -> io::Result<()> {
    let row = if icicle { cell.depth } else { levels.saturating_sub(1).saturating_sub(cell.depth) };
    let (x, y, width) = (f64::from(MARGIN) + cell.left * inner, HEAD + row * ROW, cell.width * inner);
    write!(
        out,
        "<g class=\"n {}\" data-l=\"{:.7}\" data-w=\"{:.7}\" data-n=\"{}\"><title>{}</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\"/>",
        cell.class,
        cell.left,
        cell.width,
        escape(&cell.label),
        escape(&cell.title),
        width.max(0.1),
        ROW - 1
    )?;
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    let text = if letters >= 3 { truncate_end(&cell.label, letters) } else { String::new() };
    writeln!(out, "<text x=\"{:.2}\" y=\"{}\">{}</text></g>", x + 3.0, y + 13, escape(&text))
}
