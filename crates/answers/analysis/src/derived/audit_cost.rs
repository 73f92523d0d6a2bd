//! What each audit subcategory costs in a Security log, beside what the policy says and what Microsoft recommends.
//!
//! # How it is computed
//!
//! Rows of `log_type` of logs that hold audit records, summed by log, subcategory, outcome and switch. The Task of a record names its
//! subcategory, its keywords say success or failure. `audit_policy` gives the setting: the last file that says what is in force, else
//! Group Policy's; a policy of another machine than the log's is not compared with it.
//!
//! # What fools it
//!
//! The label is not always the switch: 4658 (a handle was closed) carries the Task of File System, Registry and others, and is enabled
//! by Handle Manipulation; `switch` says so. The volume of File System and Registry is set by SACLs. A policy says what is in force
//! now, a log what was in force then.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::operators::add;
use etwhy_audit::table::AuditPolicyRow;
use etwhy_evtx::tables::{LogFileRow, LogTypeRow};
use etwhy_knowledge::{Advice, AuditSubcategory, Pair, Role, audit_subcategory, audit_subcategory_of_task};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use std::collections::BTreeMap;

define_table! {
    /// What each audit subcategory costs in a log.
    ///
    /// Rows of one log are apart: their shares add up to 1. Records that are of no subcategory have none.
    pub table AUDIT_COST: AuditCostRow = "audit_cost" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// GUID of the subcategory, in upper case; null for records of none.
        guid: Option<Sym> [None, Name],
        /// Subcategory in English; null for records of none.
        subcategory: Option<Sym> [None, Name],
        /// Category in English.
        category: Option<Sym> [None, Name],
        /// Task of the records; null for records of no subcategory.
        task: Option<i32> [None, Other],
        /// success, failure, or other where the keywords say neither.
        outcome: Sym [None, Kind],
        /// Subcategory whose setting makes Windows write them: `subcategory` itself, but Handle Manipulation for 4658.
        switch: Option<Sym> [None, Name],
        /// GUID of `switch`.
        switch_guid: Option<Sym> [None, Name],
        /// Event id that most of the bytes are of.
        top_event_id: i32 [None, Other],
        /// Records.
        records: i64 [Count, Count],
        /// Bytes of the records in the file.
        bytes: i64 [Bytes, Bytes],
        /// Bytes by those of all records of the log.
        share: f64 [None, Other],
        /// Records per day over the time that the log covers; null if that is less than ten minutes.
        records_per_day: Option<i64> [Count, Count],
        /// Bytes per day over the time that the log covers; null if that is less than ten minutes.
        bytes_per_day: Option<i64> [Bytes, Bytes],
        /// What the policy says of the switch: none, success, failure, both; null without a policy.
        setting: Option<Sym> [None, Kind],
        /// The policy says that this outcome is audited; null without a policy.
        audited: Option<bool> [None, Other],
        /// Group Policy sets the switch.
        of_gpo: bool [None, Other],
        /// Volume that documents state: low, medium, high, very high, sacl, varies, none.
        volume: Option<Sym> [None, Kind],
        /// Microsoft's baseline for clients: yes, no, if, or null where nothing is said.
        baseline_client: Option<Sym> [None, Kind],
        /// Microsoft's baseline for servers.
        baseline_server: Option<Sym> [None, Kind],
        /// Microsoft's baseline for domain controllers.
        baseline_dc: Option<Sym> [None, Kind],
        /// The strongest that Microsoft says for auditing this outcome, for any kind of machine: baseline, stronger, page, if, no, or null.
        wanted: Option<Sym> [None, Kind],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&AUDIT_COST],
    reads: reads::<(LogFileRow, LogTypeRow, AuditPolicyRow)>,
    on_demand: false,
    make,
};

/// A day, in nanoseconds.
const DAY_NS: f64 = 86_400e9;
/// Rates of a shorter time would be guesses.
const SHORTEST_NS: i64 = 600_000_000_000;
/// "The handle to an object was closed": enabled by Handle Manipulation (Microsoft's page "Audit Handle Manipulation").
const HANDLE_CLOSED: i64 = 4658;
/// Handle Manipulation.
const HANDLE_MANIPULATION: &str = "0CCE9223-69AE-11D9-BED3-505054503030";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Success,
    Failure,
    Other,
}

/// Log, GUID of the subcategory, of the switch, outcome.
type Key = (i64, Option<&'static str>, Option<&'static str>, Outcome);

#[derive(Default)]
struct Sum {
    records: i64,
    bytes: i64,
    by_event: BTreeMap<i64, i64>,
}

/// A log.
#[derive(Default)]
struct Log {
    computer: Option<String>,
    bytes: i64,
    first: Option<i64>,
    last: Option<i64>,
    /// It holds audit records.
    audits: bool,
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<AuditCostRow>::new(memory);
    let mut strings = Strings::new();
    let mut logs: BTreeMap<i64, Log> = BTreeMap::new();
    for row in &db.read_or_empty::<LogFileRow>() {
        let entry = logs.entry(row.log()).or_default();
        entry.computer = row.computer().map(str::to_owned);
        entry.first = row.first_utc_ns();
        entry.last = row.last_utc_ns();
    }
    let sums = sums(db, &mut logs);
    let policies = policies(db);
    let mut out: Vec<(Key, Sum)> = sums.into_iter().collect();
    out.sort_by_key(|((log, guid, switch, outcome), sum)| {
        (*log, std::cmp::Reverse(sum.bytes), *guid, *switch, *outcome)
    });
    for ((log, guid, switch, outcome), sum) in out {
        let Some(of_log) = logs.get(&log).filter(|log| log.audits) else { continue };
        let subcategory = guid.and_then(audit_subcategory);
        let switched = switch.and_then(audit_subcategory);
        let setting = switch.and_then(|guid| setting_of(&policies, guid, of_log.computer.as_deref()));
        let per_day = |n: i64| {
            let span = of_log.last?.checked_sub(of_log.first?)?;
            (span >= SHORTEST_NS).then(|| (n as f64 * DAY_NS / span as f64).round() as i64)
        };
        let mut word = |text: &str| strings.intern(text);
        let name = |word: &mut dyn FnMut(&str) -> Sym, s: Option<&AuditSubcategory>| s.map(|s| word(s.name));
        let advice = |role: Role| switched.and_then(|s| said(of(s.baseline_of(role), outcome)?));
        rows.push(AuditCostRow {
            log: i32::try_from(log).unwrap_or(-1),
            guid: guid.map(&mut word),
            subcategory: name(&mut word, subcategory),
            category: subcategory.map(|s| word(s.category)),
            task: subcategory.map(|s| s.task),
            outcome: word(match outcome {
                Outcome::Success => "success",
                Outcome::Failure => "failure",
                Outcome::Other => "other",
            }),
            switch: name(&mut word, switched),
            switch_guid: switch.map(&mut word),
            top_event_id: top(&sum.by_event),
            records: sum.records,
            bytes: sum.bytes,
            share: if of_log.bytes > 0 { sum.bytes as f64 / of_log.bytes as f64 } else { 0.0 },
            records_per_day: per_day(sum.records),
            bytes_per_day: per_day(sum.bytes),
            setting: setting.map(|setting| word(&setting.word)),
            audited: setting.and_then(|setting| match outcome {
                Outcome::Success => setting.success,
                Outcome::Failure => setting.failure,
                Outcome::Other => None,
            }),
            of_gpo: setting.is_some_and(|setting| setting.gpo),
            volume: subcategory.map(|s| word(s.volume.level)),
            baseline_client: advice(Role::Client).map(&mut word),
            baseline_server: advice(Role::Server).map(&mut word),
            baseline_dc: advice(Role::Dc).map(&mut word),
            wanted: switched.and_then(|s| wanted(s, outcome)).map(&mut word),
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?])
}

fn sums(db: &Database, logs: &mut BTreeMap<i64, Log>) -> BTreeMap<Key, Sum> {
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for row in &db.read_or_empty::<LogTypeRow>() {
        let number = row.log();
        let of_log = logs.entry(number).or_default();
        add(&mut of_log.bytes, row.bytes());
        of_log.first = Some(of_log.first.map_or(row.first_utc_ns(), |first| first.min(row.first_utc_ns())));
        of_log.last = of_log.last.max(Some(row.last_utc_ns()));
        let is_audit = row.provider().eq_ignore_ascii_case("Microsoft-Windows-Security-Auditing");
        of_log.audits |= is_audit;
        // Tasks count per provider: those of others are other things.
        let subcategory = is_audit.then(|| audit_subcategory_of_task(row.task())).flatten();
        let guid = subcategory.map(|s| s.guid);
        let switch = match subcategory {
            Some(_) if row.event_id() == HANDLE_CLOSED => Some(HANDLE_MANIPULATION),
            _ => guid,
        };
        let outcome = match row.audit() {
            Some("success") => Outcome::Success,
            Some("failure") => Outcome::Failure,
            _ => Outcome::Other,
        };
        let sum = sums.entry((number, guid, switch, outcome)).or_default();
        add(&mut sum.records, row.records());
        add(&mut sum.bytes, row.bytes());
        add(sum.by_event.entry(row.event_id()).or_default(), row.bytes());
    }
    sums
}

fn top(by_event: &BTreeMap<i64, i64>) -> i32 {
    let most = by_event.iter().max_by_key(|(id, bytes)| (**bytes, std::cmp::Reverse(**id)));
    most.and_then(|(id, _)| i32::try_from(*id).ok()).unwrap_or(0)
}

/// What one line of a policy says of the system.
struct Setting {
    guid: String,
    machine: Option<String>,
    word: String,
    success: Option<bool>,
    failure: Option<bool>,
    gpo: bool,
}

fn policies(db: &Database) -> Vec<Setting> {
    let mut all = Vec::new();
    for row in &db.read_or_empty::<AuditPolicyRow>() {
        let ("subcategory", None, Some(guid)) = (row.kind(), row.account(), row.guid()) else {
            continue;
        };
        all.push(Setting {
            guid: guid.to_owned(),
            machine: row.machine().map(str::to_owned),
            word: row.setting().to_owned(),
            success: row.success(),
            failure: row.failure(),
            gpo: row.form() == "gpo",
        });
    }
    all
}

/// The setting of a switch on the machine that wrote a log: the last that says what is in force, else Group Policy's last.
fn setting_of<'s>(policies: &'s [Setting], guid: &str, computer: Option<&str>) -> Option<&'s Setting> {
    let host = |name: &str| name.split('.').next().unwrap_or(name).to_lowercase();
    let same = |setting: &&Setting| match (&setting.machine, computer) {
        (Some(machine), Some(computer)) => host(machine) == host(computer),
        _ => true,
    };
    let of = |gpo: bool| policies.iter().rev().filter(same).find(|s| s.gpo == gpo && s.guid == guid);
    of(false)
        .or_else(|| of(true))
        .filter(|setting| setting.word != "unspecified" && setting.word != "unknown")
}

fn of(pair: Pair, outcome: Outcome) -> Option<Advice> {
    match outcome {
        Outcome::Success => Some(pair.success),
        Outcome::Failure => Some(pair.failure),
        Outcome::Other => None,
    }
}

fn said(advice: Advice) -> Option<&'static str> {
    match advice {
        Advice::Yes => Some("yes"),
        Advice::No => Some("no"),
        Advice::If => Some("if"),
        Advice::Nothing | Advice::Unread => None,
    }
}

/// What a document says of a subcategory for a kind of machine.
type Document = fn(&AuditSubcategory, Role) -> Pair;

/// The strongest that is said for auditing an outcome, over all kinds of machines.
fn wanted(subcategory: &AuditSubcategory, outcome: Outcome) -> Option<&'static str> {
    let any = |pair: Document, advice: Advice| {
        Role::ALL.into_iter().any(|role| of(pair(subcategory, role), outcome) == Some(advice))
    };
    let documents: [(Document, &'static str); 4] = [
        (AuditSubcategory::baseline_of, "baseline"),
        (AuditSubcategory::stronger_of, "stronger"),
        (AuditSubcategory::page_of, "page"),
        (AuditSubcategory::page_stronger_of, "stronger"),
    ];
    if let Some((_, name)) = documents.iter().find(|(pair, _)| any(*pair, Advice::Yes)) {
        return Some(name);
    }
    if documents.iter().take(3).any(|(pair, _)| any(*pair, Advice::If)) {
        return Some("if");
    }
    let says_no = documents.iter().any(|(pair, _)| any(*pair, Advice::No));
    says_no.then_some("no")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{shown, table};
    use etwhy_knowledge::audit_subcategories;
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    fn database(policy_machine: &str) -> Database {
        let day = 86_400_000_000_000i64;
        let mut db = Database::new();
        let t = Value::Text;
        db.insert(table(
            "log_file",
            "log computer first_utc_ns last_utc_ns",
            &[vec![Value::I64(0), t("SRV1.corp.local"), Value::I64(day), Value::I64(3 * day)]],
        ));
        let columns = "log event_id task audit records bytes provider first_utc_ns last_utc_ns";
        let auditing = "Microsoft-Windows-Security-Auditing";
        let row = |log, id, task, audit, records, bytes, provider| {
            let n = Value::I64;
            vec![n(log), n(id), n(task), audit, n(records), n(bytes), t(provider), n(day), n(3 * day)]
        };
        let rows = [
            row(0, 5156, 12810, t("success"), 500, 400_000, auditing),
            row(0, 5158, 12810, t("success"), 100, 100_000, auditing),
            row(0, 5157, 12810, t("failure"), 50, 40_000, auditing),
            row(0, 4658, 12800, t("success"), 300, 200_000, auditing),
            row(0, 4663, 12800, t("success"), 100, 160_000, auditing),
            row(0, 1102, 104, t("success"), 1, 100_000, "Microsoft-Windows-Eventlog"),
            // A log without audit records has no rows.
            row(1, 7036, 12810, Value::Null, 10, 10, "Service Control Manager"),
        ];
        db.insert(table("log_type", columns, &rows));
        let columns = "kind account guid machine setting success failure form";
        let policy = |guid, setting, success, failure, form| {
            let machine = if form == "gpo" { Value::Null } else { t(policy_machine) };
            let bools = [Value::Bool(success), Value::Bool(failure)];
            let [success, failure] = bools;
            vec![t("subcategory"), Value::Null, t(guid), machine, t(setting), success, failure, t(form)]
        };
        let wfp = "0CCE9226-69AE-11D9-BED3-505054503030";
        let rows = [
            policy(wfp, "failure", false, true, "report"),
            policy(wfp, "both", true, true, "gpo"),
            policy(HANDLE_MANIPULATION, "success", true, false, "gpo"),
        ];
        db.insert(table("audit_policy", columns, &rows));
        db
    }

    fn cost(db: &Database) -> Table {
        make(db, &Memory::default()).unwrap().remove(0)
    }

    #[test]
    fn costs_by_subcategory_outcome_and_switch() {
        let table = cost(&database("srv1"));
        // 1,000,000 bytes in all. The policy in force beats Group Policy's, which alone names Handle Manipulation.
        shown(&table, "subcategory switch outcome records bytes share setting", 1).are(&[
            "Filtering Platform Connection Filtering Platform Connection success 600 500000 0.5 failure",
            "File System Handle Manipulation success 300 200000 0.2 success",
            "File System File System success 100 160000 0.16 -",
            "- - success 1 100000 0.1 -",
            "Filtering Platform Connection Filtering Platform Connection failure 50 40000 0.04 failure",
        ]);
        assert_eq!(table.i64(0, "audited"), Some(0), "the log shows successes that the policy says are off");
        assert_eq!(
            (table.i64(0, "top_event_id"), table.i64(0, "bytes_per_day")),
            (Some(5156), Some(250_000))
        );
        // Success of connections: no baseline, the page says no, but "if" for stronger needs; failure: the page says yes.
        assert_eq!((table.text(0, "wanted"), table.text(4, "wanted")), (Some("no"), Some("page")));
        assert_eq!((table.text(0, "baseline_server"), table.text(0, "volume")), (None, Some("high")));
    }

    #[test]
    fn a_policy_of_another_machine_says_nothing() {
        let table = cost(&database("OTHER"));
        // Group Policy's file names no machine.
        assert_eq!(table.text(0, "setting"), Some("both"));
        assert!(table.i64(0, "of_gpo") == Some(1) && table.i64(0, "audited") == Some(1));
    }

    #[test]
    fn the_rules_name_what_exists() {
        assert_eq!(audit_subcategory(HANDLE_MANIPULATION).unwrap().name, "Handle Manipulation");
        assert!(audit_subcategories().iter().any(|s| s.makes(4658)));
    }
}
