//! Columns of a line.

/// Splits a line into its columns. Quotes hold separators, doubled quotes are one; a quote without its end is a character.
pub fn split(line: &str, separator: char) -> Vec<String> {
    quoted(line, separator)
        .unwrap_or_else(|| line.split(separator).map(|field| field.trim().to_owned()).collect())
}

fn quoted(line: &str, separator: char) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut inside = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if inside => inside = false,
            '"' if field.trim().is_empty() => {
                field.clear();
                inside = true;
            }
            c if c == separator && !inside => fields.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    fields.push(field.trim().to_owned());
    (!inside).then_some(fields)
}

/// What separates the columns of a text; `None` if it has no columns. Lines with a GUID tell best, others must have five separators at
/// least: a line of the report has six columns.
pub fn separator(text: &str) -> Option<char> {
    let mut counts = [(',', 0usize), (';', 0), ('\t', 0)];
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(400);
    for line in lines {
        let guid = guid_at(line);
        for (separator, count) in &mut counts {
            let found = line.matches(*separator).count();
            match guid {
                // Three are the fewest around a GUID with a setting behind it: target, subcategory, GUID, setting.
                Some(at) if found >= 3 => {
                    let before = line.get(..at).unwrap_or("").trim_end_matches(['{', '"', ' ']);
                    *count += if before.ends_with(*separator) { 3 } else { 0 };
                }
                _ => *count += usize::from(found >= 5),
            }
        }
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .max_by_key(|(_, count)| *count)
        .map(|(separator, _)| separator)
}

/// The first GUID of a text, in upper case without braces.
pub fn guid_in(text: &str) -> Option<String> {
    let at = guid_at(text)?;
    text.get(at..at.checked_add(36)?).map(str::to_ascii_uppercase)
}

/// Where the first GUID of a text begins.
fn guid_at(text: &str) -> Option<usize> {
    text.as_bytes().windows(36).position(|part| {
        part.iter().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes() {
        assert_eq!(split(r#"a,"b, c","d ""e""",,f"#, ','), ["a", "b, c", r#"d "e""#, "", "f"]);
        // A quote that is never closed takes nothing with it.
        assert_eq!(split(r#"a,"b,c"#, ','), ["a", "\"b", "c"]);
        assert_eq!(split("", ';'), [""]);
    }

    #[test]
    fn separators() {
        let guid = "{0CCE9215-69AE-11D9-BED3-505054503030}";
        assert_eq!(separator(&format!("\r\nM,System,Logon,{guid},Success,\r\n")), Some(','));
        assert_eq!(
            separator(&format!("M;System;a,b,c,d,e,f;{guid};Success;;1")),
            Some(';'),
            "beside the GUID"
        );
        assert_eq!(separator(&format!("M;System;Logon;{guid};Success;;1")), Some(';'));
        assert_eq!(separator(&format!("M\tSystem\tLogon\t{guid}\tSuccess\t")), Some('\t'));
        assert_eq!(separator("System audit policy\nLogon/Logoff\n  Logon     Success\n"), None);
        assert_eq!(separator(&format!("Logon   {guid}")), None);
    }

    #[test]
    fn guids() {
        let wanted = Some("0CCE9215-69AE-11D9-BED3-505054503030".to_owned());
        assert_eq!(guid_in("x{0cce9215-69ae-11d9-bed3-505054503030}y"), wanted);
        assert_eq!(guid_in("0cce9215-69ae-11d9-bed3-50505450303"), None);
        assert_eq!(guid_in("é"), None);
    }
}
