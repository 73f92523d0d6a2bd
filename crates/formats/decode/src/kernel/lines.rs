//! Lines of layout files. The build script reads them with this file too.

/// Lines without comments and empty ones, continuation lines joined to what they continue.
pub fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match lines.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.trim().to_string()),
        }
    }
    lines
}

/// The head of an event line, `types version names`: its types, its version and one name for each type. A name may start with `*`.
pub fn head<'l>(types: &str, rest: &'l str) -> Result<(Vec<u8>, u16, Vec<&'l str>), String> {
    let types = type_list(types)?;
    let (version, names) = rest.split_once(' ').ok_or("names missing")?;
    let version = version.strip_prefix('v').and_then(|v| v.parse().ok()).ok_or("version missing")?;
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    if names.len() != types.len() || names.iter().any(|name| name.is_empty()) {
        return Err("as many names as types are needed".into());
    }
    Ok((types, version, names))
}

/// Numbers of types, separated by commas.
pub fn type_list(text: &str) -> Result<Vec<u8>, String> {
    text.split(',').map(|t| t.parse().map_err(|_| format!("not a type: {t}"))).collect()
}
