//! What the knowledge base has on a function or module, in words.

use etwhy_doc::{Doc, Line};
use etwhy_knowledge::{
    category_of, driver, is_os_driver, is_security, is_system_library, ntstatus_codes, process, stack_tag,
    stack_tags, win32_error_codes,
};
use etwhy_rules::Rule;
use etwhy_table::Pattern;
use serde::Serialize;

/// What is known.
#[derive(Debug, Default, Serialize)]
pub struct Knowledge {
    /// What was asked for.
    pub name: String,
    /// The module that is meant, if one is.
    pub module: Option<ModuleFacts>,
    /// Status codes of that number or name.
    pub codes: Vec<Code>,
    /// Stack tags of it.
    pub tags: Vec<Tag>,
    /// Findings that speak of it.
    pub findings: Vec<Mention>,
}

/// A module.
#[derive(Debug, Serialize)]
pub struct ModuleFacts {
    /// File name.
    pub name: String,
    /// What it is, in a word: driver, process, library of Windows, …
    pub what: String,
    /// Who makes it.
    pub vendor: String,
    /// What it belongs to.
    pub product: String,
    /// What it is for.
    pub category: String,
    /// It is part of a security product.
    pub security: bool,
    /// Altitudes at which the driver is registered.
    pub altitudes: Vec<String>,
    /// Load order groups.
    pub groups: String,
    /// How sure that is: high, medium or low.
    pub confidence: String,
    /// Where it is from.
    pub sources: String,
}

/// A status code.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// Number in hexadecimal, as `NTSTATUS` is written, or in decimal, as Win32 errors are.
    pub code: String,
    /// Name in the headers of Windows.
    pub name: &'static str,
    /// Which kind: `NTSTATUS` or `Win32 error`.
    pub kind: &'static str,
}

/// A stack tag.
#[derive(Debug, Serialize)]
pub struct Tag {
    /// `module!function` with wildcards.
    pub pattern: String,
    /// Category.
    pub category: String,
    /// What time there goes to.
    pub meaning: String,
    /// How sure that is.
    pub confidence: String,
}

/// A finding.
#[derive(Debug, Serialize)]
pub struct Mention {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How it speaks of it: by name, or by category of the stack tag.
    pub by: String,
}

/// Most stack tags that are named for a module or pattern.
const MOST_TAGS: usize = 20;

impl Knowledge {
    /// What is known of a function, `module!function` or module.
    pub fn about(name: &str, rules: &[Rule]) -> Knowledge {
        let codes = codes(name);
        if !codes.is_empty() {
            return Knowledge { name: name.to_owned(), codes, ..Knowledge::default() };
        }
        let (module, function) = match name.split_once('!') {
            Some((module, function)) => (module, function),
            None if is_module(name) => (name, ""),
            None => ("", name),
        };
        let mut tags: Vec<Tag> = Vec::new();
        let tag = |t: &etwhy_knowledge::StackTag| Tag {
            pattern: format!("{}!{}", t.module, t.function),
            category: t.category.to_owned(),
            meaning: t.meaning.to_owned(),
            confidence: t.confidence.to_owned(),
        };
        // The tag that stacks get; without a module, those of all functions of that name.
        if !module.is_empty() && !function.is_empty() {
            tags.extend(stack_tag(module, function).map(tag));
        }
        if tags.is_empty() {
            let asked = Pattern::parse(if function.is_empty() { "*" } else { function });
            let of_module = |t: &&etwhy_knowledge::StackTag| {
                module.is_empty() || stem(t.module).eq_ignore_ascii_case(kernel(stem(module)))
            };
            let of_function = |t: &&etwhy_knowledge::StackTag| {
                asked.matches(t.function)
                    || !function.is_empty()
                        && t.function != "*"
                        && Pattern::parse(t.function).matches(function)
            };
            tags.extend(stack_tags().iter().filter(of_module).filter(of_function).take(MOST_TAGS).map(tag));
        }
        let facts = facts(module);
        let file = facts.as_ref().map_or(module, |facts| facts.name.as_str());
        let findings = mentions(file, function, &tags, rules);
        Knowledge { name: name.to_owned(), module: facts, codes, tags, findings }
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.module.is_none() && self.codes.is_empty() && self.tags.is_empty() && self.findings.is_empty()
    }
}

/// Status codes of a number (`0xC0000022`, `5`) or name (`STATUS_ACCESS_DENIED`).
fn codes(name: &str) -> Vec<Code> {
    let number = match name.strip_prefix("0x").or_else(|| name.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => name.parse::<u32>().ok(),
    };
    let is_it =
        |(code, known): &&(u32, &'static str)| Some(*code) == number || known.eq_ignore_ascii_case(name);
    let status = ntstatus_codes().iter().filter(is_it);
    let status = status.map(|(code, name)| Code {
        code: format!("{code:#010X}").replace('X', "x"),
        name,
        kind: "NTSTATUS",
    });
    let win32 = win32_error_codes().iter().filter(is_it);
    status
        .chain(win32.map(|(code, name)| Code { code: code.to_string(), name, kind: "Win32 error" }))
        .collect()
}

/// True for file names of images.
fn is_module(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    matches!(ending.as_deref(), Some("sys" | "dll" | "exe" | "drv" | "ocx" | "cpl"))
        || driver(&format!("{name}.sys")).is_some() && !name.contains("::")
        || process(name).is_some()
}

fn stem(module: &str) -> &str {
    module.rsplit_once('.').map_or(module, |(stem, _)| stem)
}

/// The kernel by the name under which stack tags have it.
fn kernel(stem: &str) -> &str {
    if ["nt", "ntkrnlmp", "ntkrnlpa"].iter().any(|n| stem.eq_ignore_ascii_case(n)) {
        "ntoskrnl"
    } else {
        stem
    }
}

fn facts(module: &str) -> Option<ModuleFacts> {
    if module.is_empty() {
        return None;
    }
    let with_ending = format!("{module}.sys");
    let fact = driver(module).or_else(|| driver(&with_ending));
    if let Some(fact) = fact {
        return Some(ModuleFacts {
            name: fact.file.to_owned(),
            what: fact.kind.words().to_owned(),
            vendor: fact.vendor.to_owned(),
            product: fact.product.to_owned(),
            category: fact.category.to_owned(),
            security: is_security(fact.category),
            altitudes: fact.altitudes().map(|a| a.to_string()).collect(),
            groups: fact.load_order_groups.to_owned(),
            confidence: fact.confidence.name().to_owned(),
            sources: fact.sources.to_owned(),
        });
    }
    if let Some(fact) = process(module) {
        return Some(ModuleFacts {
            name: fact.process.to_owned(),
            what: "program".to_owned(),
            vendor: fact.vendor.to_owned(),
            product: fact.product.to_owned(),
            category: fact.category.to_owned(),
            security: is_security(fact.category),
            altitudes: Vec::new(),
            groups: String::new(),
            confidence: fact.confidence.name().to_owned(),
            sources: fact.sources.to_owned(),
        });
    }
    let what = if is_system_library(module) {
        "library of Windows that programs call"
    } else if is_os_driver(module, "") {
        "part of Windows (kernel or driver)"
    } else {
        ""
    };
    let known = category_of(module, "");
    if what.is_empty() && known.is_none() {
        return None;
    }
    Some(ModuleFacts {
        name: module.to_owned(),
        what: what.to_owned(),
        vendor: known.map_or(if what.is_empty() { "" } else { "Microsoft" }, |k| k.vendor).to_owned(),
        product: known.map_or("", |k| k.product).to_owned(),
        category: known.map_or("", |k| k.category).to_owned(),
        security: known.is_some_and(|k| is_security(k.category)),
        altitudes: Vec::new(),
        groups: String::new(),
        confidence: known.map_or("", |k| k.confidence.name()).to_owned(),
        sources: known.map_or("", |k| k.sources).to_owned(),
    })
}

/// Findings whose text or query names the function, the module, or the category of its tag.
fn mentions(module: &str, function: &str, tags: &[Tag], rules: &[Rule]) -> Vec<Mention> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let words =
        |text: &'_ str| text.split(|c| !part(c)).map(|w| w.trim_matches('.').to_owned()).collect::<Vec<_>>();
    // A function whose name is an English word is meant by nobody who writes that word.
    let is_name = |word: &str| word.chars().skip(1).any(|c| c.is_ascii_uppercase() || c == '_');
    let means = |text: &str| -> Option<&str> {
        let words = words(text);
        let function = Some(function).filter(|f| is_name(f) && words.iter().any(|w| w == f));
        function.or_else(|| {
            Some(module).filter(|m| m.contains('.') && words.iter().any(|w| w.eq_ignore_ascii_case(m)))
        })
    };
    let mut out = Vec::new();
    for rule in rules {
        let texts = [&rule.manual, &rule.explanation, &rule.fix.all(), &rule.disproof, &rule.sql];
        let named = texts.iter().find_map(|text| means(text));
        let quoted = |tag: &&Tag| rule.sql.contains(&format!("'{}'", tag.category));
        let by = match (named, tags.iter().find(quoted)) {
            (Some(name), _) => format!("names {name}"),
            (None, Some(tag)) => format!("counts stack tag {}", tag.category),
            (None, None) => continue,
        };
        out.push(Mention { id: rule.id.clone(), title: rule.title.clone(), by });
    }
    out
}

/// What is known, at most `top` findings of it.
pub fn document(known: &Knowledge, top: usize) -> Doc {
    let mut doc = Doc::titled("What is known");
    doc.text(Line::name(&known.name));
    // A fact that nobody knows is no row.
    let mut row = |name: &str, text: String| {
        if !text.is_empty() {
            doc.note(name, text);
        }
    };
    if known.is_empty() {
        row("knowledge", "nothing is known of it; --knowledge FILE tells facts of your own".to_owned());
    }
    if let Some(module) = &known.module {
        // A product that has its maker's name is said once.
        let (product, vendor) = (module.product.to_lowercase(), module.vendor.to_lowercase());
        let of = if vendor.starts_with(&product) {
            [module.vendor.as_str(), ""]
        } else if product.starts_with(&vendor) {
            [module.product.as_str(), ""]
        } else {
            [module.product.as_str(), module.vendor.as_str()]
        };
        let security = if module.security && module.category != "security" { "security product" } else { "" };
        row("module", listed([&module.name, &module.what], ", "));
        row("made by", listed(of, ", "));
        row("category", listed([module.category.as_str(), security], ", "));
        row("altitude", module.altitudes.join(", "));
        row("load order", module.groups.clone());
        row("confidence", listed([&module.confidence, &module.sources], "; "));
    }
    for code in &known.codes {
        row("status code", format!("{} {} ({})", code.code, code.name, code.kind));
    }
    for (place, tag) in known.tags.iter().enumerate() {
        let name = if place == 0 { "stack tag" } else { "" };
        row(name, format!("{} {}: {} ({})", tag.category, tag.pattern, tag.meaning, tag.confidence));
    }
    for (place, finding) in known.findings.iter().take(top).enumerate() {
        let name = if place == 0 { "findings" } else { "" };
        row(name, format!("{}: {} ({})", finding.id, finding.title, finding.by));
    }
    if known.findings.len() > top {
        row("", format!("… {} more", known.findings.len() - top));
    }
    doc
}

/// What is known of the parts of a fact.
fn listed(parts: [&str; 2], between: &str) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_doc::terminal::Terminal;
    use etwhy_rules::builtin;

    #[test]
    fn a_driver_has_vendor_category_and_altitude() {
        let known = Knowledge::about("tedrdrv.sys", &builtin().unwrap());
        let module = known.module.unwrap();
        assert_eq!(
            (module.vendor.as_str(), module.category.as_str(), module.security),
            ("Palo Alto Networks", "EDR", true)
        );
        assert!(
            Knowledge::about("WdFilter", &[])
                .module
                .is_some_and(|m| m.altitudes.contains(&"328010".to_owned()))
        );
    }

    #[test]
    fn a_function_has_its_tag_and_findings() {
        let known = Knowledge::about("ntoskrnl.exe!ExfAcquireRundownProtection", &builtin().unwrap());
        assert_eq!(known.tags.len(), 1, "{known:?}");
        assert!(!known.tags[0].meaning.is_empty());
        assert!(known.findings.iter().any(|f| f.id == "security.rundown-contention"), "{:?}", known.findings);
        let by_name = Knowledge::about("ExfAcquireRundownProtection", &builtin().unwrap());
        assert!(!by_name.tags.is_empty());
        assert!(Knowledge::about("NoSuchFunction", &builtin().unwrap()).is_empty());
    }

    fn printed(name: &str) -> String {
        Terminal::plain(2_000).render(&document(&Knowledge::about(name, &[]), 3))
    }

    /// Everything that the knowledge base has is said in whole sentences: no word twice, nothing empty, nothing unknown.
    #[test]
    fn all_that_is_known_reads_well() {
        let drivers = etwhy_knowledge::drivers().iter().map(|fact| fact.file.to_owned());
        let programs = etwhy_knowledge::processes().iter().map(|fact| fact.process.to_owned());
        let codes = ntstatus_codes().iter().chain(win32_error_codes());
        let codes = codes.flat_map(|(code, name)| [format!("{code:#x}"), (*name).to_owned()]).step_by(7);
        let tags = stack_tags().iter().map(|tag| format!("{}!{}", tag.module, tag.function));
        let (mut seen, mut bad) = (0, Vec::new());
        for name in drivers.chain(programs).chain(codes).chain(tags) {
            seen += 1;
            let text = printed(&name);
            // The first line is what was asked for.
            for line in text.lines().skip(1) {
                let (head, line) = line.trim().split_once("  ").unwrap_or(("", line.trim()));
                let line = line.trim();
                let words: Vec<String> = line
                    .split([' ', ',', ';', '(', ')'])
                    .filter(|w| !w.is_empty())
                    .map(str::to_lowercase)
                    .collect();
                // A name of a company in Chinese, and a product that names its former maker.
                let doubled = words
                    .windows(2)
                    .any(|pair| pair[0] == pair[1] && !["zhuan", "bromium"].contains(&pair[0].as_str()));
                let empty = line.is_empty()
                    || line.contains("()")
                    || line.contains(", ,")
                    || line.ends_with([',', ';', ':']);
                if doubled || empty || words.iter().any(|word| word == "unknown") && head != "status code" {
                    bad.push(format!("{name}: {head}: {line}"));
                }
            }
            if text.contains("nothing is known") {
                bad.push(format!("{name}: nothing is known"));
            }
        }
        assert!(seen > 4_000 && bad.is_empty(), "{seen}\n{}", bad.join("\n"));
    }

    #[test]
    fn kernel_tools_and_codes_are_what_they_are() {
        assert!(printed("ntoskrnl.exe").contains("ntoskrnl.exe, kernel of Windows\n"));
        for (driver, altitude) in [("SysmonDrv.sys", "385201"), ("procmon24.sys", "385200")] {
            let text = printed(driver);
            assert!(
                text.contains("minifilter driver") && text.contains(altitude) && text.contains("medium"),
                "{text}"
            );
        }
        assert!(printed("0xC0000022").contains("0xC0000022 STATUS_ACCESS_DENIED (NTSTATUS)"));
        assert!(printed("error_access_denied").contains("5 ERROR_ACCESS_DENIED (Win32 error)"));
    }

    #[test]
    fn hostile_names_are_shown_harmlessly() {
        assert!(!printed("a\u{1b}[31m!b").contains('\u{1b}'));
    }
}
