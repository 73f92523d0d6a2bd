//! The first value over time, in equal parts of a range, for each group.

use super::Function;
use etwhy_table::ColumnView;

/// How to divide time.
#[derive(Clone, Debug)]
pub struct Spark {
    /// Column that tells when a row is.
    pub column: String,
    /// From (included) and to (not), ns.
    pub range: [i64; 2],
    /// Parts.
    pub parts: usize,
}

/// More groups than this have no lines: nobody looks at so many, and each costs memory.
const MOST: usize = 1 << 16;

/// More parts than this are no line but a picture.
pub(super) const MOST_PARTS: usize = 400;

/// Sums by group and part.
pub(super) struct Sparks {
    parts: usize,
    from: i64,
    width: f64,
    function: Function,
    /// By group, then part.
    pub sums: Vec<f64>,
    counts: Vec<u32>,
    /// There were too many groups.
    pub given_up: bool,
}

impl Sparks {
    pub fn new(spark: &Spark, function: Function) -> Sparks {
        let parts = spark.parts.clamp(1, MOST_PARTS);
        let [from, to] = spark.range;
        let width = (to.saturating_sub(from).max(1) as f64) / parts as f64;
        Sparks { parts, from, width, function, sums: Vec::new(), counts: Vec::new(), given_up: false }
    }

    pub fn reserve(&mut self, groups: usize) {
        if groups > MOST {
            self.given_up = true;
            (self.sums, self.counts) = (Vec::new(), Vec::new());
        }
        if !self.given_up {
            self.sums.resize(groups * self.parts, 0.0);
            self.counts.resize(groups * self.parts, 0);
        }
    }

    /// For each row the place of its part, or none.
    pub fn parts_of(&self, time: &ColumnView<'_>, rows: &[u32], out: &mut Vec<u32>) {
        out.clear();
        out.extend(rows.iter().map(|row| {
            let Some(at) = time.i64(*row as usize) else { return u32::MAX };
            let part = at.saturating_sub(self.from) as f64 / self.width;
            if part < 0.0 || part >= self.parts as f64 { u32::MAX } else { part as u32 }
        }));
    }

    #[inline]
    pub fn add(&mut self, group: u32, part: u32, value: f64) {
        if self.given_up || part == u32::MAX {
            return;
        }
        self.put(group as usize * self.parts + part as usize, value, 1);
    }

    fn put(&mut self, at: usize, value: f64, count: u32) {
        let (Some(sum), Some(n)) = (self.sums.get_mut(at), self.counts.get_mut(at)) else { return };
        let first = *n == 0;
        *n = n.saturating_add(count);
        match self.function {
            Function::Min => *sum = if first { value } else { sum.min(value) },
            Function::Max => *sum = if first { value } else { sum.max(value) },
            _ => *sum += value,
        }
    }

    /// Adds those of another thread; `groups` says which group is which here.
    pub fn absorb(&mut self, other: &Sparks, groups: &[u32]) {
        self.given_up |= other.given_up;
        if self.given_up {
            return;
        }
        for (theirs, ours) in groups.iter().enumerate() {
            for part in 0..self.parts {
                let at = theirs * self.parts + part;
                let count = other.counts.get(at).copied().unwrap_or(0);
                if count > 0 {
                    let value = other.sums.get(at).copied().unwrap_or(0.0);
                    self.put(*ours as usize * self.parts + part, value, count);
                }
            }
        }
    }

    /// The numbers of a group, with spaces between; nothing: `-`.
    pub fn text(&self, group: usize) -> Option<String> {
        if self.given_up {
            return None;
        }
        let mut out = String::new();
        for part in 0..self.parts {
            let at = group * self.parts + part;
            let (sum, count) = (self.sums.get(at).copied()?, self.counts.get(at).copied()?);
            if part > 0 {
                out.push(' ');
            }
            match self.function {
                _ if count == 0 => out.push('-'),
                Function::Avg => out.push_str(&(sum / f64::from(count)).to_string()),
                _ => out.push_str(&sum.to_string()),
            }
        }
        Some(out)
    }
}
