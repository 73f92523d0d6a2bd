//! What one more busy logical processor draws: marginal watts, by groups of machines.

use std::sync::LazyLock;

use crate::table::rows;

/// Marginal watts of the machines of one group: the whole machine at the wall socket, idle power not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WattGroup {
    /// Name of the group: `all`, years, or a family of processors.
    pub group: &'static str,
    /// Results that the percentiles come from.
    pub results: u32,
    /// One machine in ten draws less per busy logical processor.
    pub p10: f64,
    /// Half of them draw less.
    pub p50: f64,
    /// One in ten draws more.
    pub p90: f64,
}

static GROUPS: LazyLock<Vec<WattGroup>> = LazyLock::new(|| {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    rows(include_str!("../data/marginal_watts.tsv"))
        .map(|[group, results, p10, p50, p90, _source]| WattGroup {
            group,
            results: results.parse().unwrap_or(0),
            p10: number(p10),
            p50: number(p50),
            p90: number(p90),
        })
        .collect()
});

/// All groups; the first one is all machines.
pub fn watt_groups() -> &'static [WattGroup] {
    &GROUPS
}

/// The group of a machine by the name of its processor; `None` if the data has nothing like it (client
/// processors, unknown names): then the first group, all machines, is as good as any.
pub fn watts_of(processor: &str) -> Option<&'static WattGroup> {
    let group = group_of(&processor.to_ascii_uppercase())?;
    watt_groups().iter().find(|g| g.group == group)
}

/// Generations by the names that their makers gave them: Xeon `5400` to `5600` until 2010, `E5-2600` (2012) and `v2` (2013),
/// `v3` (2014) and `v4` (2016), then metals (2017 on) and `EPYC` (2017 on).
fn group_of(name: &str) -> Option<&'static str> {
    if name.contains("EPYC") {
        return Some("AMD EPYC 2017+");
    }
    if !name.contains("XEON") {
        return None;
    }
    if ["PLATINUM", "GOLD", "SILVER", "BRONZE", "XEON(R) W", "XEON(R) 6"].iter().any(|m| name.contains(m)) {
        return Some("Intel Xeon 2017+");
    }
    if ["E3-", "E5-", "E7-"].iter().any(|m| name.contains(m)) {
        return Some(match () {
            _ if name.contains(" V3") || name.contains(" V4") => "2014-2016",
            _ if name.contains(" V5") || name.contains(" V6") => "Intel Xeon 2017+",
            _ => "2011-2013",
        });
    }
    let old = |digits: &str| digits.len() == 4 && (digits.starts_with('5') || digits.starts_with('7'));
    let number = |word: &str| old(word.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    name.split_whitespace().any(number).then_some("2007-2010")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_order() {
        assert_eq!(watt_groups().len(), 10);
        assert_eq!(watt_groups()[0].group, "all");
        assert_eq!(watt_groups()[0].results, 1088);
        for group in watt_groups() {
            assert!(0.5 < group.p10 && group.p10 < group.p50 && group.p50 < group.p90 && group.p90 < 20.0);
        }
    }

    #[test]
    fn names_of_processors() {
        for (name, group) in [
            ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", Some("Intel Xeon 2017+")),
            ("Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", Some("Intel Xeon 2017+")),
            ("AMD EPYC 7763 64-Core Processor", Some("AMD EPYC 2017+")),
            ("Intel(R) Xeon(R) CPU E5-2673 v4 @ 2.30GHz", Some("2014-2016")),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", Some("2011-2013")),
            ("Intel(R) Xeon(R) CPU X5650 @ 2.67GHz", Some("2007-2010")),
            ("13th Gen Intel(R) Core(TM) i5-13600KF", None),
            ("", None),
        ] {
            assert_eq!(watts_of(name).map(|g| g.group), group, "{name}");
        }
    }
}
