//! The reader of `WEVT_TEMPLATE`.

use super::{Event, Field, InType, Manifest, Map, Named, OutType, Provider, Template};
use crate::bytes::{Budget, Resource as _, utf16};
use crate::error::Error;
use etwhy_base::Bytes as _;

/// Characters of a name. The longest of Windows' own have some hundred.
const NAME_MAX: usize = 1024;

/// Reads a resource.
///
/// # Errors
/// If its header is not that of a manifest. Damage behind it is told in [`Manifest::damage`].
pub(crate) fn read(resource: &[u8]) -> Result<Manifest, Error> {
    let bytes = resource;
    let header = bytes.need("CRIM header", 0, 16)?;
    if header.sub(0, 4) != Some(b"CRIM") {
        return Err(Error::malformed("CRIM header", 0, "signature is not CRIM"));
    }
    let count = header.u32_at(12).unwrap_or_default() as usize;
    let mut reader = Reader {
        bytes,
        // All that a sound file has stands once, and some names are shared: whatever is read costs, however often it is named.
        budget: Budget::new(bytes.len().saturating_mul(4)),
        damage: Vec::new(),
    };
    let mut providers = Vec::new();
    for index in 0..count {
        let at = 16usize.saturating_add(index.saturating_mul(20));
        let Ok(descriptor) = bytes.need("CRIM provider", at, 20) else {
            reader.damage(format!("CRIM tells {count} providers and ends in number {index}"));
            break;
        };
        let guid = descriptor.guid_at(0);
        let offset = descriptor.u32_at(16).unwrap_or_default();
        match reader.provider(offset as usize) {
            Ok(mut provider) => {
                provider.guid = guid;
                providers.push(provider);
            }
            Err(e) => reader.damage(e.to_string()),
        }
    }
    Ok(Manifest { providers, damage: reader.damage })
}

/// -1 says that there is no message.
fn message(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// Value, message and offset of the name of an entry.
type Entry = (u64, u32, u32);

struct Reader<'a> {
    bytes: &'a [u8],
    budget: Budget,
    damage: Vec<String>,
}

impl<'a> Reader<'a> {
    fn damage(&mut self, what: String) {
        // A file with a million damaged entries needs no million lines.
        if self.damage.len() < 100 {
            self.damage.push(what);
        }
    }

    /// Takes what is read from the budget.
    fn spend(&mut self, structure: &'static str, at: usize, bytes: usize) -> Result<(), Error> {
        match self.budget.take(bytes) {
            true => Ok(()),
            false => Err(Error::malformed(structure, at, "parts of the resource overlap")),
        }
    }

    fn provider(&mut self, at: usize) -> Result<Provider, Error> {
        let header = self.bytes.need("WEVT", at, 20)?;
        self.spend("WEVT", at, header.len())?;
        if header.sub(0, 4) != Some(b"WEVT") {
            return Err(Error::malformed("WEVT", at, "signature is not WEVT"));
        }
        let mut provider = Provider { message: header.u32_at(8).and_then(message), ..Provider::default() };
        let count = header.u32_at(12).unwrap_or_default() as usize;
        for index in 0..count {
            let descriptor = at.saturating_add(20).saturating_add(index.saturating_mul(8));
            let Some(offset) = self.bytes.u32_at(descriptor) else {
                self.damage(format!("WEVT at {at:#x} tells {count} elements and ends in number {index}"));
                break;
            };
            // Each kind stands once; what comes a second time would only cost time.
            if index >= 64 {
                self.damage(format!("WEVT at {at:#x} tells {count} elements; 64 are read"));
                break;
            }
            if let Err(e) = self.element(offset as usize, &mut provider) {
                self.damage(e.to_string());
            }
        }
        Ok(provider)
    }

    fn element(&mut self, at: usize, provider: &mut Provider) -> Result<(), Error> {
        let header = self.bytes.need("WEVT element", at, 12)?;
        self.spend("WEVT element", at, header.len())?;
        let count = header.u32_at(8).unwrap_or_default() as usize;
        match header.sub(0, 4).unwrap_or_default() {
            b"CHAN" => {
                provider.channels = self.list("CHAN", at + 12, count, 16, |b| {
                    // Events name the number at 8; that at 0 is 1 for a channel of another provider.
                    Some((u64::from(b.u32_at(8)?), b.u32_at(12)?, b.u32_at(4)?))
                })?;
            }
            b"LEVL" => provider.levels = self.list("LEVL", at + 12, count, 12, small)?,
            b"OPCO" => provider.opcodes = self.list("OPCO", at + 12, count, 12, small)?,
            b"TASK" => {
                provider.tasks = self.list("TASK", at + 12, count, 28, |b| {
                    Some((u64::from(b.u32_at(0)?), b.u32_at(4)?, b.u32_at(24)?))
                })?;
            }
            b"KEYW" => {
                provider.keywords = self.list("KEYW", at + 12, count, 16, |b| {
                    Some((b.u64_at(0)?, b.u32_at(8)?, b.u32_at(12)?))
                })?;
            }
            b"MAPS" => self.maps(at, count, provider)?,
            b"TTBL" => self.templates(at, count, provider)?,
            b"EVNT" => self.events(at, count, provider)?,
            b"PRVA" => self.private(at, count, provider),
            // EVTA (attributes of events) says nothing about texts.
            _ => {}
        }
        Ok(())
    }

    /// A list of values with message and name: `entry` gives value, message and offset of the name.
    fn list(
        &mut self,
        structure: &'static str,
        at: usize,
        count: usize,
        size: usize,
        entry: fn(&[u8]) -> Option<Entry>,
    ) -> Result<Vec<Named>, Error> {
        let all = self.bytes.need(structure, at, count.saturating_mul(size))?;
        self.spend(structure, at, all.len())?;
        let mut out = Vec::with_capacity(count);
        for bytes in all.chunks_exact(size) {
            if let Some((value, id, offset)) = entry(bytes) {
                out.push(Named { value, name: self.name(offset as usize), message: message(id) });
            }
        }
        Ok(out)
    }

    /// A name: its size with these four bytes, then UTF-16.
    fn name(&mut self, at: usize) -> Option<String> {
        if at == 0 {
            return None;
        }
        let size = (self.bytes.u32_at(at)? as usize).checked_sub(4)?.min(NAME_MAX * 2);
        let text = self.bytes.sub(at.checked_add(4)?, size)?;
        if !self.budget.take(size) {
            return None;
        }
        Some(utf16(text)).filter(|name| !name.is_empty())
    }

    fn maps(&mut self, at: usize, count: usize, provider: &mut Provider) -> Result<(), Error> {
        let offsets = self.bytes.need("MAPS", at + 12, count.saturating_mul(4))?;
        for index in 0..count {
            let offset = offsets.u32_at(index * 4).unwrap_or_default();
            match self.map(offset) {
                Ok(map) => provider.maps.push(map),
                Err(e) => self.damage(e.to_string()),
            }
        }
        Ok(())
    }

    fn map(&mut self, offset: u32) -> Result<Map, Error> {
        let at = offset as usize;
        let header = self.bytes.need("map", at, 20)?;
        self.spend("map", at, header.len())?;
        let bits = match header.sub(0, 4) {
            Some(b"VMAP") => false,
            Some(b"BMAP") => true,
            _ => return Err(Error::malformed("map", at, "signature is neither VMAP nor BMAP")),
        };
        let count = header.u32_at(16).unwrap_or_default() as usize;
        let entries = self.bytes.need("map", at + 20, count.saturating_mul(8))?;
        self.spend("map", at, entries.len())?;
        let name = self.name(header.u32_at(8).unwrap_or_default() as usize);
        let values = entries
            .chunks_exact(8)
            .map(|entry| (entry.u32_at(0).unwrap_or_default(), entry.u32_at(4).and_then(message)))
            .collect();
        Ok(Map { offset, name, bits, values })
    }

    fn templates(&mut self, at: usize, count: usize, provider: &mut Provider) -> Result<(), Error> {
        let mut at = at.saturating_add(12);
        for index in 0..count {
            let header = self.bytes.need("TEMP", at, 40)?;
            self.spend("TEMP", at, header.len())?;
            if header.sub(0, 4) != Some(b"TEMP") {
                return Err(Error::malformed(
                    "TEMP",
                    at,
                    format!("signature of template {index} of {count} is not TEMP"),
                ));
            }
            let size = header.u32_at(4).unwrap_or_default() as usize;
            let template = self.template(at, header)?;
            provider.templates.push(template);
            if size < 40 {
                return Err(Error::malformed("TEMP", at, format!("size is {size}")));
            }
            at = at.saturating_add(size);
        }
        Ok(())
    }

    fn template(&mut self, at: usize, header: &'a [u8]) -> Result<Template, Error> {
        // Items at the top, and all of them with the members of structures: inserts count the top ones.
        let count = header.u32_at(8).unwrap_or_default() as usize;
        let items = header.u32_at(16).unwrap_or_default() as usize;
        let mut fields = Vec::new();
        if count > 0 {
            let all = self.bytes.need("template items", items, count.saturating_mul(20))?;
            self.spend("template items", items, all.len())?;
            fields.reserve_exact(count);
            for item in all.chunks_exact(20) {
                fields.push(Field {
                    name: self.name(item.u32_at(16).unwrap_or_default() as usize).unwrap_or_default(),
                    in_type: InType(item.u8_at(4).unwrap_or_default()),
                    out_type: OutType(item.u8_at(5).unwrap_or_default()),
                    map: item.u32_at(8).unwrap_or_default(),
                });
            }
        }
        let guid = header.guid_at(24).unwrap_or_default();
        Ok(Template { offset: u32::try_from(at).unwrap_or(u32::MAX), guid, fields })
    }

    fn events(&mut self, at: usize, count: usize, provider: &mut Provider) -> Result<(), Error> {
        let all = self.bytes.need("EVNT", at + 16, count.saturating_mul(48))?;
        self.spend("EVNT", at, all.len())?;
        provider.events = all
            .chunks_exact(48)
            .filter_map(|event| {
                Some(Event {
                    id: event.u16_at(0)?,
                    version: event.u8_at(2)?,
                    channel: event.u8_at(3)?,
                    level: event.u8_at(4)?,
                    opcode: event.u8_at(5)?,
                    task: event.u16_at(6)?,
                    keywords: event.u64_at(8)?,
                    message: message(event.u32_at(16)?),
                    template: event.u32_at(20)?,
                })
            })
            .collect();
        Ok(())
    }

    /// `PRVA`: pairs of a kind and the offset of a text; kind 0x10000001 is the name of the provider, without a size.
    fn private(&mut self, at: usize, count: usize, provider: &mut Provider) {
        const NAME: u32 = 0x1000_0001;
        for index in 0..count.min(16) {
            let entry = at.saturating_add(12).saturating_add(index * 8);
            if self.bytes.u32_at(entry) != Some(NAME) {
                continue;
            }
            let Some(offset) = self.bytes.u32_at(entry.saturating_add(4)).map(|o| o as usize) else {
                continue;
            };
            let rest = self.bytes.len().saturating_sub(offset).min(NAME_MAX * 2);
            let name = self.bytes.sub(offset, rest).map(utf16).filter(|name| !name.is_empty());
            provider.name = name.filter(|name| self.budget.take(name.len()));
        }
    }
}

/// An entry of levels and opcodes.
fn small(b: &[u8]) -> Option<(u64, u32, u32)> {
    Some((u64::from(b.u32_at(0)?), b.u32_at(4)?, b.u32_at(8)?))
}
