//! Recording on another machine: the commands.

use anyhow::bail;
use etwhy_doc::Doc;

/// Name of the result on both machines.
const RESULT: &str = "etwhy-remote";

/// The commands that record on a host with ssh and fetch the result.
///
/// # Errors
/// If the name is none of a host.
pub fn commands(host: &str, arguments: &[String], ends_by_itself: bool) -> anyhow::Result<Doc> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    if host.is_empty() || host.starts_with('-') || !host.chars().all(is_plain) {
        bail!("that is no name of a host: letters, digits, `.`, `-`, `_` and `USER@` are");
    }
    let mut doc = Doc::default();
    doc.text("On a machine with OpenSSH's server and etwhy.exe in its path, as a user who is an administrator there:");
    let arguments: Vec<String> = arguments.iter().map(|a| quoted(a)).collect();
    let start = format!("ssh {host} etwhy record start {}", arguments.join(" "));
    let mut lines = if ends_by_itself {
        vec![format!("{start} -o {RESULT}.etl")]
    } else {
        vec![
            format!("{start} --no-wait"),
            "# let it be slow now".to_owned(),
            format!("ssh {host} etwhy record stop -o {RESULT}.etl"),
        ]
    };
    lines.push(format!("scp {host}:{RESULT}.etl {host}:{RESULT}.user.etl ."));
    lines.push(format!("etwhy why {RESULT}.etl {RESULT}.user.etl"));
    doc.verbatim("sh", &lines.join("\n"));
    Ok(doc)
}

/// As the remote shell (cmd.exe by default) takes it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '-' | '_' | '=');
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'\"{}\"'", text.replace(['"', '\''], ""))
    }
}
