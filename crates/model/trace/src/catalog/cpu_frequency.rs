//! Processor frequency, limits and parking, as the power manager set them.
//!
//! # How it is computed
//! One row for each event of Microsoft-Windows-Kernel-Processor-Power that speaks of one processor: performance state
//! changes (10) and their rundown (18), delivered performance (111), parking (14, 15) and limits by firmware (39, 41,
//! 46, 47) and by temperature (48). The processor is told as group and number in the group; `cpu` is the index that
//! all other tables use, by the sizes of the groups (`SystemConfig` record 26) where there are several groups.
//!
//! Layouts: the provider's manifests of Windows 8 to 11; no public trace holds these events. Speeds are MHz,
//! performance is a percentage of the nominal frequency.
//!
//! # What fools it
//! On processors that choose their own frequency (HWP, since Skylake) the system sets a range, not a frequency: then
//! only 111 tells what was delivered. A limit of 100 is no limit.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_decode::kernel::events::SystemConfig;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Changes of frequency, limits and parking of processors.
    pub table CPU_FREQUENCY: CpuFrequencyRow = "cpu_frequency" {
        sorted_by: "ts_ns", version: 1, evidence: Documented,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Logical processor; none if its group's place is not known.
        cpu: Option<i32> [None, Cpu],
        /// Processor group.
        group: i32 [None, Other],
        /// Number in the group.
        number: i32 [None, Other],
        /// change, rundown, delivered, park, unpark, p_state_limit, t_state_limit, pcc_limit, bios_limit or thermal_limit.
        kind: Sym [None, Kind],
        /// Speed that was set, or delivered, in MHz.
        mhz: Option<i32> [Count, Other],
        /// Performance that was set, or delivered, in percent of the nominal frequency.
        percent: Option<i32> [Percent, Other],
        /// Performance state.
        state: Option<i32> [None, Other],
        /// Least performance allowed.
        min_percent: Option<i32> [Percent, Other],
        /// Most performance allowed; for limits the limit.
        max_percent: Option<i32> [Percent, Other],
        /// Energy performance preference, 0 for performance to 100 for energy.
        epp_percent: Option<i32> [Percent, Other],
        /// The processor chooses its frequency by itself.
        autonomous: Option<bool> [None, Flag],
    }
}

/// `Microsoft-Windows-Kernel-Processor-Power`.
const PROCESSOR_POWER: Guid = Guid::from_text("0f67e49f-fe51-4e9f-b490-6f2948cc6027");

const KINDS: [(u16, &str); 10] = [
    (10, "change"),
    (18, "rundown"),
    (111, "delivered"),
    (14, "park"),
    (15, "unpark"),
    (39, "p_state_limit"),
    (41, "t_state_limit"),
    (46, "pcc_limit"),
    (47, "bios_limit"),
    (48, "thermal_limit"),
];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CPU_FREQUENCY],
    selects: &[
        Select::new(What::Manifest(PROCESSOR_POWER, 10), 0),
        Select::new(What::Manifest(PROCESSOR_POWER, 18), 1),
        Select::new(What::Manifest(PROCESSOR_POWER, 111), 2),
        Select::new(What::Manifest(PROCESSOR_POWER, 14), 3),
        Select::new(What::Manifest(PROCESSOR_POWER, 15), 4),
        Select::new(What::Manifest(PROCESSOR_POWER, 39), 5),
        Select::new(What::Manifest(PROCESSOR_POWER, 41), 6),
        Select::new(What::Manifest(PROCESSOR_POWER, 46), 7),
        Select::new(What::Manifest(PROCESSOR_POWER, 47), 8),
        Select::new(What::Manifest(PROCESSOR_POWER, 48), 9),
        Select::new(What::Kernel(SystemConfig::ProcessorGroup), GROUPS),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Frequencies { rows: TableBuilder::new(memory), places: Vec::new(), groups: Vec::new() })
    },
};

const GROUPS: u8 = 255;

struct Frequencies {
    rows: TableBuilder<CpuFrequencyRow>,
    /// Group and number of each row.
    places: Vec<(u16, u8)>,
    /// Processors of each group.
    groups: Vec<u32>,
}

/// Windows has at most 32 groups of at most 64 processors.
const MAX_GROUPS: usize = 64;

impl Analysis for Frequencies {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        if event.tag == GROUPS {
            if let Some(etwhy_decode::Value::Array(masks)) = fields.get("Affinity") {
                let size = |mask: &etwhy_decode::Value<'_>| mask.as_u64().map_or(0, u64::count_ones);
                self.groups = masks.iter().take(MAX_GROUPS).map(size).collect();
            }
            return;
        }
        let (Some(group), Some(number)) = (fields.u32("Group"), fields.u32("Number")) else {
            cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let kind = KINDS.get(usize::from(event.tag)).map_or("other", |(_, kind)| kind);
        let number_of = |names: &str| fields.u32(names).map(|n| n as i32);
        self.places.push((group as u16, number as u8));
        self.rows.push(CpuFrequencyRow {
            ts_ns: event.ns,
            cpu: Some((self.places.len() - 1) as i32),
            group: group as i32,
            number: number as i32,
            kind: cx.sym(kind),
            mhz: number_of("Speed|DeliveredFrequency").filter(|&s| s > 0),
            percent: number_of("Performance|DeliveredPerformance"),
            state: number_of("State"),
            min_percent: number_of("MinPercent"),
            max_percent: number_of("MaxPercent|Cap"),
            epp_percent: number_of("EppPercent"),
            autonomous: fields.get("Autonomous").and_then(etwhy_decode::Value::as_u64).map(|a| a != 0),
        });
    }

    fn finish(mut self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let (places, groups) = (std::mem::take(&mut self.places), std::mem::take(&mut self.groups));
        self.rows.remap_i32("cpu", |row| {
            let &(group, number) = places.get(usize::try_from(row?).ok()?)?;
            index(&groups, group, number)
        })?;
        Ok(vec![self.rows.into()])
    }
}

/// The index of a processor among all: behind those of the groups before its own.
fn index(groups: &[u32], group: u16, number: u8) -> Option<i32> {
    if group == 0 {
        return Some(i32::from(number));
    }
    let before = groups.get(..usize::from(group))?.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
    i32::try_from(before).ok()?.checked_add(i32::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_later_groups_come_behind() {
        assert_eq!(index(&[], 0, 3), Some(3));
        assert_eq!(index(&[40, 40], 1, 3), Some(43));
        assert_eq!(index(&[40], 2, 3), None);
        assert_eq!(index(&[], 1, 3), None);
    }

    #[test]
    fn kinds_stand_under_the_tags_of_their_events() {
        for select in SPEC.selects {
            if let What::Manifest(_, id) = select.what {
                assert_eq!(KINDS.get(usize::from(select.tag)).map(|k| k.0), Some(id));
            }
        }
    }
}
