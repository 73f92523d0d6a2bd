//! The `mod.rs` files that list the files of their folder.

use crate::repo::{Generated, Repo};
use anyhow::Result;

/// Folder of the analyses.
pub const ANALYSES: &str = "crates/model/trace/src/catalog";
/// Folder of the commands.
pub const COMMANDS: &str = "crates/faces/etwhy/src/commands";
/// Folder of the export formats.
pub const FORMATS: &str = "crates/faces/export/src/formats";
/// Folder of the profile formats.
pub const PROFILES: &str = "crates/faces/export/src/profiles";
/// Folder of the tables that are made from tables.
pub const DERIVED: &str = "crates/answers/analysis/src/derived";

/// Folder of the metrics of stacks.
pub const METRICS: &str = "crates/answers/analysis/src/operators/stacks/metrics";

/// Folder of the probes.
pub const PROBES: &str = "crates/sources/probe/src/probes";

/// Folder of the findings.
pub const FINDINGS: &str = "crates/answers/rules/findings";
/// Folder of the views.
pub const VIEWS: &str = "crates/answers/sql/views";

/// A catalogue: where it stands and how its lines read.
struct Catalogue {
    path: &'static str,
    folder: &'static str,
    /// What the files are, for the module's documentation.
    title: &'static str,
    /// In front of `mod`.
    visibility: &'static str,
    import: &'static str,
    list: &'static str,
    /// Type of the list's elements.
    element: &'static str,
    /// Before and behind a module's name in the list.
    item: (&'static str, &'static str),
}

const CATALOGUES: &[Catalogue] = &[
    Catalogue {
        path: "crates/model/trace/src/catalog/mod.rs",
        folder: ANALYSES,
        title: "The analyses",
        visibility: "pub ",
        import: "crate::analysis::AnalysisSpec",
        list: "All analyses, by file name.",
        element: "&AnalysisSpec",
        item: ("&", "::SPEC"),
    },
    Catalogue {
        path: "crates/answers/analysis/src/derived/mod.rs",
        folder: DERIVED,
        title: "Tables that are made from other tables",
        visibility: "pub ",
        import: "crate::derive::DerivedSpec",
        list: "All of them, by file name.",
        element: "&DerivedSpec",
        item: ("&", "::DERIVED"),
    },
    Catalogue {
        path: "crates/answers/analysis/src/operators/stacks/metrics/mod.rs",
        folder: METRICS,
        title: "Metrics",
        visibility: "",
        import: "super::Metric",
        list: "All metrics, by file name.",
        element: "&Metric",
        item: ("&", "::METRIC"),
    },
    Catalogue {
        path: "crates/answers/analysis/src/operators/lanes/kinds/mod.rs",
        folder: "crates/answers/analysis/src/operators/lanes/kinds",
        title: "Kinds of lanes",
        visibility: "",
        import: "super::Kind",
        list: "All kinds, by file name.",
        element: "&Kind",
        item: ("&", "::KIND"),
    },
    Catalogue {
        path: "crates/answers/sql/src/functions/mod.rs",
        folder: "crates/answers/sql/src/functions",
        title: "Table functions",
        visibility: "",
        import: "super::function::Function",
        list: "All table functions, by file name.",
        element: "&Function",
        item: ("&", "::FUNCTION"),
    },
    Catalogue {
        path: "crates/answers/sql/src/scalars/mod.rs",
        folder: "crates/answers/sql/src/scalars",
        title: "Functions of values",
        visibility: "",
        import: "super::scalar::Scalar",
        list: "All functions of values, by file name.",
        element: "&Scalar",
        item: ("&", "::SCALAR"),
    },
    Catalogue {
        path: "crates/faces/etwhy/src/commands/mod.rs",
        folder: COMMANDS,
        title: "The commands",
        visibility: "",
        import: "crate::command::Command",
        list: "All commands, by file name.",
        element: "&Command",
        item: ("&", "::COMMAND"),
    },
    Catalogue {
        path: "crates/faces/export/src/formats/mod.rs",
        folder: FORMATS,
        title: "The formats",
        visibility: "",
        import: "crate::Format",
        list: "All formats, by file name.",
        element: "&[Format]",
        item: ("", "::FORMATS"),
    },
    Catalogue {
        path: "crates/faces/hud/src/api/mod.rs",
        folder: "crates/faces/hud/src/api",
        title: "What the page may ask the server",
        visibility: "pub ",
        import: "crate::call::Endpoint",
        list: "All of it, by file name.",
        element: "&Endpoint",
        item: ("&", "::ENDPOINT"),
    },
    Catalogue {
        path: "crates/sources/probe/src/probes/mod.rs",
        folder: PROBES,
        title: "The probes",
        visibility: "",
        import: "crate::probe::Probe",
        list: "All probes, by file name.",
        element: "&Probe",
        item: ("&", "::PROBE"),
    },
    Catalogue {
        path: "crates/faces/export/src/profiles/mod.rs",
        folder: PROFILES,
        title: "The profile formats",
        visibility: "",
        import: "crate::profile::ProfileFormat",
        list: "All profile formats, by file name.",
        element: "&ProfileFormat",
        item: ("&", "::FORMAT"),
    },
];

/// All catalogues as they should be.
///
/// # Errors
/// If a folder cannot be listed.
pub fn all(repo: &Repo) -> Result<Vec<Generated>> {
    let made = |c: &Catalogue| Ok(Generated { path: c.path, text: text(c, &repo.modules(c.folder)?) });
    let listed =
        |l: &TextList| Ok(Generated { path: l.path, text: l.text(&repo.stems(l.folder, l.ending)?) });
    CATALOGUES.iter().map(made).chain(TEXT_LISTS.iter().map(listed)).collect()
}

/// A list of text files that are built into the program.
struct TextList {
    path: &'static str,
    folder: &'static str,
    /// Ending of the files, with the dot.
    ending: &'static str,
    /// The folder as seen from the list.
    from_list: &'static str,
    title: &'static str,
}

const TEXT_LISTS: &[TextList] = &[TextList {
    path: "crates/answers/sql/src/view_list.rs",
    folder: VIEWS,
    ending: ".sql",
    from_list: "../views",
    title: "The views",
}];

impl TextList {
    fn text(&self, names: &[String]) -> String {
        let TextList { ending, from_list, title, .. } = self;
        let line =
            |name: &String| format!("    (\"{name}\", include_str!(\"{from_list}/{name}{ending}\")),\n");
        let lines: String = names.iter().map(line).collect();
        format!(
            "//! {title}, one file each. Generated by `cargo xtask gen`: do not edit.\n\n\
             /// Name and text of each file.\n#[rustfmt::skip]\npub static FILES: &[(&str, &str)] = &[\n{lines}];\n"
        )
    }
}

/// `max_width` of rustfmt.toml: longer lists go on lines of their own.
const WIDTH: usize = 110;

fn text(catalogue: &Catalogue, names: &[String]) -> String {
    let Catalogue { title, visibility, import, list, element, item, .. } = catalogue;
    let modules: String = names.iter().map(|name| format!("{visibility}mod {name};\n")).collect();
    let items: Vec<String> = names.iter().map(|name| format!("{}{name}{}", item.0, item.1)).collect();
    let head = format!("pub static ALL: &[{element}] = ");
    let line = format!("{head}&[{}];", items.join(", "));
    let second = format!("    &[{}];", items.join(", "));
    let list_of_items = if line.len() <= WIDTH {
        line
    } else if second.len() <= WIDTH {
        // As rustfmt breaks it.
        format!("{}\n{second}", head.trim_end())
    } else {
        format!("{head}&[\n{}];", items.iter().map(|item| format!("    {item},\n")).collect::<String>())
    };
    format!(
        "//! {title}, one file each. Generated by `cargo xtask gen`: do not edit.\n\n{modules}\nuse {import};\n\n\
         /// {list}\n{list_of_items}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_list_is_one_line_and_a_long_one_is_many() {
        let commands = CATALOGUES.iter().find(|c| c.folder == COMMANDS).unwrap();
        let made = text(commands, &["dump".to_owned(), "why".to_owned()]);
        assert!(made.contains("\nmod dump;\nmod why;\n\nuse crate::command::Command;\n"), "{made}");
        assert!(
            made.ends_with("\npub static ALL: &[&Command] = &[&dump::COMMAND, &why::COMMAND];\n"),
            "{made}"
        );
        let some: Vec<String> = (10..15).map(|n| format!("name{n}")).collect();
        assert!(text(commands, &some).contains("] =\n    &[&name10::COMMAND, &name11::COMMAND, "));
        let many: Vec<String> = (10..30).map(|n| format!("name{n}")).collect();
        assert!(text(commands, &many).contains("= &[\n    &name10::COMMAND,\n    &name11::COMMAND,\n"));
    }
}
