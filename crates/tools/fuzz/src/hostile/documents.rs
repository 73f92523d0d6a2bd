//! Manifests that make XML parsers slow: a trace may bring its own.

use super::Bomb;
use std::io::Result;

/// All of them.
pub static MANIFESTS: &[Bomb] = &[
    Bomb::new("attributes", "an element with 400,000 attributes", attributes),
    Bomb::new("namespaces", "namespaces inside of namespaces", namespaces),
    Bomb::new("levels", "elements inside of elements", levels),
    Bomb::new("templates", "a large template that all events share", templates),
];

const HEAD: &str = "<provider name='P' guid='{11111111-2222-3333-4444-555555555555}'";

fn attributes() -> Result<Vec<u8>> {
    let list: String = (0..400_000).map(|i| format!(" a{i}='1'")).collect();
    Ok(format!("{HEAD}{list}/>").into())
}

fn namespaces() -> Result<Vec<u8>> {
    let open: String = (0..3000).map(|i| format!("<b xmlns:a{i}='{i}'>")).collect();
    Ok(format!("{HEAD}>{open}{}</provider>", "</b>".repeat(3000)).into())
}

fn levels() -> Result<Vec<u8>> {
    const N: usize = 200_000;
    Ok(format!("{HEAD}>{}{}</provider>", "<a>".repeat(N), "</a>".repeat(N)).into())
}

fn templates() -> Result<Vec<u8>> {
    let fields: String = (0..4000).map(|i| format!("<data name='n{i}' inType='win:UInt8'/>")).collect();
    let events: String = (0..60_000).map(|i| format!("<event value='{i}' template='t'/>")).collect();
    let templates = format!("<templates><template tid='t'>{fields}</template></templates>");
    Ok(format!("{HEAD}>{templates}<events>{events}</events></provider>").into())
}

/// Lists of sessions.
pub static LOGGERS: &[Bomb] = &[
    Bomb {
        name: "one-line",
        about: "a list of sessions that is one line of flags",
        make: || Ok(format!("Logger Name: a\nTrace Flags: {}", "PROC_THREAD+".repeat(4_000_000)).into_bytes()),
    },
    Bomb {
        name: "commas",
        about: "keywords that are all commas",
        make: || {
            let commas = ",".repeat(50_000_000);
            let head = "Name: a\nProvider:\nName: Windows Kernel Trace\nKeywordsAny: 0x1 (";
            Ok(format!("{head}{commas})").into_bytes())
        },
    },
    Bomb {
        name: "many-loggers",
        about: "sessions without end",
        make: || Ok("Logger Name: a\nBuffers Lost: 9223372036854775807\n".repeat(500_000).into_bytes()),
    },
];
