//! Breakpad symbol files in the layout of a symbol store.

use crate::world::{Images, Module};
use etwhy_base::Guid;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// GUID and age as symbol stores write them: 32 upper-case digits, then the age in hexadecimal.
fn identity(guid: Guid, age: u32) -> String {
    format!("{}{age:X}", guid.to_string().replace('-', "").to_uppercase())
}

/// Writes `name.pdb/GUIDAGE/name.sym` for every image that has functions. Gives the number of files.
pub(crate) fn write_symbols(images: &Images, folder: &Path) -> io::Result<usize> {
    let mut count = 0;
    for module in images.modules.iter().filter(|m| m.jit.is_none() && m.symbols && !m.functions.is_empty()) {
        let id = identity(module.guid, module.age);
        let stem = module.pdb.strip_suffix(".pdb").unwrap_or(&module.pdb);
        let path: PathBuf =
            [&*module.pdb, &id].iter().fold(folder.to_path_buf(), |p, part| p.join(safe(part)));
        std::fs::create_dir_all(&path)?;
        std::fs::write(path.join(format!("{}.sym", safe(stem))), text(module, &id))?;
        count += 1;
    }
    Ok(count)
}

/// A name from a scenario as the name of a file: no separators, no climbing out.
fn safe(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_alphanumeric() || "._- ".contains(c) { c } else { '_' }).collect();
    if plain.trim_matches('.').is_empty() { "_".into() } else { plain }
}

fn text(module: &Module, id: &str) -> String {
    let arch = if module.narrow { "x86" } else { "x86_64" };
    let mut out = format!("MODULE windows {arch} {id} {}\n", module.pdb);
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.sort_unstable_by_key(|f| f.rva);
    for f in functions {
        let _ = writeln!(out, "FUNC {:x} {:x} 0 {}", f.rva, f.size, f.name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(safe("a.pdb"), "a.pdb");
        assert_eq!(safe("..\\x"), ".._x");
        assert_eq!(safe(".."), "_");
        let guid: Guid = "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc".parse().unwrap();
        assert_eq!(identity(guid, 10), "CE1DBFB4137E4DA687B03F59AA102CBCA");
    }
}
