//! Policies and logs put together.

use super::logs::{Logs, Machine};
use etwhy_audit::Policy;
use etwhy_audit::advise::{Advised, advise, role_of};
use etwhy_audit::policies::{Difference, differences, effective};
use etwhy_knowledge::Role;

/// One machine, or the policy alone.
pub struct Compared1 {
    /// Name of the machine; empty if neither policy nor log names one.
    pub name: String,
    /// Its logs.
    pub log: Option<Machine>,
    /// What is to be said.
    pub advised: Advised,
    /// The kind of machine was not given but concluded.
    pub role_assumed: bool,
    /// Policies that are of other machines and were not compared with its logs.
    pub foreign: Vec<String>,
    /// A policy was compared.
    pub with_policy: bool,
}

/// All of it.
pub struct Compared {
    /// Policies with the names of their files.
    pub policies: Vec<(String, Policy)>,
    /// Where policies differ.
    pub differences: Vec<Difference>,
    /// Machines.
    pub machines: Vec<Compared1>,
    /// Logs that hold no audit records.
    pub without: usize,
}

/// Compares.
pub fn compare(policies: Vec<(String, Policy)>, logs: Logs, role: Option<Role>) -> Compared {
    let mut machines = Vec::new();
    for machine in logs.machines {
        let computer = machine.computer.clone();
        let (own, others): (Vec<_>, Vec<_>) =
            policies.iter().cloned().partition(|(_, policy)| is_of(policy, computer.as_deref()));
        let concluded = role_of(&machine.cost);
        let of = role.or(concluded).unwrap_or(Role::Server);
        let effective = if own.is_empty() { Vec::new() } else { effective(&own) };
        machines.push(Compared1 {
            name: machine.cost.name.clone(),
            advised: advise(&effective, Some(&machine.cost), of),
            log: Some(machine),
            role_assumed: role.is_none(),
            foreign: others.into_iter().map(|(file, _)| file).collect(),
            with_policy: !own.is_empty(),
        });
    }
    if machines.is_empty() {
        let name = policies.iter().find_map(|(_, policy)| policy.machine.clone()).unwrap_or_default();
        machines.push(Compared1 {
            name,
            advised: advise(&effective(&policies), None, role.unwrap_or(Role::Server)),
            log: None,
            role_assumed: role.is_none(),
            foreign: Vec::new(),
            with_policy: true,
        });
    }
    Compared { differences: differences(&policies), policies, machines, without: logs.without }
}

/// True unless both name a machine and it is not the same. The log has the domain behind the name.
fn is_of(policy: &Policy, computer: Option<&str>) -> bool {
    let host = |name: &str| name.split('.').next().unwrap_or(name).to_lowercase();
    match (&policy.machine, computer) {
        (Some(machine), Some(computer)) => host(machine) == host(computer),
        _ => true,
    }
}
