//! Recording on another machine: the commands, printed or run.

use anyhow::{Context as _, bail};
use etwhy_doc::Doc;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Name of the result on the other machine. One that an earlier recording has left there is replaced.
const RESULT: &str = "etwhy-remote";
/// What the list of sessions beside it has behind that name.
const LIST: &str = ".loggers.txt";
/// Most files that are fetched: a recording has a few.
const MOST_FILES: usize = 64;

fn check(host: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
    if host.is_empty() || host.starts_with('-') || !host.chars().all(is_plain) {
        bail!("invalid host name: it may have letters, digits, `.`, `-`, `_` and a leading `USER@`");
    }
    Ok(())
}

/// What the other machine's shell gets.
fn start(arguments: &[String]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|a| quoted(a)).collect();
    format!("etwhy record start {}", arguments.join(" "))
}

/// The commands that record on a host and fetch the result: with ssh, and from a PowerShell that reaches it by WinRM.
///
/// # Errors
/// If the name is none of a host.
pub fn commands(host: &str, arguments: &[String], ends_by_itself: bool) -> anyhow::Result<Doc> {
    check(host)?;
    let mut doc = Doc::default();
    doc.text("On a machine with OpenSSH's server and etwhy.exe in its path, as a user who is an administrator there:");
    let start = format!("ssh {host} {}", start(arguments));
    let mut lines = if ends_by_itself {
        vec![format!("{start} -o {RESULT}.etl --force")]
    } else {
        vec![
            format!("{start} --no-wait"),
            "# let it be slow now".to_owned(),
            format!("ssh {host} etwhy record stop -o {RESULT}.etl --force"),
        ]
    };
    lines.push(format!("scp {host}:{RESULT}.etl ."));
    lines.push(format!("etwhy why {RESULT}.etl"));
    doc.verbatim("sh", &lines.join("\n"));
    doc.text("Or from PowerShell on Windows, where WinRM reaches that machine:");
    doc.verbatim("powershell", &powershell(host, arguments, ends_by_itself).join("\n"));
    Ok(doc)
}

/// The same for PowerShell's remoting. A session there begins in a folder that nobody knows; this one every Windows has.
fn powershell(host: &str, arguments: &[String], ends_by_itself: bool) -> Vec<String> {
    let result = format!("C:\\Windows\\Temp\\{RESULT}.etl");
    let arguments: Vec<String> = arguments.iter().map(|a| in_powershell(a)).collect();
    let start = format!("etwhy record start {}", arguments.join(" "));
    let session = match host.rsplit_once('@') {
        Some((user, computer)) => format!("New-PSSession -ComputerName {computer} -Credential {user}"),
        None => format!("New-PSSession -ComputerName {host}"),
    };
    let there = |line: String| format!("Invoke-Command -Session $there {{ {line} }}");
    let mut lines = vec![format!("$there = {session}")];
    if ends_by_itself {
        lines.push(there(format!("{start} -o {result} --force")));
    } else {
        lines.push(there(format!("{start} --no-wait")));
        lines.push("# let it be slow now".to_owned());
        lines.push(there(format!("etwhy record stop -o {result} --force")));
    }
    lines.push(format!("Copy-Item -FromSession $there {result} ."));
    lines.push(format!("etwhy why {RESULT}.etl"));
    lines
}

/// Records on a host with ssh, fetches the files and deletes them there; the files, the kernel's first.
///
/// # Errors
/// If one of the commands fails. Files that were fetched stay.
pub fn run(host: &str, arguments: &[String], output: &Path) -> anyhow::Result<Vec<PathBuf>> {
    check(host)?;
    let line = format!("{} -o {RESULT}.etl --force", start(arguments));
    say!("etwhy: ssh {host} {line}");
    let ssh = || Command::new("ssh");
    // What the other etwhy says goes to the terminal as it comes; its list of files is read.
    let there =
        ssh().args([host, &line]).stdout(Stdio::piped()).spawn().and_then(|child| child.wait_with_output());
    let there = there.context("ssh cannot be started; without -o the commands are printed")?;
    succeeded(there.status, "the recording on the other machine failed")?;
    let list = String::from_utf8_lossy(&there.stdout).into_owned();
    let suffixes: Vec<&str> = list.lines().filter_map(suffix).take(MOST_FILES).collect();
    if suffixes.is_empty() {
        bail!("etwhy on {host} named no file `{RESULT}….etl`; it may be another version");
    }
    // One that stays there is in nobody's way: the next recording replaces it.
    let delete = |name: &str| {
        let _ =
            ssh().args([host, &format!("del {name}")]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    };
    let mut files = Vec::new();
    for suffix in suffixes {
        let (from, to) = (format!("{RESULT}{suffix}"), beside(output, suffix));
        let copied = Command::new("scp").arg("-q").arg(format!("{host}:{from}")).arg(&to).status();
        succeeded(copied.context("scp cannot be started")?, &format!("{from} cannot be fetched"))?;
        files.push(to);
        delete(&from);
    }
    // An older version writes none.
    let sessions = format!("{RESULT}{LIST}");
    let mut copy = Command::new("scp");
    copy.arg("-q").arg(format!("{host}:{sessions}")).arg(beside(output, LIST)).stderr(Stdio::null());
    if copy.status().is_ok_and(|status| status.success()) {
        delete(&sessions);
    }
    Ok(files)
}

fn succeeded(status: ExitStatus, what: &str) -> anyhow::Result<()> {
    if status.success() { Ok(()) } else { bail!("{what} ({status})") }
}

/// What follows `etwhy-remote` in a line that names such a file: `.etl`, `.user.etl`, `.kernel-2.etl`. The other machine's words
/// are not trusted: nothing that could name another folder or file is taken.
fn suffix(line: &str) -> Option<&str> {
    let name = line.trim().rsplit(['\\', '/']).next()?;
    let suffix = name.strip_prefix(RESULT)?;
    let middle = suffix.strip_prefix('.')?.strip_suffix("etl")?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (middle.chars().all(is_plain) && !middle.contains("..") && middle.len() < 40).then_some(suffix)
}

/// `slow.etl` with the suffix `.user.etl`: `slow.user.etl`.
fn beside(output: &Path, suffix: &str) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}{suffix}"))
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

/// As PowerShell takes it: a comma makes a list there.
fn in_powershell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '=');
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace(['"', '\''], "")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_results_are_fetched() {
        assert_eq!(suffix("C:\\Users\\x\\etwhy-remote.etl\r"), Some(".etl"));
        assert_eq!(suffix("etwhy-remote.kernel-2.etl"), Some(".kernel-2.etl"));
        for line in [
            "",
            "slow.etl",
            "etwhy-remote.exe",
            "etwhy-remote...etl",
            "etwhy-remote.a b.etl",
            "etwhy-remote.$(x).etl",
        ] {
            assert_eq!(suffix(line), None, "{line}");
        }
        assert_eq!(beside(Path::new("a/slow.etl"), ".user.etl"), Path::new("a/slow.user.etl"));
    }

    #[test]
    fn powershell_gets_a_session_and_texts_that_are_one_argument() {
        let arguments = ["cpu,dpc", "--stop-when", "log:System/41"].map(str::to_owned);
        let lines = powershell("admin@server-1", &arguments, true);
        assert_eq!(
            lines,
            [
                "$there = New-PSSession -ComputerName server-1 -Credential admin",
                "Invoke-Command -Session $there { etwhy record start 'cpu,dpc' --stop-when 'log:System/41' -o C:\\Windows\\Temp\\etwhy-remote.etl --force }",
                "Copy-Item -FromSession $there C:\\Windows\\Temp\\etwhy-remote.etl .",
                "etwhy why etwhy-remote.etl",
            ]
        );
        let open = powershell("server", &arguments[..1], false);
        assert!(
            open[0] == "$there = New-PSSession -ComputerName server" && open[1].contains("--no-wait"),
            "{open:?}"
        );
        assert!(open[3].contains("etwhy record stop -o"), "{open:?}");
    }
}
