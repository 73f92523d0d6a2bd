//! What was wrong with a log without stopping it.

/// How bad an anomaly is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Results are complete.
    Info,
    /// Something was assumed.
    Warning,
    /// Records are missing.
    DataLoss,
    /// Bytes are damaged.
    Error,
}

/// A kind of anomaly.
#[derive(Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Name in the ledger.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it does to results.
    pub meaning: &'static str,
}

macro_rules! anomalies {
    ($($kind:ident $name:literal $severity:ident $meaning:literal)+) => {
        /// A kind of anomaly, by its place in [`ANOMALIES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $meaning] $kind,)+
        }
        /// All kinds of anomalies.
        pub static ANOMALIES: &[Anomaly] = &[$(Anomaly { name: $name, severity: Severity::$severity, meaning: $meaning },)+];
    };
}

anomalies! {
    Dirty "log-dirty" Info "The log was not closed (it is in use, or the machine went down): its header may be older than its chunks, all of which are read."
    HeaderChecksum "log-header-checksum" Warning "The checksum of the file header is wrong; the header is not needed to read chunks."
    NoHeader "log-header-missing" Warning "The file has no header; chunks were looked for."
    ChunkCount "log-chunk-count" Info "The header counts other chunks than there are; those that are there were read."
    ChunkMagic "log-chunk-magic" Error "Where a chunk should begin there is something else; its records are missing unless a chunk was found behind it."
    ChunkHeaderChecksum "log-chunk-header-checksum" Error "The checksum of a chunk's header is wrong; its records were read as far as they make sense."
    ChunkChecksum "log-chunk-checksum" Error "The checksum of a chunk's records is wrong; its records were read as far as they make sense."
    Cut "log-cut" DataLoss "The file ends within a chunk; the records that are complete were read."
    RecordMagic "log-record-damaged" DataLoss "Bytes among the records of a chunk are no record; reading went on at the next one."
    Foreign "log-record-foreign" Info "Behind damaged bytes of a chunk stand records that are not its own (left from what the place held before); they are not counted."
    RecordBroken "log-record-broken" DataLoss "The binary XML of a record is broken; it counts, and the fields before the damage are shown."
    RecordEmpty "log-record-empty" DataLoss "A record has no content; it counts."
    NoTemplate "log-template-missing" DataLoss "The template of a record is damaged and no other chunk has it: its values have no names."
    Borrowed "log-template-borrowed" Warning "The template of a record is damaged in its chunk; the one with the same id from another chunk was used."
    TrailingBytes "log-trailing-bytes" Info "Bytes behind the last chunk that are no chunk."
}

/// What was wrong, counted.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    counts: Vec<(Kind, u64, String)>,
}

impl Damage {
    /// Counts an anomaly; `place` says where the first was.
    pub fn count(&mut self, kind: Kind, n: u64, place: impl FnOnce() -> String) {
        if n == 0 {
            return;
        }
        match self.counts.iter_mut().find(|(k, ..)| *k == kind) {
            Some((_, count, _)) => *count = count.saturating_add(n),
            None => self.counts.push((kind, n, place())),
        }
    }

    /// Adds what was wrong elsewhere.
    pub fn add(&mut self, other: &Damage) {
        for (kind, n, place) in &other.counts {
            self.count(*kind, *n, || place.clone());
        }
    }

    /// How often this was wrong.
    pub fn of(&self, kind: Kind) -> u64 {
        self.counts.iter().find(|(k, ..)| *k == kind).map_or(0, |(_, n, _)| *n)
    }

    /// All: kind, how often, where first.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Anomaly, u64, &str)> {
        self.counts
            .iter()
            .filter_map(|(kind, n, place)| Some((ANOMALIES.get(*kind as usize)?, *n, place.as_str())))
    }

    /// True if nothing was wrong.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
