//! What the tables over event logs have in common: fields of records, round widths of time, rates.

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
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

/// The fields of these names as text, from a record's `fields`. What is empty, null or `-` counts as not there.
pub(crate) fn pick<const N: usize>(fields: &str, names: [&str; N]) -> [Option<String>; N] {
    let mut out = [const { None }; N];
    let mut json = serde_json::Deserializer::from_str(fields);
    // A record that was cut off gives the fields before the cut.
    let _ = json.deserialize_map(Picker { names: &names, out: &mut out });
    out
}

struct Picker<'a> {
    names: &'a [&'a str],
    out: &'a mut [Option<String>],
}

impl<'de> Visitor<'de> for Picker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let slot = self.names.iter().position(|name| *name == key).and_then(|at| self.out.get_mut(at));
            match slot {
                Some(slot) if slot.is_none() => *slot = text(map.next_value::<serde_json::Value>()?),
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

fn text(value: serde_json::Value) -> Option<String> {
    let text = match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Null => return None,
        other => other.to_string(),
    };
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "-" {
        None
    } else if trimmed.len() == text.len() {
        Some(text)
    } else {
        Some(trimmed.to_owned())
    }
}

/// The last part of a path of Windows.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The process a record is about, or that caused it, and the account; see `log_rate`.
pub(crate) fn process_and_account(fields: &str) -> (Option<String>, Option<String>) {
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
        pick(fields, names);
    // A record of Application Management calls something else `Application`: only paths are programs there.
    let application = application.filter(|path| path.contains('\\') || path == "System");
    let path = new.or(process).or(caller).or(image).or(source).or(application);
    let name = |domain: Option<String>, user: String| match domain {
        Some(domain) => format!("{domain}\\{user}"),
        None => user,
    };
    let account = user.map(|u| name(domain, u)).or_else(|| target.map(|u| name(target_domain, u))).or(other);
    (path.map(|path| base_name(&path).to_owned()), account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked() {
        let json = r#"{"a":1,"b":{"c":2},"SubjectUserName":"-","TargetUserName":"bob","TargetDomainName":"D","ProcessName":"C:\\Windows\\x.exe"}"#;
        assert_eq!(pick(json, ["a", "b", "zz"]), [Some("1".into()), Some("{\"c\":2}".into()), None]);
        assert_eq!(process_and_account(json), (Some("x.exe".into()), Some("D\\bob".into())));
        assert_eq!(pick("{\"a\":\"x\",\"b\":", ["a", "b"]), [Some("x".into()), None]);
        assert_eq!(pick("", ["a"]), [None]);
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
