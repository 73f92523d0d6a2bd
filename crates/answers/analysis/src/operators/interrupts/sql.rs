//! The sums as queries, for those who want to see them or to ask further.

use super::{BORDERS_NS, Class};

/// Sums by module, percentiles among them; `from` is `FROM …` with conditions.
pub(super) fn sql(class: Class, from: &str) -> String {
    let limit = class.limit_ns();
    let rank = |percent: u32| {
        format!("max(CASE WHEN place <= (rows * {percent} + 99) / 100 THEN dur_ns END) AS p{percent}_ns")
    };
    format!(
        "SELECT '{table}' AS class, module, count(*) AS count, sum(dur_ns) AS total_ns, sum(exclusive_ns) AS exclusive_ns, \
         sum(dur_ns) / count(*) AS mean_ns, {}, {}, {}, max(dur_ns) AS max_ns, sum(exclusive_ns > {limit}) AS over_limit, \
         sum(CASE WHEN exclusive_ns > {limit} THEN exclusive_ns ELSE 0 END) AS over_limit_ns, count(DISTINCT cpu) AS cpus \
         FROM (SELECT module, cpu, dur_ns, exclusive_ns, row_number() OVER (PARTITION BY module ORDER BY dur_ns) AS place, \
         count(*) OVER (PARTITION BY module) AS rows {from}) \
         GROUP BY module ORDER BY exclusive_ns DESC",
        rank(50),
        rank(95),
        rank(99),
        table = class.name(),
    )
}

/// Classes of durations by module.
pub(super) fn histogram_sql(from: &str) -> String {
    let mut above = String::from("CASE");
    for (at, border) in BORDERS_NS.iter().enumerate() {
        let lower = at.checked_sub(1).and_then(|at| BORDERS_NS.get(at)).copied().unwrap_or(0);
        above.push_str(&format!(" WHEN exclusive_ns <= {border} THEN {lower}"));
    }
    let last = BORDERS_NS.last().copied().unwrap_or(0);
    format!(
        "SELECT module, {above} ELSE {last} END AS above_ns, count(*) AS count, sum(exclusive_ns) AS total_ns {from} \
         GROUP BY 1, 2 ORDER BY 1, 2"
    )
}
