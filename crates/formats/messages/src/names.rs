//! Names of a provider's levels, tasks, opcodes, keywords and channels.

use crate::template::EventText;
use crate::winmeta;
use std::collections::HashMap;

/// Names of a provider, those of Windows included.
#[derive(Debug, Default)]
pub struct ProviderNames {
    levels: HashMap<u64, String>,
    tasks: HashMap<u64, String>,
    opcodes: HashMap<u64, String>,
    keywords: Vec<(u64, String)>,
    channels: HashMap<u64, String>,
}

impl ProviderNames {
    /// Adds names of a manifest: their message, or else the name in the manifest.
    pub(crate) fn add(
        &mut self,
        named: &[(String, u64, Option<String>, Option<u32>)],
        text: &dyn Fn(u32) -> Option<String>,
    ) {
        for (kind, value, name, message) in named {
            let shown = message.and_then(text).map(|raw| plain(&raw)).filter(|t| !t.is_empty());
            // `win:Start` is Windows' own; its name is better than that of the manifest.
            let own = name.clone().filter(|name| !name.starts_with("win:"));
            let Some(name) = shown.or(own) else { continue };
            let map = match kind.as_str() {
                "level" => &mut self.levels,
                "task" => &mut self.tasks,
                "opcode" => &mut self.opcodes,
                "channel" => &mut self.channels,
                _ => {
                    if *value != 0 && !self.keywords.iter().any(|(bit, _)| bit == value) {
                        self.keywords.push((*value, name));
                    }
                    continue;
                }
            };
            map.entry(*value).or_insert(name);
        }
    }

    /// Adds categories of a classic provider: message 1 is the name of category 1.
    pub(crate) fn categories(&mut self, messages: &[(u32, String)]) {
        for (id, text) in messages.iter().filter(|(id, _)| (1..=0xffff).contains(id)) {
            self.tasks.entry(u64::from(*id)).or_insert_with(|| plain(text));
        }
    }

    /// Name of a level.
    #[must_use]
    pub fn level(&self, level: u8) -> Option<&str> {
        self.levels.get(&u64::from(level)).map(String::as_str).or_else(|| winmeta::level(level))
    }

    /// Name of a task: of audits the subcategory, of classic events the category.
    #[must_use]
    pub fn task(&self, task: u16) -> Option<&str> {
        self.tasks.get(&u64::from(task)).map(String::as_str).or_else(|| winmeta::task(task))
    }

    /// Name of an opcode, which may depend on the task.
    #[must_use]
    pub fn opcode(&self, task: u16, opcode: u8) -> Option<&str> {
        let of_all = u64::from(opcode) << 16;
        self.opcodes
            .get(&(of_all | u64::from(task)))
            .or_else(|| self.opcodes.get(&of_all))
            .map(String::as_str)
            .or_else(|| winmeta::opcode(opcode))
    }

    /// Names of the keywords that are set, the provider's own first.
    pub fn keywords(&self, keywords: u64) -> impl Iterator<Item = &str> {
        let own = self.keywords.iter().map(|(bit, name)| (*bit, name.as_str()));
        let standard =
            winmeta::KEYWORDS.into_iter().filter(|(bit, _)| !self.keywords.iter().any(|(own, _)| own == bit));
        own.chain(standard).filter(move |(bit, _)| keywords & bit == *bit).map(|(_, name)| name)
    }

    /// Name of a channel.
    #[must_use]
    pub fn channel(&self, channel: u8) -> Option<&str> {
        self.channels.get(&u64::from(channel)).map(String::as_str).or_else(|| winmeta::channel(channel))
    }

    /// All tasks with a name, by number.
    #[must_use]
    pub fn tasks(&self) -> Vec<(u64, &str)> {
        let mut all: Vec<_> = self.tasks.iter().map(|(n, name)| (*n, name.as_str())).collect();
        all.sort_unstable();
        all
    }
}

/// A message without inserts.
pub(crate) fn plain(raw: &str) -> String {
    let mut out = String::new();
    EventText::parse(raw).render(&[] as &[&str], &mut out);
    out.trim_end().to_owned()
}
