//! XML that ends where a record does: what is open is closed, so that the document around it stays one.

/// Markup that is read over as a whole: how it begins and ends.
const WHOLE: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")];

/// Cuts off a piece of markup at the end of `out[from..]`, which is XML as far as it goes, and closes its elements.
pub fn close(out: &mut Vec<u8>, from: usize) {
    let xml = out.get(from..).unwrap_or_default();
    // Names of the elements that are open, as ranges; and where the last whole piece of markup or text ends.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut whole = loop {
        let Some(begin) = xml.get(at..).and_then(|rest| rest.iter().position(|&b| b == b'<')).map(|n| at + n)
        else {
            break xml.len();
        };
        let rest = xml.get(begin..).unwrap_or_default();
        let ending = WHOLE.iter().find(|(starts, _)| rest.starts_with(starts));
        let Some(length) = (match ending {
            Some((_, ends)) => rest.windows(ends.len()).position(|w| w == *ends).map(|n| n + ends.len()),
            // Values have no `>` that is not a reference.
            None => rest.iter().position(|&b| b == b'>').map(|n| n + 1),
        }) else {
            break begin;
        };
        if ending.is_none() {
            match rest.get(1) {
                Some(b'/') => drop(open.pop()),
                _ if rest.get(length.saturating_sub(2)) == Some(&b'/') => {}
                _ => {
                    let name = rest.iter().skip(1).take_while(|b| !matches!(b, b' ' | b'>' | b'/')).count();
                    open.push((begin + 1, begin + 1 + name));
                }
            }
        }
        at = begin + length;
    };
    // A reference that is cut is none.
    let text = xml.get(at..whole).unwrap_or_default();
    if let Some(reference) = text.iter().rposition(|&b| b == b'&')
        && !text.get(reference..).unwrap_or_default().contains(&b';')
    {
        whole = at + reference;
    }
    let mut ends = Vec::new();
    for (begin, end) in open.into_iter().rev() {
        ends.extend_from_slice(b"</");
        ends.extend_from_slice(xml.get(begin..end).unwrap_or_default());
        ends.push(b'>');
    }
    out.truncate(from.saturating_add(whole));
    out.extend_from_slice(&ends);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_that_is_cut_anywhere_is_closed() {
        let whole = "<Event xmlns=\"a/b\"><System><Level/><A b=\"&lt;/&gt;\">x &amp; y</A><!-- <c> --><![CDATA[<d>]]><?e <f> ?></System></Event>";
        for cut in 0..=whole.len() {
            let mut out = b"<Events>\n<Event/>\n".to_vec();
            let from = out.len();
            out.extend_from_slice(&whole.as_bytes()[..cut]);
            close(&mut out, from);
            out.extend_from_slice(b"</Events>");
            let text = String::from_utf8(out).unwrap();
            let parsed = roxmltree::Document::parse(&text);
            assert!(parsed.is_ok(), "{cut}: {text}: {:?}", parsed.err());
        }
        let mut same = whole.as_bytes().to_vec();
        close(&mut same, 0);
        assert_eq!(same, whole.as_bytes());
    }
}
