//! Stack tags from a file in the format of WPA: every stack has one at most, so that times by tag add up to all time, and an
//! extract that is tagged later says what the trace says.

use crate::{ETWHY, Json as _, Str as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn ask(input: &str, query: &str, options: &[&str]) -> Vec<Value> {
    ETWHY.rows(&[&["sql", input, query], options].concat())
}

const TAGS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Tag Name="">
  <Tag Name="Scanner" Priority="10">
    <Entrypoint Module="tedrdrv.sys" Method="*"/>
  </Tag>
  <Tag Name="Kernel" Priority="-1">
    <Tag Name="Any" Priority="-1"><Entrypoint Module="ntkrnlmp.exe"/></Tag>
    <Tag Name="ETW" Priority="1"><Entrypoint Module="ntoskrnl.exe" Method="Etwp*"/></Tag>
  </Tag>
</Tag>"#;

#[test]
fn times_by_tag_add_up_and_an_extract_can_be_tagged_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).str().to_owned();
    let story = etwhy_testkit::root().join("scenarios/syscall_hook.toml");
    let (trace, extract, file) = (path("story.etl"), path("extract"), path("my.stacktags"));
    ETWHY.synth(&story, Path::new(&trace), &["--scale", "0.02"]);
    ETWHY.run(&["extract", &trace, "-o", &extract, "--quiet"]);
    std::fs::write(&file, TAGS).unwrap();
    let by_tag = "SELECT tag, cpu_ns FROM cpu_by_stack_tag ORDER BY cpu_ns DESC, tag";
    let tags = ["--tags", file.as_str()];
    let rows = ask(&trace, by_tag, &tags);
    assert_eq!(rows, ask(&extract, by_tag, &tags));
    let sum: i64 = rows.iter().map(|row| row["cpu_ns"].int()).sum();
    let all = ask(&trace, "SELECT sum(weight_ns) AS ns FROM stack_cost", &[]);
    assert_eq!(Some(sum), all[0]["ns"].as_i64());
    // A tree by tag says the same, of the trace and of the extract.
    for input in [&trace, &extract] {
        let json = ETWHY
            .run(&[&["tree", input, "--by", "tag", "--depth", "1", "--json", "--quiet"], &tags[..]].concat());
        let tree: Value = serde_json::from_str(&json).unwrap();
        let nodes = tree["nodes"].list();
        for row in rows.iter().filter(|row| {
            row["tag"].as_str().is_some_and(|tag| tag.starts_with("Kernel") || tag == "Scanner")
        }) {
            let node = nodes.iter().find(|node| node["name"] == row["tag"]);
            assert_eq!(node.map(|node| &node["weight"]), Some(&row["cpu_ns"]), "{row} {nodes:?}");
        }
    }
    // With priority 10 the driver has all stacks on which it stands, wherever; that is its inclusive time.
    let driver = rows.iter().find(|row| row["tag"] == "Scanner").unwrap();
    let query = "SELECT sum(inclusive_ns) AS ns FROM module_cost WHERE lower(module) = 'tedrdrv.sys'";
    assert_eq!(driver["cpu_ns"], ask(&trace, query, &[])[0]["ns"]);
    assert!(rows.iter().any(|row| row["tag"] == "Kernel\\ETW" || row["tag"] == "Kernel\\Any"), "{rows:?}");
    trees_agree_with_the_view(&trace, &tags);
    trees_agree_with_the_view(&extract, &tags);
    trees_agree_with_the_view(&trace, &[]);
    // Without the file the tags are ours.
    let ours = ask(&trace, by_tag, &[]);
    assert_eq!(ours, ask(&extract, by_tag, &[]));
    assert!(
        ours.iter().any(|row| row["tag"].as_str().is_some_and(|tag| tag.starts_with("etw\\"))),
        "{ours:?}"
    );
}

/// `tree --by tag` has the times of threads that the view has, tag by tag, and all time of DPCs and ISRs.
fn trees_agree_with_the_view(input: &str, options: &[&str]) {
    let json = ETWHY.run(
        &[
            &["tree", input, "--metric", "busy", "--by", "tag", "--min-percent", "0", "--json", "--quiet"],
            options,
        ]
        .concat(),
    );
    let tree: Value = serde_json::from_str(&json).unwrap();
    let (mut of_tags, mut interrupts) = (BTreeMap::new(), 0);
    for node in tree["nodes"].list().iter().filter(|node| node["parent"] == 0) {
        let (name, weight) = (node["name"].str(), node["weight"].int());
        if ["[DPC]", "[ISR]"].contains(&name) {
            interrupts += weight;
        } else {
            of_tags.insert(name.to_owned(), weight);
        }
    }
    let query = "SELECT class, coalesce(tag, '[no tag]') AS tag, sum(cpu_ns) AS ns FROM cpu_by_stack_tag GROUP BY 1, 2";
    let (threads, others): (Vec<Value>, Vec<Value>) =
        ask(input, query, options).into_iter().partition(|row| row["class"] == "thread");
    let of_view: BTreeMap<String, i64> =
        threads.iter().map(|row| (row["tag"].str().to_owned(), row["ns"].int())).collect();
    assert!(of_view.len() > 1, "{of_view:?}");
    assert_eq!(of_tags, of_view);
    assert_eq!(interrupts, others.iter().map(|row| row["ns"].int()).sum::<i64>());
}

#[test]
fn a_file_that_makes_no_sense_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.stacktags");
    std::fs::write(&file, "<Tag Name=\"\">\n<Tag Name=\"a\" Priority=\"x\"/>\n</Tag>").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(["sql", "--demo", "SELECT 1 AS one", "--tags", file.str()])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("bad.stacktags:2: Priority=\"x\" is no whole number"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
}
