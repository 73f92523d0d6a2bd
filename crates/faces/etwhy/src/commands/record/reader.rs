//! Reads a recording while it runs: events and findings that end it.

use crate::commands::follow::FollowArgs;
use etwhy_live::Fired;
use etwhy_record::run::{Finder, Journal, Mode, Seen, Trigger};
use std::sync::mpsc::{Receiver, channel};

/// What a thread of its own says: looking at a window can take seconds, and losses are said within one.
pub struct Reader {
    said: Receiver<Fired>,
    fired: Option<Fired>,
}

/// The triggers that only the trace shows.
fn shown(triggers: &[Trigger]) -> Vec<Trigger> {
    triggers.iter().filter(|trigger| trigger.seen() == Seen::InTrace).cloned().collect()
}

/// Whether these can be watched in a recording of that kind.
///
/// # Errors
/// If there is no such finding, or if nothing is written that could be read.
pub fn check(triggers: &[Trigger], mode: Mode) -> anyhow::Result<()> {
    let triggers = shown(triggers);
    match triggers.first() {
        None => Ok(()),
        Some(trigger) if matches!(mode, Mode::Ring { .. }) => anyhow::bail!(
            "`{trigger}` needs files that are written while it records: --rotate 1m --keep 2GB instead of --ring"
        ),
        Some(_) => FollowArgs::check(&triggers),
    }
}

impl Reader {
    /// Reads a recording, if one of the triggers needs that.
    pub fn start(journal: &Journal, triggers: &[Trigger]) -> Option<Reader> {
        let triggers = shown(triggers);
        if triggers.is_empty() {
            return None;
        }
        let (folder, begins) = (journal.folder.clone(), format!("{}-", journal.number()));
        let (sender, said) = channel();
        // It ends with the program.
        std::thread::spawn(move || match FollowArgs::wait(&triggers, &folder, &begins) {
            Ok(fired) => drop(sender.send(fired)),
            Err(error) => {
                say!("etwhy: events and findings are not watched any more: {error:#}");
            }
        });
        Some(Reader { said, fired: None })
    }
}

impl Finder for Reader {
    fn fired(&mut self, trigger: &Trigger) -> Option<String> {
        self.fired = self.fired.take().or_else(|| self.said.try_recv().ok());
        self.fired.as_ref().filter(|fired| fired.trigger == *trigger).map(|fired| fired.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn journal(folder: &Path) -> Journal {
        let text = format!(
            r#"{{"version":1,"id":10,"profiles":[],"began_ms":0,"until_ms":null,"stop_when":[],"phase":"running","mode":"file",
                "size":[2,1000],"folder":{:?},"output":null,"sessions":[],"segment_ms":0,"kept":[],"remarks":[]}}"#,
            folder.display()
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_recording_is_read_as_it_grows_and_others_beside_it_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole.trace");
        let demo = etwhy_synth::Scenario::parse(etwhy_synth::DEMO, "demo").unwrap();
        etwhy_synth::write(&demo, &whole, &mut |_| {}).unwrap();
        let whole = std::fs::read(whole).unwrap();
        std::fs::write(folder.path().join("00000001-kernel-1-001.etl"), &whole).unwrap();
        let triggers =
            ["start:nobody", "finding:dpc.over-limit", "event:PerfInfo"].map(|text| text.parse().unwrap());
        let mut reader = Reader::start(&journal(folder.path()), &triggers[..2]).unwrap();
        assert!(Reader::start(&journal(folder.path()), &triggers[..1]).is_none());
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(reader.fired(&triggers[1]), None);
        std::fs::write(folder.path().join("0000000a-kernel-1-001.etl"), &whole).unwrap();
        let begun = Instant::now();
        while reader.fired(&triggers[1]).is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(reader.fired(&triggers[1]).unwrap().starts_with("dpc.over-limit: "));
        assert_eq!(reader.fired(&triggers[2]), None);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let triggers = |text: &str| [text.parse::<Trigger>().unwrap()];
        assert!(check(&triggers("finding:dpc.over-limit"), Mode::File).is_ok());
        let ring = check(&triggers("finding:dpc.over-limit"), Mode::Ring { mebibytes: 64 });
        assert!(ring.unwrap_err().to_string().contains("--rotate"));
        let unknown = check(&triggers("finding:dpc.nothing"), Mode::File);
        assert!(unknown.unwrap_err().to_string().contains("there is no finding `dpc.nothing`"));
        assert!(check(&triggers("start:x"), Mode::Ring { mebibytes: 64 }).is_ok());
    }
}
