//! Energy by program, as Windows estimates it while it records.
//!
//! # How it is computed
//! Microsoft-Windows-Energy-Estimation-Engine writes an event for each program and period, about once a minute (37, on older
//! versions of Windows 12 and 13): what the program cost since the event before, by part of the machine. Where the machine has
//! meters (EMI, RAPL), they appear as programs of their own, such as `EMI_RAPL_..._PKG`, with their reading in
//! `emi_energy`. Numbers are as recorded: the provider's manifest does not state their unit, and so they are no joules here.
//! Programs that show these numbers take them for millijoules.
//!
//! # What fools it
//! It is an estimate by a model of the device, made for batteries: many servers and virtual machines never write
//! these events. It knows programs, no drivers. The first period may have begun before the trace. What Windows writes
//! again on a coarser scale (38) is left out, or everything would count twice.
//!
//! Layouts: those that the trace itself holds, or a manifest given with `--manifests`.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_base::Guid;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Energy by program and period, as Windows estimates it (Energy Estimation Engine).
    ///
    /// The provider does not state the unit of its numbers; they can be compared with each other.
    pub table ENERGY: EnergyRow = "energy" {
        sorted_by: "ts_ns", version: 1, evidence: Documented,
        /// End of the period.
        ts_ns: i64 [Ns, Time],
        /// Length of the period, where recorded.
        dur_ns: Option<i64> [Ns, Duration],
        /// Program: its path, package, service, or a meter.
        app: Sym [None, Name],
        /// Processor.
        cpu_energy: Option<i64> [None, Weight],
        /// System on chip (older versions of the event).
        soc_energy: Option<i64> [None, Weight],
        /// Graphics processor.
        gpu_energy: Option<i64> [None, Weight],
        /// Neural processor.
        npu_energy: Option<i64> [None, Weight],
        /// Display.
        display_energy: Option<i64> [None, Weight],
        /// Disk.
        disk_energy: Option<i64> [None, Weight],
        /// Network.
        network_energy: Option<i64> [None, Weight],
        /// Mobile broadband.
        mbb_energy: Option<i64> [None, Weight],
        /// Losses of power supply and battery.
        loss_energy: Option<i64> [None, Weight],
        /// Everything else.
        other_energy: Option<i64> [None, Weight],
        /// Reading of a meter; meters are programs of their own.
        emi_energy: Option<i64> [None, Weight],
        /// Part of `cpu_energy` that was spent on behalf of other programs.
        on_behalf_cpu_energy: Option<i64> [None, Weight],
        /// Processor energy that others spent on behalf of this program.
        attributed_cpu_energy: Option<i64> [None, Weight],
        /// Bits: which of the numbers a meter measured.
        measured: Option<i64> [None, Flag],
    }
}

/// `Microsoft-Windows-Energy-Estimation-Engine`.
const E3: Guid = Guid::from_text("ddcc3826-a68a-4e0d-bcfd-9c06c27c6948");

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&ENERGY],
    selects: &[
        Select::new(What::Manifest(E3, 12), 12),
        Select::new(What::Manifest(E3, 13), 13),
        Select::new(What::Manifest(E3, 37), 37),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Energies { rows: TableBuilder::new(memory) }),
};

struct Energies {
    rows: TableBuilder<EnergyRow>,
}

impl Analysis for Energies {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let Some(app) = fields.non_empty("AppName") else { return };
        let number = |name: &str| {
            fields
                .get(name)
                .and_then(etwhy_decode::Value::as_u64)
                .map(|n| i64::try_from(n).unwrap_or(i64::MAX))
        };
        let app = cx.sym(app);
        self.rows.push(EnergyRow {
            ts_ns: event.ns,
            dur_ns: number("TimeInMSec").map(|ms| ms.saturating_mul(1_000_000)),
            app,
            cpu_energy: number("CpuEnergy"),
            soc_energy: number("SocEnergy"),
            gpu_energy: number("GpuEnergy"),
            npu_energy: number("NpuEnergy"),
            display_energy: number("DisplayEnergy"),
            disk_energy: number("DiskEnergy"),
            network_energy: number("NetworkEnergy"),
            mbb_energy: number("MbbEnergy"),
            loss_energy: number("LossEnergy"),
            other_energy: number("OtherEnergy"),
            emi_energy: number("EmiEnergy"),
            on_behalf_cpu_energy: number("WorkOnBehalfCPUEnergy"),
            attributed_cpu_energy: number("AttributedCPUEnergy"),
            measured: number("RecordMeasured"),
        });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.rows.into()])
    }
}
