//! A mounted Windows: hives offline, with providers of manifests and classic ones. The hives are written by the crate
//! `regf`, which knows nothing of this reader.

use crate::common;
use etwhy_base::rng::Rng;
use etwhy_messages::{EventKey, Messages, Options};
use regf::structures::DataType;
use regf::writer::HiveBuilder;
use std::path::Path;

fn text(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// `SOFTWARE` and `SYSTEM` with so many sources that lists of lists of keys are needed.
fn hives(config: &Path) {
    std::fs::create_dir_all(config).unwrap();
    let mut software = HiveBuilder::new().unwrap();
    let publishers = "Microsoft\\Windows\\CurrentVersion\\WINEVT\\Publishers";
    for n in 0..700 {
        let key =
            software.create_key(&format!("{publishers}\\{{00000000-0000-0000-0000-{n:012x}}}")).unwrap();
        software.add_value(key, "", DataType::String, &text(&format!("Provider-{n}"))).unwrap();
        software
            .add_value(
                key,
                "ResourceFileName",
                DataType::ExpandString,
                &text(&format!("%SystemRoot%\\p{n}.dll")),
            )
            .unwrap();
    }
    let key =
        software.create_key(&format!("{publishers}\\{{54849625-5478-4994-a5ba-3e3b0328c30d}}")).unwrap();
    software.add_value(key, "", DataType::String, &text("Microsoft-Windows-Security-Auditing")).unwrap();
    for (name, file) in [
        ("ResourceFileName", "adtschema.dll"),
        ("MessageFileName", "adtschema.dll"),
        ("ParameterFileName", "msobjs.dll"),
    ] {
        software
            .add_value(key, name, DataType::ExpandString, &text(&format!("%SystemRoot%\\system32\\{file}")))
            .unwrap();
    }
    software.write_to_file(config.join("SOFTWARE")).unwrap();
    let mut system = HiveBuilder::new().unwrap();
    let select = system.create_key("Select").unwrap();
    system.add_value(select, "Current", DataType::Dword, &2u32.to_le_bytes()).unwrap();
    for (set, file) in [("ControlSet001", "old.dll"), ("ControlSet002", "new.dll")] {
        let key = system.create_key(&format!("{set}\\Services\\EventLog\\System\\NetLogon")).unwrap();
        system
            .add_value(
                key,
                "EventMessageFile",
                DataType::ExpandString,
                &text(&format!("%SystemRoot%\\System32\\netmsg.dll;C:\\{file}")),
            )
            .unwrap();
        system.add_value(key, "TypesSupported", DataType::Dword, &7u32.to_le_bytes()).unwrap();
    }
    system.write_to_file(config.join("SYSTEM")).unwrap();
}

#[test]
fn hives_say_which_files_are_wanted() {
    let windows = tempfile::tempdir().unwrap();
    hives(&windows.path().join("Windows/System32/config"));
    let messages = Messages::open(&[windows.path().to_owned()], &Options::default()).unwrap();
    let providers = messages.providers().unwrap();
    assert_eq!(providers.len(), 702);
    assert!(providers.iter().all(|p| p.registered));
    for n in [0, 350, 699] {
        let name = format!("Provider-{n}");
        let found = providers.iter().find(|p| p.name.as_deref() == Some(&name)).unwrap();
        assert_eq!(found.files, [format!("p{n}.dll")]);
    }
    // The control set that the machine runs with, whatever the case of names.
    let key = EventKey {
        provider: "NETLOGON",
        event_id: 5719,
        qualifiers: Some(0),
        channel: "System",
        ..EventKey::default()
    };
    assert!(messages.event(&key).is_none());
    let wanted = messages.wanted();
    assert_eq!(wanted[0].files, ["netmsg.dll", "new.dll"]);
    assert!(wanted[0].registered && !wanted[0].other_build);
}

#[test]
fn a_windows_folder_with_its_registry_renders() {
    let Some(samples) = common::samples() else { return };
    let windows = tempfile::tempdir().unwrap();
    let system32 = windows.path().join("System32");
    hives(&system32.join("config"));
    std::fs::copy(samples.join("adtschema.dll"), system32.join("adtschema.dll")).unwrap();
    // A copy of an update does not count twice.
    let old = windows.path().join("WinSxS/old");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::copy(samples.join("adtschema.dll"), old.join("adtschema.dll")).unwrap();
    let messages = Messages::open(&[windows.path().to_owned()], &Options::default()).unwrap();
    let counts = messages.counts().unwrap();
    assert_eq!((counts.files, counts.events, counts.messages), (1, 488, 544));
    let key = EventKey {
        provider: "",
        guid: "54849625-5478-4994-a5ba-3e3b0328c30d".parse().ok(),
        event_id: 1102,
        ..EventKey::default()
    };
    assert!(messages.event(&key).is_none(), "1102 is wevtsvc.dll's");
    let text = messages.event(&EventKey { event_id: 4624, version: 2, ..key }).unwrap();
    assert_eq!(text.fields().len(), 27);
    // A version of the future gets the nearest that is known.
    assert!(messages.event(&EventKey { event_id: 4624, version: 9, ..key }).is_some());
    let found = messages.providers().unwrap().into_iter().find(|p| p.events == 488).unwrap();
    assert_eq!(found.name.as_deref(), Some("Microsoft-Windows-Security-Auditing"));
    assert_eq!(found.parameter_files, ["msobjs.dll"]);
    assert_eq!((found.registered, found.texts), (true, 488));
}

/// No damage makes the reader of hives panic or run long.
#[test]
fn damaged_hives_are_read_as_far_as_they_go() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    hives(&config);
    let sound = std::fs::read(config.join("SYSTEM")).unwrap();
    std::fs::remove_file(config.join("SOFTWARE")).unwrap();
    let mut rng = Rng::new(1);
    for round in 0..300 {
        let mut damaged = sound.clone();
        for _ in 0..20 {
            let at = rng.index(damaged.len());
            damaged[at] = rng.bits() as u8;
        }
        if round % 3 == 0 {
            damaged.truncate(rng.index(sound.len()));
        }
        std::fs::write(config.join("SYSTEM"), damaged).unwrap();
        let messages = Messages::open(&[folder.path().to_owned()], &Options::default()).unwrap();
        assert!(messages.providers().unwrap().len() <= 1);
    }
}
