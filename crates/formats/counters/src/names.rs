//! English names of objects and counters.
//!
//! Windows writes names in its own language. Findings go by the English ones, which `data/names.txt` gives for those that they
//! read, with its sources.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The list.
const NAMES: &str = include_str!("../data/names.txt");

/// English names, found by what a log has.
#[derive(Debug, Default)]
struct Names {
    /// English object, by any name of it.
    objects: HashMap<String, &'static str>,
    /// English counter, by object and any name of it.
    counters: HashMap<(&'static str, String), &'static str>,
}

fn names() -> &'static Names {
    static NAMES_READ: OnceLock<Names> = OnceLock::new();
    NAMES_READ.get_or_init(|| {
        let mut names = Names::default();
        let (mut objects, mut fresh): (Vec<&'static str>, bool) = (Vec::new(), true);
        for line in NAMES.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(list) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                if fresh {
                    objects.clear();
                }
                fresh = false;
                let english = list.split('|').next().unwrap_or("").trim();
                objects.push(english);
                for name in list.split('|') {
                    names.objects.entry(plain(name)).or_insert(english);
                }
            } else if !line.is_empty() {
                fresh = true;
                let english = line.split('|').next().unwrap_or("").trim();
                for (object, name) in objects.iter().flat_map(|o| line.split('|').map(move |n| (*o, n))) {
                    names.counters.entry((object, plain(name))).or_insert(english);
                }
            }
        }
        names
    })
}

/// A name without what makes no difference: case, blanks, brackets, `%`, the kind of apostrophe, how seconds are written.
fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars().flat_map(char::to_lowercase) {
        match c {
            '%' | '(' | ')' => {}
            '’' | '´' | '`' => text.push('\''),
            c if c.is_whitespace() => {
                if !text.is_empty() && !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            c => text.push(c),
        }
    }
    let text = text.trim();
    for end in ["/sec.", "/sek.", "/seg.", "/sec", "/sek", "/seg", "/с"] {
        if let Some(head) = text.strip_suffix(end) {
            return format!("{head}/s");
        }
    }
    text.to_owned()
}

/// The English name of an object, if it is known.
pub fn object(name: &str) -> Option<&'static str> {
    names().objects.get(&plain(name)).copied()
}

/// The English name of a counter of an object, which is named in English.
pub fn counter(object: &'static str, name: &str) -> Option<&'static str> {
    names().counters.get(&(object, plain(name))).copied()
}

/// True for the instance that is the sum of all: `_Total` in most languages.
pub fn is_total(instance: &str) -> bool {
    let plain = instance.to_lowercase();
    let last = plain.rsplit(',').next().unwrap_or("");
    matches!(last, "_total" | "_totale" | "_toplam" | "total")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn english(object_name: &str, counter_name: &str) -> (Option<&'static str>, Option<&'static str>) {
        let object = object(object_name);
        (object, object.and_then(|o| counter(o, counter_name)))
    }

    #[test]
    fn names_in_several_languages() {
        let cases = [
            ("processor", "% dpc time", "Processor", "% DPC Time"),
            ("Prozessor", "DPC-Zeit (%)", "Processor", "% DPC Time"),
            ("Prozessorinformationen", "Interruptzeit (%)", "Processor Information", "% Interrupt Time"),
            ("Processeur", "% temps d’interruption", "Processor", "% Interrupt Time"),
            ("Processore", "% Tempo processore", "Processor", "% Processor Time"),
            ("Процессор", "% загруженности процессора", "Processor", "% Processor Time"),
            ("Память", "Обмен страниц/с", "Memory", "Pages/sec"),
            ("Физический диск", "Средняя длина очереди диска", "PhysicalDisk", "Avg. Disk Queue Length"),
            ("Logischer Datenträger", "Mittlere Sek./Lesevorgänge", "LogicalDisk", "Avg. Disk sec/Read"),
            ("Système", "Changements de contexte/s", "System", "Context Switches/sec"),
            ("System", "Kontextwechsel/s", "System", "Context Switches/sec"),
            ("Disco físico", "Promedio de segundos de disco/lectura", "PhysicalDisk", "Avg. Disk sec/Read"),
            ("Memoria", "MByte disponibili", "Memory", "Available MBytes"),
            ("Memoria", "Mbytes disponibles", "Memory", "Available MBytes"),
            (
                "Interface réseau",
                "Longueur de la file d'attente de sortie",
                "Network Interface",
                "Output Queue Length",
            ),
            ("process", "handle count", "Process", "Handle Count"),
        ];
        for (object, counter, object_en, counter_en) in cases {
            assert_eq!(english(object, counter), (Some(object_en), Some(counter_en)), "{object} {counter}");
        }
    }

    #[test]
    fn names_that_differ_little_stay_apart() {
        assert_eq!(english("Memory", "Committed Bytes").1, Some("Committed Bytes"));
        assert_eq!(english("Memory", "% Committed Bytes In Use").1, Some("% Committed Bytes In Use"));
        assert_eq!(english("Physikalischer Datenträger", "Bytes gelesen/s").1, Some("Disk Read Bytes/sec"));
        assert_eq!(english("System", "Handle Count"), (Some("System"), None));
        assert_eq!(english("SQLServer:Locks", "Lock Waits/sec"), (None, None));
    }

    #[test]
    fn every_name_belongs_to_one_counter() {
        for (object, list) in [
            ("Processor", "% Idle Time"),
            ("PhysicalDisk", "% Idle Time"),
            ("Process V2", "Handle Count"),
            ("TCPv6", "Segments/sec"),
        ] {
            assert_eq!(english(object, list).1, Some(list));
        }
        // No name of one object means two counters: the list would keep the first in silence.
        let (mut objects, mut fresh, mut seen) = (Vec::new(), true, HashMap::new());
        for line in NAMES.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            if line.starts_with('[') {
                if fresh {
                    objects.clear();
                }
                fresh = false;
                objects.push(line);
                continue;
            }
            fresh = true;
            let first = line.split('|').next().unwrap().trim();
            for (object, name) in objects.iter().flat_map(|o| line.split('|').map(move |n| (*o, n))) {
                let old = seen.insert((object, plain(name)), first);
                assert!(old.is_none_or(|old| old == first), "{name}: {old:?} and {first}");
            }
        }
        assert!(is_total("_Total") && is_total("0,_Total") && !is_total("0"));
    }
}
