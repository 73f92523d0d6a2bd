//! What the tables over event logs have in common: fields of records, round widths of time, rates.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, Deserializer as _};
use serde_json::Value;
use std::borrow::Cow;

/// A second, in nanoseconds.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;
/// A day, in nanoseconds.
pub(crate) const DAY_NS: f64 = 86_400e9;
/// Rates of a shorter time would be guesses.
pub(crate) const SHORTEST_NS: i64 = 600 * SECOND_NS;
/// What stands for all that is not named.
pub(crate) const OTHERS: &str = "(others)";

/// Widths of time that people read easily, in seconds.
const WIDTHS_S: [i64; 26] = [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1_800,
    3_600,
    7_200,
    10_800,
    21_600,
    43_200,
    86_400,
    172_800,
    604_800,
    1_209_600,
    2_592_000,
    7_776_000,
    31_536_000,
    157_680_000,
    788_400_000,
];

/// The smallest round width of which at most `most` cover the span.
pub(crate) fn round_width(span_ns: i64, most: i64) -> i64 {
    let fits = |width: &i64| span_ns / width < most.max(1);
    let fine = [1_000_000, 10_000_000, 100_000_000];
    let coarse = WIDTHS_S.iter().map(|s| s.saturating_mul(SECOND_NS));
    fine.into_iter().chain(coarse).find(|w| fits(w)).unwrap_or(i64::MAX / 2)
}

/// What grows by `amount` in a span grows by this in a day; `None` for spans too short to tell.
pub(crate) fn per_day(amount: i64, span_ns: i64) -> Option<f64> {
    (span_ns >= SHORTEST_NS).then(|| amount as f64 * DAY_NS / span_ns as f64)
}

/// The fields that tables over event logs read of records; a reader of logs may leave out all others.
pub const LOG_FIELDS: &[&str] = &[
    "ApicId",
    "AppName",
    "Application",
    "BootTime",
    "BugcheckCode",
    "CallerProcessName",
    "Channel",
    "Data1",
    "Data2",
    "Data3",
    "Data4",
    "Data6",
    "Data7",
    "DeviceName",
    "DriveName",
    "ErrorSource",
    "EventName",
    "ExceptionCode",
    "FriendlyName",
    "Image",
    "MCABank",
    "ModuleName",
    "Name",
    "NewProcessName",
    "NewTime",
    "OldTime",
    "P1",
    "PreviousTime",
    "PrimaryComponent",
    "ProcessName",
    "Reason",
    "SourceImage",
    "SubjectDomainName",
    "SubjectUserName",
    "TargetDomainName",
    "TargetUserName",
    "TotalTime",
    "User",
    "VolumeName",
    "param1",
    "param2",
];

/// The fields of these names, which are among [`LOG_FIELDS`], as text, from a record's `fields`. What is empty, null or `-` counts as not
/// there.
pub(crate) fn pick<const N: usize>(fields: &str, names: [&str; N]) -> [Option<String>; N] {
    borrowed(fields, names).map(|text| text.map(Cow::into_owned))
}

fn borrowed<'f, const N: usize>(fields: &'f str, names: [&str; N]) -> [Option<Cow<'f, str>>; N] {
    #[cfg(test)]
    assert!(names.iter().all(|name| LOG_FIELDS.contains(name)), "{names:?}");
    let mut out = [const { None }; N];
    let mut json = serde_json::Deserializer::from_str(fields);
    // A record that was cut off gives the fields before the cut.
    let _ = json.deserialize_map(Picker { names: &names, out: &mut out });
    out
}

struct Picker<'a, 'f> {
    names: &'a [&'a str],
    out: &'a mut [Option<Cow<'f, str>>],
}

impl<'de> Visitor<'de> for Picker<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let slot = self.names.iter().position(|name| *name == key).and_then(|at| self.out.get_mut(at));
            match slot {
                Some(slot) if slot.is_none() => *slot = map.next_value::<Said<'de>>()?.0,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A key, borrowed where it can be.
struct Key<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A value as text, borrowed where it can be, unless it says nothing.
struct Said<'de>(Option<Cow<'de, str>>);

impl<'de> serde::Deserialize<'de> for Said<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Said<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Said<'de>, E> {
                Ok(Said(spoken(text).map(Cow::Borrowed)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Said<'de>, E> {
                Ok(Said(spoken(text).map(|text| Cow::Owned(text.to_owned()))))
            }
            fn visit_unit<E>(self) -> Result<Said<'de>, E> {
                Ok(Said(None))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Said<'de>, E> {
                Ok(shown(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Said<'de>, E> {
                Ok(shown(value))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Said<'de>, E> {
                Ok(shown(value))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Said<'de>, E> {
                Ok(shown(value))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Said<'de>, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(seq)).map(shown)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Said<'de>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(shown)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

fn shown<'de>(value: impl Into<Value>) -> Said<'de> {
    Said(Some(Cow::Owned(value.into().to_string())))
}

fn spoken(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty() && *text != "-")
}

/// The last part of a path of Windows.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The process a record is about, or that caused it, and the account; see `log_rate`.
pub(crate) fn process_and_account(fields: &str) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    let names = [
        "NewProcessName",
        "ProcessName",
        "CallerProcessName",
        "Image",
        "SourceImage",
        "Application",
        "SubjectUserName",
        "SubjectDomainName",
        "TargetUserName",
        "TargetDomainName",
        "User",
    ];
    let [new, process, caller, image, source, application, user, domain, target, target_domain, other] =
        borrowed(fields, names);
    // A record of Application Management calls something else `Application`: only paths are programs there.
    let application = application.filter(|path| path.contains('\\') || path == "System");
    let path = new.or(process).or(caller).or(image).or(source).or(application);
    let name = |domain: Option<Cow<'_, str>>, user| match domain {
        Some(domain) => Cow::Owned(format!("{domain}\\{user}")),
        None => user,
    };
    let account = user.map(|u| name(domain, u)).or_else(|| target.map(|u| name(target_domain, u))).or(other);
    let base = |path| match path {
        Cow::Borrowed(path) => Cow::Borrowed(base_name(path)),
        Cow::Owned(path) => Cow::Owned(base_name(&path).to_owned()),
    };
    (path.map(base), account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked() {
        let json = r#"{"P1":1,"Name":{"c":2},"SubjectUserName":"-","TargetUserName":"bob","TargetDomainName":"D","ProcessName":"C:\\Windows\\x.exe"}"#;
        assert_eq!(pick(json, ["P1", "Name", "User"]), [Some("1".into()), Some("{\"c\":2}".into()), None]);
        assert_eq!(process_and_account(json), (Some("x.exe".into()), Some("D\\bob".into())));
        assert_eq!(pick("{\"P1\":\"x\",\"Name\":", ["P1", "Name"]), [Some("x".into()), None]);
        assert_eq!(pick("", ["Name"]), [None]);
        assert_eq!(process_and_account("{\"Application\":\"Word\"}"), (None, None));
    }

    #[test]
    fn widths_are_round() {
        assert_eq!(round_width(0, 240), 1_000_000);
        assert_eq!(
            round_width(3_600 * SECOND_NS, 240),
            30 * SECOND_NS,
            "an hour has 120 of 30 s, 240 of 15 s"
        );
        assert_eq!(round_width(29 * 86_400 * SECOND_NS, 240), 10_800 * SECOND_NS);
        assert!(i64::MAX / round_width(i64::MAX, 240) <= 240);
        assert_eq!(per_day(10, 86_400 * SECOND_NS), Some(10.0));
        assert_eq!(per_day(10, 1), None);
    }
}
