//! Compares a policy with Microsoft's recommendations and with what a log holds, and proposes what could be switched off.
//!
//! Nothing that Microsoft's baseline, its stronger recommendation or its page of the subcategory wants audited is proposed as safe.
//! What is not safe needs somebody's decision, and the reasons say so. That a setting is the switch for a subcategory's records is
//! likely and no more: SACLs, Group Policy and the old categories may be others.

use crate::policies::Effective;
use crate::setting::Setting;
use etwhy_knowledge::{Advice, AuditSubcategory, Pair, Role, audit_subcategories};

/// What a log holds of one subcategory, outcome and switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// GUID of the subcategory that the records name; `None` for records of none.
    pub guid: Option<String>,
    /// GUID of the subcategory whose setting makes Windows write them.
    pub switch: Option<String>,
    /// Success, failure, or neither.
    pub success: Option<bool>,
    /// Records.
    pub records: i64,
    /// Bytes in the log.
    pub bytes: i64,
}

/// A Security log, or several of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogCost {
    /// The machine, or the file where no machine is named.
    pub name: String,
    /// Bytes of all records.
    pub bytes: i64,
    /// Records.
    pub records: i64,
    /// The time that it covers.
    pub span_ns: i64,
    /// Size of the largest file.
    pub size_bytes: i64,
    /// Old records were overwritten: its size is what the log may have.
    pub wrapped: bool,
    /// What it holds.
    pub rows: Vec<Measured>,
}

/// A day, in nanoseconds.
const DAY_NS: f64 = 86_400e9;
/// A rate over less than ten minutes would be a guess.
const SHORTEST_NS: i64 = 600_000_000_000;
/// From this share of the log on an outcome is worth a proposal.
const LEAST_SHARE: f64 = 0.01;
/// From this share on what Microsoft wants audited is worth a decision.
const LARGE_SHARE: f64 = 0.10;

impl LogCost {
    /// A number of bytes or records as a number per day; `None` if the log covers less than ten minutes.
    pub fn per_day(&self, n: i64) -> Option<f64> {
        (self.span_ns >= SHORTEST_NS).then(|| n as f64 * DAY_NS / self.span_ns as f64)
    }

    /// How far the log reaches back when it is full, in days: what it covers if it overwrites, else its size by its rate.
    pub fn rollover_days(&self) -> Option<f64> {
        if self.wrapped {
            return (self.span_ns >= SHORTEST_NS).then(|| self.span_ns as f64 / DAY_NS);
        }
        let rate = self.per_day(self.bytes).filter(|rate| *rate > 0.0)?;
        Some(self.size_bytes as f64 / rate)
    }

    /// The same if some bytes were not written.
    pub fn rollover_days_without(&self, bytes: i64) -> Option<f64> {
        let rest = self.bytes.saturating_sub(bytes);
        let days = self.rollover_days()?;
        (rest > 0 && bytes >= 0).then(|| days * self.bytes as f64 / rest as f64)
    }

    /// Bytes and records by the subcategory that they name, or by the switch that makes them.
    fn sum(&self, guid: &str, success: Option<bool>, by_switch: bool) -> (i64, i64) {
        let of = |row: &&Measured| {
            let of = if by_switch { &row.switch } else { &row.guid };
            of.as_deref() == Some(guid) && row.success == success
        };
        self.rows.iter().filter(of).fold((0, 0), |(records, bytes): (i64, i64), row| {
            (records.saturating_add(row.records), bytes.saturating_add(row.bytes))
        })
    }
}

/// The kind of machine, by what only domain controllers write: tickets of Kerberos and replication of the directory (Microsoft's pages
/// of these subcategories: "makes sense only on domain controllers").
pub fn role_of(log: &LogCost) -> Option<Role> {
    let only_on_dc = ["0CCE9240", "0CCE9242", "0CCE923D", "0CCE923E"];
    let is = |row: &Measured| {
        row.guid.as_deref().is_some_and(|guid| only_on_dc.iter().any(|head| guid.starts_with(head)))
    };
    log.rows.iter().any(is).then_some(Role::Dc)
}

/// How a proposal stands to what Microsoft recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// No recommendation of Microsoft asks for it.
    Safe,
    /// Some recommendation asks for it, or asks for it under conditions, or is not known.
    Decide,
}

impl Tier {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Safe => "safe",
            Tier::Decide => "decide",
        }
    }
}

/// One outcome of a subcategory.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeLine {
    /// Records that name the subcategory.
    pub records: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Bytes that its setting makes Windows write, whatever they name.
    pub switch_bytes: i64,
    /// Records of these.
    pub switch_records: i64,
    /// It is audited: by the policy, else by the log. `None` if neither says.
    pub on: Option<bool>,
    /// The policy says that it is off, the log has records.
    pub disagrees: bool,
    /// Microsoft's baseline.
    pub baseline: Advice,
    /// Microsoft's stronger recommendation.
    pub stronger: Advice,
    /// Microsoft's page of the subcategory.
    pub page: Advice,
    /// The same where security needs more.
    pub page_stronger: Advice,
}

impl OutcomeLine {
    /// True if the baseline wants it and it is off.
    pub fn is_below_baseline(&self) -> bool {
        self.on == Some(false) && self.baseline == Advice::Yes
    }
}

/// A subcategory with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The subcategory.
    pub subcategory: &'static AuditSubcategory,
    /// What the policy says; `None` without a policy.
    pub setting: Option<Setting>,
    /// Group Policy sets it.
    pub of_gpo: bool,
    /// What Group Policy sets, where a file of it was read.
    pub gpo: Option<Setting>,
    /// Successes and failures.
    pub outcomes: [OutcomeLine; 2],
    /// Records that are neither.
    pub other_records: i64,
    /// Their bytes.
    pub other_bytes: i64,
}

impl Line {
    /// Bytes of all its records.
    pub fn bytes(&self) -> i64 {
        self.outcomes.iter().fold(self.other_bytes, |sum, outcome| sum.saturating_add(outcome.bytes))
    }

    /// All its records.
    pub fn records(&self) -> i64 {
        self.outcomes.iter().fold(self.other_records, |sum, outcome| sum.saturating_add(outcome.records))
    }

    /// The setting that the log shows where no policy does.
    pub fn evident(&self) -> Setting {
        let on = |at: usize| self.outcomes.get(at).is_some_and(|o| o.switch_records > 0);
        Setting::new(on(0), on(1))
    }
}

/// Something that could be switched off.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The subcategory.
    pub subcategory: &'static AuditSubcategory,
    /// Success or failure.
    pub success: bool,
    /// How it stands to what Microsoft recommends.
    pub tier: Tier,
    /// Bytes of the log that its setting likely made; 0 without a log.
    pub bytes: i64,
    /// Their records.
    pub records: i64,
    /// Group Policy sets it.
    pub of_gpo: bool,
    /// Why, and what speaks against it.
    pub reasons: Vec<String>,
}

impl Proposal {
    /// The command that does it.
    pub fn command(&self) -> String {
        let outcome = if self.success { "success" } else { "failure" };
        format!("auditpol /set /subcategory:{{{}}} /{outcome}:disable", self.subcategory.guid)
    }
}

/// A policy, a log, or both, compared with what Microsoft recommends.
#[derive(Clone, Debug, PartialEq)]
pub struct Advised {
    /// The kind of machine that recommendations are for.
    pub role: Role,
    /// Subcategories, the costliest first.
    pub lines: Vec<Line>,
    /// What could be switched off: the safe first, the costliest first.
    pub proposals: Vec<Proposal>,
}

impl Advised {
    /// Bytes that proposals of a tier would save.
    pub fn saving(&self, tier: Tier) -> i64 {
        let of = self.proposals.iter().filter(|p| p.tier == tier);
        of.fold(0, |sum: i64, proposal| sum.saturating_add(proposal.bytes))
    }

    /// Outcomes that the baseline wants and that are off.
    pub fn below_baseline(&self) -> impl Iterator<Item = (&Line, bool)> {
        self.lines.iter().flat_map(|line| {
            let below = |at: usize| line.outcomes.get(at).is_some_and(OutcomeLine::is_below_baseline);
            [(below(0), true), (below(1), false)]
                .into_iter()
                .filter(|(is, _)| *is)
                .map(move |(_, success)| (line, success))
        })
    }
}

/// Compares. `policy` is empty without one.
pub fn advise(policy: &[Effective], log: Option<&LogCost>, role: Role) -> Advised {
    let mut lines: Vec<Line> = audit_subcategories().iter().map(|s| line(s, policy, log, role)).collect();
    // `sort_by_key` keeps the order of auditpol among those that cost the same.
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes()));
    let mut proposals: Vec<Proposal> = lines.iter().flat_map(|line| proposals(line, log)).collect();
    proposals.sort_by_key(|p| (p.tier, std::cmp::Reverse(p.bytes)));
    Advised { role, lines, proposals }
}

fn line(
    subcategory: &'static AuditSubcategory,
    policy: &[Effective],
    log: Option<&LogCost>,
    role: Role,
) -> Line {
    let effective = policy.iter().find(|e| e.subcategory.guid == subcategory.guid);
    let setting = effective.and_then(|e| e.setting);
    let sum = |success, by_switch| log.map_or((0, 0), |log| log.sum(subcategory.guid, success, by_switch));
    let outcome = |success: bool| {
        let (records, bytes) = sum(Some(success), false);
        let (switch_records, switch_bytes) = sum(Some(success), true);
        let says = setting.and_then(|setting| setting.outcome(success));
        let seen = (log.is_some() && policy.is_empty()).then_some(switch_records > 0);
        let of = |pair: Pair| pair.for_outcome(success);
        OutcomeLine {
            records,
            bytes,
            switch_bytes,
            switch_records,
            on: says.or(seen).or((switch_records > 0).then_some(true)),
            disagrees: says == Some(false) && switch_records > 0,
            baseline: of(subcategory.baseline_of(role)),
            stronger: of(subcategory.stronger_of(role)),
            page: of(subcategory.page_of(role)),
            page_stronger: of(subcategory.page_stronger_of(role)),
        }
    };
    let (other_records, other_bytes) = sum(None, false);
    Line {
        subcategory,
        setting,
        of_gpo: effective.is_some_and(Effective::is_of_gpo),
        gpo: effective.and_then(|e| e.gpo).map(|(setting, _)| setting),
        outcomes: [outcome(true), outcome(false)],
        other_records,
        other_bytes,
    }
}

fn proposals(line: &Line, log: Option<&LogCost>) -> Vec<Proposal> {
    let mut found = Vec::new();
    for (outcome, success) in line.outcomes.iter().zip([true, false]) {
        let total = log.map_or(0, |log| log.bytes);
        let share = if total > 0 { outcome.switch_bytes as f64 / total as f64 } else { 0.0 };
        let stated = matches!(line.subcategory.volume.level, "high" | "very high");
        let worth = match log {
            Some(_) => share >= LEAST_SHARE,
            None => outcome.on == Some(true) && stated,
        };
        let (tier, mut reasons) = judge(line.subcategory, outcome);
        let in_baseline = outcome.baseline == Advice::Yes;
        let said = [outcome.baseline, outcome.stronger, outcome.page, outcome.page_stronger];
        let wanted = said.contains(&Advice::Yes);
        // What Microsoft wants audited is only spoken of where it is large, and never for its stated volume alone.
        let large = if wanted { log.is_some() && share >= LARGE_SHARE } else { worth };
        if !worth || !large || outcome.on == Some(false) && !outcome.disagrees {
            continue;
        }
        if in_baseline {
            reasons.push(
                "switching it off goes below the baseline: enlarge the log or forward it first".to_owned(),
            );
        }
        reasons.extend(line.subcategory.rules.iter().map(|rule| rule.text().to_owned()));
        if outcome.disagrees {
            reasons.push("the policy says that it is off already: see below".to_owned());
        }
        if line.gpo.and_then(|gpo| gpo.outcome(success)) == Some(false) {
            reasons.push("Group Policy has it off: the next refresh should do this".to_owned());
        } else if line.of_gpo {
            reasons.push(
                "Group Policy sets it: change it there, a local change lasts until the next refresh"
                    .to_owned(),
            );
        }
        found.push(Proposal {
            subcategory: line.subcategory,
            success,
            tier,
            bytes: outcome.switch_bytes,
            records: outcome.switch_records,
            of_gpo: line.of_gpo,
            reasons,
        });
    }
    found
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How an outcome stands to what Microsoft recommends.
fn judge(subcategory: &AuditSubcategory, outcome: &OutcomeLine) -> (Tier, Vec<String>) {
    let mut reasons = Vec::new();
    let said = [
        ("the recommended baseline", outcome.baseline),
        ("the stronger recommendation", outcome.stronger),
        ("Microsoft's page of the subcategory", outcome.page),
    ];
    let those = |advice: Advice| -> Vec<&str> {
        said.iter().filter(|(_, a)| *a == advice).map(|(name, _)| *name).collect()
    };
    for (advice, one, several) in [
        (Advice::Yes, "audits it", "audit it"),
        (Advice::If, "audits it if a scenario needs it", "audit it if a scenario needs it"),
        (Advice::No, "does not audit it", "do not audit it"),
    ] {
        let documents = those(advice);
        let words = if documents.len() > 1 { several } else { one };
        if !documents.is_empty() {
            reasons.push(format!("{} {words}", listed(&documents)));
        }
    }
    let unlisted = subcategory.baseline_source.is_empty();
    if unlisted {
        reasons.push("Microsoft's page Audit Policy Recommendations does not list it".to_owned());
    } else if outcome.baseline == Advice::Nothing && outcome.stronger == Advice::Nothing {
        reasons.push("the recommended baseline and the stronger recommendation leave it out".to_owned());
    }
    let unread = outcome.page == Advice::Unread;
    if unread {
        reasons.push(
            "Microsoft's page of the subcategory was not read for this table: read it first".to_owned(),
        );
    }
    if outcome.page_stronger != outcome.page {
        match outcome.page_stronger {
            Advice::Yes => reasons.push("that page audits it where security needs more".to_owned()),
            Advice::If => {
                reasons.push(
                    "that page audits it where security needs more and a scenario asks for it".to_owned(),
                );
            }
            Advice::No | Advice::Nothing | Advice::Unread => {}
        }
    }
    let any = |advice: Advice| said.iter().any(|(_, a)| *a == advice);
    let tier = if any(Advice::Yes) || any(Advice::If) || outcome.page_stronger == Advice::Yes || unread {
        Tier::Decide
    } else {
        Tier::Safe
    };
    (tier, reasons)
}

#[cfg(test)]
#[path = "advise_tests.rs"]
mod tests;
