//! The system values of an event.

use super::fields::SystemField;
use super::value::Value;

/// The system values of an event.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// `Provider/@Name`.
    pub provider: Value<'a>,
    /// `Provider/@Guid`.
    pub provider_guid: Value<'a>,
    /// `EventID`.
    pub event_id: u16,
    /// `EventID/@Qualifiers`.
    pub qualifiers: Option<u16>,
    /// `Version`.
    pub version: u8,
    /// `Level`.
    pub level: u8,
    /// `Task`.
    pub task: u16,
    /// `Opcode`.
    pub opcode: u8,
    /// `Keywords`.
    pub keywords: u64,
    /// `TimeCreated/@SystemTime` as a FILETIME.
    pub time: Option<u64>,
    /// `EventRecordID`.
    pub record_id: Option<u64>,
    /// `Correlation/@ActivityID`.
    pub activity: Value<'a>,
    /// `Correlation/@RelatedActivityID`.
    pub related_activity: Value<'a>,
    /// `Execution/@ProcessID`.
    pub process: Option<u32>,
    /// `Execution/@ThreadID`.
    pub thread: Option<u32>,
    /// `Channel`.
    pub channel: Value<'a>,
    /// `Computer`.
    pub computer: Value<'a>,
    /// `Security/@UserID`.
    pub user: Value<'a>,
}

impl Default for System<'_> {
    fn default() -> Self {
        System {
            provider: Value::Null,
            provider_guid: Value::Null,
            event_id: 0,
            qualifiers: None,
            version: 0,
            level: 0,
            task: 0,
            opcode: 0,
            keywords: 0,
            time: None,
            record_id: None,
            activity: Value::Null,
            related_activity: Value::Null,
            process: None,
            thread: None,
            channel: Value::Null,
            computer: Value::Null,
            user: Value::Null,
        }
    }
}

impl<'a> System<'a> {
    /// Sets what this value is.
    #[inline]
    pub(super) fn set(&mut self, field: SystemField, value: Value<'a>) {
        use SystemField as S;
        match field {
            S::Provider => self.provider = value,
            S::ProviderGuid => self.provider_guid = value,
            S::Time => self.time = time(&value),
            S::Activity => self.activity = value,
            S::RelatedActivity => self.related_activity = value,
            S::Channel => self.channel = value,
            S::Computer => self.computer = value,
            S::User => self.user = value,
            number => self.set_number(number, value.number()),
        }
    }

    /// Sets what this number is.
    #[inline]
    pub(super) fn set_number(&mut self, field: SystemField, number: Option<u64>) {
        use SystemField as S;
        let n = number.unwrap_or(0);
        match field {
            S::EventId => self.event_id = n as u16,
            S::Qualifiers => self.qualifiers = number.map(|n| n as u16),
            S::Version => self.version = n as u8,
            S::Level => self.level = n as u8,
            S::Task => self.task = n as u16,
            S::Opcode => self.opcode = n as u8,
            S::Keywords => self.keywords = n,
            S::RecordId => self.record_id = number,
            S::Process => self.process = number.map(|n| n as u32),
            S::Thread => self.thread = number.map(|n| n as u32),
            _ => {}
        }
    }

    /// `success` or `failure` of an audit record, by the keywords that Windows reserves for them (winmeta.xml: `win:AuditSuccess` is
    /// 0x20000000000000, `win:AuditFailure` 0x10000000000000).
    pub const fn audit(&self) -> Option<&'static str> {
        if self.keywords & 0x0020_0000_0000_0000 != 0 {
            Some("success")
        } else if self.keywords & 0x0010_0000_0000_0000 != 0 {
            Some("failure")
        } else {
            None
        }
    }
}

/// The FILETIME of a time, also of one that is written as text.
fn time(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::FileTime(ticks) => Some(*ticks),
        Value::Utf8(text) => super::time::parse(text),
        Value::SysTime(_) | Value::Utf16(_) => {
            let mut short = [0; 40];
            if let Value::Utf16(utf16) = value
                && let Some(text) = super::text::ascii(utf16, &mut short)
            {
                return super::time::parse(text);
            }
            let mut text = String::new();
            value.push_text(&mut text);
            super::time::parse(&text)
        }
        _ => None,
    }
}
