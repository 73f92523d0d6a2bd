//! Steps, functions, what is shown of a tree, the order of time: all by hand.

use super::*;
use crate::fold::tests::{sampled, table};
use etwhy_table::Value;
use etwhy_testkit::Are as _;

const MS: i64 = 1_000_000;

/// Stacks 0 to 3 of process 1: main calls f and g; g calls itself through f; a driver serves g.
fn db() -> Database {
    sampled(&[
        ("thread", 1, 4, "|a!f a!main"),
        ("thread", 1, 2, "|a!g a!main"),
        ("thread", 1, 3, "|a!g a!f a!g a!main"),
        ("thread", 1, 1, "d.sys!x d.sys!y |a!g a!main"),
    ])
}

fn sample(stack: i64, at_ms: i64, weight_ms: i64) -> WeightedStack {
    WeightedStack {
        ts_ns: Some(at_ms * MS),
        upid: Some(1),
        utid: Some(7),
        cpu: Some(0),
        stack: Some(stack),
        weight: weight_ms * MS,
        count: 1,
        ..WeightedStack::default()
    }
}

fn weights() -> Vec<WeightedStack> {
    [(0, 4), (1, 2), (2, 3), (3, 1)].into_iter().map(|(stack, ms)| sample(stack, stack, ms)).collect()
}

fn built(steps: Vec<Step>) -> (Vec<(String, i64)>, i64) {
    let db = db();
    let frames = Frames::read(&db);
    let mut builder = Builder::new(&db, &frames, &View { steps, ..View::default() });
    weights().iter().for_each(|w| builder.add(w));
    let ordered = Ordered::new(builder.finish("all"));
    let mut paths: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for one in ordered.shown(0, 0, 100, 100) {
        let node = ordered.tree.node(one.node).unwrap();
        let label = &ordered.tree.name(node).label;
        let path =
            if paths.is_empty() { label.clone() } else { format!("{}>{label}", paths[one.parent as usize]) };
        paths.push(path.clone());
        out.push((path, node.total.weight / MS));
    }
    (out, ordered.tree.before_steps.weight / MS)
}

fn fold(folding: Folding) -> Step {
    Step::Fold(folding)
}

fn has(tree: &[(String, i64)], path: &str) -> Option<i64> {
    tree.iter().find(|(known, _)| known == path).map(|(_, ms)| *ms)
}

#[test]
fn steps_come_one_after_the_other() {
    let (tree, before) = built(Vec::new());
    assert_eq!((has(&tree, "all"), before), (Some(10), 10));
    assert_eq!(has(&tree, "all>a!main>a!g>a!f>a!g"), Some(3));
    let f = || vec![Matcher::function("a!f")];
    let merge = || fold(Folding { drop: f(), ..Folding::default() });
    let recursion = || fold(Folding { merge_recursion: true, ..Folding::default() });
    let focus = || fold(Folding { focus: f(), above: f(), ..Folding::default() });
    // First the stacks with f, then f away: what it had called remains.
    let (tree, before) = built(vec![focus(), merge()]);
    assert_eq!((has(&tree, "all"), has(&tree, "all>a!g"), before), (Some(7), Some(3), 10));
    // The other way around there is no f any more.
    let (tree, _) = built(vec![merge(), focus()]);
    assert_eq!(has(&tree, "all"), Some(0));
    let (tree, _) = built(vec![merge(), recursion()]);
    assert_eq!((has(&tree, "all>a!main>a!g"), has(&tree, "all>a!main>a!g>a!g")), (Some(6), None));
    // A module that became one can be meant by the next step.
    let collapse = || fold(Folding { collapse: vec![Matcher::module("d.sys")], ..Folding::default() });
    let (tree, _) = built(vec![collapse()]);
    assert_eq!(has(&tree, "all>a!main>a!g>d.sys"), Some(1));
    let drop = fold(Folding { exclude: vec![Matcher::function("d.sys")], ..Folding::default() });
    let (tree, _) = built(vec![collapse(), drop]);
    assert_eq!(has(&tree, "all"), Some(9));
}

#[test]
fn a_subtree_is_a_path_and_not_a_function() {
    let path = |labels: &[&str], inverted| Step::Subtree {
        path: labels.iter().map(|l| (*l).to_owned()).collect(),
        inverted,
    };
    let (tree, _) = built(vec![path(&["a!main", "a!g"], false)]);
    assert_eq!(
        (has(&tree, "all"), has(&tree, "all>a!g"), has(&tree, "all>a!g>a!f>a!g")),
        (Some(6), Some(6), Some(3))
    );
    // Of an inverted tree: stacks that end in g under f, and what called these.
    let (tree, _) = built(vec![path(&["a!g", "a!f"], true)]);
    assert_eq!((has(&tree, "all"), has(&tree, "all>a!main>a!g>a!f")), (Some(3), Some(3)));
    assert_eq!(has(&built(vec![path(&["a!f"], false)]).0, "all"), Some(0), "no stack begins there");
}

#[test]
fn functions_count_once_in_a_stack() {
    let db = db();
    let frames = Frames::read(&db);
    let mut builder = Builder::new(&db, &frames, &View::default());
    weights().iter().for_each(|w| builder.add(w));
    let (functions, all, _) = builder.functions();
    let of = |label: &str| {
        let found = functions.iter().find(|f| f.name.label == label).unwrap();
        (found.total.weight / MS, found.own.weight / MS)
    };
    assert_eq!(all.weight, 10 * MS);
    assert_eq!((of("a!main"), of("a!g"), of("a!f"), of("d.sys!x")), ((10, 0), (6, 5), (7, 4), (1, 1)));
    assert_eq!(functions[0].name.label, "a!g");
}

#[test]
fn what_is_too_small_is_counted() {
    let db = db();
    let frames = Frames::read(&db);
    let mut builder = Builder::new(&db, &frames, &View::default());
    weights().iter().for_each(|w| builder.add(w));
    let ordered = Ordered::new(builder.finish("all"));
    let label = |one: &Shown| ordered.tree.name(ordered.tree.node(one.node).unwrap()).label.clone();
    let shown = ordered.shown(0, 3 * MS, 100, 100);
    assert_eq!(shown.iter().map(label).collect::<Vec<_>>(), ["all", "a!main", "a!g", "a!f", "a!g", "a!f"]);
    // Of g the driver is missing.
    assert_eq!((shown[2].children, shown[2].left_out, shown[2].left_weight), (2, 1, MS));
    assert_eq!(shown.iter().map(|s| s.depth).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 2]);
    let few = ordered.shown(0, 0, 3, 100);
    assert_eq!(few.iter().map(label).collect::<Vec<_>>(), ["all", "a!main", "a!g"]);
    assert_eq!((few[1].left_out, few[2].left_out), (1, 2));
    assert_eq!(ordered.shown(0, 0, 100, 1).len(), 2);
    let path = ["a!main".to_owned(), "a!g".to_owned()];
    let root = ordered.find(&path).unwrap();
    assert_eq!(label(&ordered.shown(root, 0, 100, 100)[0]), "a!g");
    assert_eq!(ordered.find(&["a!g".to_owned()]), None);
}

#[test]
fn kept_weights_are_those_of_the_table() {
    let mut db = Database::new();
    let columns = "ts_ns upid utid stack_id size_bytes";
    let row = |ts: Option<i64>, upid: i64, stack: i64, bytes: i64| {
        let ts = ts.map_or(Value::Null, Value::I64);
        vec![ts, Value::I64(upid), Value::I64(9), Value::I64(stack), Value::I64(bytes)]
    };
    let rows = [
        row(Some(30), 1, 0, 5),
        row(Some(10), 0, 0, 7),
        row(None, 1, 0, 11),
        row(Some(20), 1, 1, 13),
        row(Some(40), 1, 0, -1),
    ];
    db.insert(table("disk_io", columns, &rows));
    let metric = Metric::by_name("disk-bytes").unwrap();
    let kept = Weighed::read(&db, metric, 100, &|| true).unwrap();
    let parts = [
        TracePart::default(),
        TracePart { from_ns: Some(10), ..TracePart::default() },
        TracePart { from_ns: Some(11), to_ns: Some(30), ..TracePart::default() },
        TracePart { to_ns: Some(31), processes: Some(vec![false, true]), ..TracePart::default() },
        TracePart { from_ns: Some(50), ..TracePart::default() },
    ];
    for (part, sum) in parts.iter().zip([36, 25, 13, 18, 0]) {
        let (mut of_kept, mut of_table) = ((0, 0), (0, 0));
        kept.each_of(part, &mut |w| of_kept = (of_kept.0 + w.weight, of_kept.1 + w.count));
        metric.each_of(&db, part, &mut |w| {
            if w.weight >= 0 {
                of_table = (of_table.0 + w.weight, of_table.1 + w.count);
            }
        });
        assert_eq!((of_kept, of_kept.0), (of_table, sum), "{part:?}");
    }
    let mut order = Vec::new();
    kept.rows_of(0, 31, &|w| w.upid == Some(1), &mut |w| order.push((w.ts_ns, w.weight)));
    assert_eq!(order, [(Some(20), 13), (Some(30), 5)]);
    assert!(Weighed::read(&db, metric, 3, &|| true).is_none(), "too many");
    assert!(Weighed::read(&db, metric, 100, &|| false).is_none(), "nobody waits");
}

/// Name, begin and end in milliseconds, level, samples.
type Line = (String, i64, i64, u32, i64);

fn boxes(db: &Database, samples: &[WeightedStack], pixel_ms: i64) -> (Vec<Line>, Chart) {
    let frames = Frames::read(db);
    let all = |give: &mut dyn FnMut(WeightedStack)| samples.iter().copied().for_each(give);
    let made = chart(db, &frames, &all, Lane::Thread(7), (0, 100 * MS), pixel_ms * MS, &|| true).unwrap();
    let list = made.boxes.iter().map(|b| {
        (made.names[b.name as usize].label.clone(), b.from_ns / MS, b.to_ns / MS, b.depth, b.samples)
    });
    (list.collect(), made)
}

#[test]
fn adjacent_samples_share_their_boxes() {
    let mut db = db();
    let samples = [sample(0, 1, 1), sample(0, 2, 1), sample(1, 3, 1), sample(1, 10, 1)];
    let line = |name: &str, from, to, depth, samples| (name.to_owned(), from, to, depth, samples);
    let (found, made) = boxes(&db, &samples, 0);
    found.are(&[
        line("a!main", 0, 3, 0, 3),
        line("a!f", 0, 2, 1, 2),
        line("a!g", 2, 3, 1, 1),
        line("a!main", 9, 10, 0, 1),
        line("a!g", 9, 10, 1, 1),
    ]);
    assert_eq!((made.samples, made.weight, made.hidden, made.levels), (4, 4 * MS, 0, 2));
    // Three samples in a pixel: the stack that two of them have stands for all.
    let (found, made) = boxes(&db, &samples, 5);
    let expected = [
        line("a!main", 0, 3, 0, 3),
        line("a!f", 0, 3, 1, 3),
        line("a!main", 9, 10, 0, 1),
        line("a!g", 9, 10, 1, 1),
    ];
    assert_eq!((found, made.hidden), (expected.to_vec(), 1));
    // What interrupted the thread and others' samples are not its own.
    let others = [
        WeightedStack { class: Class::Dpc, ..sample(0, 1, 1) },
        WeightedStack { utid: Some(8), ..sample(0, 1, 1) },
    ];
    assert_eq!(boxes(&db, &others, 0).1.samples, 0);
    // A wait that ended at 8, ready until 9.
    let columns = "ts_ns new_utid wait_ns ready_ns prev_wait_reason prev_state";
    let switch = vec![
        Value::I64(9 * MS),
        Value::I64(7),
        Value::I64(5 * MS),
        Value::I64(MS),
        Value::Text("WrQueue"),
        Value::Text("Waiting"),
    ];
    db.insert(table("cswitch", columns, &[switch]));
    let (found, _) = boxes(&db, &samples, 0);
    assert_eq!(found[3..5], [line("waits: WrQueue", 3, 8, 0, 0), line("ready, no processor", 8, 9, 0, 0)]);
}
