//! Asking servers.

use super::asks::{self, Ask};
use super::attempt::{Attempt, Outcome};
use super::chain::Chain;
use super::tree::{POINTER, first_tier};
use crate::server::{Failure, Server};
use crate::verify::identify;
use crate::{Candidate, FileKind, WantedModule};
use std::fs;
use std::path::Path;

/// What came of one name.
enum Answer {
    /// A file that fits.
    Got(Candidate),
    /// The server has no such file.
    No,
    /// It has something that is of no use, or it failed; either way other names are not worth asking for.
    Bad,
}

impl Chain {
    /// The file, the compressed file, a pointer, in SymSrv's order; then a Breakpad file; then the file in lower case.
    pub(super) fn online(
        &self,
        server: &Server,
        asks: &[Ask],
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        let first = asks.first()?;
        if first.kind == FileKind::Image && !self.shared.options.fetch_images {
            return None;
        }
        let cache = &self.caches.first()?.root;
        let key = server.missing_key(&[first.folder.as_str(), &first.id]);
        if let Some(seconds) = server.remembers_missing(&key, cache) {
            note(server, attempts, first, Outcome::KnownMissing(seconds));
            return None;
        }
        if self.shared.options.offline {
            note(server, attempts, first, Outcome::Offline);
            return None;
        }
        let mut answer = self.ask_all(server, asks, None, wanted, attempts);
        if matches!(answer, Answer::No)
            && let Some(tier) = first_tier(&first.folder)
            && server.has_two_tiers(cache)
        {
            answer = self.ask_all(server, asks, Some(&tier), wanted, attempts);
        }
        match answer {
            Answer::Got(candidate) => {
                server.forget_missing(&key, cache);
                Some(candidate)
            }
            Answer::No => {
                server.remember_missing(&key, cache);
                note(server, attempts, first, Outcome::NotFound);
                None
            }
            Answer::Bad => None,
        }
    }

    fn ask_all(
        &self,
        server: &Server,
        asks: &[Ask],
        tier: Option<&str>,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Answer {
        for ask in asks.iter().filter(|ask| ask.ask_servers) {
            let compressed = ask.compressed();
            let mut names = vec![ask.file.as_str()];
            if ask.kind != FileKind::Breakpad {
                names.extend(compressed.as_ref().map(|name| name.as_str()));
                names.push(POINTER);
            }
            for name in names {
                let mut parts: Vec<&str> = tier.into_iter().collect();
                parts.extend([ask.folder.as_str(), ask.id.as_str(), name]);
                match self.ask_one(server, &parts, ask, wanted, attempts) {
                    Answer::No => {}
                    answer => return answer,
                }
            }
        }
        // Keys are lower case in "SSQP Key Conventions" (dotnet/symstore), and ids alone where PerfView writes stores; with SymSrv
        // they are upper case. Servers on Windows do not mind.
        let Some(first) = asks.first() else { return Answer::No };
        let plain = [first.folder.as_str(), first.id.as_str(), first.file.as_str()];
        let id = first.id.to_lowercase();
        let [folder, _, file] = plain.map(str::to_lowercase);
        let lower = [folder.as_str(), id.as_str(), file.as_str()];
        let mut tried = vec![plain];
        for names in [[first.folder.as_str(), id.as_str(), first.file.as_str()], lower] {
            if tried.contains(&names) {
                continue;
            }
            tried.push(names);
            let parts: Vec<&str> = tier.into_iter().chain(names).collect();
            match self.ask_one(server, &parts, first, wanted, attempts) {
                Answer::No => {}
                answer => return answer,
            }
        }
        Answer::No
    }

    fn ask_one(
        &self,
        server: &Server,
        parts: &[&str],
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Answer {
        let Some(cache) = self.caches.first() else { return Answer::Bad };
        let received = match server.fetch(parts, &cache.root) {
            Ok(received) => received,
            Err(Failure::NotFound { .. }) => return Answer::No,
            Err(failure) => {
                note(server, attempts, ask, Outcome::Failed(failure.to_string()));
                return Answer::Bad;
            }
        };
        let origin = server.shown_target(parts);
        let name = parts.last().copied().unwrap_or("");
        let kept = if name == POINTER {
            let text = read_text(&received.file);
            let _ = fs::remove_file(&received.file);
            match self.pointed(&text) {
                Ok(target) => {
                    self.check(&target, &target.display().to_string(), ask, wanted, attempts).map(|()| target)
                }
                Err(reason) => {
                    note(server, attempts, ask, Outcome::Failed(format!("{origin}: {reason}")));
                    None
                }
            }
        } else if name.to_lowercase() == ask.file.as_str().to_lowercase() {
            self.keep(&received.file, &origin, &self.caches, ask, wanted, attempts)
        } else {
            let kept = self.unpacked(&received.file, &origin, &self.caches, ask, wanted, attempts);
            let _ = fs::remove_file(&received.file);
            kept
        };
        let Some(file) = kept else { return Answer::Bad };
        note(server, attempts, ask, Outcome::Fetched { file: file.clone(), bytes: received.bytes });
        Answer::Got(self.candidate(file, ask))
    }

    /// `/buildid/ID/debuginfo` and `/buildid/ID/executable` (debuginfod(8), "Webapi"). The build id of an image is the GUID of
    /// its CodeView record, as binutils reads it (`_bfd_XXi_slurp_codeview_record`).
    pub(super) fn by_build_id(
        &self,
        server: &Server,
        asks: &[Ask],
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        let ask = asks.first().filter(|ask| ask.kind == FileKind::Pdb)?;
        let id = ask.id.get(..32)?.to_ascii_lowercase();
        let cache = &self.caches.first()?.root;
        let key = server.missing_key(&["buildid", &id]);
        if let Some(seconds) = server.remembers_missing(&key, cache) {
            note(server, attempts, ask, Outcome::KnownMissing(seconds));
            return None;
        }
        if self.shared.options.offline {
            note(server, attempts, ask, Outcome::Offline);
            return None;
        }
        for what in ["debuginfo", "executable"] {
            let parts = ["buildid", &id, what];
            let received = match server.fetch(&parts, cache) {
                Ok(received) => received,
                Err(Failure::NotFound { .. }) => continue,
                Err(failure) => {
                    note(server, attempts, ask, Outcome::Failed(failure.to_string()));
                    return None;
                }
            };
            // What it is decides under which name it is kept.
            let of_image = asks::of_image(wanted);
            let is_image = identify(&received.file).is_ok_and(|identity| identity.is_image());
            let ask = if is_image { of_image.as_ref().unwrap_or(ask) } else { ask };
            let origin = server.shown_target(&parts);
            let file = self.keep(&received.file, &origin, &self.caches, ask, wanted, attempts)?;
            note(server, attempts, ask, Outcome::Fetched { file: file.clone(), bytes: received.bytes });
            return Some(self.candidate(file, ask));
        }
        server.remember_missing(&key, cache);
        note(server, attempts, ask, Outcome::NotFound);
        None
    }
}

fn note(server: &Server, attempts: &mut Vec<Attempt>, ask: &Ask, outcome: Outcome) {
    attempts.push(Attempt { place: server.shown(), file: ask.shown(), outcome });
}

fn read_text(file: &Path) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    // What cannot be read points nowhere.
    let _ = fs::File::open(file).and_then(|f| f.take(4096).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
