//! Views: named questions in SQL, one documented file each.
//!
//! A file begins with a comment: the first line is the title, then comes the manual page; lines `name: meaning` under
//! a line `Columns:` document the columns. Then follows one `SELECT`.

use super::view_list::FILES;

/// A view.
#[derive(Clone, Debug)]
pub struct View {
    /// Name in SQL.
    pub name: &'static str,
    /// One line.
    pub title: String,
    /// The manual page.
    pub manual: String,
    /// Columns with their meaning.
    pub columns: Vec<(String, String)>,
    /// The query.
    pub sql: &'static str,
}

/// All views that ship, in order of name.
pub fn all() -> impl Iterator<Item = View> {
    FILES.iter().map(|(name, text)| parse(name, text))
}

/// A view from its file, which also other crates have.
pub fn parse(name: &'static str, text: &'static str) -> View {
    let mut view = View { name, title: String::new(), manual: String::new(), columns: Vec::new(), sql: text };
    let mut in_columns = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("--") else { break };
        let line = line.strip_prefix(' ').unwrap_or(line);
        if view.title.is_empty() {
            view.title = line.trim_end_matches('.').to_owned();
        } else if line.trim() == "Columns:" {
            in_columns = true;
        } else if in_columns {
            match line.split_once(':') {
                Some((column, meaning)) if !column.starts_with(' ') => {
                    view.columns.push((column.trim().to_owned(), meaning.trim().to_owned()));
                }
                _ => {
                    if let Some(last) = view.columns.last_mut() {
                        last.1.push(' ');
                        last.1.push_str(line.trim());
                    }
                }
            }
        } else {
            lines.push(line);
        }
    }
    view.manual = lines.join("\n").trim().to_owned();
    view
}
