//! Files on this machine: folders, stores, pointers, cabinets, images.

use crate::support::{Temp, cabinet, pdb};
use etwhy_base::Guid;
use etwhy_base::rng::Rng;
use etwhy_symbols::source::Outcome;
use etwhy_symbols::verify::{Identity, VerifyError, identify};
use etwhy_symbols::{
    Candidate, FileKind, ImageKey, Locate as _, ModuleKey, Resolver, SourceOptions, SymbolPath, WantedModule,
    parse_store_id,
};
use std::path::Path;

const ID: &str = "00112233445566778899AABBCCDDEEFF1";

fn key(name: &str) -> ModuleKey {
    let (guid, age) = parse_store_id(ID).unwrap();
    ModuleKey { pdb_name: name.to_owned(), guid, age }
}

fn image() -> ImageKey {
    ImageKey {
        name: r"C:\Windows\System32\Drivers\App.sys".to_owned(),
        time_date_stamp: 0x5612_3456,
        size_of_image: 0x2_3000,
    }
}

fn wanted() -> WantedModule {
    WantedModule { pdb: Some(key("App.pdb")), image: Some(image()) }
}

fn good() -> Vec<u8> {
    pdb(key("").guid, 1, 100)
}

fn other() -> Vec<u8> {
    pdb(Guid([3; 16]), 1, 100)
}

/// An image with this time stamp and size that names a PDB (PE32+, one section).
fn pe(stamp: u32, size: u32, pdb: &ModuleKey) -> Vec<u8> {
    let mut file = vec![0u8; 0x600];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    put(0x84, &0x8664u16.to_le_bytes());
    put(0x86, &1u16.to_le_bytes());
    put(0x88, &stamp.to_le_bytes());
    put(0x94, &240u16.to_le_bytes());
    let optional = 0x98;
    put(optional, &0x20bu16.to_le_bytes());
    put(optional + 56, &size.to_le_bytes());
    put(optional + 108, &16u32.to_le_bytes());
    put(optional + 112 + 48, &0x1010u32.to_le_bytes());
    put(optional + 112 + 52, &28u32.to_le_bytes());
    let section = optional + 240;
    put(section + 8, &0x200u32.to_le_bytes());
    put(section + 12, &0x1000u32.to_le_bytes());
    put(section + 16, &0x200u32.to_le_bytes());
    put(section + 20, &0x400u32.to_le_bytes());
    let entry = 0x410;
    put(entry + 12, &2u32.to_le_bytes());
    let name = pdb.pdb_name.as_bytes();
    put(entry + 16, &u32::try_from(25 + name.len()).unwrap().to_le_bytes());
    put(entry + 24, &0x440u32.to_le_bytes());
    put(0x440, b"RSDS");
    put(0x444, &pdb.guid.0);
    put(0x454, &pdb.age.to_le_bytes());
    put(0x458, name);
    file
}

/// A portable PDB with only the stream `#Pdb`.
fn portable(guid: Guid) -> Vec<u8> {
    let mut file = b"BSJB\x01\0\x01\0\0\0\0\0".to_vec();
    file.extend(12u32.to_le_bytes());
    file.extend(b"PDB v1.0\0\0\0\0");
    file.extend([0, 0, 2, 0]);
    // #~ at 0, #Pdb behind the headers.
    file.extend([0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(b"#~\0\0");
    let at = file.len() + 16;
    file.extend(u32::try_from(at).unwrap().to_le_bytes());
    file.extend(32u32.to_le_bytes());
    file.extend(b"#Pdb\0\0\0\0");
    assert_eq!(file.len(), at);
    file.extend(guid.0);
    file.extend([9; 16]);
    file
}

fn options(temp: &Temp) -> SourceOptions {
    SourceOptions { default_store: temp.path().join("default"), ..SourceOptions::default() }
}

fn at(temp: &Temp, name: &str) -> String {
    temp.path().join(name).display().to_string()
}

fn find(path: &str, options: SourceOptions) -> Vec<Candidate> {
    SymbolPath::parse(path).unwrap().sources(options).candidates(&wanted())
}

fn found(temp: &Temp, path: &str) -> String {
    let candidates = find(path, options(temp));
    assert_eq!(candidates.len(), 1, "{path}");
    candidates[0].file.strip_prefix(temp.path()).unwrap().display().to_string().replace('\\', "/")
}

#[test]
fn plain_folders_as_the_debuggers_look() {
    for place in
        ["App.pdb", "app.PDB", "symbols/sys/app.pdb", "SYS/App.pdb", "symbols/dll/App.pdb", "pdb/App.pdb"]
    {
        let temp = Temp::new(&format!("flat-{}", place.replace('/', "-")));
        temp.write(&format!("dir/{place}"), &good());
        assert_eq!(found(&temp, &at(&temp, "dir")), format!("dir/{place}"));
    }
}

#[test]
fn a_folder_may_be_a_store_whatever_the_case() {
    let temp = Temp::new("store");
    temp.write(&format!("dir/APP.pdb/{}/app.PDB", ID.to_lowercase()), &good());
    assert!(found(&temp, &at(&temp, "dir")).ends_with("app.PDB"));
    let sym = Temp::new("sym");
    sym.write(&format!("dir/app.pdb/{ID}/app.sym"), format!("MODULE windows x86 {ID} app.pdb\n").as_bytes());
    let candidates = find(&at(&sym, "dir"), options(&sym));
    assert_eq!(candidates[0].kind, FileKind::Breakpad);
}

#[test]
fn two_tiers() {
    let temp = Temp::new("tiers");
    temp.write("store/index2.txt", b"");
    temp.write(&format!("store/Ap/App.pdb/{ID}/App.pdb"), &good());
    let path = format!("srv*{}*{}", at(&temp, "cache"), at(&temp, "store"));
    assert_eq!(found(&temp, &path), format!("cache/App.pdb/{ID}/App.pdb"));
}

#[test]
fn another_build_is_told_and_the_search_goes_on() {
    let temp = Temp::new("other");
    temp.write("first/App.pdb", &other());
    temp.write("second/App.pdb", &good());
    let path = format!("{};{}", at(&temp, "first"), at(&temp, "second"));
    let sources = SymbolPath::parse(&path).unwrap().sources(options(&temp));
    let (candidates, attempts) = sources.search(&wanted());
    assert!(candidates[0].file.ends_with("second/App.pdb"));
    assert!(matches!(&attempts[0].outcome, Outcome::Mismatch { found, .. } if found.contains("03030303")));
    sources.candidates(&wanted());
    let problems = sources.problems();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].mismatch && problems[0].text.contains("first"), "{problems:?}");
    assert!(sources.problems().is_empty(), "told once");
}

#[test]
fn a_pdb_anywhere_comes_before_an_image_anywhere() {
    let temp = Temp::new("order");
    let file = pe(image().time_date_stamp, image().size_of_image, &key("App.pdb"));
    temp.write("first/App.sys", &file);
    let path = format!("{};{}", at(&temp, "first"), at(&temp, "second"));
    assert_eq!(find(&path, options(&temp))[0].kind, FileKind::Image);
    temp.write("second/App.pdb", &good());
    assert_eq!(find(&path, options(&temp))[0].kind, FileKind::Pdb);
}

#[test]
fn images_in_folders_stores_and_copies_of_disks() {
    let fits = pe(image().time_date_stamp, image().size_of_image, &key("App.pdb"));
    let stale = pe(1, image().size_of_image, &key("App.pdb"));
    let id = "5612345623000";
    assert_eq!(image().store_id(), id);
    for place in [
        "App.sys".to_owned(),
        "Windows/System32/drivers/app.sys".to_owned(),
        "System32/Drivers/App.sys".to_owned(),
        "drivers/App.sys".to_owned(),
        format!("App.sys/{id}/App.sys"),
    ] {
        let temp = Temp::new(&format!("image-{}", place.replace('/', "-")));
        let images = vec![temp.path().join("disk")];
        let look = |images| find("", SourceOptions { images, ..options(&temp) });
        temp.write(&format!("disk/{place}"), &stale);
        assert!(look(images.clone()).is_empty(), "{place}: another build");
        temp.write(&format!("disk/{place}"), &fits);
        assert_eq!(look(images).len(), 1, "{place}");
    }
}

#[test]
fn what_lies_beside_the_trace_comes_first() {
    let temp = Temp::new("beside");
    temp.write("trace.etl.NGENPDB/App.pdb", &good());
    temp.write("dir/App.pdb", &good());
    let beside = vec![temp.path().join("trace.etl.NGENPDB")];
    let candidates = find(&at(&temp, "dir"), SourceOptions { beside, ..options(&temp) });
    assert!(candidates[0].file.ends_with("trace.etl.NGENPDB/App.pdb"));
}

/// What came with a trace names its functions, and those of no other trace.
#[test]
fn the_compact_cache_is_of_files_that_the_user_named() {
    let temp = Temp::new("compact");
    let sym = |function: &str| {
        format!("MODULE windows x86_64 {ID} App.pdb\nFUNC 1000 10 0 {function}\n").into_bytes()
    };
    temp.write(&format!("zip/symbols/App.pdb/{ID}/App.sym"), &sym("forged"));
    let honest = temp.write(&format!("store/App.pdb/{ID}/App.sym"), &sym("honest"));
    let path = format!("srv*{}", at(&temp, "store"));
    let function = |beside: &str| {
        let beside = vec![temp.path().join(beside)];
        let locators = SymbolPath::parse(&path).unwrap().locators(SourceOptions { beside, ..options(&temp) });
        let resolver = Resolver::new(locators, Some(temp.path().join("compact"))).caching_all();
        let module = resolver.load(&wanted()).unwrap();
        assert_eq!(resolver.problems(), []);
        module.lookup(0x1004).unwrap().function.plain.to_owned()
    };
    let kept = || temp.files(true).iter().filter(|file| file.starts_with("compact/")).count();
    assert_eq!((function("zip/symbols"), kept()), ("forged".to_owned(), 0));
    assert_eq!((function("none"), kept()), ("honest".to_owned(), 1));
    assert_eq!((function("zip/symbols"), kept()), ("forged".to_owned(), 1));
    // Size and time of the file decide: with the same ones it is not read again, with others it is.
    let time = std::fs::metadata(&honest).unwrap().modified().unwrap();
    std::fs::write(&honest, sym("unread")).unwrap();
    let file = std::fs::File::options().write(true).open(&honest).unwrap();
    file.set_modified(time).unwrap();
    assert_eq!(function("none"), "honest");
    file.set_modified(time + std::time::Duration::from_secs(2)).unwrap();
    assert_eq!(function("none"), "unread");
}

/// Nor does a cabinet beside a trace fill the store that all traces share.
#[test]
fn a_cabinet_beside_a_trace_is_for_that_trace() {
    let temp = Temp::new("beside-cabinet");
    let packed = cabinet(&[("App.pdb", &good())]);
    temp.write(&format!("trace/App.pdb/{ID}/App.pd_"), &packed);
    let beside = vec![temp.path().join("trace")];
    for _ in 0..2 {
        let candidates = find("", SourceOptions { beside: beside.clone(), ..options(&temp) });
        assert!(candidates.len() == 1 && !candidates[0].is_named, "{candidates:?}");
        assert!(candidates[0].file.ends_with(format!("App.pdb/{ID}/App.pdb")));
    }
    assert_eq!(temp.files(false), [format!("trace/App.pdb/{ID}/App.pd_")], "nothing in the shared store");
}

#[test]
fn what_stands_right_of_a_cache_is_kept_there() {
    let temp = Temp::new("cache");
    temp.write("dir/App.pdb", &good());
    let path = format!("cache*{};{}", at(&temp, "kept"), at(&temp, "dir"));
    assert_eq!(found(&temp, &path), format!("kept/App.pdb/{ID}/App.pdb"));
    // To its left nothing is kept.
    let left = format!("{};cache*{}", at(&temp, "dir"), at(&temp, "none"));
    assert_eq!(found(&temp, &left), "dir/App.pdb");
    assert!(!temp.path().join("none").exists());
}

#[test]
fn cabinets_of_a_store_are_unpacked_elsewhere() {
    let temp = Temp::new("cabinet");
    let packed = cabinet(&[("App.pdb", &good())]);
    temp.write(&format!("store/App.pdb/{ID}/App.pd_"), &packed);
    let path = format!("srv*{}", at(&temp, "store"));
    assert_eq!(found(&temp, &path), format!("default/App.pdb/{ID}/App.pdb"));
    assert_eq!(found(&temp, &path), format!("default/App.pdb/{ID}/App.pdb"), "the second time too");
    let cached = format!("srv*{}*{}", at(&temp, "cache"), at(&temp, "store"));
    assert_eq!(found(&temp, &cached), format!("cache/App.pdb/{ID}/App.pdb"));
    assert_eq!(temp.files(false).iter().filter(|file| file.starts_with("store/")).count(), 1);
}

#[test]
fn pointers_lead_into_the_folders_of_the_path_only() {
    let temp = Temp::new("pointer");
    let target = temp.write("builds/7/App.pdb", &good());
    temp.write("secret/App.pdb", &good());
    let pointer = format!("store/App.pdb/{ID}/file.ptr");
    let path = format!("srv*{};{}", at(&temp, "store"), at(&temp, "builds"));
    let ask = |text: &str| {
        temp.write(&pointer, text.as_bytes());
        let sources = SymbolPath::parse(&path).unwrap().sources(options(&temp));
        let files: Vec<_> = sources.candidates(&wanted()).into_iter().map(|c| c.file).collect();
        (files, sources.problems().into_iter().map(|p| p.text).collect::<String>())
    };
    assert_eq!(ask(&target.display().to_string()).0, std::slice::from_ref(&target));
    assert_eq!(ask(&format!("PATH:{}\r\n", target.display())).0, [target]);
    for (text, why) in [
        (at(&temp, "secret/App.pdb"), "outside of the folders"),
        (at(&temp, "builds/../secret/App.pdb"), "outside of the folders"),
        (at(&temp, "builds/7/../../secret/App.pdb"), "outside of the folders"),
        (at(&temp, "buildsecret/App.pdb"), "outside of the folders"),
        (at(&temp, "builds/7/NUL"), "outside of the folders"),
        ("/etc/passwd".to_owned(), "outside of the folders"),
        (r"\\server\share\App.pdb".to_owned(), "outside of the folders"),
        (String::new(), "outside of the folders"),
        (at(&temp, "builds/8/App.pdb"), "which is not there"),
        ("MSG: not allowed".to_owned(), "the store says: not allowed"),
    ] {
        let (files, problems) = ask(&text);
        assert!(files.is_empty(), "{text}");
        assert!(problems.contains(why), "{text}: {problems}");
    }
}

#[cfg(unix)]
#[test]
fn pointers_do_not_follow_links_out_of_a_root() {
    let temp = Temp::new("link");
    temp.write("secret/App.pdb", &good());
    std::fs::create_dir_all(temp.path().join("builds")).unwrap();
    std::os::unix::fs::symlink(temp.path().join("secret"), temp.path().join("builds/out")).unwrap();
    temp.write(&format!("store/App.pdb/{ID}/file.ptr"), at(&temp, "builds/out/App.pdb").as_bytes());
    let path = format!("srv*{};{}", at(&temp, "store"), at(&temp, "builds"));
    let sources = SymbolPath::parse(&path).unwrap().sources(options(&temp));
    assert!(sources.candidates(&wanted()).is_empty());
    assert!(sources.problems()[0].text.contains("leads out of"));
}

#[test]
fn files_say_what_they_are() {
    let temp = Temp::new("identify");
    let guid = key("").guid;
    let identity = |bytes: &[u8]| identify(&temp.write("file", bytes)).unwrap();
    let native = identity(&good());
    assert_eq!(native, Identity::Pdb { guid, age: Some(1), pdb_age: 6 });
    assert!(native.fits(&wanted()));
    assert!(!identity(&pdb(guid, 2, 10)).fits(&wanted()), "another age");
    let portable = identity(&portable(guid));
    assert_eq!(portable, Identity::PortablePdb { guid });
    assert!(portable.fits(&wanted()));
    let sym = identity(format!("MODULE windows x86_64 {ID} App.pdb\r\nFUNC 1 1 0 f\n").as_bytes());
    assert_eq!(sym, Identity::Breakpad { guid, age: 1, name: "App.pdb".to_owned() });
    let file = identity(&pe(0x5612_3456, 0x2_3000, &key(r"d:\x\App.pdb")));
    let pdb = Some(key(r"d:\x\App.pdb"));
    assert_eq!(file, Identity::Image { time_date_stamp: 0x5612_3456, size_of_image: 0x2_3000, pdb });
    assert!(file.fits(&wanted()));
    for (bytes, text) in [
        (&b""[..], "it is empty"),
        (b"hello", "it looks like text"),
        (b"MODULE windows x86_64 nonsense x", "its first line is not one of Breakpad's"),
        (b"MZ", "damaged DOS header at offset 60: needs 4 bytes, has 0"),
        (b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0", "damaged MSF header"),
        (b"BSJB", "damaged metadata root at offset 12"),
    ] {
        let error = identify(&temp.write("file", bytes)).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(matches!(identify(Path::new("/nowhere/x.pdb")), Err(VerifyError::Io { .. })));
}

#[test]
fn damage_never_panics() {
    let temp = Temp::new("damage");
    let files = [
        good(),
        portable(Guid([5; 16])),
        pe(1, 2, &key("a.pdb")),
        format!("MODULE a b {ID} c\n").into_bytes(),
    ];
    let mut rng = Rng::new(7);
    let mut told = 0;
    for round in 0..2000 {
        let mut file = files[round % files.len()].clone();
        file.truncate(0xb00);
        for _ in 0..1 + rng.index(6) {
            let at = rng.index(file.len());
            file[at] = [0, 1, 0xff, 0x7f, 0x80][rng.index(5)];
        }
        file.truncate(file.len() - rng.index(file.len()) * (round % 2));
        told += usize::from(identify(&temp.write("file", &file)).is_err());
    }
    assert!(told > 100, "{told}");
}

/// The PDBs of a real trace, as a store of PerfView has them: the folder's name is what the file says.
#[test]
fn real_pdbs_are_what_their_store_says() {
    let Some(store) = etwhy_testkit::corpus_file("etl/microsoft+perfview/symbols") else { return };
    let mut seen = 0;
    for name in ["mscorlib.ni.pdb", "System.ni.pdb", "System.Xml.ni.pdb"] {
        for id in std::fs::read_dir(store.join(name)).unwrap().flatten() {
            let (guid, age) = parse_store_id(&id.file_name().to_string_lossy()).unwrap();
            let key = ModuleKey { pdb_name: name.to_owned(), guid, age };
            assert!(identify(&id.path().join(name)).unwrap().fits_pdb(&key), "{}", id.path().display());
            let wanted = WantedModule { pdb: Some(key), image: None };
            let path = SymbolPath::parse(&format!("srv*{}", store.display())).unwrap();
            assert_eq!(path.sources(SourceOptions::default()).candidates(&wanted).len(), 1);
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}
