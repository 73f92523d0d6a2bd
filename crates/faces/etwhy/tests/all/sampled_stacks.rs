//! The samples of a real trace by their exact stacks, against `tests/python/sampled_stacks.py`: another reader walks the records
//! (dissect.etl), and stacks are put together by its own code. All stacks and their counts must be the same, address by address.
//!
//! `ETWHY_PYTHON` names an interpreter that has dissect.etl (`scripts/test` makes one).

use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::{script, told};
use serde_json::Value;
use std::collections::BTreeMap;

/// Table `frame` has one address of a place; libraries stand elsewhere in other processes, whose images say where.
const STACKS: &str = "WITH one AS (
  SELECT upid, path, min(base) AS base FROM image GROUP BY upid, path HAVING min(base) = max(base)
), place AS (
  SELECT sf.stack_id, sf.position, coalesce(o.base + f.rva, f.address) AS address
  FROM stack_frame sf JOIN stack s ON s.stack_id = sf.stack_id JOIN frame f ON f.frame_id = sf.frame_id
  LEFT JOIN image i ON i.image_id = f.image_id
  LEFT JOIN one o ON o.path = i.path AND o.upid = s.upid AND i.upid IS NOT NULL
  WHERE NOT f.inlined
), path AS (
  SELECT stack_id, group_concat(address, ' ' ORDER BY position) AS stack FROM place GROUP BY stack_id
)
SELECT coalesce(p.stack, '') AS stack, count(*) AS n
FROM sample s LEFT JOIN path p ON p.stack_id = s.stack_id GROUP BY 1";

#[test]
fn the_samples_of_every_stack_are_those_of_another_reader() {
    let Some(mut reader) = script("sampled_stacks.py") else { return };
    let Some(trace) = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl")
    else {
        return;
    };
    // The copy has no symbols beside it.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("trace.etl");
    std::fs::copy(&trace, &copy).unwrap();
    let theirs: Value = serde_json::from_str(&told(reader.arg(&copy))).unwrap();
    let theirs: BTreeMap<String, i64> = serde_json::from_value(theirs["stacks"].clone()).unwrap();
    let rows: Vec<Value> = ETWHY.partly().sql(&copy, STACKS);
    let ours: BTreeMap<String, i64> =
        rows.iter().map(|row| (row["stack"].str().to_owned(), row["n"].int())).collect();
    let (all, idle) = (theirs.values().sum::<i64>(), theirs.get("").copied().unwrap_or(0));
    println!("{all} samples, {idle} idle, {} stacks", theirs.len());
    assert!(theirs.len() > 1000 && all - idle > 1000, "{all} samples, {idle} idle");
    for (stack, count) in &theirs {
        assert_eq!(ours.get(stack), Some(count), "{stack}");
    }
    assert_eq!(ours.len(), theirs.len());
}
