//! What is said, once for terminals and for Markdown.

use super::Written;
use super::compare::{Compared, Compared1};
use etwhy_audit::advise::{Line, OutcomeLine, Proposal, Tier};
use etwhy_audit::policies::is_complete;
use etwhy_audit::policy::{Doubt, Subject};
use etwhy_audit::{Form, Policy, Setting};
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::{bytes, counted, decimal, thousands};
use etwhy_doc::{Block, Column, Doc, Line as Cell, Table};
use etwhy_knowledge::{Advice, Role};

/// The letters of the table, said once.
const LEGEND: &str = "S success, F failure, s and f only if a scenario needs it, - off, . nothing said, ? not understood. base: the \
                      baseline of Microsoft's page Audit Policy Recommendations; page: Microsoft's page of the subcategory (. also where that was not read). volume: as documents state it.";

/// Writes the document.
pub fn document(compared: &Compared, written: Option<&Written>, all: bool) -> Doc {
    let mut doc = Doc::titled("Audit policy");
    for machine in &compared.machines {
        of_machine(&mut doc, compared, machine, all);
    }
    if let Some(written) = written {
        before_and_after(&mut doc, written);
    }
    files(&mut doc, compared);
    how(&mut doc, compared);
    doc
}

/// What becomes of each line of a policy in the file that was written.
fn before_and_after(doc: &mut Doc, written: &Written) {
    let (rows, changed) = (&written.proposed.rows, written.proposed.changed());
    doc.heading(format!(
        "Proposed policy {}: {changed} of {} settings of {} change",
        written.path.display(),
        rows.len(),
        written.of
    ));
    let mut table = Table::new([
        Column::name("Setting"),
        Column::number("before"),
        Column::number("after"),
        Column::number(""),
    ]);
    for row in rows {
        let name =
            row.account.as_ref().map_or(row.name.clone(), |account| format!("{} for {account}", row.name));
        let after = row.after.clone().unwrap_or_else(|| "left out".to_owned());
        let mark = if row.changes() { "changed" } else { "" };
        table.row([name, row.before.clone(), after, mark.to_owned()].map(Cell::from));
    }
    doc.table(table);
}

fn of_machine(doc: &mut Doc, compared: &Compared, machine: &Compared1, all: bool) {
    let role = match machine.advised.role {
        Role::Client => "clients",
        Role::Server => "servers",
        Role::Dc => "domain controllers",
    };
    let name = if machine.name.is_empty() { String::new() } else { format!(" of {}", machine.name) };
    doc.heading(format!(
        "Audit policy{name}, compared with Microsoft's page Audit Policy Recommendations for {role}"
    ));
    if machine.role_assumed {
        doc.text(match machine.advised.role {
            Role::Dc => "The log holds what only domain controllers write. --baseline takes another kind of machine.",
            _ => "That it is a server is assumed: --baseline client or --baseline dc takes another kind of machine.",
        });
    }
    if let Some(log) = &machine.log {
        let cost = &log.cost;
        let days = cost.span_ns as f64 / 86_400e9;
        let files =
            if log.files.len() == 1 { "the log".to_owned() } else { format!("{} logs", log.files.len()) };
        let rate = cost.per_day(cost.bytes).map_or("too short a time for a rate".to_owned(), |rate| {
            format!("{} a day", bytes(rate.round() as i64))
        });
        doc.text(format!(
            "{}: {} records, {}, {} to {}{}, {rate}.",
            capital(&files),
            thousands(i128::from(cost.records)),
            bytes(cost.bytes),
            utc(log.first_utc_ns),
            utc(log.last_utc_ns),
            match log.files.len() {
                1 => format!(" ({})", days_text(days)),
                _ => format!(", {} in all", days_text(days)),
            },
        ));
    }
    for file in &machine.foreign {
        doc.text(format!("{file} is of another machine and is not compared with this log."));
    }
    subcategories(doc, machine, all);
    proposals(doc, machine);
    if machine.with_policy {
        below(doc, machine);
        disagreements(doc, compared, machine);
    }
}

fn subcategories(doc: &mut Doc, machine: &Compared1, all: bool) {
    let with_log = machine.log.is_some();
    let interesting = |line: &&Line| {
        let on = line.outcomes.iter().any(|o| o.on == Some(true));
        let wanted = line.outcomes.iter().any(|o| o.baseline == Advice::Yes);
        all || (with_log && line.records() > 0) || (machine.with_policy && !with_log && (on || wanted))
    };
    let lines: Vec<&Line> = machine.advised.lines.iter().filter(interesting).collect();
    if lines.is_empty() {
        doc.text(match unclear(machine) {
            0 => "No subcategory is audited.".to_owned(),
            _ => "No subcategory is known to be audited.".to_owned(),
        });
        return;
    }
    let cost = machine.log.as_ref().map(|log| &log.cost);
    let mut columns = vec![
        Column::name("Subcategory").least(28),
        Column::number(if machine.with_policy { "set" } else { "seen" }),
    ];
    if with_log {
        columns.extend(["records", "bytes", "share", "a day"].map(Column::number));
    }
    columns.extend(["base", "page", "volume"].map(Column::number));
    let mut table = Table::new(columns);
    for line in &lines {
        let setting = if machine.with_policy { line.setting } else { Some(line.evident()) };
        let mut row = vec![line.subcategory.name.to_owned(), setting_text(setting)];
        if let Some(cost) = cost {
            let share = if cost.bytes > 0 { line.bytes() as f64 * 100.0 / cost.bytes as f64 } else { 0.0 };
            row.push(thousands(i128::from(line.records())));
            row.push(bytes(line.bytes()));
            row.push(format!("{} %", decimal(share, 1)));
            row.push(cost.per_day(line.bytes()).map_or("-".to_owned(), |rate| bytes(rate.round() as i64)));
        }
        row.push(advice_text(line, |o| o.baseline));
        row.push(advice_text(line, |o| o.page));
        row.push(line.subcategory.volume.level.to_owned());
        table.row(row.into_iter().map(Cell::from));
    }
    if let Some(cost) = cost {
        let others: i64 = machine.advised.lines.iter().map(Line::bytes).fold(0, i64::saturating_add);
        let rest = cost.bytes.saturating_sub(others);
        if rest > 0 {
            let share = rest as f64 * 100.0 / cost.bytes.max(1) as f64;
            let mut row = vec!["(of no subcategory)".to_owned(), String::new(), String::new(), bytes(rest)];
            row.push(format!("{} %", decimal(share, 1)));
            table.row(row.into_iter().map(Cell::from));
        }
    }
    let is_first = !doc.blocks.iter().any(|block| matches!(block, Block::Table(_)));
    doc.table(table);
    if is_first {
        doc.text(LEGEND);
    }
}

fn setting_text(setting: Option<Setting>) -> String {
    match setting {
        None | Some(Setting::Unspecified) => ".".to_owned(),
        Some(Setting::Unknown) => "?".to_owned(),
        Some(Setting::None) => "-".to_owned(),
        Some(Setting::Success) => "S".to_owned(),
        Some(Setting::Failure) => "F".to_owned(),
        Some(Setting::Both) => "SF".to_owned(),
    }
}

fn advice_text(line: &Line, of: fn(&OutcomeLine) -> Advice) -> String {
    let mut text = String::new();
    for (outcome, (yes, maybe)) in line.outcomes.iter().zip([('S', 's'), ('F', 'f')]) {
        match of(outcome) {
            Advice::Yes => text.push(yes),
            Advice::If => text.push(maybe),
            Advice::No | Advice::Nothing | Advice::Unread => {}
        }
    }
    let no = line.outcomes.iter().any(|outcome| of(outcome) == Advice::No);
    match (text.is_empty(), no) {
        (false, _) => text,
        (true, true) => "-".to_owned(),
        (true, false) => ".".to_owned(),
    }
}

fn proposals(doc: &mut Doc, machine: &Compared1) {
    let of =
        |tier: Tier| machine.advised.proposals.iter().filter(move |p| p.tier == tier).collect::<Vec<_>>();
    let (safe, decide) = (of(Tier::Safe), of(Tier::Decide));
    let with_log = machine.log.is_some();
    if safe.is_empty() && decide.is_empty() {
        doc.heading("Nothing to switch off");
        doc.text(if with_log {
            "Nothing that costs at least 1 % of the log is beyond what Microsoft recommends, and nothing recommended takes 10 %."
        } else {
            "Nothing is known to be audited that documents call voluminous and that no recommendation asks for. With --log the cost is measured."
        });
        cannot_be_judged(doc, machine);
        return;
    }
    doc.heading(match safe.len() {
        0 => "Safe to switch off: nothing".to_owned(),
        n => format!("Safe to switch off, likely: no recommendation of Microsoft asks for it ({n})"),
    });
    for proposal in &safe {
        proposed(doc, machine, proposal);
    }
    if !safe.is_empty() {
        doc.verbatim("bat", &safe.iter().map(|proposal| proposal.command()).collect::<Vec<_>>().join("\n"));
    }
    saving(doc, machine, &safe);
    if !decide.is_empty() {
        doc.heading(format!(
            "Needs a decision: large, but recommended, or not known not to be ({})",
            decide.len()
        ));
        for proposal in &decide {
            proposed(doc, machine, proposal);
        }
    }
    cannot_be_judged(doc, machine);
}

fn proposed(doc: &mut Doc, machine: &Compared1, proposal: &Proposal) {
    let outcomes = if proposal.success { "successes" } else { "failures" };
    let amount = match &machine.log {
        Some(log) => {
            let share = proposal.bytes as f64 * 100.0 / log.cost.bytes.max(1) as f64;
            let rate = log
                .cost
                .per_day(proposal.bytes)
                .map(|rate| format!(", {} a day", bytes(rate.round() as i64)));
            format!("{} ({} %){}", bytes(proposal.bytes), decimal(share, 1), rate.unwrap_or_default())
        }
        None => format!("stated volume {}", volume_text(proposal)),
    };
    doc.item(format!("{}, {outcomes}: {amount}", proposal.subcategory.name), &proposal.reasons);
}

/// Subcategories whose setting was not understood.
fn unclear(machine: &Compared1) -> usize {
    machine.advised.lines.iter().filter(|line| line.setting == Some(Setting::Unknown)).count()
}

fn cannot_be_judged(doc: &mut Doc, machine: &Compared1) {
    let names = machine.advised.lines.iter().filter(|line| line.setting == Some(Setting::Unknown));
    let names: Vec<&str> = names.map(|line| line.subcategory.name).collect();
    if !names.is_empty() {
        doc.text(format!(
            "Cannot be determined, because the setting was not understood: {}.",
            names.join(", ")
        ));
    }
}

fn volume_text(proposal: &Proposal) -> String {
    let volume = proposal.subcategory.volume;
    if volume.note.is_empty() {
        volume.level.to_owned()
    } else {
        format!("{} ({})", volume.level, volume.note)
    }
}

fn saving(doc: &mut Doc, machine: &Compared1, safe: &[&Proposal]) {
    let Some(log) = machine.log.as_ref().filter(|_| !safe.is_empty()) else { return };
    let (cost, saved) = (&log.cost, machine.advised.saving(Tier::Safe));
    let mut text = format!("Together {} of {}", bytes(saved), bytes(cost.bytes));
    if let (Some(before), Some(after)) =
        (cost.per_day(cost.bytes), cost.per_day(cost.bytes.saturating_sub(saved)))
    {
        text.push_str(&format!(
            ": {} a day become {}",
            bytes(before.round() as i64),
            bytes(after.round() as i64)
        ));
    }
    text.push('.');
    if let (Some(before), Some(after)) = (cost.rollover_days(), cost.rollover_days_without(saved)) {
        let basis = if cost.wrapped {
            "The log reaches back".to_owned()
        } else {
            format!("{} last", bytes(cost.size_bytes))
        };
        text.push_str(&format!(" {basis} {}, then {}.", days_text(before), days_text(after)));
    }
    doc.text(text);
}

fn below(doc: &mut Doc, machine: &Compared1) {
    let below: Vec<(&Line, bool)> = machine.advised.below_baseline().collect();
    if below.is_empty() {
        return;
    }
    doc.heading(format!("Below the baseline of Audit Policy Recommendations ({})", below.len()));
    let mut names: Vec<String> = Vec::new();
    for (line, success) in &below {
        let outcome = if *success { "success" } else { "failure" };
        match names.last_mut().filter(|name| name.starts_with(&format!("{} (", line.subcategory.name))) {
            Some(name) => *name = format!("{} (success and failure)", line.subcategory.name),
            None => names.push(format!("{} ({outcome})", line.subcategory.name)),
        }
    }
    doc.text(format!("The baseline audits what the policy has off: {}.", names.join(", ")));
}

fn disagreements(doc: &mut Doc, compared: &Compared, machine: &Compared1) {
    let found: Vec<String> = machine
        .advised
        .lines
        .iter()
        .flat_map(|line| {
            let of = |at: usize| line.outcomes.get(at).filter(|o| o.disagrees).map(|o| o.switch_records);
            let one = |records: i64, outcomes: &str| {
                format!("{} ({} {outcomes})", line.subcategory.name, thousands(i128::from(records)))
            };
            [of(0).map(|n| one(n, "successes")), of(1).map(|n| one(n, "failures"))]
        })
        .flatten()
        .collect();
    if found.is_empty() {
        return;
    }
    doc.heading("The log shows what the policy says is off");
    let by_account = compared.policies.iter().any(|(_, p)| p.entries.iter().any(|e| e.account.is_some()));
    doc.text(format!(
        "{}. The policy was changed since, or is not the one in force: Group Policy wins over local settings, and categories of the old \
         policy override subcategories unless SCENoApplyLegacyAuditPolicy is 1 (HKLM\\System\\CurrentControlSet\\Control\\Lsa).{}",
        found.join(", "),
        if by_account { " Policies for single accounts, which the file has, may include them." } else { "" }
    ));
}

fn files(doc: &mut Doc, compared: &Compared) {
    if !compared.policies.is_empty() {
        doc.heading("Files");
    }
    for (file, policy) in &compared.policies {
        doc.item(format!("{file}: {}", about(policy)), notes(policy));
    }
    if compared.without > 0 {
        doc.text(format!("{} logs hold no audit records and were left out.", compared.without));
    }
    if !compared.differences.is_empty() {
        doc.heading(format!("Where the files differ ({})", compared.differences.len()));
        for difference in &compared.differences {
            let said: Vec<String> = difference
                .said
                .iter()
                .map(|(at, setting)| {
                    let file = compared.policies.get(*at).map_or("?", |(file, _)| file.as_str());
                    format!("{} in {file}", setting.text())
                })
                .collect();
            doc.bullet(format!("{}: {}", difference.subcategory.name, said.join(", ")));
        }
        let gpos = compared.policies.iter().filter(|(_, policy)| policy.form == Form::Gpo).count();
        doc.text(match gpos {
            0 => "The last file counts.",
            1 => "The file of auditpol says what was in force; Group Policy's will be at the next refresh: it wins over local settings.",
            _ => "Which of several Group Policy objects wins is decided by the order of their links (`gpresult /h report.html`).",
        });
    }
}

fn about(policy: &Policy) -> String {
    let separator = match policy.separator {
        Some(';') => ", semicolons",
        Some('\t') => ", tabs",
        _ => "",
    };
    let guessed = if policy.encoding_guessed { " (guessed)" } else { "" };
    let language =
        policy.language.filter(|l| *l != "en").map_or(String::new(), |l| format!(", language {l}"));
    let machine = policy.machine.as_deref().map_or(String::new(), |m| format!(", of {m}"));
    format!(
        "{}, {} subcategories{machine}, {}{guessed}{separator}{language}",
        policy.form.about(),
        policy.settings().len(),
        policy.encoding
    )
}

fn notes(policy: &Policy) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, one: &str, many: &str| {
        if count > 0 {
            notes.push(counted(count, one, many));
        }
    };
    note(policy.unknown_count, "line was not understood", "lines were not understood");
    note(
        policy.unknown_settings,
        "setting is a word that is in no list: `auditpol /backup` has numbers",
        "settings are words that are in no list: `auditpol /backup` has numbers",
    );
    note(
        policy.with_doubt(Doubt::Disagree),
        "line has a number and words that disagree; the number counts",
        "lines have a number and words that disagree; the number counts",
    );
    note(policy.left_out, "line behind the 50,000th was not read", "lines behind the 50,000th were not read");
    note(policy.left_out_bytes as u64, "byte at the end was not read", "bytes at the end were not read");
    note(
        policy.replaced as u64,
        "character could not be read in this encoding",
        "characters could not be read in this encoding",
    );
    let count = |of: fn(&Subject) -> bool| policy.entries.iter().filter(|e| of(&e.subject)).count() as u64;
    note(
        count(|s| matches!(s, Subject::Guid(_))),
        "subcategory is of a later Windows and not known here",
        "subcategories are of a later Windows and not known here",
    );
    note(
        count(|s| matches!(s, Subject::GlobalSacl(_))),
        "line sets SACLs for all files or keys: it decides about volume too",
        "lines set SACLs for all files or keys: they decide about volume too",
    );
    note(
        policy.entries.iter().filter(|e| e.account.is_some()).count() as u64,
        "line is for a single account",
        "lines are for single accounts",
    );
    note(
        policy.with_doubt(Doubt::Target),
        "line is neither for System nor for a known account; it is read as System's",
        "lines are neither for System nor for a known account; they are read as System's",
    );
    for unknown in policy.uncertain().iter().take(5) {
        notes.push(format!("line {}: {}: {}", unknown.line, unknown.reason, unknown.text));
    }
    if let Some(option) = policy.option("CrashOnAuditFail").filter(|o| o.value.is_some_and(|v| v > 0)) {
        notes.push(format!(
            "CrashOnAuditFail is {}: the machine stops when the log cannot be written",
            option.inclusion
        ));
    }
    if !policy.repeated.is_empty() {
        notes.push(format!(
            "named more than once with different settings, the last counts: {}",
            policy.repeated.join(", ")
        ));
    }
    if policy.form.is_in_force() && !is_complete(policy) {
        notes.push("a part of the subcategories: of the others the file says nothing".to_owned());
    }
    notes
}

fn how(doc: &mut Doc, compared: &Compared) {
    doc.heading("How to read this");
    let with_log = compared.machines.iter().any(|machine| machine.log.is_some());
    if with_log {
        doc.text(
            "The Task of a record names its subcategory. Its setting is likely the switch, not certainly: 4658 is enabled by Handle \
             Manipulation, SACLs set the volume of File System and Registry. Rates hold if the machine goes on as in the log.",
        );
    }
    doc.text(
        "Before a change: auditpol /backup /file:before.csv. What Group Policy sets must be changed there. \
         With SCENoApplyLegacyAuditPolicy = 0 categories of the old policy override subcategories.",
    );
    doc.text(
        "Sources: Microsoft, Audit Policy Recommendations (2023-08-03), Policy CSP - Audit (2019-09-27) and pages of the subcategories; \
         --json names the source of each field, NOTICE all of them. Other guides differ and may ask for more: the baselines of \
         Microsoft's Security Compliance Toolkit, CIS, national ones.",
    );
}

fn utc(ns: Option<i64>) -> String {
    ns.map_or("?".to_owned(), |ns| filetime_text(filetime(ns), 0))
}

fn days_text(days: f64) -> String {
    match days {
        d if d >= 2.0 => format!("{} days", decimal(d, 1)),
        d if d * 24.0 >= 2.0 => format!("{} hours", decimal(d * 24.0, 1)),
        d => format!("{} minutes", decimal(d * 1440.0, 1)),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
