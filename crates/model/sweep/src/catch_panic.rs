//! Turns panics of the Parquet reader into errors. It panics on some damaged files instead of refusing them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught as an error, and not printed.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read`, which must own all data that it changes: after a panic they are lost.
///
/// # Errors
///
/// The message of a panic, which is not printed.
pub fn guarded<R>(read: impl FnOnce() -> R) -> Result<R, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                before(panic);
            }
        }));
    });
    let outer = EXPECTED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    EXPECTED.set(outer);
    result.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("its reader gave up").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        let count = |list: &[u8], at: usize| list[at];
        assert_eq!(guarded(|| count(&[7], 0)), Ok(7));
        let error = guarded(|| count(&[], 3)).unwrap_err();
        assert!(error.contains("index is 3"), "{error}");
        assert!(!EXPECTED.get(), "later panics are printed");
    }
}
