//! Whether the pages of `web/` were built from what stands there.
//!
//! The pages are committed, so that nobody needs Node to build etwhy. The first comment of each holds a checksum of its sources and
//! one of itself; `web/bundle.mjs` makes them, and this computes them again.

use crate::repo::Repo;
use crate::schema_page::SCHEMA;
use anyhow::{Context as _, Result, bail};

const PAGE: &str = "web/dist/report.html";
/// Sources besides all files below `web/src`; `web/build.mjs` has the same list.
const SOURCES: [&str; 5] =
    [SCHEMA, "web/build.mjs", "web/package.json", "web/package-lock.json", "web/tsconfig.json"];
/// Types that are made from the schema.
const MADE: [&str; 2] = ["web/src/model.ts", "web/src/charts.ts"];

/// Fails if the page is not what its sources make, or was edited.
///
/// # Errors
/// What is stale and what to do.
pub fn check(repo: &Repo) -> Result<()> {
    report(repo)?;
    hud(repo)?;
    store(repo)
}

/// The page of a store: its own files, and what it takes of others; `web/build-store.mjs` has the same list.
fn store(repo: &Repo) -> Result<()> {
    let taken = [
        "web/build-store.mjs",
        "web/hud/base/awaited.ts",
        "web/hud/base/theme.ts",
        "web/hud/style/base.css",
        "web/hud/style/chevron.svg",
        "web/hud/style/font.css",
        "web/hud/style/tokens.css",
        "web/src/lib/format.ts",
    ];
    let mut sources: Vec<String> = taken.map(str::to_owned).into();
    sources.extend(repo.files("web/store")?);
    let script = repo.read("web/dist/store.js")?.replace('\r', "");
    let style = repo.read("web/dist/store.css")?.replace('\r', "");
    fresh(repo, sources, "web/dist/store.js", &script, &style)
}

/// The page of `etwhy serve`: a script with the checksums, a style, what scripts share, and a script that is loaded when it is needed.
fn hud(repo: &Repo) -> Result<()> {
    let own = ["web/build-hud.mjs", "web/package.json", "web/package-lock.json", "web/tsconfig.json"];
    let mut sources: Vec<String> = own.map(str::to_owned).into();
    for folder in ["web/hud", "web/src"] {
        sources.extend(repo.files(folder)?);
    }
    let script = repo.read("web/dist/hud.js")?.replace('\r', "");
    let style = repo.read("web/dist/hud.css")?.replace('\r', "");
    let base = repo.read("web/dist/hud-base.js")?.replace('\r', "");
    let more = repo.read("web/dist/hud-more.js")?.replace('\r', "");
    fresh(repo, sources, "web/dist/hud.js", &script, &format!("{style}{base}{more}"))
}

fn report(repo: &Repo) -> Result<()> {
    let mut sources: Vec<String> = SOURCES.map(str::to_owned).into();
    sources.extend(repo.files("web/src")?.into_iter().filter(|path| !MADE.contains(&path.as_str())));
    let page = repo.read(PAGE)?.replace('\r', "");
    fresh(repo, sources, PAGE, &page, "")
}

/// What builds all pages.
const BUNDLE: &str = "web/bundle.mjs";

/// Fails unless the checksums at the head of `page` are those of the sources, and of what follows them with `more` behind it.
fn fresh(repo: &Repo, mut sources: Vec<String>, name: &str, page: &str, more: &str) -> Result<()> {
    sources.push(BUNDLE.to_owned());
    sources.sort();
    let mut of = String::new();
    for path in &sources {
        of.push_str(&format!("{path}\0{}\0", repo.read(path)?.replace('\r', "")));
    }
    let (head, body) = parts(page).with_context(|| format!("{name}: has no checksums"))?;
    if head != (fnv(&of), fnv(&format!("{body}{more}"))) {
        let what = if head.0 == fnv(&of) { "was edited" } else { "is older than its sources" };
        bail!("{name} {what}: run `npm ci && npm run build` in web/");
    }
    Ok(())
}

/// The checksums that a page states, and what follows them.
fn parts(page: &str) -> Option<((String, String), &str)> {
    let (_, rest) = page.split_once(" sources ")?;
    let (sources, rest) = rest.split_once(" body ")?;
    let (body, rest) = rest.split_once(" -->\n")?;
    Some(((sources.to_owned(), body.to_owned()), rest))
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>. It notices what was forgotten, no more.
fn fnv(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums() {
        // Test vectors of the page above.
        assert_eq!(fnv(""), "cbf29ce484222325");
        assert_eq!(fnv("foobar"), "85944171f73967e8");
        let page = "<!doctype html>\n<!-- made. sources 01 body 02 -->\n<html>";
        assert_eq!(parts(page), Some((("01".to_owned(), "02".to_owned()), "<html>")));
        assert_eq!(parts("<html>"), None);
    }
}
