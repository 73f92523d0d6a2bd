//! Procedures and inlined calls as `llvm-pdbutil` prints them: a third opinion.

use super::tools;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One procedure.
pub struct Procedure {
    pub section: u16,
    pub offset: u32,
    pub size: u32,
    pub sites: Vec<Site>,
}

/// One inlined call.
pub struct Site {
    pub depth: usize,
    /// Line at which the inlined function begins.
    pub line: u32,
    steps: Vec<Step>,
}

/// One annotation: changes of code offset and line, and whether it ends a range.
struct Step {
    code: u32,
    line: i32,
    ends: bool,
    starts: bool,
}

impl Site {
    /// The line at an offset in the procedure, if the call is there.
    pub fn line_at(&self, offset: u32) -> Option<u32> {
        let (mut code, mut line, mut open) = (0, self.line, None);
        for step in &self.steps {
            if (step.starts || step.ends)
                && open.is_some_and(|(from, _)| from <= offset && offset < code + step.code)
            {
                return open.map(|(_, line)| line);
            }
            code += step.code;
            line = line.wrapping_add_signed(step.line);
            if step.starts {
                open = Some((code, line));
            } else if step.ends {
                open = None;
            }
        }
        None
    }

    /// The line that LLVM 14 gives there: `NativeInlineSiteSymbol::getLineOffset` applies annotations until one is at the
    /// offset or behind it, and so takes the line of the range that follows.
    pub fn line_of_llvm_14(&self, offset: u32) -> u32 {
        let (mut code, mut line) = (0, self.line);
        for step in &self.steps {
            code += step.code;
            line = line.wrapping_add_signed(step.line);
            if code >= offset {
                break;
            }
        }
        line
    }
}

/// All procedures of a PDB, with their inlined calls in the order of the file.
pub fn procedures(pdb: &Path) -> Vec<Procedure> {
    let inlinees = inlinees(pdb);
    let text = tools::run(Command::new("llvm-pdbutil").args(["dump", "--symbols"]).arg(pdb));
    let mut found: Vec<Procedure> = Vec::new();
    let (mut module, mut depth, mut in_procedure, mut in_site) = (0u32, 0usize, false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(number) = trimmed.strip_prefix("Mod ") {
            module = number.split(' ').next().unwrap().parse().unwrap();
        } else if let Some((_, record)) = trimmed.split_once(" | S_") {
            in_procedure = record.starts_with("GPROC32") || record.starts_with("LPROC32");
            in_site = record.starts_with("INLINESITE ");
            if in_procedure {
                depth = 0;
            } else if record.starts_with("INLINESITE_END") {
                depth -= 1;
            }
        } else if in_procedure && let Some((_, place)) = trimmed.split_once("addr = ") {
            let (section, rest) = place.split_once(':').unwrap();
            let (offset, size) = rest.split_once(", code size = ").unwrap();
            found.push(Procedure {
                section: section.parse().unwrap(),
                offset: offset.parse().unwrap(),
                size: size.parse().unwrap(),
                sites: Vec::new(),
            });
            in_procedure = false;
        } else if in_site && let Some(rest) = trimmed.strip_prefix("inlinee = ") {
            let id = rest.split(' ').next().unwrap().to_owned();
            let site = Site { depth, line: inlinees[&(module, id)], steps: Vec::new() };
            found.last_mut().unwrap().sites.push(site);
            depth += 1;
        } else if in_site && let Some(step) = step(trimmed) {
            found.last_mut().unwrap().sites.last_mut().unwrap().steps.push(step);
        }
    }
    found
}

/// `0B28      code 0x18 (+0x8) line 2 (+1)`
fn step(text: &str) -> Option<Step> {
    let change = |name: &str| -> Option<&str> {
        let (_, rest) = text.split_once(name)?;
        rest.split_once('(')?.1.split_once(')').map(|c| c.0)
    };
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("+0x"), 16).unwrap();
    let ends = text.contains("code end ");
    let code = change("code end ").or_else(|| change("code ")).map(hex);
    let line = change("line ").map(|l| l.trim_start_matches('+').parse().unwrap());
    (code.is_some() || line.is_some()).then(|| Step {
        code: code.unwrap_or(0),
        line: line.unwrap_or(0),
        ends,
        starts: code.is_some() && !ends,
    })
}

/// Line at which each inlined function begins, by module and id.
fn inlinees(pdb: &Path) -> BTreeMap<(u32, String), u32> {
    let text = tools::run(Command::new("llvm-pdbutil").args(["dump", "--il"]).arg(pdb));
    let mut module = 0;
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("Mod ") {
            module = number.split(' ').next().unwrap().parse().unwrap();
        } else if let [id, line, _] = line.split('|').map(str::trim).collect::<Vec<_>>()[..]
            && id.starts_with("0x")
        {
            found.insert((module, id.to_owned()), line.parse().unwrap());
        }
    }
    found
}
