//! A small window that answers when it is told to.

use super::hot_key::{Message, Peek, REMOVE};
use super::library::Library;
use super::wide;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::ptr::null_mut;

type Create = unsafe extern "system" fn(
    u32,
    *const u16,
    *const u16,
    u32,
    i32,
    i32,
    i32,
    i32,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *const c_void,
) -> *mut c_void;
type Post = unsafe extern "system" fn(*mut c_void, u32, usize, isize) -> i32;
type Dispatch = unsafe extern "system" fn(*const Message) -> isize;
type Destroy = unsafe extern "system" fn(*mut c_void) -> i32;

/// `WS_POPUP | WS_VISIBLE | WS_BORDER`, and `WS_EX_TOOLWINDOW | WS_EX_NOACTIVATE` (winuser.h): it is seen, and takes the keyboard from
/// nobody.
const STYLE: u32 = 0x8000_0000 | 0x1000_0000 | 0x0080_0000;
const EXTENDED_STYLE: u32 = 0x80 | 0x0800_0000;
/// `WM_NULL` (winuser.h): a message that asks for nothing.
const NULL_MESSAGE: u32 = 0;

/// A window of the thread that opened it, which it stays in. It is gone with its owner.
pub struct Window {
    window: *mut c_void,
    post: Post,
    peek: Peek,
    dispatch: Dispatch,
    destroy: Destroy,
    _library: Library,
    _stays: PhantomData<*mut c_void>,
}

impl Window {
    /// Opens one with a text in it.
    ///
    /// # Errors
    /// The system's: services and remote shells may have no desktop.
    pub fn open(text: &str) -> io::Result<Window> {
        let library = Library::of_system("user32.dll")?;
        // SAFETY: these are the documented types of the functions (winuser.h); the library is kept beside them.
        let (create, post, peek, dispatch, destroy): (Create, Post, Peek, Dispatch, Destroy) = unsafe {
            (
                library.typed("CreateWindowExW")?,
                library.typed("PostMessageW")?,
                library.typed("PeekMessageW")?,
                library.typed("DispatchMessageW")?,
                library.typed("DestroyWindow")?,
            )
        };
        // A class that Windows has, whose procedure is its own.
        let (class, text) = (wide("STATIC")?, wide(text)?);
        let (left, top, width, height) = (0, 0, 240, 48);
        // SAFETY: both texts end with a zero; a window without parent, menu, module and parameter is allowed for a class of the system.
        let window = unsafe {
            create(
                EXTENDED_STYLE,
                class.as_ptr(),
                text.as_ptr(),
                STYLE,
                left,
                top,
                width,
                height,
                null_mut(),
                null_mut(),
                null_mut(),
                std::ptr::null(),
            )
        };
        if window.is_null() {
            let error = io::Error::last_os_error();
            return Err(if error.raw_os_error() == Some(0) { io::Error::other("no desktop") } else { error });
        }
        Ok(Window { window, post, peek, dispatch, destroy, _library: library, _stays: PhantomData })
    }

    /// Puts a message into its queue that asks for nothing but an answer.
    ///
    /// # Errors
    /// The system's.
    pub fn ask(&self) -> io::Result<()> {
        // SAFETY: the window is ours; the message carries nothing.
        if unsafe { (self.post)(self.window, NULL_MESSAGE, 0, 0) } == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Answers all messages that wait. Gives how many of them only asked for an answer.
    pub fn answer(&self) -> u32 {
        let mut asked = 0_u32;
        // SAFETY: all-zero is a valid message.
        let mut message: Message = unsafe { std::mem::zeroed() };
        // SAFETY: the target lives until after the call; messages of this window alone are taken.
        while unsafe { (self.peek)(&raw mut message, self.window, 0, 0, REMOVE) } != 0 {
            asked = asked.saturating_add(u32::from(message.message == NULL_MESSAGE));
            // SAFETY: the message is one that was just taken from the queue of this thread.
            unsafe { (self.dispatch)(&raw const message) };
        }
        asked
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window is ours, of this thread, and not used afterwards.
        unsafe { (self.destroy)(self.window) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_until_they_are_answered() {
        let Ok(window) = Window::open("etwhy") else {
            println!("skipped: no desktop here");
            return;
        };
        window.answer();
        window.ask().unwrap();
        window.ask().unwrap();
        assert_eq!(window.answer(), 2);
        assert_eq!(window.answer(), 0);
    }
}
