//! Probes: the files that `python -m steptime.probe` writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_cost::Probe;
use steptime_fuzz::limited;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(Ok(probe)) = limited(bytes, |_| Probe::parse(text)) {
        let pace = probe.relative_to(&Probe::default());
        assert!([pace.between, pace.launch, pace.hand_off, pace.copy].iter().all(|factor| *factor >= 0.0));
    }
});
