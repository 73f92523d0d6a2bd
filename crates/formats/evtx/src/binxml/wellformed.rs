//! What logs have in places of XML where nothing can be escaped: names, CDATA sections, instructions. A log from somebody else may have
//! anything there, and none of it may become markup.

use super::op::Op;
use etwhy_base::is_unsafe;
use std::borrow::Cow;

/// A name as XML has it (XML 1.0, 2.3, `Name`): what that does not allow becomes `_`, and `odd` true.
pub fn name<'n>(text: &'n str, odd: &mut bool) -> Cow<'n, str> {
    let mut chars = text.chars();
    if chars.next().is_some_and(begins) && chars.all(goes_on) {
        return Cow::Borrowed(text);
    }
    *odd = true;
    let fits = |n: usize, c: char| if n == 0 { begins(c) } else { goes_on(c) };
    let out: String = text.chars().enumerate().map(|(n, c)| if fits(n, c) { c } else { '_' }).collect();
    Cow::Owned(if out.is_empty() { "_".to_owned() } else { out })
}

/// `NameStartChar`, without what acts on terminals.
fn begins(c: char) -> bool {
    match c {
        'A'..='Z' | 'a'..='z' | '_' | ':' => true,
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' => true,
        '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' => !is_unsafe(c),
        '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' => true,
        '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}' => !is_unsafe(c),
        _ => false,
    }
}

/// `NameChar`.
fn goes_on(c: char) -> bool {
    begins(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// The name of an instruction; `xml` is that of the declaration, which stands nowhere but at the beginning.
pub fn target<'n>(text: &'n str, odd: &mut bool) -> Cow<'n, str> {
    if text.eq_ignore_ascii_case("xml") {
        *odd = true;
        return Cow::Borrowed("_");
    }
    name(text, odd)
}

/// True for text that a CDATA section holds as it is; other text is written as text, which means the same.
pub fn is_cdata(text: &str) -> bool {
    !text.contains("]]>") && !text.contains(is_escaped)
}

/// The text of an instruction: its end does not stand in it, nor what only a reference could stand for.
pub fn instruction(text: &str) -> Cow<'_, str> {
    if !text.contains("?>") && !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("?>", "? >").replace(is_escaped, "_"))
}

/// Characters that are none in XML, or that act on terminals.
fn is_escaped(c: char) -> bool {
    is_unsafe(c) && !matches!(c, '\n' | '\t') || matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

/// True for an entity that XML has; others would be declared in a document type, which logs have none of.
pub fn is_entity(name: &str) -> bool {
    matches!(name, "lt" | "gt" | "amp" | "quot" | "apos")
}

/// Makes well-formed what instructions of a template write. True if there was a name that is none.
pub fn mend(ops: &mut [Op]) -> bool {
    let mut odd = false;
    for op in ops {
        match op {
            Op::Open { name: of, .. } | Op::Attribute(of, _) => {
                let mended = match name(of, &mut odd) {
                    Cow::Owned(mended) => Some(mended),
                    Cow::Borrowed(_) => None,
                };
                if let Some(mended) = mended {
                    *of = mended.into();
                }
            }
            Op::CData(text) if !is_cdata(text) => *op = Op::Text(std::mem::take(text)),
            Op::Entity(name) if !is_entity(name) => *op = Op::Text(format!("&{name};").into()),
            Op::Instruction(of, data) => {
                *of = target(of, &mut odd).into();
                *data = instruction(data).into();
            }
            _ => {}
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_name() {
        for good in ["Level", "auto-ns2:root", "_a.b-1", "Größe", "日本", "xmlns", "a\u{300}", "\u{FFFD}"]
        {
            let mut odd = false;
            assert!(matches!(name(good, &mut odd), Cow::Borrowed(same) if same == good) && !odd, "{good}");
        }
        for (bad, mended) in [
            ("Level/><aaa", "Level___aaa"),
            ("a b=\"c\"", "a_b__c_"),
            ("a\u{1b}[31m", "a__31m"),
            ("a\u{202e}b", "a_b"),
            ("a\u{200d}\u{feff}\u{e0001}", "a___"),
            ("1a", "_a"),
            ("-", "_"),
            ("", "_"),
            ("\u{d7}", "_"),
            ("a\0", "a_"),
        ] {
            let mut odd = false;
            assert_eq!(name(bad, &mut odd), mended, "{bad}");
            assert!(odd, "{bad}");
        }
        assert_eq!(target("XML", &mut false), "_");
    }

    #[test]
    fn nothing_ends_before_its_end() {
        assert_eq!(instruction("a?><b/>\u{1b}\r\n"), "a? ><b/>__\n");
        assert!(is_cdata("<a>\n\t&"));
        let mut ops = [
            Op::CData("a]]><b/>".into()),
            Op::CData("a\u{1}".into()),
            Op::CData("<a>".into()),
            Op::Entity("x><b/><c".into()),
            Op::Entity("lt".into()),
            Op::Instruction("xml".into(), "?><b/>".into()),
            Op::Attribute("a".into(), 1),
        ];
        assert!(mend(&mut ops));
        let [
            Op::Text(a),
            Op::Text(b),
            Op::CData(c),
            Op::Text(d),
            Op::Entity(e),
            Op::Instruction(f, g),
            Op::Attribute(..),
        ] = &ops
        else {
            panic!("{ops:?}")
        };
        let all = [&**a, b, c, d, e, f, g];
        assert_eq!(all, ["a]]><b/>", "a\u{1}", "<a>", "&x><b/><c;", "lt", "_", "? ><b/>"]);
        assert!(!mend(&mut ops));
    }
}
