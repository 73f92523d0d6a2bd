use super::*;
use crate::parse;

const HEADER: &str = "Machine Name,Policy Target,Subcategory,Subcategory GUID,Inclusion Setting,Exclusion Setting,Setting Value\n";

fn file(machine: &str, lines: &[(&str, u32)]) -> Policy {
    let mut text = HEADER.to_owned();
    for (guid, value) in lines {
        text.push_str(&format!("{machine},System,x,{{0CCE{guid}-69AE-11D9-BED3-505054503030}},,,{value}\n"));
    }
    parse(text.as_bytes())
}

#[test]
fn what_is_in_force_and_what_will_be() {
    let local = file("W1", &[("9215", 3), ("9226", 1), ("922B", 0)]);
    let gpo = file("", &[("9226", 2), ("922B", 0), ("9216", 1)]);
    assert_eq!((local.form, gpo.form), (Form::Report, Form::Gpo));
    let policies = vec![("local.csv".to_owned(), local), ("audit.csv".to_owned(), gpo)];
    let all = effective(&policies);
    let of = |name: &str| all.iter().find(|e| e.subcategory.name == name).unwrap();
    assert_eq!((of("Logon").setting, of("Logon").is_of_gpo()), (Some(Setting::Both), false));
    let wfp = of("Filtering Platform Connection");
    assert_eq!(
        (wfp.setting, wfp.file, wfp.gpo),
        (Some(Setting::Success), Some(0), Some((Setting::Failure, 1)))
    );
    // Only Group Policy names it: that is what will be in force.
    assert_eq!((of("Logoff").setting, of("Logoff").file), (Some(Setting::Success), Some(1)));
    assert_eq!(of("SAM").setting, None);
    let differ = differences(&policies);
    assert_eq!(differ.len(), 1);
    assert_eq!(differ[0].subcategory.name, "Filtering Platform Connection");
    assert_eq!(differ[0].said, [(0, Setting::Success), (1, Setting::Failure)]);
    assert!(!is_complete(&policies[0].1));
}

#[test]
fn rows_of_the_table() {
    let policies = vec![("a.csv".to_owned(), file("W1", &[("9226", 1), ("9215", 9)]))];
    let table = crate::table::table(&policies, &etwhy_table::Memory::default()).unwrap();
    assert_eq!(table.rows(), 2);
    assert_eq!(table.text(0, "name"), Some("Filtering Platform Connection"));
    assert_eq!((table.text(0, "setting"), table.i64(0, "task")), (Some("success"), Some(12810)));
    assert_eq!((table.text(0, "kind"), table.text(0, "form")), (Some("subcategory"), Some("report")));
    assert_eq!(
        (table.text(1, "setting"), table.i64(1, "success"), table.i64(0, "success")),
        (Some("unknown"), None, Some(1))
    );
}
