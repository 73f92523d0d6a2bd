use crate::image::Origin;
use crate::{InlineRange, ModuleBuilder};

#[test]
fn functions_publics_and_gaps() {
    let mut builder = ModuleBuilder::new();
    builder.function(0x2000, 0x10, "second");
    builder.function(0x1000, 0x100, "first");
    builder.function(0x1000, 0x80, "folded");
    builder.public(0x1800, "public");
    builder.public(0x3000, "last");
    builder.end_of_publics(0x4000);
    let module = builder.finish(Origin::Breakpad, "");
    let at = |rva| module.lookup(rva).map(|s| (s.function.plain, s.offset));
    assert_eq!(at(0), None);
    assert_eq!(at(0xFFF), None);
    assert_eq!(at(0x1000), Some(("first", 0)));
    assert_eq!(at(0x10FF), Some(("first", 0xFF)));
    assert_eq!(at(0x1100), None);
    assert_eq!(at(0x1900), Some(("public", 0x100)));
    assert_eq!(at(0x2000), Some(("second", 0)));
    assert_eq!(at(0x2010), None, "a public name ends where a function starts");
    assert_eq!(at(0x3FFF), Some(("last", 0xFFF)));
    assert_eq!(at(0x4000), None, "and at the end of its section");
    assert_eq!((module.functions(), module.publics()), (2, 2));
    assert!(module.memory() > 0);
}

#[test]
fn inlined_calls_come_innermost_first() {
    let mut builder = ModuleBuilder::new();
    builder.file(1, "a.c");
    builder.file(2, "b.h");
    builder.inline_origin(7, "outer_inline");
    builder.inline_origin(8, "inner_inline");
    builder.function(0x100, 0x100, "f");
    let range = InlineRange { depth: 1, call_line: 21, call_file: 2, origin: 8, start: 0x120, size: 0x10 };
    assert!(builder.inline(range));
    let range = InlineRange { depth: 0, call_line: 11, call_file: 1, origin: 7, start: 0x110, size: 0x40 };
    assert!(builder.inline(range));
    assert!(builder.line(0x110, 0x10, 12, 1));
    assert!(builder.line(0x120, 0x10, 33, 2));
    assert!(builder.line(0x100, 0x10, 10, 9));
    let module = builder.finish(Origin::Breakpad, "");
    let places = |rva| -> Vec<(&str, Option<&str>, Option<u32>, bool)> {
        let places = module.lookup(rva).unwrap().places;
        places.map(|p| (p.name.plain, p.file, p.line, p.inlined)).collect()
    };
    assert_eq!(
        places(0x125),
        [
            ("inner_inline", Some("b.h"), Some(33), true),
            ("outer_inline", Some("b.h"), Some(21), true),
            ("f", Some("a.c"), Some(11), false)
        ]
    );
    assert_eq!(places(0x130), [("outer_inline", None, None, true), ("f", Some("a.c"), Some(11), false)]);
    assert_eq!(places(0x100), [("f", None, Some(10), false)]);
    let symbol = module.lookup(0x115).unwrap();
    assert_eq!((symbol.file, symbol.line), (Some("a.c"), Some(12)));
    assert_eq!(module.lookup(0x135).unwrap().line, None);
}

#[test]
fn rows_with_lines_of_their_own() {
    let mut builder = ModuleBuilder::new();
    let [a, b, f, inner] = ["a.c", "b.h", "f", "inner"].map(|n| builder.name(n));
    builder.ranked_function(0x100, 0x100, f, 0);
    builder.named_line(0x100, 0x100, 5, a);
    builder.inline_row([0, 0x110, 0x10, inner, b, 77]);
    let module = builder.finish(Origin::Pdb, "");
    let places: Vec<_> =
        module.lookup(0x118).unwrap().places.map(|p| (p.name.plain, p.file, p.line)).collect();
    assert_eq!(places, [("inner", Some("b.h"), Some(77)), ("f", Some("a.c"), Some(5))]);
    assert_eq!(module.lookup(0x118).unwrap().line, Some(77));
    assert_eq!(module.lookup(0x120).unwrap().line, Some(5));
}

#[test]
fn lines_without_a_function_are_refused() {
    let mut builder = ModuleBuilder::new();
    assert!(!builder.line(0, 1, 1, 1));
    assert!(builder.finish(Origin::Breakpad, "").lookup(0).is_none());
}
