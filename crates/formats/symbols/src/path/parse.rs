//! Taking a symbol path apart.

use super::{Element, Keyword, StoreLocation, SymbolPath};

/// Longest path that is looked at. Windows allows 32,767 characters in a variable.
const MAX_LEN: usize = 1 << 20;

/// An element that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("symbol path, element {number} `{element}`: {reason}")]
pub struct Fault {
    /// Which one, from 1.
    pub number: usize,
    /// As it was written.
    pub element: String,
    /// What is wrong and what to do.
    pub reason: String,
}

pub(super) fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> (SymbolPath, Vec<Fault>) {
    let mut path = SymbolPath::default();
    let mut faults = Vec::new();
    if text.len() > MAX_LEN {
        let element: String = text.chars().take(60).collect();
        let reason = format!("the path has {} characters, more than {MAX_LEN}", text.len());
        return (path, vec![Fault { number: 1, element, reason }]);
    }
    let mut number = 0;
    for written in text.split(';') {
        let written = trimmed(written);
        if written.is_empty() {
            continue;
        }
        number += 1;
        let read = expand(written, variable).and_then(|text| elements(&text));
        match read {
            Ok(elements) => path.elements.extend(elements),
            Err(reason) => faults.push(Fault { number, element: written.to_owned(), reason }),
        }
    }
    (path, faults)
}

/// A variable may hold several elements.
fn elements(text: &str) -> Result<Vec<Element>, String> {
    text.split(';').map(trimmed).filter(|t| !t.is_empty()).map(element).collect()
}

/// Without blanks and quotes around it; people write both.
pub(super) fn trimmed(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text).trim()
}

fn element(text: &str) -> Result<Element, String> {
    if text.contains('\0') {
        return Err("it holds a NUL character".to_owned());
    }
    let Some((word, rest)) = text.split_once('*') else {
        return Ok(match place(text)? {
            server @ StoreLocation::Server(_) => {
                Element::Stores { keyword: Keyword::None, places: vec![server] }
            }
            _ => Element::Folder(text.to_owned()),
        });
    };
    match word.trim().to_ascii_lowercase().as_str() {
        "srv" => Ok(Element::Stores { keyword: Keyword::Srv, places: stores(rest)? }),
        "symsrv" => {
            let (dll, rest) = rest.split_once('*').unwrap_or((rest, ""));
            if !dll.trim().eq_ignore_ascii_case("symsrv.dll") {
                return Err(format!(
                    "`{dll}` is a symbol server DLL that only Windows can load; only symsrv.dll's stores are understood. \
                     Write srv*… instead"
                ));
            }
            Ok(Element::Stores { keyword: Keyword::SymSrv(dll.trim().to_owned()), places: stores(rest)? })
        }
        "cache" => {
            let places = rest.split('*').map(place).collect::<Result<Vec<_>, _>>()?;
            match places.iter().find(|p| matches!(p, StoreLocation::Server(_))) {
                Some(server) => {
                    Err(format!("`{server}` is a server; a cache is a folder. Write srv*FOLDER*{server}"))
                }
                None => Ok(Element::Cache(places)),
            }
        }
        "debuginfod" => {
            let mut caches = rest.split('*').map(place).collect::<Result<Vec<_>, _>>()?;
            match caches.pop() {
                Some(StoreLocation::Server(server))
                    if caches.iter().all(|p| !matches!(p, StoreLocation::Server(_))) =>
                {
                    Ok(Element::DebugInfoD { caches, server })
                }
                _ => Err("DebugInfoD* needs one URL at its end, e.g. DebugInfoD*https://server".to_owned()),
            }
        }
        _ => {
            let places = stores(text)?;
            if !matches!(places.last(), Some(StoreLocation::Server(_))) {
                return Err(format!(
                    "`{word}` is no keyword (srv, symsrv, cache, DebugInfoD), and there is no URL at the end"
                ));
            }
            Ok(Element::Stores { keyword: Keyword::None, places })
        }
    }
}

/// Stores between asterisks.
fn stores(text: &str) -> Result<Vec<StoreLocation>, String> {
    let mut places = text.split('*').map(place).collect::<Result<Vec<_>, _>>()?;
    // `srv*C:\symbols*` has no server, and none is made up.
    while places.len() > 1 && places.last() == Some(&StoreLocation::Default) {
        places.pop();
    }
    let before = places.split_last().map_or(&[][..], |(_, before)| before);
    match before.iter().find(|p| matches!(p, StoreLocation::Server(_))) {
        Some(server) => Err(format!(
            "`{server}` is a server and can only be the last of an element; separate several with `;`"
        )),
        None => Ok(places),
    }
}

fn place(text: &str) -> Result<StoreLocation, String> {
    let text = trimmed(text);
    if text.is_empty() {
        return Ok(StoreLocation::Default);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok(StoreLocation::Folder(text.to_owned()));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {
            let host = rest.split('/').next().unwrap_or("");
            if host.is_empty() || host.starts_with(':') {
                return Err(format!("`{text}` names no host"));
            }
            if rest.contains(['?', '#']) {
                return Err(format!(
                    "`{text}` has a query or fragment; a server's URL is scheme, host and path"
                ));
            }
            if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(format!("`{text}` has blanks; write them as %20"));
            }
            Ok(StoreLocation::Server(text.to_owned()))
        }
        "file" => Err("write the folder itself instead of a file:// URL".to_owned()),
        other => Err(format!("`{other}://` is not understood; servers are http:// or https://")),
    }
}

/// Puts variables in for `%NAME%`.
pub(super) fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let name = behind.split_once('%').filter(|(name, _)| is_name(name));
        let Some((name, after)) = name else {
            out.push('%');
            rest = behind;
            continue;
        };
        if let Some(value) = variable(name) {
            out.push_str(&value);
            rest = after;
        } else if text.contains("://") {
            // %2F in a URL is no variable.
            out.push('%');
            rest = behind;
        } else {
            return Err(format!("the environment variable {name} is not set"));
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '(' | ')' | '-' | '.'))
}
