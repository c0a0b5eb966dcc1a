//! `meta.json`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_fuzz::{file, limited};
use steptime_trace::Meta;

fuzz_target!(|bytes: &[u8]| {
    let path = file("meta.json", bytes);
    let folder = path.parent().expect("the folder of a file");
    if let Ok(meta) = limited(bytes, |_| Meta::read_of(folder)) {
        assert!(meta.step_ms.is_none_or(|ms| ms > 0.0));
        assert!(meta.quantiles_ms.is_sorted_by(|one, two| one.0 <= two.0));
    }
});
