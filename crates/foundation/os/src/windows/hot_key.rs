//! Keys that are pressed while another program has the keyboard.

use super::library::Library;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;

type Register = unsafe extern "system" fn(*mut c_void, i32, u32, u32) -> i32;
type Unregister = unsafe extern "system" fn(*mut c_void, i32) -> i32;
pub(super) type Peek = unsafe extern "system" fn(*mut Message, *mut c_void, u32, u32, u32) -> i32;

/// `WM_HOTKEY`, `PM_REMOVE`, `MOD_NOREPEAT` (winuser.h).
const HOT_KEY: u32 = 0x0312;
pub(super) const REMOVE: u32 = 1;
const NO_REPEAT: u32 = 0x4000;

/// `MSG` (winuser.h).
#[repr(C)]
pub(super) struct Message {
    window: *mut c_void,
    pub(super) message: u32,
    word: usize,
    long: isize,
    time: u32,
    x: i32,
    y: i32,
}

/// Keys that are ours as long as this lives. Presses go to the queue of the thread that registered them, so it stays in that thread.
pub struct HotKey {
    number: i32,
    peek: Peek,
    unregister: Unregister,
    _library: Library,
    _stays: PhantomData<*mut c_void>,
}

impl HotKey {
    /// Takes keys: modifiers (`MOD_…`) and a virtual key code. `number`: one that no other of this thread has.
    ///
    /// # Errors
    /// The system's: another program has them (`ERROR_HOTKEY_ALREADY_REGISTERED`, 1409), or this session has no keyboard.
    pub fn register(number: i32, modifiers: u32, key: u32) -> io::Result<HotKey> {
        let library = Library::of_system("user32.dll")?;
        // SAFETY: these are the documented types of the functions (winuser.h); the library is kept beside them.
        let (register, unregister, peek): (Register, Unregister, Peek) = unsafe {
            (
                library.typed("RegisterHotKey")?,
                library.typed("UnregisterHotKey")?,
                library.typed("PeekMessageW")?,
            )
        };
        // SAFETY: without a window, presses go to the queue of this thread.
        if unsafe { register(std::ptr::null_mut(), number, modifiers | NO_REPEAT, key) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(HotKey { number, peek, unregister, _library: library, _stays: PhantomData })
    }

    /// Whether they were pressed since this was asked last.
    pub fn was_pressed(&self) -> bool {
        let mut others = Vec::new();
        let mut was = false;
        // SAFETY: all-zero is a valid message.
        let mut message: Message = unsafe { std::mem::zeroed() };
        // SAFETY: the target lives until after the call; only hot keys of this thread are taken.
        while unsafe { (self.peek)(&raw mut message, std::ptr::null_mut(), HOT_KEY, HOT_KEY, REMOVE) } != 0 {
            if message.word == self.number as usize {
                was = true;
            } else {
                others.push(message.word);
            }
        }
        others.into_iter().for_each(post);
        was
    }
}

/// Puts the press of another key back into the queue of this thread.
fn post(number: usize) {
    type Post = unsafe extern "system" fn(u32, u32, usize, isize) -> i32;
    let Ok(library) = Library::of_system("user32.dll") else { return };
    // SAFETY: this is the documented type of the function (winuser.h), which is called while the library is loaded.
    let Ok(post) = (unsafe { library.typed::<Post>("PostThreadMessageW") }) else { return };
    // SAFETY: the thread is this one; the message carries numbers only.
    unsafe { post(windows_sys::Win32::System::Threading::GetCurrentThreadId(), HOT_KEY, number, 0) };
}

impl Drop for HotKey {
    fn drop(&mut self) {
        // SAFETY: it was registered by this thread under that number.
        unsafe { (self.unregister)(std::ptr::null_mut(), self.number) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Windows posts when keys are pressed is posted here by hand.
    #[test]
    fn presses_are_told_apart_and_once() {
        assert_eq!((size_of::<Message>(), std::mem::offset_of!(Message, word)), (48, 16));
        // Ctrl+Alt+Shift+F23 and F22, which nobody has.
        let both = (HotKey::register(1, 7, 0x86), HotKey::register(2, 7, 0x85));
        let (Ok(a), Ok(b)) = both else {
            println!("skipped: no keyboard here");
            return;
        };
        assert!(!a.was_pressed() && !b.was_pressed());
        post(2);
        post(1);
        assert!(a.was_pressed() && !a.was_pressed());
        assert!(b.was_pressed() && !b.was_pressed());
        assert!(HotKey::register(3, 7, 0x86).is_err(), "they are taken");
    }
}
