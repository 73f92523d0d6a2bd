//! Opening the page in a browser.

use etwhy_hud::{Front, Running};
use std::io::{Error, IsTerminal as _, Result};
use std::process::{Command, Stdio};

/// True if somebody sits before a desktop and started this by hand.
pub fn is_desktop() -> bool {
    let shown = cfg!(any(windows, target_os = "macos"))
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    let far = ["SSH_CONNECTION", "SSH_TTY"].iter().any(|name| std::env::var_os(name).is_some());
    shown && !far && std::io::stderr().is_terminal() && std::io::stdout().is_terminal()
}

/// Opens it. The command line of a browser can be read by others on the machine: it holds a word that opens the page once, on Linux only for
/// this user. (A file that leads to the page would do as well, but browsers in a sandbox, such as Ubuntu's Firefox, cannot read it.)
///
/// # Errors
/// If no program can be started for it.
pub fn open(running: &Running<Front>) -> Result<()> {
    let word = running.state.word().map_err(Error::other)?;
    let at = running.url.find('/').and_then(|_| running.url.trim_end_matches('/').rsplit_once('/'));
    let base = at.map_or(running.url.as_str(), |(base, _)| base);
    let url = format!("{base}/open/{word}");
    let mut command = if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" })
    };
    let quiet = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn()?;
    // Some of these stay as long as the browser.
    std::thread::spawn(move || child.wait());
    Ok(())
}
