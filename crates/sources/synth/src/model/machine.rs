//! `[machine]`: the computer and the recording session.

use super::{Cpus, Loss};
use crate::value::{Dist, Time};
use serde::Deserialize;

/// `[machine]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Machine {
    pub(crate) name: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) cpus: Option<u16>,
    pub(crate) numa_nodes: Option<u16>,
    pub(crate) groups: Option<u16>,
    pub(crate) memory: Option<Dist>,
    pub(crate) mhz: Option<u32>,
    pub(crate) cpu_name: Option<String>,
    pub(crate) os: Option<String>,
    pub(crate) build: Option<u32>,
    pub(crate) build_lab: Option<String>,
    pub(crate) product: Option<String>,
    pub(crate) pointer_size: Option<u8>,
    pub(crate) clock: Option<String>,
    pub(crate) perf_freq: Option<Dist>,
    pub(crate) start: Option<String>,
    pub(crate) boot: Option<String>,
    pub(crate) uptime: Option<Time>,
    pub(crate) time_zone_bias: Option<i32>,
    pub(crate) duration: Option<Time>,
    pub(crate) until_last_exit: bool,
    pub(crate) time_power: Option<f64>,
    pub(crate) silent_from: Option<Time>,
    pub(crate) merged: Option<bool>,
    pub(crate) compressed: Option<bool>,
    pub(crate) buffer_size: Option<Dist>,
    pub(crate) events_lost: Option<u32>,
    pub(crate) buffers_lost: Option<u32>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) unfinalised: Option<bool>,
    pub(crate) circular_buffers: Option<u32>,
    pub(crate) session: Option<String>,
    pub(crate) log_file: Option<String>,
    pub(crate) sampling_interval: Option<Time>,
    pub(crate) idle_samples: Option<bool>,
    pub(crate) samples: Option<bool>,
    pub(crate) context_switches: Option<bool>,
    pub(crate) switch_stacks: Option<bool>,
    pub(crate) stack_style: Option<String>,
    pub(crate) user_stack_delay: Option<Dist>,
    pub(crate) volumes: Option<Vec<(String, String)>>,
    /// Descriptions of network cards.
    pub(crate) nics: Option<Vec<String>>,
    /// Manufacturer and model.
    pub(crate) platform: Option<[String; 2]>,
    pub(crate) rundown_start: Option<bool>,
    pub(crate) rundown_end: Option<bool>,
    pub(crate) seed: Option<u64>,
    pub(crate) keywords: Vec<String>,
    pub(crate) stall: Option<Stall>,
    pub(crate) clock_jump: Option<Jump>,
    pub(crate) unsampled_cpus: Option<Cpus>,
    /// What the planted cause changes in this table.
    pub(crate) cause: Option<toml::Table>,
}

/// A time in which nothing happens at all.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stall {
    pub(crate) at: Time,
    pub(crate) length: Time,
}

/// Somebody sets the clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jump {
    pub(crate) at: Time,
    pub(crate) by: Time,
}
