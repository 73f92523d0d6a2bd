#![allow(clippy::unwrap_used)]
use super::*;

fn render(message: &str, inserts: &[&str]) -> String {
    let mut out = String::new();
    EventText::parse(message).render(inserts, &mut out);
    out
}

fn with(parameters: &[(u32, &str)], sids: bool, message: &str, inserts: &[&str]) -> String {
    let parameters = Parameters::new(parameters.iter().map(|(id, text)| (*id, (*text).to_owned())));
    let text =
        EventText::compile(message, Arc::new(parameters), Arc::from(Vec::new()), sids, Origin::default());
    let mut out = String::new();
    text.render(inserts, &mut out);
    out
}

#[test]
fn escape_sequences() {
    // Expected by hand from Microsoft's list of escape sequences.
    assert_eq!(render("a%nb%tc%bd%%e%.f%!g% h%zi\r\n", &[]), "a\nb\tc d%e.f!g hzi");
    assert_eq!(render("one\r\ntwo\r\n\r\n", &[]), "one\ntwo");
    assert_eq!(render("prompt: %0 never shown", &[]), "prompt: ");
    assert_eq!(render("a%rb", &[]), "a\rb");
    assert_eq!(render("100%", &[]), "100%");
    assert_eq!(render("", &[]), "");
    assert_eq!(render("é%né%ü", &[]), "é\néü");
}

#[test]
fn inserts() {
    assert_eq!(render("%2 before %1%n", &["x", "y"]), "y before x");
    let many: Vec<String> = (1..=99).map(|n| format!("v{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(render("%10 %1%% %99 %100", &many), "v10 v1% v99 v100");
    assert_eq!(render("%1 and %3", &["x"]), "x and %3");
    // What is inserted is not a message: nothing in it is an escape sequence.
    assert_eq!(render("%1", &["50%n %2 %%"]), "50%n %2 %%");
}

#[test]
fn formats() {
    // FormatMessage's own example: arguments 4, 2, "Bill", "Bob", 6, "Bill".
    let arguments = ["4", "2", "Bill", "Bob", "6", "Bill"];
    assert_eq!(render("%1!*.*s! %4 %5!*s!", &arguments), "  Bi Bob   Bill");
    assert_eq!(render("%1!08X!|%1!x!|%1!#x!", &["3735928559"]), "DEADBEEF|deadbeef|0xdeadbeef");
    assert_eq!(render("%1!s!%2!S!", &["a", "b"]), "ab");
    assert_eq!(render("%1!5d!|%1!-5d!|%1!05d!|%1!.4u!|%1!+d!", &["42"]), "   42|42   |00042|0042|+42");
    assert_eq!(render("%1!d! %1!u! %1!08x!", &["-2"]), "-2 4294967294 fffffffe");
    assert_eq!(render("%1!I64u! %1!lx!", &["18446744073709551614"]), "18446744073709551614 fffffffe");
    assert_eq!(render("%1!I64u! %1!u!", &["4294967297"]), "4294967297 4294967297");
    assert_eq!(render("%1!05d!", &["-42"]), "-0042");
    // A text where a number is asked for stays, and an unknown format is text.
    assert_eq!(render("%1!08X!", &["abc"]), "     abc");
    assert_eq!(render("%1!q! %1! done", &["x"]), "x!q! x! done");
    assert_eq!(render("%2!8d!", &["x"]), "%2");
    assert_eq!(render("%1!999999999s!", &["x"]).len(), 1024);
}

#[test]
fn parameters() {
    let known =
        [(1833, "Yes\r\n"), (1842, "%%1833 and %%1843%n"), (1843, "No%0"), (5, "Access is denied.\r\n")];
    assert_eq!(with(&known, false, "Elevated: %1", &["%%1833"]), "Elevated: Yes");
    assert_eq!(with(&known, false, "%1|%2", &["%%1842", "a %%1843 b %%9999"]), "Yes and No|a No b %%9999");
    assert_eq!(with(&known, false, "%%1833 %%7", &[]), "Yes %7");
    assert_eq!(
        with(&known, false, "%1 %2", &["%%2147942405", "%%-2147024891"]),
        "Access is denied. Access is denied."
    );
}

#[test]
fn parameters_that_name_themselves_end() {
    let circle = [(1, "a%%2%%2"), (2, "b%%1%%1")];
    let text = with(&circle, false, "%1", &["%%1"]);
    assert!(text.starts_with("ab") && text.len() < 4096, "{text}");
}

/// A text of a hostile file may name the longest parameter or value as often as it has room for.
#[test]
fn no_message_takes_all_memory() {
    let long = "x".repeat(60_000);
    let often = "%%1".repeat(10_000);
    assert!(with(&[(1, &long)], false, &often, &[]).len() < 4 << 20);
    let rendered = render(&"%1".repeat(16_000), &[&long]);
    assert!(rendered.len() < 4 << 20 && rendered.ends_with('…'));
    let mut all = vec![(1, long)];
    all.extend((2..4000).map(|id| (id, often.clone())));
    let texts = Parameters::new(all);
    let sum: usize = (2..4000).filter_map(|id| texts.get(id)).map(str::len).sum();
    assert!(sum < 256 << 20, "{sum}");
}

#[test]
fn security_identifiers() {
    let sids =
        ["S-1-5-18", "%{S-1-5-32-544}", "S-1-5-21-7-8-9-500", "%{bf967a86-0de6-11d0-a285-00aa003049e2}"];
    assert_eq!(
        with(&[], true, "%1|%2|%3|%4", &sids),
        "SYSTEM|BUILTIN\\Administrators|S-1-5-21-7-8-9-500|%{bf967a86-0de6-11d0-a285-00aa003049e2}"
    );
    assert_eq!(with(&[], false, "%1|%2", &sids), "S-1-5-18|S-1-5-32-544");
}

#[test]
fn maps() {
    let field = |bits, values: &[(u32, &str)]| FieldInfo {
        name: "Kind".into(),
        in_type: InType(8),
        out_type: OutType(8),
        map: Some(Arc::new(ValueMap {
            name: "KindMap".into(),
            bits,
            values: values.iter().map(|(v, t)| (*v, (*t).to_owned())).collect(),
        })),
    };
    let fields = vec![field(false, &[(0, "None"), (2, "Two")]), field(true, &[(1, "Read"), (2, "Write")])];
    let text = EventText::compile("%1 %2", Arc::default(), fields.into(), false, Origin::default());
    let render = |inserts: &[&str]| {
        let mut out = String::new();
        text.render(inserts, &mut out);
        out
    };
    assert_eq!(render(&["2", "3"]), "Two Read|Write");
    assert_eq!(render(&["7", "9"]), "7 Read|0x8");
    assert_eq!(render(&["0", "4"]), "None 4");
}
