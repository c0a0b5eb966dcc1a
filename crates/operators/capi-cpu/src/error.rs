//! What was wrong with the last call of a thread.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// The work, whose panic is a failure: unwinding ends here, for C knows nothing of it.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What a handle holds may be half done after a panic, but never such that using it is unsound.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// The words of a panic.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    format!("the call panicked: {text}: free its handles, and please report it").into()
}

/// 0, or 1 after a failure.
pub(crate) fn code(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match guarded(work) {
        Ok(()) => 0,
        Err(failure) => {
            remember(&failure);
            1
        }
    }
}

/// A handle, or null after a failure.
pub(crate) fn handle<T>(work: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    match guarded(work) {
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
    let freed = code(|| {
        if !handle.is_null() {
            // SAFETY: `handle` made it with `Box::into_raw`, and it comes here once, by the caller's promise.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
    // There is no way to say so but `steptime_error`, which it left its words with.
    let _ = freed;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_with_its_words() {
        let text = || {
            // SAFETY: the text lives until the next call that fails.
            unsafe { std::ffi::CStr::from_ptr(steptime_error()) }.to_str().unwrap().to_owned()
        };
        assert_eq!(code(|| panic!("number {}", 7)), 1);
        assert!(text().contains("panicked: number 7"), "{}", text());
        let made: *mut u8 = handle(|| panic!("still words"));
        assert!(made.is_null() && text().contains("still words"), "{}", text());
    }
}
