//! Error text of a thread's last failed call.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Error of a call.
pub(crate) type Failure = Box<dyn Error>;

/// Returns the error text of this thread's last failed call. The text lives until the next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn steptime_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

/// Stores the error text.
fn remember(failure: &Failure) {
    let text = failure.to_string().replace('\0', "?");
    LAST.set(CString::new(text).unwrap_or_default());
}

/// Runs the work and makes a panic of it a failure: unwinding must not reach C.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // After a panic the content of a handle may be incomplete, but using it is never unsound.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Returns the message of a panic.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    format!("the call panicked: {text}: free its handles, and please report it").into()
}

/// Returns 0 for success and 1 after a failure.
pub(crate) fn code(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match guarded(work) {
        Ok(()) => 0,
        Err(failure) => {
            remember(&failure);
            1
        }
    }
}

/// Returns a handle, or null after a failure.
pub(crate) fn handle<T>(work: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    match guarded(work) {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(failure) => {
            remember(&failure);
            std::ptr::null_mut()
        }
    }
}

/// Drops the content of a handle.
///
/// # Safety
///
/// The pointer is null, or came from [`handle`] and is not used any more.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    let freed = code(|| {
        if !handle.is_null() {
            // SAFETY: `handle` made it with `Box::into_raw`, and it is freed once, by the caller's promise.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
    // A failure can be reported by `steptime_error` only, and its text is already stored there.
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
