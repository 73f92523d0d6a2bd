//! Options of the same name take the same values and mean the same in every command.

use crate::command_line;
use clap::{Arg, Command};

/// What options are called that mean the same everywhere: their short form, their value (none: a switch), how their help begins.
const GRAMMAR: [(&str, Option<char>, &[&str], &str); 10] = [
    ("json", None, &[], "Print JSON"),
    ("md", None, &["FILE"], "Write Markdown to FILE, or print it"),
    ("html", None, &["FILE"], "Write one HTML page"),
    ("format", None, &["FORMAT"], "Format of "),
    ("output", Some('o'), &["FILE", "DIR", "DB"], "Write "),
    ("from", None, &["TIME"], "Start of the time range: 1.5s after the start"),
    ("to", None, &["TIME"], "End of the time range (exclusive)"),
    ("top", None, &["N"], "At most N "),
    ("all", None, &[], "Also "),
    ("quiet", Some('q'), &[], ""),
];

/// Names under which two commands have different things: `dump --columns LIST` and `evtx --columns`, `record --print PROFILES` and
/// `synth --print`.
const OWN: [&str; 2] = ["columns", "print"];

/// All commands with their names, those of commands too.
fn commands(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("{name} {}", sub.get_name());
        commands(sub, &name, found);
        found.push((name, sub.clone()));
    }
}

fn all() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    let mut line = command_line();
    line.build();
    commands(&line, "etwhy", &mut found);
    assert!(found.len() > 30, "{}", found.len());
    found
}

fn value(arg: &Arg) -> Vec<String> {
    let names = arg.get_value_names().unwrap_or_default();
    if arg.get_action().takes_values() { names.iter().map(|n| n.to_string()).collect() } else { Vec::new() }
}

fn help(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn the_grammar_holds_in_every_command() {
    let mut wrong = Vec::new();
    for (name, command) in all() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            let Some((_, short, values, begins)) = GRAMMAR.iter().find(|(known, ..)| *known == long) else {
                continue;
            };
            let strace = name == "etwhy strace" && long == "top";
            let same_short = arg.get_short() == *short || (strace && arg.get_short() == Some('n'));
            let value = value(arg);
            let same_value = match value.as_slice() {
                [] => values.is_empty(),
                [one] => values.contains(&one.as_str()),
                _ => false,
            };
            if !same_short || !same_value || !help(arg).starts_with(begins) {
                wrong.push(format!("{name} --{long} {value:?} {:?}: {}", arg.get_short(), help(arg)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever chooses a format can also print JSON and write to a file; times come in pairs under both names.
#[test]
fn options_that_belong_together_come_together() {
    for (name, command) in all() {
        let find = |long: &str| command.get_arguments().find(|arg| arg.get_long() == Some(long));
        if find("format").is_some() {
            assert!(find("json").is_some() && find("output").is_some(), "{name}");
        }
        let aliases = |long: &str| find(long).and_then(Arg::get_visible_aliases);
        assert_eq!(find("from").is_some(), find("to").is_some(), "{name}");
        if find("from").is_some() {
            assert_eq!(
                (aliases("from"), aliases("to")),
                (Some(vec!["since"]), Some(vec!["until"])),
                "{name}"
            );
        }
        let verbose = find("verbose").unwrap_or_else(|| panic!("{name} has no -v"));
        assert!(verbose.get_short() == Some('v') && help(verbose).contains("ETWHY_LOG"), "{name}");
    }
}

/// An option of one name is a switch in all commands or takes a value in all.
#[test]
fn a_name_is_one_kind_of_option() {
    let mut seen: Vec<(String, bool, String)> = Vec::new();
    let mut wrong = Vec::new();
    for (name, command) in all() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long().filter(|long| !OWN.contains(long)) else { continue };
            let takes = arg.get_action().takes_values();
            match seen.iter().find(|(known, ..)| known == long) {
                Some((_, known, first)) if *known != takes => {
                    wrong.push(format!("--{long}: {first} and {name}"))
                }
                Some(_) => {}
                None => seen.push((long.to_owned(), takes, name.clone())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
