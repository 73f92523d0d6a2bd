//! Machine facts: `SystemConfig` events and what merging adds to them.

use crate::anomalies::{DROPPED_BUFFERS, LOST_IN_BAND};
use crate::event::fields::{Event, Fields};
use crate::event::select::{Select, What};
use etwhy_base::Bytes;
use etwhy_decode::Value;
use etwhy_decode::kernel::events::{EventTrace, PerfInfo, SystemConfig};
use etwhy_etl::Ledger;
use etwhy_etl::abi::guids::{RT_LOST_EVENT, SYSTEM_CONFIG_EX};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Type of the record that names the computer.
pub(crate) const CPU: u8 = SystemConfig::CPU.opcode;
const PHY_DISK: u8 = SystemConfig::PhyDisk.opcode;
const NIC: u8 = SystemConfig::NIC.opcode;
const NUMA: u8 = SystemConfig::NumaNode.opcode;
const PLATFORM: u8 = SystemConfig::Platform.opcode;
const GROUPS: u8 = SystemConfig::ProcessorGroup.opcode;
const PROCESSOR_NUMBERS: u8 = SystemConfig::ProcessorNumber.opcode;
const PROCESSORS: u8 = SystemConfig::Processors.opcode;
const EXTENSION: u8 = EventTrace::Extension.opcode;
const BUILD_INFO: u8 = EventTrace::BuildInfo.opcode;
const SAMPLE_INTERVAL: u8 = PerfInfo::CollectionStart.opcode;
const SAMPLE_INTERVAL_SET: u8 = PerfInfo::SetInterval.opcode;
const BUILD_INFO_EX: u8 = 132;
const LOST_EVENT: u8 = 133;
const LOST_BUFFER: u8 = 134;
const DROPPED_TIMES: u8 = 135;

pub(crate) const SELECTS: &[Select] = &[
    Select::kernel(SystemConfig::CPU, &[]),
    Select::kernel(SystemConfig::PhyDisk, &[]),
    Select::kernel(SystemConfig::NIC, &[]),
    Select::kernel(SystemConfig::NumaNode, &[]),
    Select::kernel(SystemConfig::Platform, &[]),
    Select::kernel(SystemConfig::ProcessorGroup, &[]),
    Select::kernel(SystemConfig::ProcessorNumber, &[]),
    Select::kernel(SystemConfig::Processors, &[]),
    Select::kernel(EventTrace::Extension, &[]),
    Select::new(What::Kernel(EventTrace::EndExtension), EXTENSION),
    Select::kernel(EventTrace::BuildInfo, &[]),
    Select::kernel(PerfInfo::CollectionStart, &[]),
    Select::new(What::Kernel(PerfInfo::CollectionEnd), SAMPLE_INTERVAL),
    Select::kernel(PerfInfo::SetInterval, &[]),
    Select::new(What::Classic(SYSTEM_CONFIG_EX, 32), BUILD_INFO_EX),
    Select::new(What::Classic(RT_LOST_EVENT, 32), LOST_EVENT),
    Select::new(What::Classic(RT_LOST_EVENT, 33), LOST_BUFFER),
    Select::new(What::Classic(RT_LOST_EVENT, 34), LOST_BUFFER),
    Select::new(What::Kernel(EventTrace::LastDroppedTimes), DROPPED_TIMES),
];

/// What the trace says of the machine.
#[derive(Clone, Debug, Default)]
pub struct SystemFacts {
    /// Computer name.
    pub computer_name: Option<String>,
    /// Memory in MB.
    pub memory_mb: Option<u32>,
    /// Nominal speed.
    pub mhz: Option<u32>,
    /// Number of NUMA nodes.
    pub numa_nodes: Option<u32>,
    /// Number of processor groups.
    pub groups: Option<u32>,
    /// Processor model.
    pub processor: Option<String>,
    /// Group and number in it, by processor index.
    pub processor_numbers: Vec<(u16, u8)>,
    /// Processors of each group, as a mask of their numbers.
    pub group_processors: Vec<u64>,
    /// Processors of each NUMA node: group and mask of numbers.
    pub node_processors: Vec<(u16, u64)>,
    /// Speed of each processor.
    pub processor_mhz: HashMap<u32, u32>,
    /// Manufacturer and model of the machine.
    pub platform: Option<String>,
    /// Product name ("Windows 11 Enterprise").
    pub product: Option<String>,
    /// Build lab string.
    pub build_lab: Option<String>,
    /// Network cards.
    pub nics: BTreeSet<String>,
    /// Disks.
    pub disks: BTreeSet<String>,
    /// Kernel event groups that were enabled (all extension records or-ed).
    pub group_masks: [u32; 8],
    /// An extension record was seen, so that `group_masks` means something.
    pub group_masks_known: bool,
    /// Interval of the profiling timer in ns: (from, interval).
    pub sample_interval: Option<i64>,
    /// First interval ever said, for samples before it.
    pub first_sample_interval: Option<i64>,
    /// Moments at which a session dropped events, in its clock.
    pub dropped_times: BTreeSet<u64>,
    /// What each file says, by its number: files that are read together may be of different machines.
    pub by_file: BTreeMap<u16, SystemFacts>,
}

/// Facts per machine are few; what is above this is damage or malice.
const MAX_FACTS: usize = 65_536;

fn fact(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.non_empty(name).map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
}

pub(crate) fn event(event: &Event<'_>, facts: &mut SystemFacts, ledger: &mut Ledger) {
    let fields = event.fields();
    match event.tag {
        LOST_EVENT | LOST_BUFFER => ledger.count(&LOST_IN_BAND, 1),
        DROPPED_TIMES => {
            // The session's last moments: zero where there was none, and later records repeat those of earlier ones.
            let count = event.payload.u32_at(0).unwrap_or(0) as usize;
            let slots = event.payload.get(8..).unwrap_or(&[]).chunks_exact(8).take(count.min(MAX_FACTS));
            let known = &mut facts.dropped_times;
            for time in slots.filter_map(|slot| slot.u64_at(0)).filter(|&time| time > 0) {
                if known.len() < MAX_FACTS && known.insert(time) {
                    ledger.count(&DROPPED_BUFFERS, 1);
                }
            }
        }
        _ => {
            learn(event, &fields, facts.by_file.entry(event.record.file).or_default());
            learn(event, &fields, facts);
        }
    }
}

/// Adds what a record says.
fn learn(event: &Event<'_>, fields: &Fields<'_>, facts: &mut SystemFacts) {
    match event.tag {
        CPU => facts.machine(fields),
        PHY_DISK if facts.disks.len() < MAX_FACTS => {
            let number = fields.u32("DiskNumber").unwrap_or(0);
            facts.disks.insert(format!("{number}: {}", fields.text("Manufacturer").trim()));
        }
        NIC if facts.nics.len() < MAX_FACTS => {
            facts.nics.extend(fact(fields, "NICDescription|NICName"));
        }
        NUMA => {
            facts.numa_nodes = fields.u32("NodeCount").or(facts.numa_nodes);
            facts.node_processors = node_processors(event);
        }
        GROUPS => {
            facts.groups = fields.u32("GroupCount").or(facts.groups);
            facts.group_processors = group_processors(event);
        }
        PROCESSOR_NUMBERS => facts.processor_numbers = processor_numbers(event),
        PLATFORM => {
            let text = format!(
                "{} {}",
                fields.text("SystemManufacturer").trim(),
                fields.text("SystemProductName").trim()
            );
            facts.platform = Some(text.trim().to_owned()).filter(|t| !t.is_empty());
        }
        PROCESSORS => {
            let speed = fields.u32("ProcessorSpeed").filter(|&mhz| mhz > 0);
            if let (Some(index), Some(mhz)) = (fields.u32("ProcessorIndex"), speed)
                && facts.processor_mhz.len() < MAX_FACTS
            {
                facts.processor_mhz.insert(index, mhz);
            }
            facts.processor = fact(fields, "ProcessorName").or(facts.processor.take());
        }
        EXTENSION => {
            facts.group_masks_known = true;
            const NAMES: [&str; 8] = [
                "GroupMask1",
                "GroupMask2",
                "GroupMask3",
                "GroupMask4",
                "GroupMask5",
                "GroupMask6",
                "GroupMask7",
                "GroupMask8",
            ];
            for (mask, name) in facts.group_masks.iter_mut().zip(NAMES) {
                *mask |= fields.u32(name).unwrap_or(0);
            }
        }
        BUILD_INFO => facts.build_lab = fact(fields, "BuildString").or(facts.build_lab.take()),
        BUILD_INFO_EX => {
            facts.build_lab = fact(fields, "BuildLab").or(facts.build_lab.take());
            facts.product = fact(fields, "ProductName").or(facts.product.take());
        }
        SAMPLE_INTERVAL | SAMPLE_INTERVAL_SET => {
            // Source 0 is the profiling timer, whose interval is in units of 100 ns; others are counters.
            let timer = fields.get("Source").and_then(Value::as_u64) == Some(0);
            if let Some(interval) = fields.u32("NewInterval").filter(|&i| timer && i > 0) {
                let ns = i64::from(interval) * 100;
                facts.sample_interval = Some(ns);
                facts.first_sample_interval.get_or_insert(ns);
            }
        }
        _ => {}
    }
}

/// Where a processor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorPlace {
    /// Group.
    pub group: Option<i32>,
    /// Number in the group.
    pub number: Option<i32>,
    /// NUMA node.
    pub numa_node: Option<i32>,
    /// Speed.
    pub mhz: Option<u32>,
}

impl SystemFacts {
    /// Adds what a `SystemConfig/CPU` record says.
    pub(crate) fn machine(&mut self, fields: &Fields<'_>) {
        self.computer_name = fact(fields, "ComputerName").or(self.computer_name.take());
        self.memory_mb = fields.u32("MemSize").filter(|&m| m > 0).or(self.memory_mb);
        self.mhz = fields.u32("MHz").filter(|&m| m > 0).or(self.mhz);
    }

    /// Where the processor with a system-wide index is, as far as the trace says.
    ///
    /// Without a record of numbers, indices count through the groups, as Windows gives them out.
    pub fn processor_place(&self, cpu: usize) -> ProcessorPlace {
        let counted = || {
            let mut first = 0;
            for (group, mask) in self.group_processors.iter().enumerate() {
                let size = mask.count_ones() as usize;
                if cpu < first + size {
                    return Some((group as u16, (cpu - first) as u8));
                }
                first += size;
            }
            None
        };
        let place = self.processor_numbers.get(cpu).copied().or_else(counted);
        let node = place.and_then(|(group, number)| {
            let bit = 1u64.checked_shl(u32::from(number))?;
            self.node_processors.iter().position(|(g, mask)| *g == group && mask & bit != 0)
        });
        ProcessorPlace {
            group: place.map(|p| i32::from(p.0)),
            number: place.map(|p| i32::from(p.1)),
            numa_node: node.map(|n| n as i32),
            mhz: self.processor_mhz.get(&(cpu as u32)).copied(),
        }
    }
}

/// Elements behind a count of 32 bits, at most [`MAX_FACTS`] of them.
fn counted<T>(event: &Event<'_>, size: usize, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
    let payload = event.payload;
    let count = payload.u32_at(0).unwrap_or(0) as usize;
    let rest = payload.get(4..).unwrap_or(&[]);
    rest.chunks_exact(size).take(count.min(MAX_FACTS)).map_while(read).collect()
}

/// `PROCESSOR_NUMBER`: group, number, a reserved byte.
fn processor_numbers(event: &Event<'_>) -> Vec<(u16, u8)> {
    counted(event, 4, |item| Some((item.u16_at(0)?, item.u8_at(2)?)))
}

/// A mask of the size of a pointer for each group.
fn group_processors(event: &Event<'_>) -> Vec<u64> {
    let width = event.pointer_size;
    counted(event, width, |item| item.ptr_at(0, width))
}

/// `GROUP_AFFINITY`: mask, group, three reserved numbers.
fn node_processors(event: &Event<'_>) -> Vec<(u16, u64)> {
    let width = event.pointer_size;
    counted(event, width + 8, |item| Some((item.u16_at(width)?, item.ptr_at(0, width)?)))
}
