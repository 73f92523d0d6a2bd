//! JSON and CSV.

use super::Written;
use super::compare::{Compared, Compared1};
use etwhy_audit::advise::{Line, Tier};
use etwhy_audit::policy::Subject;
use etwhy_audit::write::Change;
use etwhy_export::csv_cell;
use etwhy_knowledge::Advice;
use serde_json::{Value, json};

/// Everything as JSON.
pub fn json(compared: &Compared, written: Option<&Written>) -> Value {
    let policies: Vec<Value> = compared
        .policies
        .iter()
        .map(|(file, policy)| {
            let accounts = policy.entries.iter().filter(|e| e.account.is_some());
            let options = policy.entries.iter().filter_map(|e| match &e.subject {
                Subject::Option(name) => Some(json!({ "name": name, "value": e.value, "text": e.inclusion })),
                _ => None,
            });
            json!({
                "file": file,
                "form": policy.form.name(),
                "encoding": policy.encoding,
                "encoding_guessed": policy.encoding_guessed,
                "language": policy.language,
                "machine": policy.machine,
                "lines": policy.entries.len(),
                "lines_not_understood": policy.unknown_count,
                "not_understood": policy.unknown.iter()
                    .map(|u| json!({ "line": u.line, "text": u.text, "reason": u.reason })).collect::<Vec<_>>(),
                "settings_not_understood": policy.unknown_settings,
                "uncertain": policy.uncertain().iter()
                    .map(|u| json!({ "line": u.line, "text": u.text, "reason": u.reason })).collect::<Vec<_>>(),
                "accounts": accounts.count(),
                "options": options.collect::<Vec<_>>(),
            })
        })
        .collect();
    let differences: Vec<Value> = compared
        .differences
        .iter()
        .map(|d| {
            let said = d.said.iter().map(|(at, setting)| {
                let file = compared.policies.get(*at).map(|(file, _)| file.as_str());
                json!({ "file": file, "setting": setting.name() })
            });
            json!({ "subcategory": d.subcategory.name, "guid": d.subcategory.guid, "said": said.collect::<Vec<_>>() })
        })
        .collect();
    json!({
        "recommendations": "Microsoft, Audit Policy Recommendations (2023-08-03); not the Security Compliance Toolkit",
        "proposed": written.map(of_written),
        "policies": policies,
        "differences": differences,
        "machines": compared.machines.iter().map(one).collect::<Vec<_>>(),
        "logs_without_audit_records": compared.without,
    })
}

/// What becomes of each line of a policy.
fn of_written(written: &Written) -> Value {
    let row = |row: &Change| {
        json!({
            "line": row.line, "account": row.account, "name": row.name, "guid": row.guid,
            "before": row.before, "after": row.after, "changes": row.changes(),
        })
    };
    json!({
        "file": written.path.display().to_string(),
        "of": written.of,
        "changed": written.proposed.changed(),
        "rows": written.proposed.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn one(machine: &Compared1) -> Value {
    let cost = machine.log.as_ref().map(|log| &log.cost);
    let log = machine.log.as_ref().map(|log| {
        json!({
            "files": log.files,
            "records": log.cost.records,
            "bytes": log.cost.bytes,
            "size_bytes": log.cost.size_bytes,
            "first_utc_ns": log.first_utc_ns,
            "last_utc_ns": log.last_utc_ns,
            "bytes_per_day": log.cost.per_day(log.cost.bytes),
            "rollover_days": log.cost.rollover_days(),
            "overwrites": log.cost.wrapped,
        })
    });
    let per_day = |bytes: i64| cost.and_then(|cost| cost.per_day(bytes));
    let proposals: Vec<Value> = machine
        .advised
        .proposals
        .iter()
        .map(|p| {
            json!({
                "subcategory": p.subcategory.name,
                "guid": p.subcategory.guid,
                "outcome": if p.success { "success" } else { "failure" },
                "tier": p.tier.name(),
                "likely": true,
                "saves_bytes": p.bytes,
                "saves_records": p.records,
                "saves_bytes_per_day": per_day(p.bytes),
                "of_group_policy": p.of_gpo,
                "command": p.command(),
                "reasons": p.reasons,
            })
        })
        .collect();
    let saving = |tier| {
        let bytes = machine.advised.saving(tier);
        json!({
            "bytes": bytes,
            "bytes_per_day": per_day(bytes),
            "rollover_days": cost.and_then(|cost| cost.rollover_days_without(bytes)),
        })
    };
    json!({
        "machine": machine.name,
        "role": machine.advised.role.name(),
        "role_assumed": machine.role_assumed,
        "with_policy": machine.with_policy,
        "policies_of_other_machines": machine.foreign,
        "log": log,
        "subcategories": machine.advised.lines.iter().map(|l| line(l, &per_day)).collect::<Vec<_>>(),
        "proposals": proposals,
        "savings": { "safe": saving(Tier::Safe), "decide": saving(Tier::Decide) },
    })
}

fn word(advice: Advice) -> Option<&'static str> {
    match advice {
        Advice::Yes => Some("yes"),
        Advice::No => Some("no"),
        Advice::If => Some("if"),
        Advice::Nothing | Advice::Unread => None,
    }
}

fn line(line: &Line, per_day: &dyn Fn(i64) -> Option<f64>) -> Value {
    let s = line.subcategory;
    let outcomes: Vec<Value> = line
        .outcomes
        .iter()
        .zip(["success", "failure"])
        .map(|(o, name)| {
            json!({
                "outcome": name,
                "on": o.on,
                "disagrees_with_log": o.disagrees,
                "records": o.records,
                "bytes": o.bytes,
                "bytes_per_day": per_day(o.bytes),
                "switched_records": o.switch_records,
                "switched_bytes": o.switch_bytes,
                "baseline": word(o.baseline),
                "stronger": word(o.stronger),
                "page": word(o.page),
                "page_stronger": word(o.page_stronger),
            })
        })
        .collect();
    json!({
        "category": s.category,
        "subcategory": s.name,
        "guid": s.guid,
        "task": s.task,
        "event_ids": s.event_ids_text(),
        "volume": s.volume.level,
        "volume_note": s.volume.note,
        "setting": line.setting.map(|setting| setting.name()),
        "of_group_policy": line.of_gpo,
        "outcomes": outcomes,
        "other_records": line.other_records,
        "other_bytes": line.other_bytes,
        "sources": {
            "event_ids": s.ids_source, "volume": s.volume.source, "baseline": s.baseline_source, "page": s.page_source,
        },
    })
}

/// A line per machine, subcategory and outcome.
pub fn csv(compared: &Compared) -> String {
    let mut text = String::from(
        "machine,category,subcategory,guid,task,event_ids,outcome,setting,on,records,bytes,share,bytes_per_day,\
         switched_records,switched_bytes,baseline,stronger,page,volume,tier,command\n",
    );
    for machine in &compared.machines {
        let cost = machine.log.as_ref().map(|log| &log.cost);
        for line in &machine.advised.lines {
            for (o, success) in line.outcomes.iter().zip([true, false]) {
                let s = line.subcategory;
                let is =
                    |p: &&etwhy_audit::advise::Proposal| p.subcategory.guid == s.guid && p.success == success;
                let proposal = machine.advised.proposals.iter().find(is);
                let number = |n: i64| if cost.is_some() { n.to_string() } else { String::new() };
                let share = cost.filter(|cost| cost.bytes > 0).map(|cost| o.bytes as f64 / cost.bytes as f64);
                let rate = cost.and_then(|cost| cost.per_day(o.bytes));
                let fields = [
                    machine.name.clone(),
                    s.category.to_owned(),
                    s.name.to_owned(),
                    s.guid.to_owned(),
                    s.task.to_string(),
                    s.event_ids_text(),
                    if success { "success" } else { "failure" }.to_owned(),
                    line.setting.map_or("", |setting| setting.name()).to_owned(),
                    o.on.map_or(String::new(), |on| on.to_string()),
                    number(o.records),
                    number(o.bytes),
                    share.map_or(String::new(), |share| format!("{share:.6}")),
                    rate.map_or(String::new(), |rate| format!("{rate:.0}")),
                    number(o.switch_records),
                    number(o.switch_bytes),
                    word(o.baseline).unwrap_or("").to_owned(),
                    word(o.stronger).unwrap_or("").to_owned(),
                    word(o.page).unwrap_or("").to_owned(),
                    s.volume.level.to_owned(),
                    proposal.map_or("", |p| p.tier.name()).to_owned(),
                    proposal.map_or(String::new(), |p| p.command()),
                ];
                text.push_str(&fields.map(|field| csv_cell(&field).into_owned()).join(","));
                text.push('\n');
            }
        }
    }
    text
}
