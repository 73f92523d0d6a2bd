//! Which records are wanted, on the command line.

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
    /// Only these levels: critical, error, warning, information, verbose, or numbers
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
    /// Not before this time (UTC): 2026-03-04 or 2026-03-04T05:06:07
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time (UTC)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
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

fn level(text: &str) -> anyhow::Result<u8> {
    // winmeta.xml; Windows shows level 0 as information.
    Ok(match text.trim().to_ascii_lowercase().as_str() {
        "always" => 0,
        "critical" => 1,
        "error" => 2,
        "warning" => 3,
        "information" | "info" => 4,
        "verbose" => 5,
        number => number.parse().ok().with_context(|| {
            format!(
                "`{text}` is no level; known are critical, error, warning, information, verbose and numbers"
            )
        })?,
    })
}

/// A time in UTC as a FILETIME.
fn moment(text: &str) -> anyhow::Result<u64> {
    let text = text.trim().trim_end_matches(['Z', 'z']).replace(' ', "T");
    let full = match text.len() {
        10 => format!("{text}T00:00:00"),
        16 => format!("{text}:00"),
        _ => text.clone(),
    };
    time::parse(&full)
        .with_context(|| format!("`{text}` is no time; try 2026-03-04 or 2026-03-04T05:06:07 (UTC)"))
}

impl Select {
    /// The filter.
    ///
    /// # Errors
    /// What cannot be understood.
    pub fn filter(&self) -> anyhow::Result<Filter> {
        let patterns = |list: &[String]| list.iter().map(|text| Pattern::new(text)).collect::<Vec<_>>();
        let mut filter = Filter {
            ids: self.id.iter().map(|t| range(t)).collect::<anyhow::Result<_>>()?,
            providers: patterns(&self.provider),
            channels: patterns(&self.channel),
            computers: patterns(&self.computer),
            users: patterns(&self.user),
            levels: self.level.iter().map(|t| level(t)).collect::<anyhow::Result<_>>()?,
            tasks: self.task.clone(),
            records: self.record.iter().map(|t| range(t)).collect::<anyhow::Result<_>>()?,
            processes: self.pid.clone(),
            since: self.since.as_deref().map(moment).transpose()?,
            until: self.until.as_deref().map(moment).transpose()?,
            conditions: Vec::new(),
        };
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
        let select = Select {
            id: vec!["4624".into(), "4720-4735".into()],
            level: vec!["error".into(), "info".into()],
            since: Some("2026-03-04".into()),
            until: Some("2026-03-04 05:06".into()),
            conditions: vec!["LogonType=3".into()],
            ..Select::default()
        };
        let filter = select.filter().unwrap();
        assert_eq!(filter.ids, [(4624, 4624), (4720, 4735)]);
        assert_eq!(filter.levels, [2, 4, 0]);
        // 5 hours and 6 minutes in steps of 100 ns.
        assert_eq!(filter.until.unwrap() - filter.since.unwrap(), (5 * 60 + 6) * 60 * 10_000_000);
        assert!(Select { id: vec!["x".into()], ..Select::default() }.filter().is_err());
        assert!(Select { since: Some("yesterday".into()), ..Select::default() }.filter().is_err());
    }
}
