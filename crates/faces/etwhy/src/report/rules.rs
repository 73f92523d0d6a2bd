//! Findings in a terminal: the list and the manual page.

use super::terminal::{text, width};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, wrap};
use etwhy_rules::{Rule, manual::markdown};
use std::collections::BTreeMap;
use std::io::{Result, Write};

/// All findings by topic: id, severity, title, and where there is room what they need.
pub fn list(out: &mut impl Write, rules: &[Rule]) -> Result<()> {
    let mut topics: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        topics.entry(rule.topic.as_str()).or_default().push(rule);
    }
    let mut doc = Doc::default();
    for (topic, rules) in topics {
        doc.heading(topic);
        let mut table = Table::new([Column::word(""), Column::word(""), Column::text(""), Column::text("")]);
        for rule in rules {
            let always = rule.needs.iter().filter(|need| need.to_rule_out.is_none());
            let needs: Vec<&str> = always.map(|need| need.what.as_str()).collect();
            let needs =
                if needs.is_empty() { String::new() } else { format!("needs {}", needs.join(" and ")) };
            table.row([rule.id.as_str(), rule.severity.name(), &rule.title, &needs].map(Line::from));
        }
        doc.table(table);
    }
    doc.space();
    doc.text(format!("{} findings. `etwhy rules show ID` has the manual of one.", rules.len()));
    write!(out, "{}", text(&doc))
}

/// The manual page.
pub fn page(out: &mut impl Write, rule: &Rule) -> Result<()> {
    let columns = width();
    let mut paragraph = String::new();
    let mut code = false;
    let page = markdown(rule, 1);
    for line in page.lines().chain(std::iter::once("")) {
        let ends =
            line.is_empty() || line.starts_with('#') || line.starts_with("```") || line.starts_with("- ");
        if ends && !paragraph.is_empty() && !code {
            write_paragraph(out, &std::mem::take(&mut paragraph), columns)?;
        }
        if line.starts_with("```") {
            code = !code;
        } else if code {
            writeln!(out, "    {}", sanitize(line))?;
        } else if let Some(heading) = line.strip_prefix("## ") {
            writeln!(out, "{}", sanitize(&heading.to_uppercase()))?;
        } else if let Some(title) = line.strip_prefix("# ") {
            writeln!(out, "{}", sanitize(title))?;
        } else if line.is_empty() {
            writeln!(out)?;
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            // The only emphasis that the page itself has.
            let plain = if line.starts_with("Severity *") { line.replace('*', "") } else { line.to_owned() };
            paragraph.push_str(plain.trim());
        }
    }
    if let Some(file) = &rule.file {
        writeln!(out, "File: {}", sanitize(&file.display().to_string()))?;
    }
    Ok(())
}

fn write_paragraph(out: &mut impl Write, text: &str, columns: usize) -> Result<()> {
    let text = sanitize(text);
    let lines = match text.strip_prefix("- ") {
        Some(item) => hanging("- ", "  ", item, columns),
        None => wrap(&text, columns),
    };
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
