//! Kineto traces: read whole, on several threads, and as a stream, with the same result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_fuzz::limited;
use steptime_trace::{read_kineto, read_kineto_from};

fuzz_target!(|bytes: &[u8]| {
    let whole = limited(bytes, read_kineto);
    let streamed = limited(bytes, |bytes| read_kineto_from(bytes));
    match (whole, streamed) {
        // NaN is not equal to itself, but prints the same.
        (Ok(whole), Ok(streamed)) => {
            assert!(whole == streamed || format!("{whole:?}") == format!("{streamed:?}"))
        }
        (whole, streamed) => assert_eq!(whole.is_ok(), streamed.is_ok()),
    }
});
