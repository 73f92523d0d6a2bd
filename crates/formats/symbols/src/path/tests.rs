use super::*;

fn none(_: &str) -> Option<String> {
    None
}

fn parse(text: &str) -> SymbolPath {
    let (path, faults) = SymbolPath::parse_with(text, &none);
    assert_eq!(faults, Vec::new(), "{text}");
    path
}

fn folder(text: &str) -> StoreLocation {
    StoreLocation::Folder(text.to_owned())
}

fn server(text: &str) -> StoreLocation {
    StoreLocation::Server(text.to_owned())
}

fn srv(places: &[StoreLocation]) -> Element {
    Element::Stores { keyword: Keyword::Srv, places: places.to_vec() }
}

const MS: &str = "https://msdl.microsoft.com/download/symbols";

/// Examples of Microsoft's documentation (see the module), and how they are meant.
#[test]
fn documented_examples() {
    let symsrv = |places: &[StoreLocation]| Element::Stores {
        keyword: Keyword::SymSrv("symsrv.dll".to_owned()),
        places: places.to_vec(),
    };
    let cases: Vec<(&str, Vec<Element>)> = vec![
        (r"C:\Dir1;C:\Dir2\DirA;C:\Dir2\DirB", {
            [r"C:\Dir1", r"C:\Dir2\DirA", r"C:\Dir2\DirB"].map(|f| Element::Folder(f.to_owned())).to_vec()
        }),
        ("srv*", vec![srv(&[StoreLocation::Default])]),
        (r"srv*\\server\share\symbols", vec![srv(&[folder(r"\\server\share\symbols")])]),
        ("srv*https://msdl.microsoft.com/download/symbols", vec![srv(&[server(MS)])]),
        (
            r"srv*C:\MyCache*https://msdl.microsoft.com/download/symbols",
            vec![srv(&[folder(r"C:\MyCache"), server(MS)])],
        ),
        (
            "srv**https://msdl.microsoft.com/download/symbols",
            vec![srv(&[StoreLocation::Default, server(MS)])],
        ),
        (
            r"srv*c:\downstream*\\machine\share*https://msdl.microsoft.com/download/symbols",
            vec![srv(&[folder(r"c:\downstream"), folder(r"\\machine\share"), server(MS)])],
        ),
        (r"srv**\\Server\Share*http://InternetSite", {
            vec![srv(&[StoreLocation::Default, folder(r"\\Server\Share"), server("http://InternetSite")])]
        }),
        (r"symsrv*symsrv.dll*\\Server\Share", vec![symsrv(&[folder(r"\\Server\Share")])]),
        (
            r"symsrv*symsrv.dll*c:\a*\\Server\Share",
            vec![symsrv(&[folder(r"c:\a"), folder(r"\\Server\Share")])],
        ),
        (r"cache*C:\MySymbols;srv*https://msdl.microsoft.com/download/symbols", {
            vec![Element::Cache(vec![folder(r"C:\MySymbols")]), srv(&[server(MS)])]
        }),
        ("cache*;srv*", vec![Element::Cache(vec![StoreLocation::Default]), srv(&[StoreLocation::Default])]),
        (r"\\symbols\symbols;c:\symbols\httpsymbols*https://msdl.microsoft.com", {
            let keyword = Keyword::None;
            let places = vec![folder(r"c:\symbols\httpsymbols"), server("https://msdl.microsoft.com")];
            vec![Element::Folder(r"\\symbols\symbols".to_owned()), Element::Stores { keyword, places }]
        }),
        ("DebugInfoD*https://debuginfod.elfutils.org", {
            vec![Element::DebugInfoD { caches: vec![], server: "https://debuginfod.elfutils.org".to_owned() }]
        }),
        ("DebugInfoD*/cache*http://localhost:8002", {
            vec![Element::DebugInfoD {
                caches: vec![folder("/cache")],
                server: "http://localhost:8002".to_owned(),
            }]
        }),
        ("/home/me/symbols", vec![Element::Folder("/home/me/symbols".to_owned())]),
    ];
    for (text, elements) in cases {
        let path = parse(text);
        assert_eq!(path.elements, elements, "{text}");
        assert_eq!(path.to_string(), text, "printed back");
        assert_eq!(parse(&path.to_string()), path);
    }
}

#[test]
fn case_blanks_quotes_and_empty_elements_do_not_matter() {
    let path = parse(r#" ; SRV*C:\a*HTTPS://Host/x ;;"C:\My Symbols"; Cache*D:\c;"#);
    assert_eq!(path.to_string(), r"srv*C:\a*HTTPS://Host/x;C:\My Symbols;cache*D:\c");
    assert_eq!(parse(r"SymSrv*SYMSRV.DLL*\\s\x").to_string(), r"symsrv*SYMSRV.DLL*\\s\x");
    assert!(parse(" ; ;").is_empty());
    assert_eq!(parse(r"srv*C:\symbols*").elements, vec![srv(&[folder(r"C:\symbols")])]);
}

#[test]
fn what_names_a_server() {
    for (text, online) in [
        ("srv*", true),
        ("srv**", true),
        ("https://host/s", true),
        ("srv*/a*/b", false),
        ("cache*", false),
        ("/a;/b", false),
        ("srv*/a*", false),
        ("DebugInfoD*http://h", true),
    ] {
        assert_eq!(parse(text).names_a_server(), online, "{text}");
    }
}

#[test]
fn variables_are_put_in() {
    let variable = |name: &str| match name {
        "SystemDrive" => Some("C:".to_owned()),
        "ProgramFiles(x86)" => Some(r"C:\Program Files (x86)".to_owned()),
        "_NT_SYMBOL_PATH" => Some("srv*/c*http://h;/more".to_owned()),
        _ => None,
    };
    let text =
        r"%SystemDrive%\symbols;%ProgramFiles(x86)%\x;/mine;%_NT_SYMBOL_PATH%;srv*http://h/a%20b%20c;50%";
    let (path, faults) = SymbolPath::parse_with(text, &variable);
    assert_eq!(faults, Vec::new());
    assert_eq!(
        path.to_string(),
        r"C:\symbols;C:\Program Files (x86)\x;/mine;srv*/c*http://h;/more;srv*http://h/a%20b%20c;50%"
    );
    let (path, faults) = SymbolPath::parse_with(r"%NOPE%\x;/a", &variable);
    assert_eq!(path.to_string(), "/a");
    assert_eq!(
        faults[0].to_string(),
        r"symbol path, element 1 `%NOPE%\x`: the environment variable NOPE is not set"
    );
}

#[test]
fn faults_say_which_element_and_why() {
    for (text, number, reason) in [
        ("/a;srv*http://a*http://b", 2, "`http://a` is a server and can only be the last"),
        ("symsrv*my.dll*/a", 1, "`my.dll` is a symbol server DLL"),
        ("cache*http://a", 1, "a cache is a folder"),
        ("srv*ftp://a/b", 1, "`ftp://` is not understood"),
        ("srv*file:///etc", 1, "write the folder itself"),
        ("srv*http:///x", 1, "names no host"),
        ("srv*http://a/b?c", 1, "query or fragment"),
        ("srv*http://a/b c", 1, "has blanks"),
        ("/a;/b;foo*bar", 3, "`foo` is no keyword"),
        ("DebugInfoD*/a", 1, "needs one URL"),
        ("a\0b", 1, "NUL"),
    ] {
        let (_, faults) = SymbolPath::parse_with(text, &none);
        assert_eq!(faults.len(), 1, "{text}");
        assert_eq!(faults[0].number, number, "{text}");
        assert!(faults[0].reason.contains(reason), "{text}: {}", faults[0].reason);
        assert!(SymbolPath::parse(text).is_err());
    }
    let long = "x".repeat(2 << 20);
    assert_eq!(SymbolPath::parse_with(&long, &none).1.len(), 1);
}

#[test]
fn paths_of_windows_are_no_files_elsewhere() {
    for text in [r"C:\x", r"\\server\share", r"d:/x"] {
        assert!(is_windows_path(text), "{text}");
        assert_eq!(local_path(text).is_some(), cfg!(windows), "{text}");
    }
    assert_eq!(local_path("/a/b"), Some("/a/b".into()));
}
