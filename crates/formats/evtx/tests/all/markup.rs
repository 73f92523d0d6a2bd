//! XML stays XML whatever a log has in names, sections and instructions, and in whatever order.

use etwhy_evtx::binxml::{Decoder, Fault};

const CHUNK: usize = 65_536;
/// Where the record begins in the chunk.
const AT: usize = 512;
const HEADER: [u8; 4] = [0x0F, 1, 1, 0];

/// Binary XML that stands at a place of the chunk, in a definition or without a template.
struct Body {
    at: usize,
    in_definition: bool,
    bytes: Vec<u8>,
}

impl Body {
    fn utf16(&mut self, text: &str) {
        self.bytes.extend((text.encode_utf16().count() as u16).to_le_bytes());
        self.bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    }

    fn name(&mut self, name: &str) {
        let at = self.at + self.bytes.len() + 4;
        self.bytes.extend((at as u32).to_le_bytes());
        self.bytes.extend([0; 6]);
        self.utf16(name);
        self.bytes.extend([0, 0]);
    }

    fn open(&mut self, name: &str) {
        self.bytes.push(1);
        if self.in_definition {
            self.bytes.extend([0xFF, 0xFF]);
        }
        self.bytes.extend([0; 4]);
        self.name(name);
    }

    fn with_name(&mut self, token: u8, name: &str) {
        self.bytes.push(token);
        self.name(name);
    }

    fn with_text(&mut self, token: &[u8], text: &str) {
        self.bytes.extend(token);
        self.utf16(text);
    }
}

/// The XML of a record for terminals and as it is, and what was said of it; nothing if its definition is none.
fn written(make: &dyn Fn(&mut Body), in_definition: bool) -> Option<[(String, Result<(), Fault>); 2]> {
    let mut whole = HEADER.to_vec();
    let definition = AT + HEADER.len() + 10;
    let mut body = Body { at: AT, in_definition, bytes: HEADER.to_vec() };
    if in_definition {
        body.at = definition + 24;
    }
    make(&mut body);
    body.bytes.push(0);
    if in_definition {
        whole.extend([0x0C, 1]);
        whole.extend(b"GGGG");
        whole.extend((definition as u32).to_le_bytes());
        whole.extend([0; 4]);
        whole.extend(b"GGGGGGGGGGGGGGGG");
        whole.extend((body.bytes.len() as u32).to_le_bytes());
        whole.extend(body.bytes);
        whole.extend([0; 4]);
    } else {
        whole = body.bytes;
    }
    let mut chunk = vec![0; CHUNK];
    chunk[AT..AT + whole.len()].copy_from_slice(&whole);
    let mut decoder = Decoder::default();
    decoder.next_chunk();
    let event = decoder.event(&chunk, AT, AT + whole.len()).ok()?;
    let (mut safe, mut plain) = (Vec::new(), Vec::new());
    let (a, b) = (decoder.push_xml::<true>(&event, &mut safe), decoder.push_xml::<false>(&event, &mut plain));
    Some([(String::from_utf8(safe).unwrap(), a), (String::from_utf8(plain).unwrap(), b)])
}

#[test]
fn names_and_sections_plant_no_elements() {
    for (name, mended) in [("Level", "Level"), ("Level/><aaa", "Level___aaa"), ("a\u{1b}\u{202e}b", "a__b")] {
        // Instructions and sections, and what records without a template usually have.
        for usual in [false, true] {
            let make = |body: &mut Body| {
                body.open(name);
                body.with_name(6, name);
                body.with_text(&[5, 1], "\"><b/>");
                body.bytes.push(2);
                body.with_text(&[5, 1], "<b/>");
                if !usual {
                    body.with_text(&[7], "]]><b/>\u{1b}");
                    body.with_name(0x0A, name);
                    body.with_text(&[0x0B], "?><b/>\u{1b}");
                    body.with_name(9, name);
                }
                body.bytes.push(4);
            };
            for in_definition in [false, true] {
                for (xml, said) in written(&make, in_definition).unwrap() {
                    let expected = if name == mended { Ok(()) } else { Err(Fault::OddNames) };
                    assert_eq!(said, expected, "{xml}");
                    let document =
                        roxmltree::Document::parse(&xml).unwrap_or_else(|why| panic!("{why}: {xml}"));
                    let root = document.root_element();
                    assert_eq!(root.tag_name().name(), mended, "{xml}");
                    assert_eq!(root.attribute(mended), Some("\"><b/>"), "{xml}");
                    assert!(root.children().all(|child| !child.is_element()), "{xml}");
                    assert!(!xml.contains('\u{1b}'), "{xml}");
                }
            }
        }
    }
}

#[test]
fn tokens_in_any_order_are_xml() {
    let (mut state, mut all) = (1u64, 0);
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for round in 0..4000 {
        let tokens: Vec<u64> = (0..1 + next(12)).map(|_| next(11)).collect();
        let make = |body: &mut Body| {
            for (n, token) in tokens.iter().enumerate() {
                // XML has no two attributes of one name.
                let name = format!("a{n}><b c=\"");
                match token {
                    0 | 1 => body.open(&name),
                    2 | 3 => body.with_name(6, &name),
                    4 => body.bytes.push(2),
                    5 => body.bytes.push(3),
                    6 => body.bytes.push(4),
                    7 => body.with_text(&[5, 1], " d=\"<b>"),
                    8 => body.with_text(&[7], "]]>"),
                    9 => body.with_name(9, &name),
                    _ => {
                        body.with_name(0x0A, &name);
                        body.with_text(&[0x0B], "?>");
                    }
                }
            }
        };
        let both = written(&make, round % 2 == 0);
        all += usize::from(both.is_some());
        for (xml, _) in both.into_iter().flatten() {
            let whole = format!("<r>{xml}</r>");
            let document = roxmltree::Document::parse(&whole).unwrap_or_else(|why| panic!("{why}: {whole}"));
            let elements = document.descendants().filter(roxmltree::Node::is_element).skip(1);
            let names: Vec<&str> = elements.map(|element| element.tag_name().name()).collect();
            assert!(names.iter().all(|name| name.ends_with("__b_c__")), "{whole}");
        }
    }
    assert!(all > 3000, "{all}");
}
