//! What travels, in TypeScript: `web/hud/wire/types.ts` is made of the structs here, and this test says whether it is fresh.

use crate::{api, part, stacks};
use std::collections::BTreeMap;
use ts_rs::{Config, TS, TypeVisitor};

/// Declarations by name, with all that they name.
struct Types {
    config: Config,
    declared: BTreeMap<String, String>,
}

impl TypeVisitor for Types {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // What has no file of its own is built into TypeScript.
        if T::output_path().is_none() || self.declared.contains_key(&T::ident(&self.config)) {
            return;
        }
        let docs = T::docs().unwrap_or_default();
        self.declared.insert(T::ident(&self.config), format!("{docs}export {}\n", T::decl(&self.config)));
        T::visit_dependencies(self);
    }
}

impl Types {
    fn name<T: TS + 'static>(&mut self) -> String {
        self.visit::<T>();
        T::name(&self.config)
    }
}

/// The file: types, and which question is answered with which.
fn text() -> String {
    let mut types = Types {
        config: Config::new().with_large_int("number").with_array_tuple_limit(4),
        declared: BTreeMap::new(),
    };
    let answers = [
        ("diff", types.name::<etwhy_diff::Diff>()),
        ("identity", types.name::<api::identity::Identities>()),
        ("interrupts", types.name::<api::interrupts::Interrupts>()),
        // Of the program around the server.
        ("knowledge", "unknown".to_owned()),
        ("open", types.name::<api::session::TraceInfo>()),
        ("path", types.name::<api::path::CriticalPath>()),
        ("report", "Report".to_owned()),
        ("schema", types.name::<api::schema::Schema>()),
        ("select", types.name::<api::select::Selection>()),
        ("session", types.name::<api::session::Session>()),
        ("switch", types.name::<api::switch::SwitchDetail>()),
        ("thread_states", types.name::<api::thread_states::ThreadStates>()),
    ];
    let facts = [
        ("butterfly", types.name::<api::butterfly::Facts>()),
        ("figures", types.name::<api::sql::SqlFacts>()),
        ("functions", types.name::<api::functions::Facts>()),
        ("lanes", types.name::<api::lanes::LanesFacts>()),
        ("pivot", types.name::<api::pivot::PivotFacts>()),
        ("rows", types.name::<api::rows::RowsFacts>()),
        ("sql", types.name::<api::sql::SqlFacts>()),
        ("stack_chart", types.name::<api::stack_chart::Facts>()),
        ("states", types.name::<api::states::StatesFacts>()),
        ("tree", types.name::<api::tree::Facts>()),
    ];
    types.visit::<part::Part>();
    types.visit::<etwhy_analysis::interrupts::Sums>();
    types.visit::<stacks::Question>();
    types.visit::<etwhy_analysis::pivot::Pivot>();
    types.visit::<api::thread_states::Sort>();
    let map = |doc: &str, name: &str, pairs: &[(&str, String)]| {
        let lines: String = pairs.iter().map(|(name, of)| format!("  {name}: {of};\n")).collect();
        format!("/** {doc} */\nexport interface {name} {{\n{lines}}}\n")
    };
    let mut parts = vec![
        "// Generated from the structs of crates/faces/hud by its test `wire`: do not edit.\n\nimport type { Report } from \"../../src/model.ts\";\n".to_owned(),
        map("Answers in JSON, by question.", "Answers", &answers),
        map("Facts about the rows of answers in Arrow, by question.", "Facts", &facts),
    ];
    parts.extend(types.declared.into_values());
    // A comment of one line on one line.
    parts.join("\n").replace("/**\n * ", "/** ").replace("\n */\n", " */\n")
}

/// `BLESS=1` writes the file.
#[test]
fn types_of_the_page_are_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../web/hud/wire/types.ts");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, text()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default().replace('\r', "");
    assert!(
        found == text(),
        "web/hud/wire/types.ts is stale: BLESS=1 cargo test -p etwhy-hud --lib wire::, then build the page"
    );
}
