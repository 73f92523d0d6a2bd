//! Units of measure, and how column names spell them.

use crate::named_enum::named_enum;

named_enum! {
    /// What a number is measured in.
    pub enum Unit {
        /// A plain number, an id, or no number at all.
        None = "none",
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// Milliseconds.
        Ms = "ms",
        /// Seconds.
        S = "s",
        /// Minutes.
        Min = "min",
        /// Hours.
        H = "h",
        /// Bytes.
        Bytes = "bytes",
        /// 1,000 bytes.
        Kb = "kb",
        /// 1,000,000 bytes.
        Mb = "mb",
        /// 10^9 bytes.
        Gb = "gb",
        /// 1,024 bytes.
        KiB = "kib",
        /// 1,048,576 bytes.
        MiB = "mib",
        /// 2^30 bytes.
        GiB = "gib",
        /// A count of things.
        Count = "count",
        /// Per cent, 0 to 100.
        Percent = "percent",
        /// An address or key: the bits of a `u64`, shown in hex and compared without sign.
        Address = "address",
        /// Ticks of the trace's clock.
        Ticks = "ticks",
        /// 100 ns since 1601-01-01 UTC (FILETIME).
        Utc100ns = "utc_100ns",
        /// 32 bits that are read in hex: NTSTATUS, flags. Compared without sign.
        Hex32 = "hex32",
        /// 64 bits that are read in hex. Compared without sign.
        Hex64 = "hex64",
        /// Megahertz.
        MHz = "mhz",
        /// Milliwatts.
        MilliWatts = "mw",
        /// Millijoules.
        MilliJoules = "mj",
        /// Microjoules.
        MicroJoules = "uj",
    }
}

/// Units that convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Spans and points of time; the base is the nanosecond.
    Time,
    /// Sizes; the base is the byte.
    Bytes,
}

impl Unit {
    /// The family of units that this one converts into, and its size in the family's base unit.
    pub const fn scale(self) -> Option<(Family, i64)> {
        Some(match self {
            Unit::Ns => (Family::Time, 1),
            Unit::Us => (Family::Time, 1_000),
            Unit::Ms => (Family::Time, 1_000_000),
            Unit::S => (Family::Time, 1_000_000_000),
            Unit::Min => (Family::Time, 60_000_000_000),
            Unit::H => (Family::Time, 3_600_000_000_000),
            Unit::Bytes => (Family::Bytes, 1),
            Unit::Kb => (Family::Bytes, 1_000),
            Unit::Mb => (Family::Bytes, 1_000_000),
            Unit::Gb => (Family::Bytes, 1_000_000_000),
            Unit::KiB => (Family::Bytes, 1 << 10),
            Unit::MiB => (Family::Bytes, 1 << 20),
            Unit::GiB => (Family::Bytes, 1 << 30),
            _ => return None,
        })
    }

    /// How many of `self` one `other` is, as numerator and denominator; `None` between families.
    pub fn ratio(self, other: Unit) -> Option<(i64, i64)> {
        let ((mine, a), (theirs, b)) = (self.scale()?, other.scale()?);
        (mine == theirs).then_some((b, a))
    }

    /// True for numbers that are read in hex and compared without sign.
    pub const fn is_hex(self) -> bool {
        matches!(self, Unit::Address | Unit::Hex32 | Unit::Hex64)
    }

    /// The unit that ends a column name (`wait_ms` is in [`Unit::Ms`]) and the stem before it.
    pub fn of_name(name: &str) -> Option<(&str, Unit)> {
        let (stem, suffix) = name.rsplit_once('_').unwrap_or(("", name));
        let unit = Unit::of_suffix(suffix)?;
        unit.scale().map(|_| (stem, unit))
    }

    /// The unit that is written after a number or at the end of a column name, in any case of letters.
    pub fn of_suffix(suffix: &str) -> Option<Unit> {
        Some(match suffix.to_ascii_lowercase().as_str() {
            "ns" => Unit::Ns,
            "us" | "µs" => Unit::Us,
            "ms" => Unit::Ms,
            "s" | "sec" => Unit::S,
            "m" | "min" => Unit::Min,
            "h" => Unit::H,
            "b" | "bytes" => Unit::Bytes,
            "kb" => Unit::Kb,
            "mb" => Unit::Mb,
            "gb" => Unit::Gb,
            "kib" => Unit::KiB,
            "mib" => Unit::MiB,
            "gib" => Unit::GiB,
            "%" => Unit::Percent,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spell_units() {
        assert_eq!(Unit::of_name("wait_ms"), Some(("wait", Unit::Ms)));
        assert_eq!(Unit::of_name("size_mb"), Some(("size", Unit::Mb)));
        assert_eq!(Unit::of_name("bytes"), Some(("", Unit::Bytes)));
        assert_eq!(Unit::of_name("in_dpc"), None);
        assert_eq!(Unit::of_name("image"), None);
    }

    #[test]
    fn ratios_stay_within_a_family() {
        assert_eq!(Unit::Ns.ratio(Unit::Ms), Some((1_000_000, 1)));
        assert_eq!(Unit::MiB.ratio(Unit::Bytes), Some((1, 1 << 20)));
        assert_eq!(Unit::Ns.ratio(Unit::Kb), None);
        assert_eq!(Unit::Count.ratio(Unit::Count), None);
    }
}
