//! What a target is.

use crate::mutate;
use crate::seeds::Seed;
use etwhy_base::rng::Rng;
use std::cell::Cell;
use std::path::Path;

/// A mutation: numbers, what to change, and something else to take pieces from.
pub type Mutation = fn(&mut Rng, &mut Vec<u8>, &[u8]);

/// A function under test and what it is fed with.
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Runs it. Panics if something that must hold does not.
    pub run: fn(&[u8]),
    /// Its seeds; the folder is the corpus, the number the size to which large files are cut.
    pub seeds: fn(&Path, usize) -> Vec<Seed>,
    /// How mutants are made.
    pub mutate: Mutation,
    /// Mutants of one seed in the short campaign.
    pub short: usize,
}

thread_local! {
    static ACCEPTED: Cell<bool> = const { Cell::new(false) };
}

/// Called by targets when input got past what refuses input: behind that the work begins.
pub fn accepted() {
    ACCEPTED.set(true);
}

/// Whether a target does its work with this input. A seed that is refused tests nothing but the refusal.
pub fn accepts(target: &Target, data: &[u8]) -> bool {
    ACCEPTED.set(false);
    (target.run)(data);
    ACCEPTED.get()
}

impl Target {
    pub(super) const fn new(name: &'static str, about: &'static str) -> Target {
        Target { name, about, run: |_| (), seeds: |_, _| Vec::new(), mutate: mutate::several, short: 0 }
    }

    /// What it runs, and with how many mutants of one seed in the short campaign.
    pub(super) const fn runs(self, run: fn(&[u8]), short: usize) -> Target {
        Target { run, short, ..self }
    }

    pub(super) const fn on(self, seeds: fn(&Path, usize) -> Vec<Seed>) -> Target {
        Target { seeds, ..self }
    }

    pub(super) const fn mutated(self, mutate: Mutation) -> Target {
        Target { mutate, ..self }
    }

    /// Mutant number `index` of a campaign. The first ones are the seeds themselves.
    pub fn mutant(&self, seeds: &[Seed], campaign: u64, index: u64) -> Vec<u8> {
        let plain = usize::try_from(index).ok().and_then(|i| seeds.get(i));
        let mut rng = Rng::new(campaign ^ index.wrapping_mul(0xD134_2543_DE82_EF95));
        rng.bits();
        if let Some(seed) = plain
            && self.name != "damage"
        {
            return seed.data.clone();
        }
        // Every seed gets its turn, so that a short campaign reaches all of them.
        let turn = index as usize % seeds.len().max(1);
        let mut data = seeds.get(turn).map(|s| s.data.clone()).unwrap_or_default();
        let other = rng.pick(seeds).map_or(&[][..], |s| &s.data);
        (self.mutate)(&mut rng, &mut data, other);
        data
    }
}
