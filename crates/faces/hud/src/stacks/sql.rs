//! The query whose sum is a metric's total over a part.
//!
//! # What fools it
//!
//! A metric that is computed (energy) has no such query; neither have weights that stand at a frame and at no stack, once a filter
//! asks what is on the stack.

use crate::part::{Kind, Part};
use etwhy_analysis::stacks::{Class, Metric, Rows, Source};
use etwhy_table::TableSpec;
use etwhy_table::filter::{quoted, quoted_text};

/// The query, if there is one. `rows` are those of the metric, with the columns that their table has; `unused` says nothing of them.
pub fn query(
    metric: &Metric,
    rows: &Rows,
    spec: Option<&TableSpec>,
    part: &Part,
    unused: &[&str],
) -> Option<String> {
    let Source::Rows(_) = metric.source else { return None };
    let (sum, mut conditions) = rows.sql(spec?)?;
    if let (Some([from, to]), Some(ts)) = (part.range, rows.ts) {
        conditions.push(format!("{0} >= {from} AND {0} < {to}", quoted(ts)));
    }
    for filter in &part.filters {
        let column = match filter.kind {
            Kind::Process => rows.upid,
            Kind::Thread => rows.utid,
            Kind::Cpu => rows.cpu,
            Kind::Module | Kind::Frame => {
                // DPCs have a part of their stacks only, and the stacks of some system calls are not recorded.
                if rows.class != Some(Class::Thread) || rows.frame.is_some() {
                    return None;
                }
                let pattern = quoted_text(filter.value.as_str()?);
                let condition = format!("stack_has({}, {pattern})", quoted(rows.stack?));
                conditions.push(if filter.not { format!("NOT coalesce({condition}, 0)") } else { condition });
                continue;
            }
        };
        if unused.contains(&filter.kind.name()) {
            continue;
        }
        if filter.kind != Kind::Cpu {
            // DPCs and ISRs are nobody's.
            match rows.class {
                Some(Class::Thread) => {}
                Some(_) => return None,
                None => conditions.push("NOT in_dpc AND NOT in_isr".to_owned()),
            }
        }
        let is = format!("{} = {}", quoted(column?), filter.value.as_i64()?);
        // Rows of nobody are in no process that is not this one either.
        conditions.push(if filter.not { format!("NOT {is}") } else { is });
    }
    let conditions =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    Some(format!("SELECT {sum} AS total FROM {}{conditions}", quoted(&rows.table.name)))
}
