//! What the tools of Windows print about sessions: `xperf -loggers`, `tracelog -l`, `logman query -ets`,
//! `logman query NAME -ets` and `wpr -status collectors -details`.
//!
//! A trace knows the session that wrote it. Who else was recording when it was made is in such a text only, if
//! somebody saved it. The shapes come from Microsoft's documentation of these tools and from outputs that people
//! published. Unknown lines are skipped; names that a German or Japanese Windows translates (`logman`) are not
//! known. `xperf`, `tracelog` and `wpr` speak English everywhere.

use etwhy_base::{Guid, utf16};

/// A session as a tool lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedLogger {
    /// Name of the session.
    pub name: String,
    /// Its number.
    pub id: Option<u32>,
    /// Where it writes.
    pub log_file: Option<String>,
    /// Mode, in the tool's words.
    pub mode: Option<String>,
    /// Running or stopped, in the tool's words.
    pub status: Option<String>,
    /// Size of a buffer.
    pub buffer_bytes: Option<i64>,
    /// Fewest buffers.
    pub minimum_buffers: Option<i64>,
    /// Most buffers.
    pub maximum_buffers: Option<i64>,
    /// Buffers written so far.
    pub buffers_written: Option<i64>,
    /// Events lost so far.
    pub events_lost: Option<i64>,
    /// Buffers lost so far, of the file and of real-time consumers together.
    pub buffers_lost: Option<i64>,
    /// Kernel flags by name, or as a number.
    pub kernel_flags: Vec<String>,
    /// Providers that are enabled to it.
    pub providers: Vec<ListedProvider>,
    /// The tool.
    pub tool: &'static str,
    /// The file that said so.
    pub listed_in: String,
}

/// A provider that is enabled to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedProvider {
    /// Its name, or its GUID as text.
    pub name: String,
    /// Its GUID.
    pub guid: Option<Guid>,
    /// Level.
    pub level: Option<i32>,
    /// Keywords any of which an event must have.
    pub keyword_any: Option<u64>,
    /// Keywords all of which an event must have.
    pub keyword_all: Option<u64>,
}

/// Sessions and providers beyond these are damage or malice: Windows runs at most 64 sessions.
const MAX_LOGGERS: usize = 4096;
const MAX_ITEMS: usize = 65_536;
/// Names of kernel flags on one line; there are some hundred.
const MAX_FLAGS: usize = 1024;

/// Reads the text of a file; `shown` is how the file is called. UTF-16 (as PowerShell redirects it), UTF-8 and
/// 8-bit texts are understood.
pub fn parse(bytes: &[u8], shown: &str) -> Vec<ListedLogger> {
    let text = decode(bytes);
    let mut parser = Parser { shown, loggers: Vec::new(), list: List::None, items: 0 };
    for line in text.lines() {
        parser.line(line.trim_end());
    }
    parser.loggers.retain(|l| !l.name.is_empty());
    parser.loggers
}

fn decode(bytes: &[u8]) -> String {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16::text(rest),
        [0xFE, 0xFF, rest @ ..] => utf16::text_be(rest),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        // UTF-16 without a mark: the high halves of ASCII are zero.
        [_, 0, _, 0, ..] => utf16::text(bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// What indented or following lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    /// `Trace Flags` of xperf may go on in the next lines.
    Flags,
    /// `System Keywords` of wpr.
    Keywords,
    /// `Providers` of wpr.
    Providers,
    /// A `Provider:` section of logman.
    Section,
    /// The table of `logman query -ets`.
    Table,
    /// Something else of wpr.
    Ignore,
}

struct Parser<'a> {
    shown: &'a str,
    loggers: Vec<ListedLogger>,
    list: List,
    items: usize,
}

impl Parser<'_> {
    fn start(&mut self, name: &str, tool: &'static str) {
        self.list = List::None;
        if self.loggers.len() < MAX_LOGGERS {
            let listed_in = self.shown.to_owned();
            self.loggers.push(ListedLogger { name: name.to_owned(), tool, listed_in, ..Default::default() });
        }
    }

    fn line(&mut self, line: &str) {
        let text = line.trim();
        if text.is_empty() {
            if matches!(self.list, List::Table | List::Flags | List::Section) {
                self.list = List::None;
            }
            return;
        }
        if text.len() > 20 && text.bytes().all(|b| b == b'-') {
            self.list = List::Table;
            return;
        }
        if self.list == List::Table {
            self.table_row(text);
            return;
        }
        let indented = line.starts_with([' ', '\t']);
        match self.list {
            List::Keywords if indented => return self.flags(text),
            List::Providers if indented => return self.provider(text),
            List::Ignore if indented => return,
            _ => {}
        }
        match text {
            "System Keywords" => self.list = List::Keywords,
            "Providers" => self.list = List::Providers,
            "System Stacks" => self.list = List::Ignore,
            _ if text.starts_with("CaptureState") => self.list = List::Ignore,
            _ => match text.split_once(':') {
                Some((key, value)) if self.field(key.trim(), value.trim()) => {}
                _ if self.list == List::Flags => self.flags(text),
                _ => {}
            },
        }
    }

    /// A row of `logman query -ets`: name, type and status, with wide blanks between them.
    fn table_row(&mut self, text: &str) {
        let mut parts = text.split("  ").map(str::trim).filter(|p| !p.is_empty());
        if let (Some(name), Some(kind), Some(status), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
            && !text.ends_with('.')
        {
            self.start(name, "logman");
            self.list = List::Table;
            if let Some(logger) = self.loggers.last_mut() {
                logger.status = Some(status.to_owned());
                logger.mode = Some(kind.to_owned()).filter(|k| k != "Trace");
            }
        }
    }

    /// True if the key is known.
    fn field(&mut self, key: &str, value: &str) -> bool {
        let lower = key.to_ascii_lowercase();
        match lower.as_str() {
            "logger name" => {
                self.start(value, "xperf");
                return true;
            }
            "collector name" => {
                self.start(value, "wpr");
                return true;
            }
            "name" if self.list != List::Section => {
                // logman says the session's name twice: of the set, and of the collector in it.
                let set = value.split('\\').next().unwrap_or(value);
                if self.loggers.last().is_none_or(|l| l.name != set || l.tool != "logman" || set == value) {
                    self.start(value, "logman");
                }
                return true;
            }
            _ => {}
        }
        let Some(logger) = self.loggers.last_mut() else { return false };
        let number = || decimal(value);
        let text = || Some(value.to_owned()).filter(|v| !v.is_empty());
        if self.list == List::Section && self.items < MAX_ITEMS {
            let provider = logger.providers.last_mut();
            match (lower.as_str(), provider) {
                ("name", _) => {
                    self.items += 1;
                    logger.providers.push(ListedProvider { name: value.to_owned(), ..Default::default() });
                    return true;
                }
                ("provider guid", Some(p)) => p.guid = guid(value),
                ("level", Some(p)) => p.level = decimal(value).and_then(|l| i32::try_from(l).ok()),
                ("keywordsall", Some(p)) => p.keyword_all = hex(value),
                ("keywordsany", Some(p)) => {
                    p.keyword_any = hex(value);
                    // Of the kernel's own provider these are the kernel flags, by short names in brackets.
                    let names = value.split_once('(').and_then(|(_, n)| n.strip_suffix(')'));
                    if p.name == "Windows Kernel Trace"
                        && let Some(names) = names
                    {
                        let names = names.split(',').take(MAX_FLAGS);
                        logger.kernel_flags = names.map(|n| n.trim().to_owned()).collect();
                    }
                }
                ("properties" | "filter type", Some(_)) => {}
                ("provider", _) => {}
                _ => self.list = List::None,
            }
            if self.list == List::Section {
                return true;
            }
        }
        match lower.as_str() {
            "logger id" => logger.id = u32::from_str_radix(value.trim_start_matches("0x"), 16).ok(),
            "log filename" | "output location" => logger.log_file = text(),
            "log file mode" | "log mode" | "file mode" | "logging mode" => {
                if lower == "log mode" {
                    logger.tool = "tracelog";
                }
                logger.mode = text();
            }
            "status" => logger.status = text(),
            "buffer size" | "buffer size (kb)" => {
                logger.buffer_bytes = number().map(|kb| kb.saturating_mul(1024));
            }
            "minimum buffers" => logger.minimum_buffers = number(),
            "maximum buffers" => logger.maximum_buffers = number(),
            "buffers written" => logger.buffers_written = number(),
            "events lost" => logger.events_lost = number(),
            "buffers lost" | "log buffers lost" | "real time buffers lost" => {
                let more = number().map(|n| n.saturating_add(logger.buffers_lost.unwrap_or(0)));
                logger.buffers_lost = more.or(logger.buffers_lost);
            }
            "trace flags" | "enabled flags" => {
                self.list = List::Flags;
                self.flags(value);
            }
            "enabled tracing" => {
                logger.tool = "tracelog";
                logger.kernel_flags = vec![value.to_owned()];
            }
            "provider" if value.is_empty() => self.list = List::Section,
            "logger thread id"
            | "number of buffers"
            | "free buffers"
            | "flush timer"
            | "age limit"
            | "agelimit"
            | "real time mode"
            | "maximum file size"
            | "guid"
            | "session security"
            | "clocktype"
            | "real time consumers"
            | "buffer flush timer"
            | "operation status"
            | "type"
            | "root path"
            | "segment"
            | "schedules"
            | "segment max size"
            | "append"
            | "circular"
            | "overwrite"
            | "clock type" => self.list = List::None,
            _ => return false,
        }
        true
    }

    /// Flags of xperf (`PROC_THREAD+LOADER`, or providers as `"name":keywords:level+...`) and of wpr (one a line).
    fn flags(&mut self, text: &str) {
        for item in text.split('+') {
            let item = item.trim_matches([' ', '&', '\t']);
            if item.is_empty() || self.items >= MAX_ITEMS {
                continue;
            }
            if item.contains(':') || item.contains('"') || guid(item).is_some() {
                self.provider(item);
            } else if let Some(logger) = self.loggers.last_mut() {
                self.items += 1;
                logger.kernel_flags.push(item.to_owned());
            }
        }
    }

    /// `name:keywords:level` with the name in quotes or not; wpr puts blanks behind the colons.
    fn provider(&mut self, item: &str) {
        if self.items >= MAX_ITEMS {
            return;
        }
        self.items += 1;
        let (name, rest) = match item.strip_prefix('"').and_then(|i| i.split_once('"')) {
            Some((name, rest)) => (name, rest.trim_start_matches(':')),
            None => item.split_once(':').unwrap_or((item, "")),
        };
        let mut numbers = rest.split(':').map(str::trim);
        let keyword_any = numbers.next().and_then(hex);
        let level = numbers.next().and_then(hex).and_then(|l| i32::try_from(l).ok());
        let name = name.trim().to_owned();
        if let Some(logger) = self.loggers.last_mut().filter(|_| !name.is_empty()) {
            let guid = guid(&name);
            logger.providers.push(ListedProvider { name, guid, level, keyword_any, keyword_all: None });
        }
    }
}

/// The number at the start: `64`, `64 Kb`, `4 (win:Informational)`, `0x40`.
fn decimal(value: &str) -> Option<i64> {
    let word = value.split_whitespace().next()?;
    match word.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// A hexadecimal number with or without `0x`, as far as the first blank.
fn hex(value: &str) -> Option<u64> {
    let word = value.split_whitespace().next()?;
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

fn guid(text: &str) -> Option<Guid> {
    text.trim().trim_start_matches('{').trim_end_matches('}').parse().ok()
}

#[cfg(test)]
#[path = "logger_text_tests.rs"]
mod tests;
