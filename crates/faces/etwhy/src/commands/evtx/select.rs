//! Which records are wanted, on the command line.

use crate::options::time::{Span, TimeArgs, When, in_order};
use anyhow::{Context as _, bail};
use etwhy_evtx::binxml::time;
use etwhy_evtx::filter::{Condition, Filter, Pattern};

/// Which records are wanted.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Select {
    /// Only events with these ids: 4624,4625 or 4720-4735
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    id: Vec<String>,
    /// Only of these providers (* stands for anything)
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Only of these channels (* stands for anything)
    #[arg(long, value_name = "NAME")]
    channel: Vec<String>,
    /// Only of these computers (* stands for anything)
    #[arg(long, value_name = "NAME")]
    computer: Vec<String>,
    /// Only of users with these SIDs (* stands for anything)
    #[arg(long, value_name = "SID")]
    user: Vec<String>,
    /// Only these levels: critical, error, warning, information, verbose, or numbers; audit_failure and audit_success for
    /// records of audits, which have no level of their own
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    level: Vec<String>,
    /// Only these tasks (in the Security log: audit subcategories), by number
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    task: Vec<u16>,
    /// Only these record ids: 17,20-30
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    record: Vec<String>,
    /// Only records written by these processes
    #[arg(long, value_name = "PIDS", value_delimiter = ',')]
    pid: Vec<u32>,
    #[command(flatten)]
    time: TimeArgs,
    /// Only where a field is so: Name=text (* stands for anything), Name!=text, Name~part, Name<5, Name>5
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
}

/// `5` or `5-9`.
fn range<T: std::str::FromStr + Copy>(text: &str) -> anyhow::Result<(T, T)> {
    let number = |part: &str| {
        part.trim()
            .parse::<T>()
            .ok()
            .with_context(|| format!("`{text}` is neither a number nor a range such as 20-30"))
    };
    match text.split_once('-') {
        Some((from, to)) => Ok((number(from)?, number(to)?)),
        None => Ok((number(text)?, number(text)?)),
    }
}

/// A level, or the outcome of an audit.
enum Level {
    Number(u8),
    Audit(bool),
}

fn level(text: &str) -> anyhow::Result<Level> {
    let text = text.trim().to_ascii_lowercase().replace(['-', ' '], "_");
    // winmeta.xml; Windows shows level 0 as information.
    Ok(Level::Number(match text.as_str() {
        "audit_failure" => return Ok(Level::Audit(false)),
        "audit_success" => return Ok(Level::Audit(true)),
        "always" => 0,
        "critical" => 1,
        "error" => 2,
        "warning" => 3,
        "information" | "info" => 4,
        "verbose" => 5,
        number => number.parse().ok().with_context(|| {
            format!(
                "unknown level `{text}`; known are critical, error, warning, information, verbose, audit_failure, audit_success and \
                 numbers"
            )
        })?,
    }))
}

impl Select {
    /// The filter.
    ///
    /// # Errors
    /// What cannot be understood.
    pub fn filter(&self) -> anyhow::Result<Filter> {
        let span = Span::of_logs();
        let utc_ns = |when: Option<When>| when.map(|when| span.utc_ns(when)).transpose();
        let (since, until) = in_order(utc_ns(self.time.from)?, utc_ns(self.time.to)?)?;
        let patterns = |list: &[String]| list.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
        let mut filter = Filter {
            ids: self.id.iter().map(|t| range(t)).collect::<anyhow::Result<_>>()?,
            providers: patterns(&self.provider),
            channels: patterns(&self.channel),
            computers: patterns(&self.computer),
            users: patterns(&self.user),
            tasks: self.task.clone(),
            records: self.record.iter().map(|t| range(t)).collect::<anyhow::Result<_>>()?,
            processes: self.pid.clone(),
            since: since.map(time::file_time),
            until: until.map(time::file_time),
            ..Filter::default()
        };
        for text in &self.level {
            match level(text)? {
                Level::Number(level) => filter.levels.push(level),
                Level::Audit(success) => filter.audits.push(success),
            }
        }
        // Windows writes 0 where it shows information.
        if filter.levels.contains(&4) {
            filter.levels.push(0);
        }
        for text in &self.conditions {
            match Condition::parse(text) {
                Ok(condition) => filter.conditions.push(condition),
                Err(why) => bail!("--where: {why}"),
            }
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_filter() {
        let when = |text| When::parse(text).ok();
        let select = Select {
            id: vec!["4624".into(), "4720-4735".into()],
            level: vec!["error".into(), "info".into()],
            time: TimeArgs { from: when("2026-03-04"), to: when("2026-03-04 05:06") },
            conditions: vec!["LogonType=3".into()],
            ..Select::default()
        };
        let filter = select.filter().unwrap();
        assert_eq!(filter.ids, [(4624, 4624), (4720, 4735)]);
        assert_eq!(filter.levels, [2, 4, 0]);
        // 5 hours and 6 minutes in steps of 100 ns.
        assert_eq!(filter.until.unwrap() - filter.since.unwrap(), (5 * 60 + 6) * 60 * 10_000_000);
        assert!(Select { id: vec!["x".into()], ..Select::default() }.filter().is_err());
        let audits = Select { level: vec!["Audit Failure".into(), "2".into()], ..Select::default() };
        let audits = audits.filter().unwrap();
        assert_eq!((audits.levels, audits.audits), (vec![2], vec![false]));
    }
}
