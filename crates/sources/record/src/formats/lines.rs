//! Command lines with remarks, as a `.cmd` file takes them.

use crate::recording::{Recording, Session, Size};

/// Longest remark line.
const WIDTH: usize = 110;

/// A text of command lines that grows.
#[derive(Default)]
pub struct Lines(String);

impl Lines {
    /// Begins with what the recording is.
    pub fn new(recording: &Recording) -> Lines {
        let mut lines = Lines::default();
        lines.remark(&format!("etwhy: {}. Makes visible {}.", recording.name(), recording.shows()));
        for note in recording.notes() {
            lines.remark(note);
        }
        for sentence in recording.size.explained() {
            lines.remark(&sentence);
        }
        lines
    }

    /// A remark, wrapped. Consoles still differ about letters outside ASCII.
    pub fn remark(&mut self, text: &str) {
        let text = text.replace('µ', "u");
        let mut line = String::from("rem");
        for word in text.split_whitespace() {
            if line.len() + word.len() >= WIDTH {
                self.command(&line);
                line = String::from("rem");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.command(&line);
    }

    /// Several remarks.
    pub fn extend(&mut self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.remark(&text));
    }

    /// A command.
    pub fn command(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// What stands between start and stop.
    pub fn wait(&mut self) {
        self.remark("Let it be slow now, and go on as soon as it was.");
        self.command("pause");
    }

    /// What has to be done with the kernel session before it can be used.
    pub fn session(&mut self, session: Session) {
        if session == Session::Circular {
            self.remark(
                "`logman query \"NT Kernel Logger\" -ets` tells who has taken that session. Windows keeps its own \
                 diagnosis in the Circular Kernel Context Logger and starts it again when it starts.",
            );
            self.command("logman stop \"Circular Kernel Context Logger\" -ets");
        }
    }

    /// What has to be done with a large machine before recording.
    ///
    /// Kernel code that was paged out makes stacks end early; the setting needs a restart
    /// (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wpr-command-line-options>).
    pub fn prepare(&mut self, size: Size) {
        if size.is_large() {
            self.remark(
                "Once before: wpr -disablepagingexecutive on, then restart the machine (`off` and another restart undo it).",
            );
        }
    }

    /// The text.
    pub fn done(self) -> String {
        self.0
    }
}

/// Two other ways to use a file of profiles with `wpr`
/// (<https://learn.microsoft.com/en-us/windows-hardware/test/wpt/wpr-command-line-options>).
pub fn other_ways(file: &str, name: &str) -> [String; 2] {
    [
        format!(
            "Flight recorder: wpr -start {file}!{name} (without -filemode) keeps the last events in memory, at most 15 % of it and not \
             paged; wpr -stop trace.etl as soon as it was slow."
        ),
        format!(
            "Boot (Windows 10 1709 and later): wpr -boottrace -addboot {file}!{name} -filemode, restart, then wpr -boottrace -stopboot \
             trace.etl; wpr -boottrace -cancelboot takes it back."
        ),
    ]
}

/// How a command is started: on large machines with high priority, on a node that does not take the interrupts.
pub fn starter(size: Size) -> &'static str {
    if !size.is_large() { "" } else { "start /WAIT /HIGH /NODE 1 " }
}
