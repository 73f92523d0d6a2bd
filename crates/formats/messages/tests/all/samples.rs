//! Real files of Windows (build 26100), which the package `evtx` brings: its samples are read from the package cache.

use crate::common;
use etwhy_base::rng::Rng;
use etwhy_messages::{EventKey, Messages, Options, pe};

const AUDITING: &str = "Microsoft-Windows-Security-Auditing";

#[test]
fn adtschema_is_what_other_readers_say() {
    let Some(folder) = common::samples() else { return };
    let bytes = std::fs::read(folder.join("adtschema.dll")).unwrap();
    let image = pe::read(bytes.as_slice()).unwrap();
    assert_eq!(image.damage, Vec::<String>::new());
    assert_eq!(image.mui_language.as_deref(), Some("en-US"));
    assert_eq!(image.version.as_ref().unwrap().to_string(), "10.0.26100.6725");
    assert_eq!(image.messages.len(), 544);
    assert!(image.messages.iter().all(|m| m.language == 1033));
    let [provider] = image.manifest.providers.as_slice() else { panic!("one provider") };
    assert_eq!(provider.guid, "54849625-5478-4994-a5ba-3e3b0328c30d".parse().ok());
    assert_eq!(provider.name.as_deref(), Some(AUDITING));
    assert_eq!(provider.templates.len(), 464);
    assert_eq!(provider.events.len(), 488);
    let mut ids: Vec<u16> = provider.events.iter().map(|e| e.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 423);
    assert_eq!(provider.tasks.len(), 61);
    // Each event's message is in the table, and each template belongs to it.
    for event in &provider.events {
        assert!(image.messages.iter().any(|m| Some(m.id) == event.message), "{event:?}");
        assert!(
            event.template == 0 || provider.templates.iter().any(|t| t.offset == event.template),
            "{event:?}"
        );
    }
}

#[test]
fn a_logon_is_written_out() {
    let Some(folder) = common::samples() else { return };
    let options = Options { name_sids: true, ..Options::default() };
    let messages = Messages::open(&[folder.join("adtschema.dll")], &options).unwrap();
    let key =
        EventKey { provider: "microsoft-windows-security-AUDITING", event_id: 4634, ..EventKey::default() };
    let text = messages.event(&key).expect("a text");
    assert_eq!(text.origin().file, "adtschema.dll");
    let names: Vec<_> = text.fields().iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["TargetUserSid", "TargetUserName", "TargetDomainName", "TargetLogonId", "LogonType"]);
    let mut out = String::new();
    let values: &[&str] = &["S-1-5-18", "HOST$", "DOMAIN", "0x3e7", "3"];
    text.render(values, &mut out);
    // The text of event 4634, as Microsoft's page of it shows it.
    assert_eq!(
        out,
        "An account was logged off.\n\nSubject:\n\tSecurity ID:\t\tSYSTEM\n\tAccount Name:\t\tHOST$\n\tAccount Domain:\t\tDOMAIN\n\tLogon ID:\t\t0x3e7\n\nLogon Type:\t\t\t3\n\nThis event is generated when a logon session is destroyed. It may be positively correlated with a logon event using the Logon ID value. Logon IDs are only unique between reboots on the same computer."
    );
    let names = messages.names(AUDITING, None);
    assert_eq!(names.task(12545), Some("Logoff"));
    assert_eq!(names.keywords(0x8020_0000_0000_0000).collect::<Vec<_>>(), ["Audit Success"]);
    assert_eq!(names.level(0), Some("Information"));
    assert_eq!(names.channel(10), Some("Security"));
    assert!(messages.wanted().is_empty() && messages.failed().is_empty());
}

#[test]
fn threads_share_it() {
    fn shared<T: Send + Sync>() {}
    shared::<Messages>();
    shared::<etwhy_messages::EventText>();
}

#[test]
fn texts_in_translations_that_are_not_there_are_wanted() {
    let Some(folder) = common::samples() else { return };
    let messages = Messages::open(&[folder], &Options::default()).unwrap();
    let key = EventKey {
        provider: "Service Control Manager",
        guid: "{555908d1-a6d7-4695-8e1e-26931d2012f4}".parse().ok(),
        event_id: 7036,
        qualifiers: Some(0x4000),
        channel: "System",
        ..EventKey::default()
    };
    // services.exe has the manifest, services.exe.mui would have the text.
    assert!(messages.event(&key).is_none());
    let fields = messages.fields(&key).expect("fields");
    assert_eq!(
        fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        ["param1", "param2", "__binLength", "BinaryData"]
    );
    let [wanted] = messages.wanted().try_into().unwrap();
    assert_eq!(wanted.files, ["services.exe.mui"]);
    assert_eq!(wanted.events, [7036]);
    let mut out = String::new();
    let values: &[&str] = &["Windows Update", "stopped"];
    messages.missing(&key, values, &mut out);
    assert!(out.starts_with(
        "The description for Event ID 7036 from source Service Control Manager cannot be found."
    ));
    assert!(out.ends_with("\nparam1: Windows Update\nparam2: stopped"), "{out}");
    assert_eq!(values.len(), 2);
}

#[test]
fn maps_of_wevtsvc() {
    let Some(folder) = common::samples() else { return };
    let bytes = std::fs::read(folder.join("wevtsvc.dll")).unwrap();
    let image = pe::read(bytes.as_slice()).unwrap();
    assert_eq!(image.damage, Vec::<String>::new());
    let [provider] = image.manifest.providers.as_slice() else { panic!("one provider") };
    let maps: Vec<_> =
        provider.maps.iter().map(|m| (m.name.as_deref().unwrap(), m.bits, m.values.len())).collect();
    assert_eq!(maps, [("ChannelType", false, 4), ("DroppedEventReasons", false, 3)]);
    let of_fields: Vec<_> = provider
        .templates
        .iter()
        .flat_map(|t| &t.fields)
        .filter(|f| f.map != 0)
        .map(|f| f.name.as_str())
        .collect();
    assert!(!of_fields.is_empty());
    assert!(
        provider
            .templates
            .iter()
            .flat_map(|t| &t.fields)
            .filter(|f| f.map != 0)
            .all(|f| provider.maps.iter().any(|m| m.offset == f.map))
    );
}

/// Any prefix and any flipped byte is read without a panic, quickly, and without much memory.
#[test]
fn damaged_files_are_read_as_far_as_they_go() {
    let Some(folder) = common::samples() else { return };
    let bytes = std::fs::read(folder.join("services.exe")).unwrap();
    let sound = pe::read(bytes.as_slice()).unwrap();
    for cut in (0..bytes.len()).step_by(bytes.len() / 97) {
        if let Ok(image) = pe::read(&bytes[..cut]) {
            assert!(image.manifest.providers.len() <= sound.manifest.providers.len());
        }
    }
    let start = bytes.windows(4).position(|w| w == b"CRIM").unwrap();
    let mut rng = Rng::new(1);
    for _ in 0..3000 {
        let mut damaged = bytes.clone();
        for _ in 0..4 {
            let at = start + rng.index(25_000.min(bytes.len() - start));
            damaged[at] = rng.bits() as u8;
        }
        let _ = pe::read(damaged.as_slice());
    }
}
