//! Names with a kernel object's address: files and registry keys.

use std::collections::HashMap;

/// Interned names; each has an address that events refer to.
pub(crate) struct Names {
    list: Vec<String>,
    index: HashMap<String, usize>,
    prefix: String,
    base: u64,
    step: u64,
}

impl Names {
    pub(crate) fn new(prefix: &str, base: u64, step: u64) -> Names {
        Names { list: Vec::new(), index: HashMap::new(), prefix: prefix.into(), base, step }
    }

    /// Index of a name; a name without a leading backslash gets the prefix.
    pub(crate) fn intern(&mut self, name: &str) -> usize {
        let full = if name.starts_with('\\') { name.to_string() } else { format!("{}{name}", self.prefix) };
        if let Some(&at) = self.index.get(&full) {
            return at;
        }
        let at = self.list.len();
        self.list.push(full.clone());
        self.index.insert(full, at);
        at
    }

    /// The object's address (file key, key control block).
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.base + index as u64 * self.step
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.list.get(index).map_or("", String::as_str)
    }

    /// Address and name of all.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &str)> {
        self.list.iter().enumerate().map(|(i, n)| (self.address(i), n.as_str()))
    }
}
