//! Images and their functions, declared or first named by a frame.

use crate::hash_text;
use crate::model;
use crate::value::Dist;
use etwhy_base::Guid;
use etwhy_base::rng::mix;
use std::collections::HashMap;

/// One function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) rva: u32,
    pub(crate) size: u32,
    fixed: bool,
}

/// One image, or the compiled methods of one process.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) kernel: bool,
    pub(crate) narrow: bool,
    /// Index of the process whose compiled methods these are.
    pub(crate) jit: Option<usize>,
    pub(crate) base: u64,
    pub(crate) size: u32,
    pub(crate) functions: Vec<Function>,
    index: HashMap<String, usize>,
    declared_base: Option<u64>,
    declared_size: Option<u32>,
    /// Frames name offsets below this.
    reach: u32,
    pub(crate) pdb: String,
    pub(crate) guid: Guid,
    guid_given: bool,
    pub(crate) age: u32,
    pub(crate) timestamp: u32,
    pub(crate) checksum: u32,
    pub(crate) company: String,
    pub(crate) product: String,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) symbols: bool,
}

/// All images.
pub(crate) struct Images {
    pub(crate) modules: Vec<Module>,
    index: HashMap<(String, bool), usize>,
    pointer_size: u8,
}

/// First function of an image: behind the headers.
const FIRST_RVA: u32 = 0x1000;

impl Images {
    pub(crate) fn new(pointer_size: u8) -> Images {
        Images { modules: Vec::new(), index: HashMap::new(), pointer_size }
    }

    /// An `[[image]]` table.
    pub(crate) fn declare(&mut self, image: &model::Image) -> Result<(), String> {
        if image.name.is_empty() {
            return Err("an image needs a name, e.g. name = \"app.exe\"".into());
        }
        let kernel = image.kernel;
        for narrow in [false, true] {
            // The 32-bit twin exists only once a 32-bit process loads it; declaring it costs nothing.
            let at = self.get(&image.name, narrow, kernel);
            let Some(module) = self.modules.get_mut(at) else { continue };
            let constant = |d: &Option<Dist>| d.as_ref().and_then(Dist::as_constant);
            module.declared_base = constant(&image.base).map(|b| b as u64);
            module.declared_size = constant(&image.size).map(|s| s as u32);
            if let (Some(path), false) = (&image.path, narrow) {
                module.path = path.clone();
            }
            for (to, from) in [
                (&mut module.pdb, &image.pdb),
                (&mut module.company, &image.company),
                (&mut module.product, &image.product),
                (&mut module.description, &image.description),
                (&mut module.version, &image.version),
            ] {
                if let Some(text) = from {
                    to.clone_from(text);
                }
            }
            if let Some(text) = &image.guid {
                module.guid = text.parse().map_err(|()| format!("guid = {text:?} is no GUID"))?;
                module.guid_given = true;
            }
            module.age = image.age.unwrap_or(1);
            module.symbols = image.symbols.unwrap_or(true);
            module.timestamp = image.timestamp.unwrap_or(module.timestamp);
            module.checksum = image.checksum.unwrap_or(module.checksum);
            for function in &image.functions {
                let at = module.function(&function.name);
                if let Some(f) = module.functions.get_mut(at) {
                    f.size = function.size.unwrap_or(f.size).max(1);
                    if let Some(rva) = function.rva {
                        (f.rva, f.fixed) = (rva, true);
                    }
                }
            }
        }
        Ok(())
    }

    /// Index of the image of this name; it comes into being when nobody declared it.
    pub(crate) fn get(&mut self, name: &str, narrow: bool, kernel: Option<bool>) -> usize {
        let lower = name.to_lowercase();
        let kernel = kernel.unwrap_or_else(|| is_kernel_name(&lower));
        let narrow = narrow && !kernel && self.pointer_size == 8;
        let key = (lower, narrow);
        if let Some(&at) = self.index.get(&key) {
            return at;
        }
        let at = self.modules.len();
        self.modules.push(Module::new(name, kernel, narrow || self.pointer_size == 4));
        self.index.insert(key, at);
        at
    }

    /// The compiled methods of a process.
    pub(crate) fn jit(&mut self, process: usize, narrow: bool) -> usize {
        let key = (format!("jit:{process}"), false);
        if let Some(&at) = self.index.get(&key) {
            return at;
        }
        let at = self.modules.len();
        let mut module = Module::new("jit", false, narrow);
        module.jit = Some(process);
        self.modules.push(module);
        self.index.insert(key, at);
        at
    }

    /// Start of `module!function`, if both are known.
    pub(crate) fn address_of(&self, frame: &str, narrow: bool) -> Option<u64> {
        let (module, function) = frame.split_once('!')?;
        let at = self
            .index
            .get(&(module.to_lowercase(), narrow))
            .or_else(|| self.index.get(&(module.to_lowercase(), false)))?;
        let module = self.modules.get(*at)?;
        let function = module.functions.get(*module.index.get(function)?)?;
        Some(module.base + u64::from(function.rva))
    }

    /// Gives every function an RVA and every image a base. Nothing overlaps.
    pub(crate) fn layout(&mut self) -> Result<(), String> {
        let wide = self.pointer_size == 8;
        let mut kernel_at: u64 = if wide { 0xFFFF_F800_1000_0000 } else { 0x8180_0000 };
        let mut exe_at: u64 = if wide { 0x7FF6_1000_0000 } else { 0x0040_0000 };
        let mut dll_at: u64 = if wide { 0x7FF9_1000_0000 } else { 0x6000_0000 };
        let (mut narrow_exe, mut narrow_dll): (u64, u64) = (0x0040_0000, 0x6000_0000);
        let mut jit_at: u64 = if wide { 0x7FF8_2000_0000 } else { 0x0800_0000 };
        for module in &mut self.modules {
            module.assign_functions()?;
            module.identify();
            let at = match (module.jit, module.kernel, module.narrow && wide) {
                (Some(_), _, _) => &mut jit_at,
                (None, true, _) => &mut kernel_at,
                (None, false, true) if module.is_exe() => &mut narrow_exe,
                (None, false, true) => &mut narrow_dll,
                (None, false, false) if module.is_exe() => &mut exe_at,
                (None, false, false) => &mut dll_at,
            };
            module.base = module.declared_base.unwrap_or(*at);
            *at += u64::from(module.size).next_multiple_of(0x1_0000) + 0x1_0000;
        }
        Ok(())
    }
}

/// What runs in kernel space by its name.
fn is_kernel_name(lower: &str) -> bool {
    lower.ends_with(".sys") || matches!(lower, "ntoskrnl.exe" | "hal.dll" | "ci.dll" | "kdcom.dll")
}

impl Module {
    fn new(name: &str, kernel: bool, narrow: bool) -> Module {
        let lower = name.to_lowercase();
        let stem = lower.rsplit_once('.').map_or(lower.as_str(), |(stem, _)| stem);
        let seed = hash_text(&lower) ^ if narrow { 0x3232 } else { 0 };
        let microsoft =
            kernel && !lower.ends_with(".sys") || matches!(stem, "ntdll" | "kernel32" | "kernelbase");
        Module {
            path: default_path(name, &lower, kernel, narrow),
            name: name.into(),
            kernel,
            narrow,
            jit: None,
            base: 0,
            size: 0,
            functions: Vec::new(),
            index: HashMap::new(),
            declared_base: None,
            declared_size: None,
            reach: 0,
            pdb: if lower == "ntoskrnl.exe" { "ntkrnlmp.pdb".into() } else { format!("{stem}.pdb") },
            guid: Guid::ZERO,
            guid_given: false,
            age: 1,
            timestamp: 0x5000_0000 + (seed >> 36) as u32,
            checksum: (seed >> 44) as u32,
            company: if microsoft { "Microsoft Corporation".into() } else { String::new() },
            product: if microsoft { "Microsoft® Windows® Operating System".into() } else { String::new() },
            description: String::new(),
            version: if microsoft { "10.0.19041.1".into() } else { "1.0.0.0".into() },
            symbols: true,
        }
    }

    pub(crate) fn is_exe(&self) -> bool {
        self.name.to_lowercase().ends_with(".exe")
    }

    /// Index of a function; it comes into being when nobody declared it.
    pub(crate) fn function(&mut self, name: &str) -> usize {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        let at = self.functions.len();
        let size = 0x80 + (hash_text(name) % 24) as u32 * 16;
        self.functions.push(Function { name: name.into(), rva: 0, size, fixed: false });
        self.index.insert(name.into(), at);
        at
    }

    /// A frame names this offset: an image without a given size is that large.
    pub(crate) fn reaches(&mut self, rva: u32) {
        self.reach = self.reach.max(rva.saturating_add(1));
    }

    fn assign_functions(&mut self) -> Result<(), String> {
        let fixed = self.functions.iter().filter(|f| f.fixed).map(|f| f.rva.saturating_add(f.size)).max();
        let mut next = fixed.unwrap_or(FIRST_RVA).max(FIRST_RVA).next_multiple_of(16);
        for function in self.functions.iter_mut().filter(|f| !f.fixed) {
            function.rva = next;
            next = next.saturating_add(function.size).next_multiple_of(16);
        }
        let needed = next.max(self.reach).next_multiple_of(0x1000).saturating_add(0x1000);
        self.size = self.declared_size.unwrap_or(needed.max(0x1_0000));
        if self.size < next {
            return Err(format!(
                "image {}: size {} is too small, its functions need {next}",
                self.name, self.size
            ));
        }
        if self.size < self.reach {
            return Err(format!(
                "image {}: size {:#x} is too small, a frame names offset {:#x}",
                self.name,
                self.size,
                self.reach - 1
            ));
        }
        Ok(())
    }

    /// A PDB belongs to one build of an image: its GUID depends on the functions, so that scenarios in one
    /// folder do not overwrite each other's symbols.
    fn identify(&mut self) {
        if self.guid_given {
            return;
        }
        let start =
            hash_text(&self.name.to_lowercase()) ^ u64::from(self.narrow) << 32 ^ u64::from(self.size);
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_unstable_by_key(|f| f.rva);
        let all = functions.iter().fold(start, |hash, f| {
            mix(mix(hash ^ hash_text(&f.name)) ^ u64::from(f.rva) << 32 ^ u64::from(f.size))
        });
        let mut guid = [0; 16];
        let [a, b] = [all, mix(all ^ 0x5EED)].map(u64::to_le_bytes);
        guid.iter_mut().zip(a.into_iter().chain(b)).for_each(|(to, from)| *to = from);
        self.guid = Guid(guid);
    }

    /// The device or `\SystemRoot` path that image events carry.
    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('\\').next().unwrap_or(&self.name)
    }
}

/// Where an image lies when nobody says.
fn default_path(name: &str, lower: &str, kernel: bool, narrow: bool) -> String {
    const SYSTEM: [&str; 22] = [
        "ntdll.dll",
        "kernel32.dll",
        "kernelbase.dll",
        "user32.dll",
        "win32u.dll",
        "ucrtbase.dll",
        "ws2_32.dll",
        "advapi32.dll",
        "sechost.dll",
        "rpcrt4.dll",
        "combase.dll",
        "mswsock.dll",
        "gdi32.dll",
        "wevtsvc.dll",
        "svchost.exe",
        "services.exe",
        "lsass.exe",
        "csrss.exe",
        "conhost.exe",
        "wevtapi.dll",
        "msvcrt.dll",
        "clr.dll",
    ];
    match (kernel, narrow) {
        (true, _) if lower.ends_with(".sys") && !lower.starts_with("win32k") => {
            format!("\\SystemRoot\\System32\\drivers\\{name}")
        }
        (true, _) => format!("\\SystemRoot\\system32\\{name}"),
        (false, true) if SYSTEM.contains(&lower) => format!("C:\\Windows\\SysWOW64\\{name}"),
        (false, false) if SYSTEM.contains(&lower) => format!("C:\\Windows\\System32\\{name}"),
        _ => {
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
            format!("C:\\Program Files\\{stem}\\{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_functions_do_not_overlap() {
        let mut images = Images::new(8);
        for name in ["a.exe", "b.dll", "c.sys", "d.sys", "ntoskrnl.exe"] {
            let at = images.get(name, false, None);
            for f in 0..200 {
                images.modules[at].function(&format!("f{f}"));
            }
        }
        images.layout().unwrap();
        let mut spans: Vec<_> = images.modules.iter().map(|m| (m.base, m.base + u64::from(m.size))).collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0));
        assert!(images.modules.iter().all(|m| m.kernel == (m.base >> 63 == 1)));
        for m in &images.modules {
            assert!(m.functions.windows(2).all(|w| w[0].rva + w[0].size <= w[1].rva));
        }
        assert_eq!(images.get("B.DLL", false, None), 1);
        let guid = images.modules[1].guid;
        images.modules[1].function("one more");
        images.layout().unwrap();
        assert_ne!(images.modules[1].guid, guid, "another build, another PDB");
        assert_ne!(images.modules[0].guid, Guid::ZERO);
    }
}
