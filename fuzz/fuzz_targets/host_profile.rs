//! Host profiles: the text written of one is read back with the same result. Writing rounds the times of gaps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_cost::HostProfile;
use steptime_fuzz::limited;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    limited(bytes, |_| {
        let Ok(profile) = HostProfile::parse(text) else { return };
        let read = |text: &str| HostProfile::parse(text).expect("the text of a profile can be read");
        let written = read(&profile.to_text());
        assert_eq!(read(&written.to_text()), written);
    });
});
