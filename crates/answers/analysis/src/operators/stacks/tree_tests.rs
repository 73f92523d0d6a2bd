//! Trees that can be worked out by hand, and sums that hold for all of them.

use super::*;
use crate::fold::tests::sampled;
use etwhy_base::rng::Rng;
use etwhy_testkit::Are as _;
use etwhy_trace::catalog::stack_cost::StackCostRow;

const MS: i64 = 1_000_000;

/// Weights of table `stack_cost`.
fn weights(db: &Database) -> Vec<WeightedStack> {
    let mut out = Vec::new();
    for (at, row) in db.read::<StackCostRow>().unwrap().iter().enumerate() {
        out.push(WeightedStack {
            ts_ns: Some(at as i64),
            class: Class::named(row.class()),
            upid: row.upid(),
            stack: row.stack_id(),
            weight: row.weight_ns(),
            count: row.samples(),
            ..WeightedStack::default()
        });
    }
    out
}

fn tree_of(db: &Database, view: &View) -> Tree {
    let frames = Frames::read(db);
    let mut builder = Builder::new(db, &frames, view);
    weights(db).iter().for_each(|w| builder.add(w));
    builder.finish("all")
}

fn butterfly_of(db: &Database, view: &View, function: &str) -> Butterfly {
    let frames = Frames::read(db);
    let mut builder = Builder::new(db, &frames, view);
    weights(db).iter().for_each(|w| builder.add(w));
    builder.butterfly(&Matcher::parse(function))
}

/// One line for each node: depth as dots, name, milliseconds with and without what it called.
fn lines(tree: &Tree) -> Vec<String> {
    let children = tree.children();
    let mut out = Vec::new();
    let mut open = vec![(0u32, 0usize)];
    while let Some((number, depth)) = open.pop() {
        let node = tree.node(number).unwrap();
        let (name, total, own) = (&tree.name(node).label, node.total.weight / MS, node.own.weight / MS);
        out.push(format!("{}{name} {total} {own}", ".".repeat(depth)));
        open.extend(children[number as usize].iter().rev().map(|&child| (child, depth + 1)));
    }
    out
}

/// The first node of that name.
fn named<'t>(tree: &'t Tree, label: &str) -> &'t Node {
    tree.nodes.iter().find(|n| tree.name(n).label == label).unwrap()
}

fn own_sum(tree: &Tree) -> i64 {
    tree.nodes.iter().map(|node| node.own.weight).sum()
}

fn matchers(list: &[&str]) -> Vec<Matcher> {
    list.iter().map(|text| Matcher::parse(text)).collect()
}

/// Innermost first. `a!rec` calls itself, once through `b!other`.
fn recursion() -> Database {
    sampled(&[
        ("thread", 0, 5, "| a!leaf a!rec a!main"),
        ("thread", 0, 3, "| a!rec a!rec a!main"),
        ("thread", 0, 7, "| b!other a!rec b!other a!rec a!main"),
        ("thread", 1, 2, "n!wait | a!main"),
        ("thread", 1, 1, ""),
    ])
}

#[test]
fn top_down() {
    let tree = tree_of(&recursion(), &View::default());
    lines(&tree).are(&[
        "all 18 0",
        ".a!main 17 0",
        "..a!rec 15 0",
        "...b!other 7 0",
        "....a!rec 7 0",
        ".....b!other 7 7",
        "...a!leaf 5 5",
        "...a!rec 3 3",
        "..n!wait 2 2",
        ".[no stack] 1 1",
    ]);
    let main = named(&tree, "a!main");
    assert_eq!((main.total.count, main.total.first_ns, main.total.last_ns), (17, Some(0), Some(3)));
}

#[test]
fn bottom_up_begins_where_stacks_end() {
    let tree = tree_of(&recursion(), &View { inverted: true, ..View::default() });
    let lines = lines(&tree);
    let roots: Vec<&String> = lines.iter().filter(|l| l.starts_with('.') && !l.starts_with("..")).collect();
    assert_eq!(roots, [".b!other 7 0", ".a!leaf 5 0", ".a!rec 3 0", ".n!wait 2 0", ".[no stack] 1 1"]);
    assert!(lines.contains(&"..a!main 2 2".to_owned()), "the caller of n!wait: {lines:?}");
    assert_eq!(own_sum(&tree), 18 * MS);
}

#[test]
fn levels_above_the_frames() {
    let db = sampled(&[
        ("thread", 0, 5, "| a!f a!main"),
        ("thread", 1, 4, "| a!f a!main"),
        ("dpc", 0, 3, "ndis.sys!x ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KeYield | a!f a!main"),
        ("isr", 0, 2, "hal!tick | a!main"),
    ]);
    let view = View { groups: vec![GroupBy::Process, GroupBy::Module], ..View::default() };
    let tree = tree_of(&db, &view);
    // What a DPC interrupted is not its caller; what has no process of that number has no name.
    lines(&tree).are(&[
        "all 14 0",
        ".[unknown process] 9 0",
        "..a 9 0",
        "...a!main 9 0",
        "....a!f 9 9",
        ".[DPC] 3 0",
        "..ndis.sys 3 0",
        "...ntoskrnl.exe!KiExecuteAllDpcs 3 0",
        "....ndis.sys!x 3 3",
        ".[ISR] 2 0",
        "..hal 2 0",
        "...hal!tick 2 2",
    ]);
    let one = tree_of(&db, &View { one_interrupt: true, ..view });
    assert!(lines(&one).contains(&".[DPC and ISR] 5 0".to_owned()));
}

#[test]
fn recursion_is_merged() {
    let folding = Folding { merge_recursion: true, ..Folding::default() };
    let tree = tree_of(&recursion(), &View { folding, ..View::default() });
    lines(&tree).are(&[
        "all 18 0",
        ".a!main 17 0",
        "..a!rec 15 3",
        "...b!other 7 7",
        "...a!leaf 5 5",
        "..n!wait 2 2",
        ".[no stack] 1 1",
    ]);
}

#[test]
fn frames_without_a_name_are_no_recursion() {
    // Two visits of b without symbols: nothing says that they are one function, and what lies between stays.
    let db = sampled(&[("thread", 0, 5, "| b a!callback b a!main")]);
    let folding = Folding { merge_recursion: true, ..Folding::default() };
    let tree = tree_of(&db, &View { folding, ..View::default() });
    assert_eq!(lines(&tree), ["all 5 0", ".a!main 5 0", "..b!? 5 0", "...a!callback 5 0", "....b!? 5 5"]);
}

#[test]
fn modules_collapse() {
    let db = sampled(&[
        ("thread", 0, 5, "nt!a nt!b | u!x nt2!q u!main"),
        ("thread", 0, 4, "nt!a nt!c | u!x nt2!q u!main"),
    ]);
    let folding = Folding { collapse: matchers(&["nt", "u"]), ..Folding::default() };
    let tree = tree_of(&db, &View { folding, ..View::default() });
    assert_eq!(lines(&tree), ["all 9 0", ".u 9 0", "..nt2!q 9 0", "...u 9 0", "....nt 9 9"]);
}

#[test]
fn focus_wants_all_and_exclude_minds_one() {
    let folding = Folding { focus: matchers(&["a!rec", "b!*"]), ..Folding::default() };
    assert_eq!(tree_of(&recursion(), &View { folding, ..View::default() }).total().weight, 7 * MS);
    let folding = Folding { focus: matchers(&["a!rec;n!wait"]), ..Folding::default() };
    assert_eq!(tree_of(&recursion(), &View { folding, ..View::default() }).total().weight, 17 * MS);
    let folding = Folding { exclude: matchers(&["a!leaf", "b!*"]), ..Folding::default() };
    assert_eq!(tree_of(&recursion(), &View { folding, ..View::default() }).total().weight, 6 * MS);
}

#[test]
fn what_is_dropped_is_its_callers() {
    let folding = Folding { drop: matchers(&["a!rec"]), ..Folding::default() };
    let tree = tree_of(&recursion(), &View { folding, ..View::default() });
    lines(&tree).are(&[
        "all 18 0",
        ".a!main 17 3",
        "..b!other 7 0",
        "...b!other 7 7",
        "..a!leaf 5 5",
        "..n!wait 2 2",
        ".[no stack] 1 1",
    ]);
}

#[test]
fn trimmed_above_and_below() {
    let folding =
        Folding { above: matchers(&["a!rec"]), below: matchers(&["b!other"]), ..Folding::default() };
    let tree = tree_of(&recursion(), &View { folding, ..View::default() });
    lines(&tree).are(&[
        "all 18 0",
        ".a!rec 15 0",
        "..b!other 7 7",
        "..a!leaf 5 5",
        "..a!rec 3 3",
        ".a!main 2 0",
        "..n!wait 2 2",
        ".[no stack] 1 1",
    ]);
}

#[test]
fn code_of_windows_is_hidden() {
    let db = sampled(&[
        (
            "thread",
            0,
            5,
            "ntoskrnl.exe!KeWait | ntdll.dll!NtWait my.exe!work kernel32.dll!BaseThreadInitThunk",
        ),
        ("thread", 0, 4, "ntoskrnl.exe!Idle | ntdll.dll!NtWait"),
    ]);
    let folding = Folding { just_my_code: true, ..Folding::default() };
    let tree = tree_of(&db, &View { folding, ..View::default() });
    assert_eq!(lines(&tree), ["all 9 0", ".my.exe!work 5 5", ".[code of Windows] 4 4"]);
}

#[test]
fn addresses_without_a_name_are_one_place() {
    let db = sampled(&[("thread", 0, 5, "| x.dll x.dll y.dll x.dll")]);
    lines(&tree_of(&db, &View::default())).are(&[
        "all 5 0",
        ".x.dll!? 5 0",
        "..y.dll!? 5 0",
        "...x.dll!? 5 5",
    ]);
}

#[test]
fn a_butterfly_counts_recursion_once() {
    let found =
        butterfly_of(&recursion(), &View { groups: vec![GroupBy::Process], ..View::default() }, "rec");
    let sums = (found.all.weight / MS, found.inclusive.weight / MS, found.exclusive.weight / MS);
    assert_eq!(sums, (18, 15, 3));
    assert_eq!(found.recursive.weight / MS, 10);
    assert_eq!(lines(&found.callers), ["a!rec 15 0", ".a!main 15 15"]);
    assert_eq!(lines(&found.callees), ["a!rec 15 3", ".b!other 7 7", ".a!leaf 5 5"]);
    assert_eq!(found.by_group.len(), 1);
    let none = butterfly_of(&recursion(), &View::default(), "nothing");
    assert!(none.functions.is_empty() && none.inclusive.weight == 0 && none.all.weight == 18 * MS);
    // A module is one place from outside.
    let module = butterfly_of(&recursion(), &View::default(), "a");
    assert_eq!((module.inclusive.weight / MS, module.exclusive.weight / MS), (17, 8));
    assert_eq!(lines(&module.callees), ["a 17 8", ".b!other 7 7", ".n!wait 2 2"]);
}

#[test]
fn small_nodes_are_folded_into_their_parent() {
    let tree = tree_of(&recursion(), &View::default());
    let small = tree.limited(&Limits { least: 3 * MS + 1, ..Limits::default() });
    lines(&small).are(&[
        "all 18 0",
        ".a!main 17 0",
        "..a!rec 15 0",
        "...b!other 7 0",
        "....a!rec 7 0",
        ".....b!other 7 7",
        "...a!leaf 5 5",
        "...[… 1 other] 3 3",
        "..[… 1 other] 2 2",
        ".[… 1 other] 1 1",
    ]);
    let top = tree.limited(&Limits { nodes: Some(3), ..Limits::default() });
    lines(&top).are(&[
        "all 18 0",
        ".a!main 17 0",
        "..a!rec 15 0",
        "...[… 3 others] 15 15",
        "..[… 1 other] 2 2",
        ".[… 1 other] 1 1",
    ]);
    let flat = tree.limited(&Limits { depth: Some(2), ..Limits::default() });
    lines(&flat).are(&["all 18 0", ".a!main 17 0", "..a!rec 15 15", "..n!wait 2 2", ".[no stack] 1 1"]);
    assert_eq!(named(&flat, "a!rec").folded, 5);
}

#[test]
fn stacks_that_begin_in_their_middle_are_marked() {
    let db = sampled(&[
        ("thread", 0, 5, "| a!f a!main ntdll.dll!RtlUserThreadStart"),
        ("thread", 0, 4, "| a!f a!deep"),
        ("thread", 0, 3, "ntoskrnl.exe!KeWait |"),
    ]);
    let tree = tree_of(&db, &View::default());
    let cut = |label: &str| named(&tree, label).cut / MS;
    assert_eq!((cut("a!deep"), cut("ntdll.dll!RtlUserThreadStart"), cut("ntoskrnl.exe!KeWait")), (4, 0, 3));
}

#[test]
fn two_trees_are_compared_by_path() {
    let before = sampled(&[
        ("thread", 0, 5, "| a!f a!main"),
        ("thread", 0, 4, "| a!g a!main"),
        ("thread", 0, 2, "| b!x"),
    ]);
    let after = sampled(&[("thread", 0, 6, "| a!f a!main"), ("thread", 0, 1, "| a!f a!new")]);
    let (before, after) = (tree_of(&before, &View::default()), tree_of(&after, &View::default()));
    let found = after.compared_with(&before);
    let of = |number: usize| (after.name(&after.nodes[number]).label.as_str(), found.weights[number] / MS);
    let all: Vec<(&str, i64)> = (0..after.nodes.len()).map(of).collect();
    assert_eq!(all, [("all", 11), ("a!main", 9), ("a!f", 5), ("a!new", 0), ("a!f", 0)]);
    assert_eq!(found.gone, 6 * MS, "a!g and b!x");
}

#[test]
fn own_sums_are_the_total_in_every_view() {
    let mut numbers = Rng::new(1);
    let functions = ["a!f", "a!g", "a!h", "b!f", "b", "ntoskrnl.exe!KeWait", "ntdll.dll!NtX", "c!r"];
    for round in 0..60 {
        let stacks: Vec<(&str, i64, i64, String)> = (0..40)
            .map(|_| {
                let depth = numbers.below(9);
                let frames: Vec<&str> = (0..depth).map(|_| functions[numbers.index(8)]).collect();
                let at = numbers.below(depth + 1) as usize;
                let text = format!("{} | {}", frames[..at].join(" "), frames[at..].join(" "));
                (
                    ["thread", "dpc", "isr"][numbers.index(3)],
                    numbers.below(3) as i64,
                    1 + numbers.below(50) as i64,
                    text,
                )
            })
            .collect();
        let rows: Vec<(&str, i64, i64, &str)> =
            stacks.iter().map(|(c, p, w, t)| (*c, *p, *w, t.as_str())).collect();
        let db = sampled(&rows);
        let all: i64 = rows.iter().map(|row| row.2).sum::<i64>() * MS;
        let bit = |n: u64| round >> n & 1 == 1;
        let some = |yes: bool, text: &str| if yes { matchers(&[text]) } else { Vec::new() };
        let folding = Folding {
            above: some(bit(0), "a!g"),
            below: some(bit(1), "b!f"),
            drop: some(bit(2), "a!f;c!r"),
            just_my_code: bit(3),
            collapse: some(bit(4), "b;a"),
            merge_recursion: bit(5),
            ..Folding::default()
        };
        let groups = if bit(0) { vec![GroupBy::Process, GroupBy::Tag] } else { vec![GroupBy::Module] };
        for inverted in [false, true] {
            let view = View {
                groups: groups.clone(),
                inverted,
                folding: folding.clone(),
                one_interrupt: bit(1),
                without_ids: bit(2),
                ..View::default()
            };
            let tree = tree_of(&db, &view);
            assert_eq!((tree.total().weight, own_sum(&tree)), (all, all));
            for limits in [
                Limits { least_percent: 5.0, ..Limits::default() },
                Limits { nodes: Some(12), depth: Some(4), ..Limits::default() },
                Limits { least: 40 * MS, nodes: Some(30), ..Limits::default() },
            ] {
                let small = tree.limited(&limits);
                assert_eq!((small.total().weight, own_sum(&small)), (all, all), "{limits:?}");
                for (number, children) in small.children().iter().enumerate() {
                    let below: i64 = children.iter().map(|&c| small.nodes[c as usize].total.weight).sum();
                    assert_eq!(small.nodes[number].total.weight, below + small.nodes[number].own.weight);
                }
            }
        }
        // Inclusive sums of a butterfly are those of a flat count.
        for function in ["a!f", "b!f", "c!r"] {
            let found = butterfly_of(&db, &View::default(), function);
            let frames = Frames::read(&db);
            let has = |w: &WeightedStack| {
                let names: Vec<&str> = frames
                    .frames_of(w)
                    .filter_map(|f| frames.name(frames.name_of(f)?))
                    .map(|n| n.label.as_str())
                    .collect();
                (names.contains(&function), names.first() == Some(&function))
            };
            let flat = weights(&db).iter().fold((0, 0), |(inclusive, exclusive), w| {
                let (on, leaf) = has(w);
                (inclusive + if on { w.weight } else { 0 }, exclusive + if leaf { w.weight } else { 0 })
            });
            assert_eq!((found.inclusive.weight, found.exclusive.weight), flat, "{function}");
            assert_eq!((own_sum(&found.callers), own_sum(&found.callees)), (flat.0, flat.0));
            assert_eq!(found.callees.nodes[0].own.weight, flat.1);
        }
    }
}
