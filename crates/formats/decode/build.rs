//! Makes from the layout files of `src/kernel/layouts` what the crate includes: their list, and a constant for each kernel
//! event, so that a name that no layout has does not compile.
#![forbid(unsafe_code)]

#[path = "src/kernel/lines.rs"]
mod lines;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A group of events.
struct Group {
    number: u8,
    name: String,
    /// Hook ids by type, where they are not made of group and type.
    hooks: BTreeMap<u8, u16>,
    /// Types and their documentation by identifier.
    events: BTreeMap<String, (u8, String)>,
    /// Names by type, of the newest version that has one.
    names: BTreeMap<u8, (u16, String)>,
}

fn main() -> Result<()> {
    let folder = Path::new("src/kernel/layouts");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=src/kernel/lines.rs");
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        names.push(
            entry?.file_name().into_string().map_err(|name| format!("{}: not a name", name.display()))?,
        );
    }
    // The others name values and bits.
    names.retain(|name| name.ends_with(".txt") && !matches!(name.as_str(), "enums.txt" | "keywords.txt"));
    names.sort();
    let (mut files, mut events) = (String::from("&[\n"), String::new());
    for name in &names {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path)?;
        // The text, not its path: clones that share a target folder share this file.
        writeln!(files, "    LayoutFile {{ name: {name:?}, text: {text:?} }},")?;
        for group in groups(&text).map_err(|why| format!("{}: {why}", path.display()))? {
            write_group(&mut events, &group)?;
        }
    }
    files.push_str("]\n");
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("layout_files.rs"), files)?;
    std::fs::write(Path::new(&out).join("events.rs"), events)?;
    Ok(())
}

fn groups(text: &str) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut in_group = false;
    for line in lines::logical_lines(text) {
        let (word, rest) = line.split_once(' ').ok_or("one word only")?;
        if matches!(word, "group" | "class") {
            in_group = word == "group";
            let mut words = rest.split(' ');
            if let (true, Some(number), Some(name)) = (in_group, words.next(), words.next()) {
                groups.push(Group {
                    number: u8::from_str_radix(number, 16)?,
                    name: name.to_owned(),
                    hooks: BTreeMap::new(),
                    events: BTreeMap::new(),
                    names: BTreeMap::new(),
                });
            }
            continue;
        }
        // Classes have GUIDs instead of numbers.
        let Some(group) = groups.last_mut().filter(|_| in_group) else { continue };
        match word {
            "hook" => {
                let (hook, ty) = rest.split_once(' ').ok_or("not a hook")?;
                group.hooks.insert(ty.parse()?, u16::from_str_radix(hook, 16)?);
            }
            "name" => {
                let (ty, name) = rest.split_once(' ').ok_or("not a name")?;
                group.add(name, ty.parse()?, 0, "Layout not known.")?;
            }
            types => {
                let (start, layout) = rest.split_once('|').ok_or("no class")?;
                let layout = layout.split_once('|').map_or("", |(_, fields)| fields).trim();
                let (types, version, names) = lines::head(types, start.trim())?;
                for (ty, name) in types.into_iter().zip(names) {
                    group.add(
                        name.trim_start_matches('*'),
                        ty,
                        version,
                        &format!("Version {version}: `{layout}`"),
                    )?;
                }
            }
        }
    }
    Ok(groups)
}

impl Group {
    fn add(&mut self, name: &str, ty: u8, version: u16, layout: &str) -> Result<()> {
        let newest = self.names.entry(ty).or_default();
        if newest.0 <= version {
            *newest = (version, name.trim().to_owned());
        }
        let identifier = name.trim().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let (known, doc) = self.events.entry(identifier).or_insert((ty, format!("Type {ty}.")));
        if *known != ty {
            return Err(format!("{}/{name} is type {known} and type {ty}", self.name).into());
        }
        Ok(write!(doc, "\n    ///\n    /// {layout}")?)
    }
}

fn write_group(out: &mut String, group: &Group) -> Result<()> {
    let Group { number, name, .. } = group;
    writeln!(out, "/// Events of group {number:#04x}, {name}.\n#[derive(Debug)]\npub enum {name} {{}}\n")?;
    writeln!(out, "#[allow(non_upper_case_globals, clippy::match_single_binding)]\nimpl {name} {{")?;
    writeln!(out, "    /// Number of the group.\n    pub const GROUP: u8 = {number:#04x};")?;
    for (event, (ty, doc)) in &group.events {
        let hook = group.hooks.get(ty).copied().unwrap_or(u16::from_be_bytes([*number, *ty]));
        writeln!(
            out,
            "    /// {doc}\n    pub const {event}: KernelEvent = \
             KernelEvent {{ group: {number:#04x}, opcode: {ty}, hook: {hook:#06x} }};"
        )?;
    }
    writeln!(out, "    /// The name of a type, without its group; empty if it has none.")?;
    writeln!(out, "    pub const fn name(opcode: u8) -> &'static str {{\n        match opcode {{")?;
    for (ty, (_, name)) in &group.names {
        writeln!(out, "            {ty} => {name:?},")?;
    }
    writeln!(out, "            _ => \"\",\n        }}\n    }}\n}}\n")?;
    Ok(())
}
