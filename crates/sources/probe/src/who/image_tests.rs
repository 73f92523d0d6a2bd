use super::*;

/// Pieces of memory.
#[derive(Default)]
struct Space(Vec<(u64, Vec<u8>)>);

impl Space {
    fn put(mut self, at: u64, bytes: &[u8]) -> Space {
        self.0.insert(0, (at, bytes.to_vec()));
        self
    }

    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let byte = |at: u64| {
            self.0.iter().find_map(|(start, bytes)| bytes.get(usize::try_from(at.checked_sub(*start)?).ok()?))
        };
        (0..).zip(into).all(|(n, target)| {
            let found = at.checked_add(n).and_then(byte);
            found.map(|one| *target = *one).is_some()
        })
    }
}

/// Where the file wants to be, and where it is.
const WANTED: u64 = 0x1_8000_0000;
const BASE: u64 = 0x7fff_0000_0000;
/// Addresses of its functions.
const FUNCTIONS: [(&str, u32); 4] =
    [("NtClose", 0x1400), ("NtCreateFile", 0x1420), ("NtShort", 0x1440), ("NtZ", 0x1443)];
const SLOT: u64 = 0x1b80;

/// A library of one section with four functions, the second of which holds an address that is moved, and one import.
fn library() -> Vec<u8> {
    let mut file = vec![0_u8; 0x400 + 0x1000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let le = |number: u32| number.to_le_bytes();
    put(0, b"MZ");
    put(0x3c, &le(0x80));
    put(0x80, b"PE\0\0");
    put(0x84, &0x8664_u16.to_le_bytes());
    put(0x86, &1_u16.to_le_bytes());
    put(0x88, &le(0x6543_2100));
    put(0x94, &240_u16.to_le_bytes());
    let optional = 0x98;
    put(optional, &0x20b_u16.to_le_bytes());
    put(optional + 24, &WANTED.to_le_bytes());
    put(optional + 56, &le(0x2000));
    put(optional + 108, &le(16));
    for (directory, at, size) in [(0, 0x1000, 0x200), (1, 0x1a00, 0x200), (5, 0x1800, 12)] {
        put(optional + 112 + directory * 8, &le(at));
        put(optional + 116 + directory * 8, &le(size));
    }
    let section = optional + 240;
    for (at, number) in [(8, 0x1000), (12, 0x1000), (16, 0x1000), (20, 0x400)] {
        put(section + at, &le(number));
    }
    // Offset in the file of an address.
    let of = |address: u32| address as usize - 0x1000 + 0x400;
    for (at, number) in [(16, 1), (20, 4), (24, 4), (28, 0x1040), (32, 0x1060), (36, 0x1080)] {
        put(of(0x1000 + at), &le(number));
    }
    for (n, (name, address)) in (0_u32..).zip(FUNCTIONS) {
        put(of(0x1040 + n * 4), &le(address));
        put(of(0x1060 + n * 4), &le(0x1100 + n * 16));
        put(of(0x1080 + n * 2), &(n as u16).to_le_bytes());
        put(of(0x1100 + n * 16), name.as_bytes());
    }
    put(of(0x1400), &[0x4c, 0x8b, 0xd1, 0xb8, 0x0f, 0, 0, 0, 0xf6, 4, 0x25, 8, 3, 0xfe, 0x7f, 1, 0x75, 3]);
    // mov rax, address; jmp rax
    put(of(0x1420), &[0x48, 0xb8]);
    put(of(0x1422), &(WANTED + 0x1400).to_le_bytes());
    put(of(0x142a), &[0xff, 0xe0]);
    put(of(0x1440), &[0x33, 0xc0, 0xc3, 0xb0, 1, 0xc3]);
    // One block of moved addresses, with one of 64 bits (type 10).
    put(of(0x1800), &le(0x1000));
    put(of(0x1804), &le(12));
    put(of(0x1808), &(10_u16 << 12 | 0x422).to_le_bytes());
    // One library, one function.
    for (at, number) in [(0, 0x1b00), (12, 0x1b40), (16, SLOT as u32)] {
        put(of(0x1a00 + at), &le(number));
    }
    put(of(0x1b00), &le(0x1b60));
    put(of(0x1b40), b"kernelbase.dll");
    put(of(0x1b60), b"\0\0CreateFileW");
    file
}

/// The file as the loader puts it into memory.
fn loaded(file: &[u8]) -> Space {
    let mut section = file[0x400..].to_vec();
    section[0x422..0x42a].copy_from_slice(&(BASE + 0x1400).to_le_bytes());
    Space::default().put(BASE, &file[..0x400]).put(BASE + 0x1000, &section)
}

const NAMES: &[&str] = &["NtClose", "NtCreateFile", "NtShort", "NtNone"];

fn patches(file: &[u8], space: &Space) -> Vec<Patch> {
    Image::parse(file).unwrap().patches(NAMES, BASE, &|at, into| space.read(at, into))
}

#[test]
fn what_was_not_changed_is_equal_though_it_was_moved() {
    let file = library();
    let space = loaded(&file);
    assert_eq!(patches(&file, &space), []);
    let image = Image::parse(&file).unwrap();
    assert!(image.is_at(BASE, &|at, into| space.read(at, into)));
    assert!(!image.is_at(BASE + 0x1000, &|at, into| space.read(at, into)));
    let mut other = file.clone();
    other[0x88] ^= 1;
    assert!(!Image::parse(&other).unwrap().is_at(BASE, &|at, into| space.read(at, into)));
    assert_eq!(image.needs(), ["kernelbase.dll"]);
    assert_eq!(image.slots(BASE), [("CreateFileW".to_owned(), BASE + SLOT)]);
    // What cannot be read is not called patched, and what follows a short function is another's.
    assert_eq!(patches(&file, &Space::default()), []);
    assert_eq!(patches(&file, &loaded(&file).put(BASE + 0x1443, &[0xcc; 16])), []);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_form_of_jump_is_followed() {
    let file = library();
    let at = BASE + 0x1400;
    let to: u64 = 0x7ffe_1234_5678;
    let near = at.wrapping_add(0x1000_0000);
    let distance = |length: u64| (near.wrapping_sub(at + length) as u32).to_le_bytes();
    let word = to.to_le_bytes();
    let join = |parts: &[&[u8]]| parts.concat();
    let forms: Vec<(&str, Vec<u8>, u64)> = vec![
        ("jmp rel32", join(&[&[0xe9], &distance(5)]), near),
        ("endbr64; jmp rel32", join(&[&[0xf3, 0x0f, 0x1e, 0xfa, 0xe9], &distance(9)]), near),
        ("nop; jmp rel32", join(&[&[0x90, 0x66, 0x90, 0xe9], &distance(8)]), near),
        ("jmp rel8", vec![0xeb, 0xf9], at - 5),
        ("jmp [rip+0]", join(&[&[0xff, 0x25, 0, 0, 0, 0], &word]), to),
        ("rex jmp [rip+0]", join(&[&[0x48, 0xff, 0x25, 0, 0, 0, 0], &word]), to),
        ("push; ret", vec![0x68, 0x78, 0x56, 0x34, 0x12, 0xc3], 0x1234_5678),
        ("push; ret, upper half", vec![0x68, 0, 0, 0, 0x80, 0xc3], 0xffff_ffff_8000_0000),
        ("push; mov; ret", join(&[&[0x68], &word[..4], &[0xc7, 0x44, 0x24, 4], &word[4..], &[0xc3]]), to),
        ("mov rax; jmp rax", join(&[&[0x48, 0xb8], &word, &[0xff, 0xe0]]), to),
        ("mov rax; rex jmp rax", join(&[&[0x48, 0xb8], &word, &[0x48, 0xff, 0xe0]]), to),
        ("mov r11; jmp r11", join(&[&[0x49, 0xbb], &word, &[0x41, 0xff, 0xe3]]), to),
        ("mov r10; push r10; ret", join(&[&[0x49, 0xba], &word, &[0x41, 0x52, 0xc3]]), to),
        ("mov rcx; push rcx; ret", join(&[&[0x48, 0xb9], &word, &[0x51, 0xc3]]), to),
        // The first instruction is left as it was: `mov r10, rcx`.
        ("mov; jmp rel32", join(&[&[0x4c, 0x8b, 0xd1, 0xe9], &distance(8)]), near),
    ];
    for (name, code, to) in forms {
        let space = loaded(&file).put(at, &join(&[&code, &[0xcc; 12]]));
        let found = patches(&file, &space);
        let [patch] = found.as_slice() else { panic!("{name}: {found:?}") };
        assert_eq!((patch.name.as_str(), patch.to), ("NtClose", Some(to)), "{name}");
        assert!(patch.memory.starts_with(&code[..code.len().min(16)]) && patch.file.len() == 16, "{name}");
        // Cut off by the end of memory, it is no jump and no crash.
        for cut in 0..code.len() {
            let short = Space::default().put(at, &code[..cut]);
            let _ = jump(at, &|at, into| short.read(at, into));
        }
    }
    // The end of an instruction that was a jump before: only where it leads has changed.
    let space = loaded(&file).put(BASE + 0x1422, &word);
    assert_eq!(patches(&file, &space)[0].to, Some(to));
    // No jump: a breakpoint, a call, a jump through another register, one before the change.
    for code in [
        vec![0xcc],
        join(&[&[0xe8], &distance(5)]),
        join(&[&[0x48, 0xb8], &word, &[0xff, 0xe1]]),
        join(&[&[0x49, 0xb8], &word, &[0xff, 0xe0]]),
        vec![0x4c, 0x8b, 0xd1, 0x90, 0x90, 0xc3],
    ] {
        let space = loaded(&file).put(at, &join(&[&code, &[0xcc; 12]]));
        assert_eq!(patches(&file, &space)[0].to, None, "{code:x?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn relays_are_followed_to_a_library_and_circles_end() {
    let (first, second, known) = (0x1000_u64, 0x2000_u64, 0x7fff_0000_1234_u64);
    let space = Space::default()
        .put(first, &[0xe9, 0xfb, 0x0f, 0, 0, 0xcc])
        .put(second, &[&[0xff, 0x25, 0, 0, 0, 0][..], &known.to_le_bytes()].concat())
        .put(0x3000, &[0xeb, 0xfe]);
    let read = |at: u64, into: &mut [u8]| space.read(at, into);
    assert_eq!(destination(first, &read, &|at| at == known), known);
    assert_eq!(destination(first, &read, &|at| at == second), second);
    assert_eq!(destination(0x3000, &read, &|_| false), 0x3000);
    assert_eq!(destination(0x9999, &read, &|_| false), 0x9999);
}

#[test]
fn damaged_files_say_less_and_do_no_harm() {
    let file = library();
    let space = loaded(&file);
    let memory: Memory<'_> = &|at, into| space.read(at, into);
    let look = |file: &[u8]| {
        if let Some(image) = Image::parse(file) {
            image.needs();
            image.slots(BASE);
            image.is_at(u64::MAX, memory);
            image.patches(NAMES, BASE, memory);
            image.patches(NAMES, u64::MAX, memory);
        }
    };
    for cut in (0..file.len()).step_by(7) {
        look(&file[..cut]);
    }
    for at in (0..0x200).chain(0x400..0x500).chain(0x800..0x820).chain(0xc00..0xc10).chain(0xe00..0xfd0) {
        for value in [0, 0x7f, 0xff] {
            let mut wild = file.clone();
            wild[at] = value;
            look(&wild);
        }
    }
}
