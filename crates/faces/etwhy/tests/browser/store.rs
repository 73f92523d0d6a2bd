//! The page of a store in a browser: `web/test/store.test.mjs` on written traces of several machines.

use crate::ETWHY;
use crate::server::Server;
use etwhy_testkit::root;
use std::path::Path;
use std::process::Command;

#[test]
fn the_page_of_a_store_works_in_a_browser() {
    let _turn = etwhy_testkit::alone();
    let Some(browser) = std::env::var_os("ETWHY_BROWSER").filter(|name| !name.is_empty()) else {
        etwhy_testkit::skipped(
            "the page of a store in a browser, ETWHY_BROWSER names none (scripts/test installs it)",
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("inbox")).unwrap();
    for story in ["dpc_flood", "syscall_hook", "antivirus_opens", "clean_build"] {
        let trace = at("inbox").join(format!("{story}.etl"));
        ETWHY.synth(&root().join(format!("scenarios/{story}.toml")), &trace, &["--scale", "0.01"]);
    }
    // A name that attacks is shown as a name.
    let text = std::fs::read_to_string(root().join("scenarios/syscall_hook.toml")).unwrap();
    std::fs::write(at("hostile.toml"), text.replace("tedrdrv.sys", "<img src=x onerror=alert(1)>.sys"))
        .unwrap();
    ETWHY.synth(&at("hostile.toml"), &at("inbox").join("hostile.etl"), &["--scale", "0.02"]);
    let (inbox, store) = (at("inbox"), at("store"));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    ETWHY.run(&["fleet", "run", &path(&inbox), "-o", &path(&store), "--quiet"]);
    std::fs::remove_file(inbox.join("clean_build.etl")).unwrap();
    let server = Server::at_once(&[&store]);
    let output = Command::new("node")
        .args(["--test", "test/store.test.mjs"])
        .current_dir(root().join("web"))
        .env("ETWHY_BROWSER", browser)
        .env("ETWHY_STORE", format!("{}store/", server.url()))
        .output()
        .expect("node runs");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
}
