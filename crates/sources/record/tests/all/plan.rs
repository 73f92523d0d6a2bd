//! What is printed for other recorders, read back, is what is started.

use etwhy_base::Guid;
use etwhy_base::rng::Rng;
use etwhy_record::{
    EventClass, Plan, Recording, Session, Size, formats, keyword, keyword_of_flag, masks_of, profiles, stack,
    stack_of_flag,
};
use std::collections::BTreeSet;

/// What both sides can be compared by: masks, stacks, buffers, and of each provider GUID, level, keywords and stacks.
type Facts = ([u32; 8], BTreeSet<EventClass>, BTreeSet<(Guid, u8, u64, bool)>);

fn facts(plan: &Plan) -> Facts {
    let providers = plan.providers.iter().map(|p| {
        let keywords = if p.only_at_stop { p.at_stop.unwrap_or(0) } else { p.keywords };
        (p.guid, p.level, keywords, p.stack)
    });
    (plan.masks, plan.stacks.iter().copied().collect(), providers.collect())
}

fn written(format: &str, recording: &Recording) -> String {
    (formats().iter().find(|f| f.name == format).unwrap().write)(recording).unwrap()
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}

fn of_wprp(text: &str) -> Facts {
    let document = roxmltree::Document::parse(text).unwrap();
    let values = |name: &'static str| {
        document.descendants().filter(move |n| n.has_tag_name(name)).map(|n| n.attribute("Value").unwrap())
    };
    let system = document.descendants().find(|n| n.has_tag_name("SystemProvider")).unwrap();
    let keywords = system.descendants().filter(|n| n.has_tag_name("Keyword"));
    let keywords: Vec<_> = keywords.map(|n| keyword(n.attribute("Value").unwrap()).unwrap()).collect();
    let stacks = values("Stack").map(|name| stack(name).unwrap().event.unwrap()).collect();
    let providers = document.descendants().filter(|n| n.has_tag_name("EventProvider")).map(|n| {
        let bits = |list: &str| -> Option<u64> {
            let list = n.children().find(|c| c.has_tag_name(list))?;
            let numbers = list.children().filter(|c| c.has_tag_name("Keyword"));
            Some(numbers.map(|c| number(c.attribute("Value").unwrap())).fold(0, |sum, bits| sum | bits))
        };
        let only = n.attribute("CaptureStateOnly") == Some("true");
        let keywords = if only { bits("CaptureStateOnSave") } else { bits("Keywords") };
        (
            n.attribute("Name").unwrap().parse().unwrap(),
            n.attribute("Level").unwrap().parse().unwrap(),
            keywords.unwrap_or(u64::MAX),
            n.attribute("Stack") == Some("true"),
        )
    });
    (masks_of(keywords), stacks, providers.collect())
}

fn of_xperf(text: &str) -> Facts {
    let commands: Vec<&str> = text.lines().filter(|line| !line.starts_with("rem")).collect();
    let words: Vec<&str> = commands.iter().flat_map(|line| line.split(' ')).collect();
    let mut facts: Facts = ([0; 8], BTreeSet::new(), BTreeSet::new());
    let mut is_kernel = true;
    for pair in words.windows(2) {
        match pair {
            ["-on", list] if is_kernel => {
                facts.0 = masks_of(list.split('+').map(|flag| keyword_of_flag(flag).unwrap()));
                is_kernel = false;
            }
            ["-stackwalk", list] => {
                facts.1 = list.split('+').map(|flag| stack_of_flag(flag).unwrap().event.unwrap()).collect();
            }
            ["-on", list] => facts.2.extend(list.split('+').map(|entry| {
                let parts: Vec<&str> = entry.split(':').collect();
                let stack = parts.get(3) == Some(&"'stack'");
                (parts[0].parse().unwrap(), parts[2].parse().unwrap(), number(parts[1]), stack)
            })),
            _ => {}
        }
    }
    facts
}

/// logman has the flag word and no stacks.
fn of_logman(text: &str) -> (u32, BTreeSet<(Guid, u8, u64)>) {
    let mut facts = (0, BTreeSet::new());
    for line in text.lines().filter(|line| !line.starts_with("rem") && line.contains(" -p ")) {
        let (_, rest) = line.split_once(" -p ").unwrap();
        let (name, rest) = if let Some(rest) = rest.strip_prefix("\"Windows Kernel Trace\" ") {
            ("", rest)
        } else {
            rest.split_once(' ').unwrap()
        };
        let mut words = rest.split(' ');
        let first = number(words.next().unwrap());
        if name.is_empty() || name == "{54dea73a-ed1f-42a4-af71-3e63d056f174}" {
            facts.0 = u32::try_from(first).unwrap();
        } else {
            let level = u8::try_from(number(words.next().unwrap())).unwrap();
            facts.1.insert((name.trim_matches(['{', '}']).parse().unwrap(), level, first));
        }
    }
    facts
}

#[test]
fn what_is_printed_is_what_is_started() {
    let mut rng = Rng::new(25);
    let names: Vec<&str> = profiles().iter().map(|p| p.name).collect();
    let mut cases: Vec<Vec<&str>> = names.iter().map(|name| vec![*name]).collect();
    cases.extend((0..200).map(|_| (0..1 + rng.index(4)).filter_map(|_| rng.pick(&names).copied()).collect()));
    for names in cases {
        for session in [Session::NtKernelLogger, Session::Circular] {
            let size =
                *rng.pick(&[Size::Usual, Size::Memory { gib: 3 }, Size::Large { processors: 96 }]).unwrap();
            let recording = Recording::from_profiles(&names, session, size).unwrap();
            let plan = Plan::of(&recording);
            assert_eq!(of_wprp(&written("wprp", &recording)), facts(&plan), "wprp {names:?}");
            let xperf = written("xperf", &recording);
            assert_eq!(of_xperf(&xperf), facts(&plan), "xperf {names:?}");
            let buffers = plan.kernel_buffers;
            let options = format!(
                "-BufferSize {} -MinBuffers {} -MaxBuffers {}",
                buffers.size_kib, buffers.min, buffers.max
            );
            assert!(xperf.contains(&options), "{xperf}");
            let (_, _, providers) = facts(&plan);
            let without_stacks = providers.into_iter().map(|(guid, level, bits, _)| (guid, level, bits));
            let logman = of_logman(&written("logman", &recording));
            assert_eq!(logman, (plan.flags(), without_stacks.collect()), "logman {names:?}");
        }
    }
}

#[test]
fn every_stack_of_a_recording_can_be_started() {
    for profile in profiles() {
        let recording = Recording::from_profiles(&[profile.name], Session::System, Size::Usual).unwrap();
        let plan = Plan::of(&recording);
        assert_eq!(plan.stacks.len(), recording.stacks.len(), "{}", profile.name);
        assert_eq!(plan.providers.len(), recording.providers.len(), "{}", profile.name);
        let ring = plan.in_memory(100);
        let bytes = [ring.kernel_buffers, ring.user_buffers].map(|b| b.mebibytes()[1]);
        assert_eq!(bytes.iter().sum::<u32>(), 100);
    }
}
