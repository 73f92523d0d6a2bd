//! `.reg` files, as `reg export` and the registry editor write them.
//!
//! [Format](https://support.microsoft.com/help/310516): keys in brackets, `"name"="text"`, `@=` for the default value,
//! `hex(2):` with UTF-16 for texts with variables, lines that go on behind `\`.

use crate::bytes::utf16;

/// Reads a file; UTF-16 with its mark, or UTF-8.
pub(crate) fn read(bytes: &[u8]) -> Keys {
    let text = match bytes.strip_prefix(b"\xff\xfe") {
        Some(wide) => utf16(wide),
        None => String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned(),
    };
    let mut keys = Keys::new();
    let mut current: Option<KeyValues> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(path) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            keys.extend(current.take());
            // `[-…]` deletes.
            if !path.starts_with('-') {
                current = Some((path.split('\\').map(str::to_owned).collect(), Vec::new()));
            }
            continue;
        }
        let Some((_, values)) = &mut current else { continue };
        // Only numbers go on behind `\`.
        let goes_on = line.contains("hex");
        let mut line = line.to_owned();
        while goes_on && line.ends_with('\\') {
            line.pop();
            match lines.next() {
                Some(next) => line.push_str(next.trim()),
                None => break,
            }
        }
        values.extend(value(&line));
    }
    keys.extend(current);
    keys
}

fn value(line: &str) -> Option<(String, String)> {
    let (name, rest) = match line.strip_prefix('@') {
        Some(rest) => (String::new(), rest),
        None => quoted(line)?,
    };
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let text = if rest.starts_with('"') {
        quoted(rest)?.0
    } else if let Some(hex) = rest.strip_prefix("dword:") {
        u32::from_str_radix(hex.trim(), 16).ok()?.to_string()
    } else if let Some(hex) =
        ["hex(2):", "hex(7):", "hex(1):"].iter().find_map(|kind| rest.strip_prefix(kind))
    {
        let bytes: Option<Vec<u8>> = hex
            .split(',')
            .map(str::trim)
            .filter(|b| !b.is_empty())
            .map(|b| u8::from_str_radix(b, 16).ok())
            .collect();
        utf16(&bytes?)
    } else {
        return None;
    };
    Some((name.to_lowercase(), text))
}

/// A text in quotes, in which `\\` and `\"` stand for one character, and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, text.get(at + 2..)?)),
            '\\' => out.push(chars.next()?.1),
            other => out.push(other),
        }
    }
    None
}

/// A key by its path, with its values by name in lower case.
pub(crate) type KeyValues = (Vec<String>, Vec<(String, String)>);

/// Several of them.
pub(crate) type Keys = Vec<KeyValues>;
