//! Loaded modules, the least recently used ones dropped above a limit.

use std::sync::Arc;

use crate::{ModuleSymbols, WantedModule};

/// Keeps modules alive up to a number of bytes. What a caller holds beyond that is its own.
#[derive(Debug)]
pub struct Cache {
    limit: usize,
    held: usize,
    clock: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    key: WantedModule,
    module: Arc<ModuleSymbols>,
    used: u64,
}

impl Cache {
    pub fn new(limit: usize) -> Cache {
        Cache { limit, held: 0, clock: 0, entries: Vec::new() }
    }

    pub fn get(&mut self, key: &WantedModule) -> Option<Arc<ModuleSymbols>> {
        self.clock = self.clock.saturating_add(1);
        let clock = self.clock;
        let entry = self.entries.iter_mut().find(|e| e.key == *key)?;
        entry.used = clock;
        Some(entry.module.clone())
    }

    pub fn put(&mut self, key: &WantedModule, module: &Arc<ModuleSymbols>) {
        self.held = self.held.saturating_add(module.memory());
        self.clock = self.clock.saturating_add(1);
        self.entries.push(Entry { key: key.clone(), module: module.clone(), used: self.clock });
        while self.held > self.limit {
            let Some(oldest) = self.entries.iter().enumerate().min_by_key(|(_, e)| e.used).map(|(i, _)| i)
            else {
                break;
            };
            let dropped = self.entries.swap_remove(oldest);
            self.held = self.held.saturating_sub(dropped.module.memory());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModuleBuilder, ModuleKey};

    fn module(functions: u32) -> Arc<ModuleSymbols> {
        let mut builder = ModuleBuilder::new();
        for i in 0..functions {
            builder.function(i * 16, 16, &format!("function {i}"));
        }
        Arc::new(builder.finish(crate::Origin::Breakpad, ""))
    }

    fn key(age: u32) -> WantedModule {
        WantedModule {
            pdb: Some(ModuleKey { pdb_name: "a.pdb".into(), guid: etwhy_base::Guid::ZERO, age }),
            image: None,
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let modules = [module(100), module(100), module(100)];
        let mut cache = Cache::new(modules[0].memory() * 5 / 2);
        cache.put(&key(0), &modules[0]);
        cache.put(&key(1), &modules[1]);
        assert!(cache.get(&key(0)).is_some());
        cache.put(&key(2), &modules[2]);
        assert!(cache.get(&key(1)).is_none());
        assert!(cache.get(&key(0)).is_some() && cache.get(&key(2)).is_some());
        assert!(cache.held <= cache.limit);
    }

    #[test]
    fn a_module_above_the_limit_is_not_kept() {
        let mut cache = Cache::new(1);
        cache.put(&key(0), &module(10));
        assert!(cache.get(&key(0)).is_none());
        assert_eq!(cache.held, 0);
    }
}
