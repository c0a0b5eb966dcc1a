//! What was wrong with the last call of a thread.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char, c_int};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// What a call may fail with.
pub(crate) type Failure = Box<dyn Error>;

/// What was wrong with this thread's last call that failed. The text lives until the next one that fails.
#[unsafe(no_mangle)]
pub extern "C" fn steptime_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Remembers a failure.
fn remember(failure: &Failure) {
    let text = failure.to_string().replace('\0', "?");
    LAST.set(CString::new(text).unwrap_or_default());
}

/// 0, or 1 after a failure.
pub(crate) fn code(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match work() {
        Ok(()) => 0,
        Err(failure) => {
            remember(&failure);
            1
        }
    }
}

/// A handle, or null after a failure.
pub(crate) fn handle<T>(work: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    match work() {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(failure) => {
            remember(&failure);
            std::ptr::null_mut()
        }
    }
}

/// Drops what a handle holds.
///
/// # Safety
///
/// It is null, or came from [`handle`] and is not used any more.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: made by `Box::into_raw`, by the caller's promise.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// `count` elements at a pointer; none where it is null.
///
/// # Safety
///
/// It is null, or goes to as many elements, which nobody changes as long as the slice is used.
pub(crate) unsafe fn slice<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, count) }
}
