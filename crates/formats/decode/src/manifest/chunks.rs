//! EventSource manifests in the trace: pieces of XML in events 0xFFFE.
//!
//! Layout of a piece as in `ManifestEnvelope` of dotnet/runtime (MIT): u8 format (1: XML), u8 major,
//! u8 minor, u8 magic 0x5B, u16 total, u16 number, then bytes. Every process with the provider sends its
//! own copy, some only when the session ends.

use super::{ProviderManifest, parse};
use crate::anomalies::{MANIFEST_BROKEN, MANIFEST_CHUNK_LOST, MANIFEST_TOO_LARGE};
use etwhy_base::{Bytes, Guid};
use etwhy_etl::abi::header::MANIFEST_EVENT_ID;
use etwhy_etl::{Ledger, Record};
use foldhash::{HashMap, HashSet};

const HEADER_LEN: usize = 8;
const FORMAT_XML: u8 = 1;
const MAGIC: u8 = 0x5B;
/// Largest manifest that is put together. EventSource itself stops far below.
const MAX_LEN: usize = 8 * 1024 * 1024;
/// Most manifests that are put together at the same time.
const MAX_OPEN: usize = 512;
/// Most bytes of all open manifests.
const MAX_OPEN_LEN: usize = 64 * 1024 * 1024;

/// True for records that carry a piece of a manifest.
#[inline]
pub fn is_chunk(record: &Record<'_>) -> bool {
    record.kind.is_event() && record.id() == MANIFEST_EVENT_ID && record.opcode() == 0xFE
}

#[derive(Debug, Clone)]
struct Open {
    total: u16,
    next: u16,
    xml: Vec<u8>,
}

/// Puts pieces together.
#[derive(Clone, Debug, Default)]
pub struct ChunkCollector {
    open: HashMap<(Guid, u32, u32), Open>,
    open_len: usize,
    seen: HashSet<(Guid, u64)>,
}

impl ChunkCollector {
    /// Takes one record; gives the provider when its manifest is complete and was not seen before.
    pub fn add(&mut self, record: &Record<'_>, ledger: &mut Ledger) -> Option<ProviderManifest> {
        if !is_chunk(record) {
            return None;
        }
        let provider = record.guid()?;
        let (tid, pid) = record.tid_pid()?;
        self.piece(provider, pid, tid, record.payload(), ledger)
    }

    fn piece(
        &mut self,
        provider: Guid,
        pid: u32,
        tid: u32,
        payload: &[u8],
        ledger: &mut Ledger,
    ) -> Option<ProviderManifest> {
        let lost = |ledger: &mut Ledger| ledger.note(&MANIFEST_CHUNK_LOST, 1, || provider.to_string());
        let header = payload.first_chunk::<HEADER_LEN>();
        let Some(&[FORMAT_XML, _, _, MAGIC, ..]) = header else {
            lost(ledger);
            return None;
        };
        let (total, number) = (payload.u16_at(4)?, payload.u16_at(6)?);
        let data = payload.get(HEADER_LEN..)?;
        let key = (provider, pid, tid);
        if number == 0 {
            if let Some(old) = self.open.remove(&key) {
                self.open_len -= old.xml.len();
                lost(ledger);
            }
            if self.open.len() >= MAX_OPEN || self.open_len > MAX_OPEN_LEN {
                // Copies that never end; whoever comes later may still be whole.
                self.open.clear();
                self.open_len = 0;
                lost(ledger);
            }
            self.open.insert(key, Open { total, next: 0, xml: Vec::new() });
        }
        let Some(open) = self.open.get_mut(&key) else {
            lost(ledger);
            return None;
        };
        let fits = open.xml.len() + data.len() <= MAX_LEN;
        if open.total != total || open.next != number || !fits {
            if !fits {
                ledger.note(&MANIFEST_TOO_LARGE, 1, || provider.to_string());
            } else {
                lost(ledger);
            }
            self.close(key);
            return None;
        }
        open.xml.extend_from_slice(data);
        open.next += 1;
        self.open_len += data.len();
        if open.next < open.total {
            return None;
        }
        let xml = self.close(key)?;
        self.complete(provider, &xml, ledger)
    }

    fn close(&mut self, key: (Guid, u32, u32)) -> Option<Vec<u8>> {
        let open = self.open.remove(&key)?;
        self.open_len -= open.xml.len();
        Some(open.xml)
    }

    fn complete(&mut self, provider: Guid, xml: &[u8], ledger: &mut Ledger) -> Option<ProviderManifest> {
        use std::hash::BuildHasher;
        let hash = foldhash::fast::FixedState::default().hash_one(xml);
        if !self.seen.insert((provider, hash)) {
            return None;
        }
        match parse(&super::text_of(xml)) {
            Ok(mut providers) => {
                let at = providers.iter().position(|p| p.guid == provider).unwrap_or(0);
                let mut found = providers.swap_remove(at);
                // The header of the record is the truth about who sent it.
                found.guid = provider;
                Some(found)
            }
            Err(e) => {
                ledger.note(&MANIFEST_BROKEN, 1, || format!("provider {provider}: {e}"));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: Guid = Guid::from_text("11111111-2222-3333-4444-555555555555");
    const XML: &str = r#"<provider name="P" guid="{11111111-2222-3333-4444-555555555555}"><events>
        <event value="1"/></events></provider>"#;

    fn chunk(total: u16, number: u16, data: &str) -> Vec<u8> {
        let mut payload = vec![1, 1, 0, MAGIC];
        payload.extend(total.to_le_bytes());
        payload.extend(number.to_le_bytes());
        payload.extend(data.as_bytes());
        payload
    }

    #[test]
    fn copies_of_several_threads_do_not_mix() {
        let (mut collector, mut ledger) = (ChunkCollector::default(), Ledger::new());
        let (a, b) = XML.split_at(40);
        let mut feed =
            |tid, number, data| collector.piece(GUID, 1, tid, &chunk(2, number, data), &mut ledger);
        assert!(feed(1, 0, a).is_none());
        assert!(feed(2, 0, a).is_none());
        let found = feed(2, 1, b).unwrap();
        assert_eq!((&*found.name, found.events.len()), ("P", 1));
        assert!(feed(1, 1, b).is_none(), "the same text again");
        assert!(ledger.is_empty());
    }

    #[test]
    fn lost_pieces_are_counted_and_do_not_block() {
        let (mut collector, mut ledger) = (ChunkCollector::default(), Ledger::new());
        let (a, b) = XML.split_at(40);
        collector.piece(GUID, 1, 1, &chunk(3, 0, a), &mut ledger);
        collector.piece(GUID, 1, 1, &chunk(3, 2, b), &mut ledger);
        collector.piece(GUID, 1, 1, &chunk(2, 1, b), &mut ledger);
        collector.piece(GUID, 1, 1, b"\x01\x01", &mut ledger);
        assert_eq!(ledger.get(&MANIFEST_CHUNK_LOST), 3);
        assert!(collector.piece(GUID, 1, 1, &chunk(1, 0, XML), &mut ledger).is_some());
        assert!(collector.piece(GUID, 1, 1, &chunk(1, 0, "<broken"), &mut ledger).is_none());
        assert_eq!(ledger.get(&MANIFEST_BROKEN), 1);
        assert_eq!(collector.open_len, 0);
    }

    #[test]
    fn open_manifests_are_bounded() {
        let (mut collector, mut ledger) = (ChunkCollector::default(), Ledger::new());
        for tid in 0..10_000 {
            collector.piece(GUID, 1, tid, &chunk(9, 0, "x"), &mut ledger);
            assert!(collector.open.len() <= MAX_OPEN);
        }
        let big = "x".repeat(60_000);
        for number in 0..1000 {
            collector.piece(GUID, 2, 1, &chunk(u16::MAX, number, &big), &mut ledger);
            assert!(collector.open_len <= MAX_OPEN_LEN + MAX_LEN);
        }
        assert_eq!(ledger.get(&MANIFEST_TOO_LARGE), 1);
    }
}
