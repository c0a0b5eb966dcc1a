//! Exports of Nsight Systems: SQLite files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_fuzz::{file, limited};
use steptime_trace::{Origin, read_kineto_file};

fuzz_target!(|bytes: &[u8]| {
    let path = file("report.sqlite", bytes);
    if let Ok(trace) = limited(bytes, |_| read_kineto_file(&path))
        && trace.origin == Origin::Nsight
    {
        assert!(trace.activities.dur.iter().all(|dur| dur.0 >= 0));
    }
});
