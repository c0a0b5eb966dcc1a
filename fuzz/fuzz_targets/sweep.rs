//! Sweeps: Parquet files, their rows, and the kernel call of each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_aten::OpSet;
use steptime_fuzz::{file, limited};
use steptime_sweep::{observe, read, spec};

fuzz_target!(|bytes: &[u8]| {
    let path = file("s.parquet", bytes);
    limited(bytes, |_| {
        let Ok(sweep) = read(&path) else { return };
        let observed = observe(std::slice::from_ref(&sweep), &OpSet::standard());
        assert!(observed.observations.len() <= sweep.rows.len());
        let _ = spec(&sweep, &observed);
    });
});
