//! Host profiles: each is read, written and read again, with the same result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_cost::HostProfile;
use steptime_fuzz::limited;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    limited(bytes, |_| {
        let Ok(profile) = HostProfile::parse(text) else { return };
        let again = HostProfile::parse(&profile.to_text()).expect("what was written can be read");
        assert_eq!(again, profile);
    });
});
