//! Refuses XML that is made to take long.
//!
//! The XML parser compares each attribute of an element with all others, and each namespace with all that are
//! in force. Manifests have a dozen of the former and a handful of the latter; a hostile trace brings a
//! manifest of its own with a hundred thousand.

/// Most attributes of one element.
const MAX_ATTRIBUTES: usize = 64;
/// Deepest nesting of elements. Manifests have ten levels, and structs in structs.
const MAX_DEPTH: usize = 48;
/// Most namespaces in force at one place.
const MAX_NAMESPACES: usize = 24;

/// True if the text should not be given to the parser. It need not be well-formed: where it is not, the parser
/// stops.
pub fn too_complex(text: &str) -> bool {
    let mut rest = text;
    // Namespaces in force, for each element that is open.
    let mut open: Vec<usize> = Vec::new();
    while let Some(at) = rest.find('<') {
        rest = rest.get(at..).unwrap_or("");
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("</", ">")]
            .into_iter()
            .find(|(start, _)| rest.starts_with(start));
        if let Some((start, end)) = skipped {
            if start == "</" {
                open.pop();
            }
            let Some(at) = rest.get(start.len()..).and_then(|r| r.find(end)) else { return false };
            rest = rest.get(start.len() + at + end.len()..).unwrap_or("");
            continue;
        }
        let tag = Tag::read(rest.as_bytes());
        let namespaces = open.last().copied().unwrap_or(0) + tag.namespaces;
        if !tag.closed {
            open.push(namespaces);
        }
        if tag.attributes > MAX_ATTRIBUTES || open.len() > MAX_DEPTH || namespaces > MAX_NAMESPACES {
            return true;
        }
        rest = rest.get(tag.len..).unwrap_or("");
    }
    false
}

/// What a start tag holds.
#[derive(Default)]
struct Tag {
    len: usize,
    attributes: usize,
    namespaces: usize,
    closed: bool,
}

impl Tag {
    /// Reads up to the `>` that is not in quotes, or to the end.
    fn read(bytes: &[u8]) -> Tag {
        let mut tag = Tag::default();
        let mut quote = None;
        for (at, &byte) in bytes.iter().enumerate() {
            tag.len = at + 1;
            match (quote, byte) {
                (Some(open), _) if open == byte => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => tag.attributes += 1,
                (None, b'x') if bytes.get(at..at + 5) == Some(b"xmlns") => tag.namespaces += 1,
                (None, b'>') => {
                    tag.closed = bytes.get(at.wrapping_sub(1)) == Some(&b'/');
                    return tag;
                }
                _ => {}
            }
        }
        tag.closed = true;
        // `find('<')` must go on behind a character, not inside one.
        tag.len = bytes.len();
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::too_complex;

    #[test]
    fn what_takes_long_is_refused() {
        let many = |n: usize, name: &str| (0..n).map(|i| format!(" {name}{i}='1'")).collect::<String>();
        assert!(!too_complex(&format!("<a{}/>", many(64, "b"))));
        assert!(too_complex(&format!("<a{}/>", many(65, "b"))));
        assert!(!too_complex(&format!("{}{}", "<a>".repeat(48), "</a>".repeat(48)).repeat(100)));
        assert!(too_complex(&"<a>".repeat(49)));
        assert!(!too_complex(&"<a xmlns:x='y'><b xmlns='z'/></a>".repeat(1000)));
        assert!(too_complex(&"<a xmlns:x='y'>".repeat(25)));
    }

    #[test]
    fn what_is_in_quotes_and_comments_does_not_count() {
        let text = "<!-- <a><a> --><?x <a>?><a b='=====>=<'><![CDATA[<b><b>]]></a>".repeat(60);
        assert!(!too_complex(&format!("{text}<ä b=\"ü>\" c='>'>ö</ä><unfinished a='")));
        assert!(!too_complex("<"));
        assert!(!too_complex("<!-- no end"));
    }
}
