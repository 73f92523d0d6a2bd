//! The tables in `data/`: one row a line, tab-separated, the first line names the columns.

/// The rows of a table, each as exactly `N` columns. A row of another width would be a mistake in the
/// data; it is left out, and a test counts the rows.
pub fn rows<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = [""; N];
        let mut fields = line.split('\t');
        for column in &mut columns {
            *column = fields.next()?;
        }
        fields.next().is_none().then_some(columns)
    })
}

/// The last component of a path, whichever separator it uses: traces carry `\Device\…\x.exe` as well as
/// plain names.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or(path)
}

/// Compares a lower-case `key` with a `name` in any case, without allocating. Keys are ASCII.
pub fn compare_lower(key: &str, name: &str) -> std::cmp::Ordering {
    key.bytes().cmp(name.bytes().map(|b| b.to_ascii_lowercase()))
}

/// Finds the row whose lower-case key equals `name` in any case; `rows` are sorted by key.
pub fn find<'a, T>(rows: &'a [T], key: impl Fn(&T) -> &str, name: &str) -> Option<&'a T> {
    let at = rows.binary_search_by(|row| compare_lower(key(row), name)).ok()?;
    rows.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_another_width_are_left_out() {
        let found: Vec<[&str; 2]> = rows("#a\tb\n1\t2\n3\n4\t5\t6\n7\t\n").collect();
        assert_eq!(found, [["1", "2"], ["7", ""]]);
    }

    #[test]
    fn paths_give_their_last_component() {
        assert_eq!(file_name(r"\SystemRoot\System32\drivers\a.sys"), "a.sys");
        assert_eq!(file_name("/x/y"), "y");
        assert_eq!(file_name("a.sys"), "a.sys");
    }
}
