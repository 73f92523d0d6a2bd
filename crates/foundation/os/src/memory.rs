//! Pieces of address space: reserved, given pages, given back.
//!
//! # Contract
//!
//! A [`Region`] owns its addresses and gives them back when it goes; nobody else's are ever touched: where a place is asked for,
//! the system is asked not to replace what is there. No pointer leaves this module, so nobody can read or write through one; the
//! address is a number. That makes all of it safe, and useless for anything but measuring what the system does.

use std::io;

/// What pages of a region allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: the addresses are reserved (`PROT_NONE`; `MEM_RESERVE`).
    Nothing,
    /// Reading. On Windows, with pages committed.
    Read,
    /// Writing (`PROT_WRITE`); on Windows the same as [`Access::ReadWrite`].
    Write,
    /// Both (`PROT_READ | PROT_WRITE`; `MEM_RESERVE | MEM_COMMIT`).
    ReadWrite,
}

/// Where a region is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where the system wants it.
    Anywhere,
    /// At the highest free address: `MEM_TOP_DOWN`. Windows only.
    TopDown,
    /// At this address and nowhere else.
    At(usize),
}

/// A piece of address space.
#[derive(Debug)]
pub struct Region {
    address: usize,
    bytes: usize,
}

impl Region {
    /// Asks for `bytes` of address space. Pages are not touched, so no memory is used but for the system's tables.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something is at that place; [`io::ErrorKind::Unsupported`] for what this system
    /// does not have; else the system's: no room, too many regions.
    pub fn new(bytes: usize, access: Access, place: Placement) -> io::Result<Region> {
        if bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        system::ask(bytes, access, place).map(|address| Region { address, bytes })
    }

    /// Where it is.
    pub fn address(&self) -> usize {
        self.address
    }

    /// How large it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        system::give_back(self.address, self.bytes);
    }
}

#[cfg(unix)]
mod system {
    use super::{Access, Placement};
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::ffi::c_void;
    use std::io;

    pub fn ask(bytes: usize, access: Access, place: Placement) -> io::Result<usize> {
        let protection = match access {
            Access::Nothing => ProtFlags::empty(),
            Access::Read => ProtFlags::READ,
            Access::Write => ProtFlags::WRITE,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        let (wanted, flags) = match place {
            Placement::Anywhere => (0, MapFlags::PRIVATE),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Placement::At(address) => (address, MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE),
            // Without a flag the address is a wish, and where something is already it is another one.
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            Placement::At(address) => (address, MapFlags::PRIVATE),
            Placement::TopDown => return Err(io::ErrorKind::Unsupported.into()),
        };
        let hint = std::ptr::without_provenance_mut::<c_void>(wanted);
        // SAFETY: none of the flags replaces a mapping that is there, so no memory that is in use changes; the new one is
        // known to nobody else.
        let got = unsafe { mmap_anonymous(hint, bytes, protection, flags) };
        let address = got.map_err(io::Error::from)?.addr();
        if wanted != 0 && address != wanted {
            // Linux before 4.17 takes the address as a wish, too (mmap(2)).
            give_back(address, bytes);
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(address)
    }

    pub fn give_back(address: usize, bytes: usize) {
        // SAFETY: `ask` gave these addresses to exactly one owner, who goes now; nobody has a pointer into them. That it
        // cannot fail for want of memory: whole mappings of ours never need to be split, and if it fails, addresses leak.
        let _ = unsafe { munmap(std::ptr::without_provenance_mut(address), bytes) };
    }
}

#[cfg(windows)]
mod system {
    use super::{Access, Placement};
    use std::io;
    use windows_sys::Win32::System::Memory::{
        MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE, VirtualAlloc,
        VirtualFree,
    };

    /// winnt.h; not among the constants of this module.
    const MEM_TOP_DOWN: u32 = 0x0010_0000;
    /// `ERROR_INVALID_ADDRESS`: something is there.
    const INVALID_ADDRESS: i32 = 487;

    pub fn ask(bytes: usize, access: Access, place: Placement) -> io::Result<usize> {
        let (kind, protection) = match access {
            Access::Nothing => (MEM_RESERVE, PAGE_NOACCESS),
            Access::Read => (MEM_RESERVE | MEM_COMMIT, PAGE_READONLY),
            Access::Write | Access::ReadWrite => (MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE),
        };
        let (wanted, kind) = match place {
            Placement::Anywhere => (0, kind),
            Placement::TopDown => (0, kind | MEM_TOP_DOWN),
            Placement::At(address) => (address, kind),
        };
        // SAFETY: a reservation (`MEM_RESERVE`) never overlaps one that is there, so no memory that is in use changes; the new
        // one is known to nobody else.
        let got = unsafe { VirtualAlloc(std::ptr::without_provenance(wanted), bytes, kind, protection) };
        if got.is_null() {
            let error = io::Error::last_os_error();
            let taken = wanted != 0 && error.raw_os_error() == Some(INVALID_ADDRESS);
            return Err(if taken { io::ErrorKind::AlreadyExists.into() } else { error });
        }
        let address = got.addr();
        if wanted != 0 && address != wanted {
            // Windows rounds down to 64 KB.
            give_back(address, bytes);
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(address)
    }

    pub fn give_back(address: usize, _: usize) {
        // SAFETY: `ask` gave this address to exactly one owner, who goes now; nobody has a pointer into it. With
        // `MEM_RELEASE` the size must be 0 and all of the reservation goes.
        unsafe { VirtualFree(std::ptr::without_provenance_mut(address), 0, MEM_RELEASE) };
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    use super::{Access, Placement};
    use std::io;

    pub fn ask(_: usize, _: Access, _: Placement) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn give_back(_: usize, _: usize) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn regions_never_overlap_and_are_given_back() {
        let size = 1 << 16;
        let first = Region::new(size, Access::Nothing, Placement::Anywhere).unwrap();
        let second = Region::new(size, Access::ReadWrite, Placement::Anywhere).unwrap();
        assert!(first.address().abs_diff(second.address()) >= size);
        let taken = Region::new(size, Access::Read, Placement::At(first.address())).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            Region::new(0, Access::Read, Placement::Anywhere).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        // A place that is free now: the middle of a large region that was given back. Other threads of the test may be quicker.
        let wide = Region::new(1 << 30, Access::Nothing, Placement::Anywhere).unwrap();
        let middle = wide.address() + (1 << 29);
        drop(wide);
        let third = Region::new(size, Access::Nothing, Placement::At(middle)).unwrap();
        assert_eq!((third.address(), third.bytes()), (middle, size));
    }

    #[test]
    fn top_down_is_of_windows() {
        match Region::new(1 << 16, Access::Nothing, Placement::TopDown) {
            Ok(region) => assert!(cfg!(windows) && region.address() > 0),
            Err(error) => assert!(!cfg!(windows) && error.kind() == io::ErrorKind::Unsupported),
        }
    }
}
