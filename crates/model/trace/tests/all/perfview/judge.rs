//! Applies the rules of `fields.txt` to one field.

use super::Event;
use super::rules::Rule;
use super::tables::Tables;
use super::value::{Plain, cut, same, separated, time};
use etwhy_base::time::UNIX_EPOCH;
use std::collections::HashMap;

/// The verdict of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Equal,
    Tolerated,
    Different,
}

/// Whether PerfView's text follows from our event by `rule`. The rules:
///
/// * `of <field> <rule>`: the rule for our field of that name; without it the one with PerfView's name
/// * `equal`: as it stands
/// * `header <pid|tid|cpu>`, `constant <text>` (`-` for none): that value; `constant` only if we have no such field
/// * `values <number>=<name> ...`, `bits <number>=<name> ...`: .NET enumerations
/// * `text <text>`: that (cut) text for the field's value
/// * `unix`: seconds since 1970 as a time
/// * `part <shift> <mask>`: some of the bits; with `values ...` or `bits ...` behind it, named
/// * `bytes <field> ...`: a number with these bytes, lowest first; `words` the same with 32 bits
/// * `sum <field> ...`; `data_len`: the payload's length; `char`: a character's number
/// * `basename`: behind the last separator
/// * `drive`: a path with device names instead of drive letters
/// * `table <table> <column>`, `image <column>`, `trace <column>`: from our tables; `ms` behind it: ns as ms
/// * `seconds_as_ms`: see its reason
/// * `tolerate`: anything
pub fn judge(
    rule: &Rule,
    field: &str,
    theirs: &str,
    event: &Event,
    tables: &Tables,
    volumes: &HashMap<String, String>,
) -> Verdict {
    let mut what: Vec<&str> = rule.what.iter().map(String::as_str).collect();
    let mut name = field;
    if what[0] == "of" {
        name = what[1];
        what.drain(..2);
    }
    let get = |name: &str| event.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let ours = get(name);
    let number = ours.and_then(Plain::number);
    let any = |cells: Vec<Plain>, what: &[&str]| {
        cells.iter().any(|cell| match what {
            [] => same(theirs, cell),
            ["ms"] => cell.number().is_some_and(|ns| milliseconds(ns) == theirs),
            _ => panic!("{}", rule.line),
        })
    };
    let pid = get("ProcessId").and_then(Plain::number).unwrap_or(0);
    let equal = match what.as_slice() {
        ["equal"] => ours.is_some_and(|v| same(theirs, v)),
        ["header", id] => {
            let ours = match *id {
                "pid" => event.pid.map_or(-1, |v| v as i32),
                "tid" => event.tid.map_or(-1, |v| v as i32),
                _ => i32::from(event.cpu),
            };
            same(theirs, &Plain::Number(i128::from(ours), 32))
        }
        ["constant", text] => ours.is_none() && theirs == if *text == "-" { "" } else { text },
        ["text", number_wanted, text @ ..] => {
            number == number_wanted.parse().ok() && cut(&text.join(" ")) == theirs
        }
        ["values", names @ ..] => number.is_some_and(|n| named(names, n, false) == theirs),
        ["bits", names @ ..] => number.is_some_and(|n| named(names, n, true) == theirs),
        ["part", shift, mask] => {
            number.is_some_and(|n| same(theirs, &Plain::Number(part(n, shift, mask), 64)))
        }
        ["part", shift, mask, "values", names @ ..] => {
            number.is_some_and(|n| named(names, part(n, shift, mask), false) == theirs)
        }
        ["part", shift, mask, "bits", names @ ..] => {
            number.is_some_and(|n| named(names, part(n, shift, mask), true) == theirs)
        }
        ["unix"] => number.is_some_and(|n| time((i128::from(UNIX_EPOCH) + n * 10_000_000) as i64) == theirs),
        ["bytes", names @ ..] => packed(&get, names, 8).is_some_and(|n| same(theirs, &Plain::Number(n, 64))),
        ["words", names @ ..] => packed(&get, names, 32).is_some_and(|n| same(theirs, &Plain::Number(n, 64))),
        ["sum", names @ ..] => {
            let sum = names.iter().filter_map(|n| get(n)).filter_map(Plain::number).sum();
            same(theirs, &Plain::Number(sum, 64))
        }
        ["data_len"] => same(theirs, &Plain::Number(event.data_len as i128, 64)),
        ["char"] => {
            matches!(ours, Some(Plain::Text(c)) if c.chars().next().map(|c| (c as u32).to_string()) == Some(theirs.to_owned()))
        }
        ["basename"] => {
            matches!(ours, Some(Plain::Text(path)) if cut(path.rsplit('\\').next().unwrap_or("")) == theirs)
        }
        ["drive"] => matches!(ours, Some(Plain::Text(path)) if cut(&with_drive(path, volumes)) == theirs),
        ["table", name, column, rest @ ..] => any(tables.at(name, event.ns, event.cpu, column), rest),
        ["image", column, rest @ ..] => {
            let base = get("ImageBase").and_then(Plain::number).unwrap_or(0);
            any(tables.image(pid as i64, base as u64 as i64, column), rest)
        }
        ["trace", column] => any(vec![tables.trace(column)], &[]),
        ["seconds_as_ms"] => {
            // 2021-09-09T14:59:35.799Z: PerfView's milliseconds are the seconds again.
            matches!(ours, Some(Plain::Text(iso)) if cut(&format!(
                "{} {}.{:0>3}000", iso[2..10].replace('-', "/"), &iso[11..19], &iso[17..19]
            )) == theirs)
        }
        ["tolerate"] => return Verdict::Tolerated,
        _ => panic!("fields.txt: no such rule: {}", rule.line),
    };
    if equal { Verdict::Equal } else { Verdict::Different }
}

fn part(number: i128, shift: &str, mask: &str) -> i128 {
    let parse = |t: &str| super::value::parse_number(t).unwrap_or_else(|| panic!("{t}"));
    number >> parse(shift) & parse(mask)
}

fn packed<'p>(get: &impl Fn(&str) -> Option<&'p Plain>, names: &[&str], bits: usize) -> Option<i128> {
    names.iter().enumerate().try_fold(0, |sum, (i, name)| Some(sum | get(name)?.number()? << (bits * i)))
}

/// As .NET shows enumerations: the name, or the names of all bits with commas between, or the number.
fn named(names: &[&str], number: i128, bits: bool) -> String {
    let list: Vec<(i128, &str)> = names
        .iter()
        .map(|n| n.split_once('=').unwrap_or_else(|| panic!("{n}")))
        .map(|(value, name)| (super::value::parse_number(value).unwrap(), name))
        .collect();
    if let Some((_, name)) = list.iter().find(|(value, _)| *value == number) {
        return cut(name);
    }
    if bits {
        // The larger value first, as .NET does: 3=ReadWrite goes before 1=Read; shown in rising order.
        let mut rest = number;
        let mut set = Vec::new();
        let mut descending = list;
        descending.sort();
        for (value, name) in descending.into_iter().rev().filter(|(value, _)| *value != 0) {
            if rest & value == value {
                rest &= !value;
                set.insert(0, name);
            }
        }
        if rest == 0 {
            return cut(&set.join(", "));
        }
    }
    number.to_string()
}

fn milliseconds(ns: i128) -> String {
    let us = (ns + 500) / 1000;
    format!("{}.{:03}", separated(us / 1000), us % 1000)
}

/// Device names by drive letters, as the trace's own volume records say.
fn with_drive(path: &str, volumes: &HashMap<String, String>) -> String {
    let longest = volumes.iter().filter(|(nt, _)| path.starts_with(*nt)).max_by_key(|(nt, _)| nt.len());
    longest.map_or(path.to_owned(), |(nt, dos)| format!("{dos}{}", &path[nt.len()..]))
}
