//! A portable PDB written by hand.

/// A stream with its name, padded.
type Stream = (&'static str, Vec<u8>);

fn file(streams: &[Stream]) -> Vec<u8> {
    let mut data = b"BSJB\x01\0\x01\0\0\0\0\0\x0C\0\0\0PDB v1.0\0\0\0\0\0\0".to_vec();
    data.extend((streams.len() as u16).to_le_bytes());
    let name = |name: &str| {
        let mut padded = name.as_bytes().to_vec();
        padded.resize((name.len() / 4 + 1) * 4, 0);
        padded
    };
    let mut at = data.len() + streams.iter().map(|s| 8 + name(s.0).len()).sum::<usize>();
    for (title, bytes) in streams {
        data.extend((at as u32).to_le_bytes());
        data.extend((bytes.len() as u32).to_le_bytes());
        data.extend(name(title));
        at += bytes.len();
    }
    data.extend(streams.iter().flat_map(|s| s.1.iter().copied()));
    data
}

/// Two documents, `C:\src\a.cs` and `b.cs`; methods 1 (of both), 2 (without lines) and 3.
pub fn small() -> Vec<u8> {
    let mut pdb: Vec<u8> = (1..=20).collect();
    pdb.extend([0; 4 + 8]);
    let mut blobs = vec![0u8];
    let mut blob = |bytes: &[u8]| {
        let at = blobs.len() as u16;
        blobs.push(bytes.len() as u8);
        blobs.extend(bytes);
        at
    };
    let (drive, folder, a) = (blob(b"C:"), blob(b"src"), blob(b"a.cs"));
    let full = blob(&[b'\\', drive as u8, folder as u8, a as u8]);
    let b = blob(b"b.cs");
    let bare = blob(&[0, b as u8]);
    // IL 0: line 10, columns 5 to 9; IL 4: hidden; IL 6: document 2, line 7, over two lines.
    let first = blob(&[0, 0, 0, 4, 10, 5, 4, 0, 0, 0, 2, 2, 2, 2, 0x7B, 0]);
    // IL 2, document 2 told in the blob: line 300.
    let third = blob(&[0, 2, 2, 0, 4, 0x81, 0x2C, 5]);
    let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
    tables.extend((3u64 << 0x30).to_le_bytes());
    tables.extend(0u64.to_le_bytes());
    tables.extend([2u32, 3].map(u32::to_le_bytes).concat());
    let rows = [full, 1, 0, 1, bare, 1, 0, 1, 1, first, 0, 0, 0, third];
    tables.extend(rows.iter().flat_map(|n| n.to_le_bytes()));
    blobs.resize(blobs.len().next_multiple_of(4), 0);
    file(&[("#Pdb", pdb), ("#~", tables), ("#GUID", vec![7; 16]), ("#Blob", blobs), ("#Strings", vec![0; 4])])
}
