//! Counter paths: `\\machine\object(parent/instance#2)\counter`.
//!
//! Source: Microsoft Learn, "Specifying a Counter Path" (Performance Counters).

/// A counter path in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterPath {
    /// Machine, without `\\`; empty if the path names none.
    pub machine: String,
    /// Object.
    pub object: String,
    /// Parent of the instance.
    pub parent: Option<String>,
    /// Instance.
    pub instance: Option<String>,
    /// Number behind `#`; 0 without.
    pub nth: i32,
    /// Counter.
    pub name: String,
}

impl CounterPath {
    /// The parts of a path. `None` if it is none: no object, or no counter.
    pub fn parse(path: &str) -> Option<CounterPath> {
        let path = path.trim();
        let (machine, rest) = match path.strip_prefix("\\\\") {
            Some(rest) => rest.split_once('\\')?,
            None => ("", path.strip_prefix('\\')?),
        };
        // Instances may hold backslashes and brackets, counters brackets: the instance ends at the last `)\`.
        let (object, instance, name) =
            match rest.find('(').filter(|open| rest.find('\\').is_none_or(|b| *open < b)) {
                Some(open) => {
                    let close = rest.rfind(")\\").filter(|close| *close > open)?;
                    (rest.get(..open)?, rest.get(open + 1..close), rest.get(close + 2..)?)
                }
                None => {
                    let (object, name) = rest.split_once('\\')?;
                    (object, None, name)
                }
            };
        if object.trim().is_empty() || name.trim().is_empty() {
            return None;
        }
        let (mut parent, mut nth) = (None, 0);
        let instance = instance.map(|text| {
            let (text, number) =
                match text.rsplit_once('#').and_then(|(t, n)| Some((t, n.parse::<i32>().ok()?))) {
                    Some((text, number)) if number >= 0 && !text.is_empty() => (text, number),
                    _ => (text, 0),
                };
            nth = number;
            // Only threads and the like have parents; `/` is common in names of network cards.
            match text.split_once('/') {
                Some((before, after)) if has_parents(object) && !before.is_empty() && !after.is_empty() => {
                    parent = Some(before.to_owned());
                    after.to_owned()
                }
                _ => text.to_owned(),
            }
        });
        Some(CounterPath {
            machine: machine.trim().to_owned(),
            object: object.trim().to_owned(),
            parent,
            instance,
            nth,
            name: name.trim().to_owned(),
        })
    }
}

/// Objects whose instances have a parent: a thread has its process.
fn has_parents(object: &str) -> bool {
    matches!(
        object.to_ascii_lowercase().as_str(),
        "thread" | "threads" | "subproceso" | "поток" | "image" | "abbild"
    ) || object.eq_ignore_ascii_case("Thread Details")
        || object.eq_ignore_ascii_case("Job Object Details")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Option<(String, String, Option<String>, i32, String)> {
        CounterPath::parse(path).map(|p| (p.machine, p.object, p.instance, p.nth, p.name))
    }

    fn of(
        machine: &str,
        object: &str,
        instance: Option<&str>,
        nth: i32,
        name: &str,
    ) -> Option<(String, String, Option<String>, i32, String)> {
        Some((machine.into(), object.into(), instance.map(str::to_owned), nth, name.into()))
    }

    #[test]
    fn paths_as_logs_have_them() {
        assert_eq!(
            parts(r"\\SRV1\Processor(0)\% DPC Time"),
            of("SRV1", "Processor", Some("0"), 0, "% DPC Time")
        );
        assert_eq!(parts(r"\\srv\memory\available mbytes"), of("srv", "memory", None, 0, "available mbytes"));
        assert_eq!(parts(r"\Memory\Pages/sec"), of("", "Memory", None, 0, "Pages/sec"));
        assert_eq!(
            parts(r"\\S\Process(svchost#12)\Handle Count"),
            of("S", "Process", Some("svchost"), 12, "Handle Count")
        );
        assert_eq!(
            parts(r"\\S\Prozessor(_Total)\Prozessorzeit (%)"),
            of("S", "Prozessor", Some("_Total"), 0, "Prozessorzeit (%)")
        );
        assert_eq!(
            parts(r"\\S\Network Interface(Intel[R] X520 #2)\Output Queue Length"),
            of("S", "Network Interface", Some("Intel[R] X520 "), 2, "Output Queue Length")
        );
        assert_eq!(
            parts(r"\\S\LogicalDisk(HarddiskVolume(1)\x)\% Free Space"),
            of("S", "LogicalDisk", Some(r"HarddiskVolume(1)\x"), 0, "% Free Space")
        );
        assert_eq!(
            parts(r"\\10.0.0.7\SQLServer:Locks(_Total)\Lock Waits/sec"),
            of("10.0.0.7", "SQLServer:Locks", Some("_Total"), 0, "Lock Waits/sec")
        );
        let thread = CounterPath::parse(r"\\S\Thread(explorer/3#1)\% Processor Time").unwrap();
        assert_eq!(
            (thread.parent.as_deref(), thread.instance.as_deref(), thread.nth),
            (Some("explorer"), Some("3"), 1)
        );
        let card = CounterPath::parse(r"\\S\Network Interface(10/100 card)\Bytes Total/sec").unwrap();
        assert_eq!((card.parent, card.instance.as_deref()), (None, Some("10/100 card")));
    }

    #[test]
    fn what_is_no_path() {
        for text in [
            "",
            "\\",
            "\\\\",
            "\\\\x",
            "comment",
            r"\\m\",
            r"\\m\o",
            r"\\m\o(1",
            r"\\m\o(1)",
            r"\\m\\c",
            r"\\m\(1)\c",
            r"\o\",
        ] {
            assert_eq!(CounterPath::parse(text), None, "{text}");
        }
    }
}
