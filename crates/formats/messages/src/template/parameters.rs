//! Parameter files: texts that records name by number, as `%%1833` for *Yes*.
//!
//! [Event sources](https://learn.microsoft.com/windows/win32/eventlog/event-sources), `ParameterMessageFile`.

use super::compile::{TextPart, compile, number, number_of};
use crate::sid;

/// How deep a parameter may name another one.
const DEPTH_MAX: usize = 4;
/// How many parameters one parameter may name, directly or through others.
const NESTED_MAX: usize = 64;
/// Bytes up to which parameters may name others. All of Windows' own together have less than one million.
const TEXTS_MAX: usize = 16 << 20;
/// Characters that one value may become by parameters that stand in it.
const EXPANDED_MAX: usize = 1 << 20;

/// The texts of parameter files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    texts: String,
    /// Id, start and end in `texts`, sorted by id.
    index: Vec<(u32, u32, u32)>,
}

impl Parameters {
    /// From ids and messages as they stand in message tables; of several with an id the first one counts.
    pub fn new(messages: impl IntoIterator<Item = (u32, String)>) -> Self {
        let mut raw: Vec<(u32, String)> = messages.into_iter().collect();
        raw.sort_by_key(|message| message.0);
        raw.dedup_by_key(|message| message.0);
        let mut this = Self::default();
        for (id, message) in &raw {
            let depth = if this.texts.len() < TEXTS_MAX { 0 } else { DEPTH_MAX };
            let text = flat(message, &raw, depth, &mut { NESTED_MAX });
            let at = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let start = at(this.texts.len());
            this.texts.push_str(&text);
            this.index.push((*id, start, at(this.texts.len())));
        }
        this
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The text of a parameter.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&str> {
        let find = |id: u32| {
            let at = self.index.binary_search_by_key(&id, |entry| entry.0).ok()?;
            let (_, start, end) = self.index.get(at)?;
            self.texts.get(*start as usize..*end as usize)
        };
        // HRESULT_FROM_WIN32 (winerror.h): an error of Win32 in another dress has the text of that error.
        find(id).or_else(|| (id >> 16 == 0x8007).then(|| find(id & 0xffff)).flatten())
    }

    /// Replaces `%%1833` and `%{S-1-5-18}` in the value that begins at `start`.
    pub(crate) fn expand(&self, start: usize, name_sids: bool, out: &mut Vec<u8>) {
        let value = out.get(start..).unwrap_or(&[]);
        // Nearly all are parameters, and often one and nothing else.
        if let Some(digits) = value.strip_prefix(b"%%")
            && let Some((id, len)) = number_of(digits)
            && len == digits.len()
        {
            if let Some(text) = self.get(id) {
                out.truncate(start);
                out.extend_from_slice(text.as_bytes());
            }
            return;
        }
        let raw = value.to_vec();
        let mut rest = raw.as_slice();
        out.truncate(start);
        while let Some(at) = memchr::memchr(b'%', rest) {
            let (before, from) = rest.split_at(at);
            out.extend_from_slice(before);
            if out.len() - start > EXPANDED_MAX {
                out.extend_from_slice(from);
                return;
            }
            if let Some(digits) = from.strip_prefix(b"%%")
                && let Some((id, len)) = number_of(digits)
                && let Some(text) = self.get(id)
            {
                out.extend_from_slice(text.as_bytes());
                rest = digits.get(len..).unwrap_or_default();
            } else if let Some((inner, behind)) = sid_in_braces(from) {
                let name = name_sids.then(|| sid::well_known(inner)).flatten();
                out.extend_from_slice(name.unwrap_or(inner).as_bytes());
                rest = behind;
            } else {
                // GUIDs name objects of the directory, which only the domain knows; `%{…}` stays.
                out.push(b'%');
                rest = from.get(1..).unwrap_or_default();
            }
        }
        out.extend_from_slice(rest);
    }
}

/// The SID of `%{S-1-5-18}` at the start, and what is behind it.
fn sid_in_braces(text: &[u8]) -> Option<(&str, &[u8])> {
    let inner = text.strip_prefix(b"%{")?;
    let end = inner.starts_with(b"S-1-").then(|| memchr::memchr(b'}', inner)).flatten()?;
    Some((std::str::from_utf8(inner.get(..end)?).ok()?, inner.get(end + 1..)?))
}

/// A parameter's own text: escape sequences done, parameters that it names filled in, inserts as they stand.
fn flat(message: &str, raw: &[(u32, String)], depth: usize, left: &mut usize) -> String {
    let parts = compile(message, &|_| None);
    let mut out = String::new();
    for part in &parts {
        match part {
            TextPart::Text(text) => out.push_str(text),
            TextPart::Insert(n) | TextPart::Formatted(n, _) => {
                use std::fmt::Write as _;
                let _ = write!(out, "%{}", u16::from(*n) + 1);
            }
        }
    }
    if depth < DEPTH_MAX && message.contains("%%") {
        return nested(message, raw, depth, left);
    }
    out
}

/// Like [`flat`], of a text in which `%%` stands.
fn nested(message: &str, raw: &[(u32, String)], depth: usize, left: &mut usize) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find("%%") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let behind = from.get(2..).unwrap_or_default();
        let found = number(behind).and_then(|(id, after)| {
            let at = raw.binary_search_by_key(&id, |m| m.0).ok()?;
            Some((&raw.get(at)?.1, after))
        });
        match found {
            Some((text, after)) if *left > 0 && out.len() < 1 << 16 => {
                *left -= 1;
                // What is filled in has no escape sequences left; a percent sign in it is doubled to stay one.
                out.push_str(&flat(text, raw, depth + 1, left).replace('%', "%%"));
                rest = after;
            }
            _ => {
                out.push_str("%%");
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    flat(&out, &[], DEPTH_MAX, left)
}
