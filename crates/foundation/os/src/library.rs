//! Loads shared libraries (`dlopen`, `LoadLibrary`), and calls the few functions of them that probes measure.
//!
//! # Contract
//!
//! Loading a library runs its code in this process: nothing can make that sound for a library that is written to do harm.
//! It is as safe as starting a program of the same path, which any program may ask of the system without `unsafe`; callers hand
//! over paths of the system or of the user, never one from a file that is analysed. What this module promises is
//! the rest: no address of the library leaves it, so nothing can be called after it was unloaded or with a wrong
//! signature, and a library whose threads go on (a pool of workers) is never unloaded, see [`OpenMp`].

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;

/// A library that is loaded until its owner goes.
#[derive(Debug)]
pub struct Library(libloading::Library);

impl Library {
    /// Loads a library: a path, or a name that the system's loader searches for. All that it needs is loaded with it, and
    /// its initialisers run. One that is loaded already is not loaded again.
    ///
    /// # Errors
    /// The loader's words: no such file, no library, something that it needs is missing.
    pub fn open(path: &Path) -> io::Result<Library> {
        // SAFETY: see the contract in the module's documentation.
        let loaded = unsafe { libloading::Library::new(path) };
        loaded.map(Library).map_err(error)
    }

    /// Whether it exports a function or variable of that name.
    pub fn has(&self, name: &CStr) -> bool {
        // SAFETY: the address is looked up and not used.
        unsafe { self.0.get::<*const c_void>(name) }.is_ok()
    }

    /// Unloads it now, unless others still use it. Going out of scope does the same, without an answer.
    ///
    /// # Errors
    /// The loader's words.
    pub fn close(self) -> io::Result<()> {
        self.0.close().map_err(error)
    }
}

fn error(error: libloading::Error) -> io::Error {
    use std::error::Error as _;
    // What the loader says stands in the source.
    io::Error::other(error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// How a program asks an OpenMP runtime for a parallel region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMpCalls {
    /// GCC's: `GOMP_parallel` (libgomp, gomp-constants.h, libgomp_g.h).
    Gnu,
    /// LLVM's and Intel's: `__kmpc_fork_call` (openmp/runtime/src/kmp.h).
    Llvm,
    /// Microsoft's: `_vcomp_fork` (vcomp140.dll).
    Microsoft,
}

type GnuBody = unsafe extern "C" fn(*mut c_void);
type GnuFork = unsafe extern "C" fn(GnuBody, *mut c_void, u32, u32);
type LlvmBody = unsafe extern "C" fn(*const i32, *const i32);
type LlvmFork = unsafe extern "C" fn(*const Ident, i32, LlvmBody, ...);
type MicrosoftBody = unsafe extern "C" fn();
type MicrosoftFork = unsafe extern "C" fn(c_int, c_int, MicrosoftBody, ...);
type SetThreads = unsafe extern "C" fn(c_int);

/// `ident_t` of LLVM's runtime: where in the source a region is.
#[repr(C)]
struct Ident {
    reserved_1: i32,
    flags: i32,
    reserved_2: i32,
    reserved_3: i32,
    source: *const c_char,
}

/// `KMP_IDENT_KMPC`: the caller is compiled code.
const IDENT_KMPC: i32 = 0x02;
const SOURCE: &CStr = c";unknown;unknown;0;0;;";

enum Fork {
    Gnu(GnuFork),
    Llvm(LlvmFork, Box<Ident>),
    Microsoft(MicrosoftFork),
}

/// An OpenMP runtime. It is never unloaded: its workers live until the process ends, and the code that they run must stay.
pub struct OpenMp {
    // The functions of `fork` are in it: it must not go.
    _library: ManuallyDrop<Library>,
    fork: Fork,
    threads: u32,
}

impl OpenMp {
    /// Loads the runtime at `path` and prepares regions of `threads` threads. The runtime reads its settings
    /// (`OMP_WAIT_POLICY`, `KMP_BLOCKTIME`, …) from the environment of the process now.
    ///
    /// # Errors
    /// The loader's words; [`io::ErrorKind::Unsupported`] if it is no OpenMP runtime with such calls.
    pub fn open(path: &Path, threads: u32) -> io::Result<OpenMp> {
        let library = ManuallyDrop::new(Library::open(path)?);
        let loaded = &library.0;
        // SAFETY: these names, and the one below, are those of the OpenMP runtimes, whose signatures are the types above; the
        // library is never unloaded.
        let llvm = unsafe { loaded.get::<LlvmFork>(c"__kmpc_fork_call") }.ok();
        let gnu = unsafe { loaded.get::<GnuFork>(c"GOMP_parallel") }.ok();
        let microsoft = unsafe { loaded.get::<MicrosoftFork>(c"_vcomp_fork") }.ok();
        // LLVM's runtime has GCC's calls too, so it is asked for its own first.
        let fork = if let Some(fork) = llvm {
            let ident = Ident {
                reserved_1: 0,
                flags: IDENT_KMPC,
                reserved_2: 0,
                reserved_3: 0,
                source: SOURCE.as_ptr(),
            };
            Fork::Llvm(*fork, Box::new(ident))
        } else if let Some(fork) = gnu {
            Fork::Gnu(*fork)
        } else if let Some(fork) = microsoft {
            Fork::Microsoft(*fork)
        } else {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it has none of GOMP_parallel, __kmpc_fork_call, _vcomp_fork: no OpenMP runtime",
            ));
        };
        let threads = threads.max(1);
        if let Ok(set) = unsafe { loaded.get::<SetThreads>(c"omp_set_num_threads") } {
            // SAFETY: `void omp_set_num_threads(int)`, OpenMP 1.0 and later, with a positive number.
            unsafe { set(c_int::try_from(threads).unwrap_or(1)) };
        }
        Ok(OpenMp { _library: library, fork, threads })
    }

    /// Which calls it has.
    pub fn calls(&self) -> OpenMpCalls {
        match self.fork {
            Fork::Gnu(_) => OpenMpCalls::Gnu,
            Fork::Llvm(..) => OpenMpCalls::Llvm,
            Fork::Microsoft(_) => OpenMpCalls::Microsoft,
        }
    }

    /// Runs a parallel region in which nobody does anything. Comes back when all threads have been in it.
    pub fn empty_region(&self) {
        unsafe extern "C" fn gnu(_: *mut c_void) {}
        unsafe extern "C" fn llvm(_: *const i32, _: *const i32) {}
        unsafe extern "C" fn microsoft() {}
        // SAFETY: the functions are those that `open` looked up, still loaded; the bodies take what each runtime hands over,
        // use nothing of it, and cannot unwind.
        match &self.fork {
            Fork::Gnu(fork) => unsafe { fork(gnu, std::ptr::null_mut(), self.threads, 0) },
            Fork::Llvm(fork, ident) => unsafe { fork(&raw const **ident, 0, llvm) },
            Fork::Microsoft(fork) => unsafe { fork(1, 0, microsoft) },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_c_library_is_there_and_nonsense_is_an_error() {
        let library = Library::open(Path::new("libc.so.6")).unwrap();
        assert!(library.has(c"strlen") && !library.has(c"etwhy_has_no_such_function"));
        library.close().unwrap();
        assert!(
            Library::open(Path::new("/no/such/library.so")).unwrap_err().to_string().contains("library.so")
        );
        let error = OpenMp::open(Path::new("libc.so.6"), 2).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    #[cfg(windows)]
    fn the_system_library_is_there_and_nonsense_is_an_error() {
        let library = Library::open(Path::new("version.dll")).unwrap();
        assert!(library.has(c"VerQueryValueW") && !library.has(c"EtwhyHasNoSuchFunction"));
        library.close().unwrap();
        assert!(Library::open(Path::new("no-such-library.dll")).is_err());
    }
}
