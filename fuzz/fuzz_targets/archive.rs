//! Files on disk: plain, gzip, zstd, and tar archives of these. The first byte selects the kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steptime_fuzz::{file, limited};
use steptime_trace::open;

const NAMES: [&str; 6] = ["t.json", "t.json.gz", "t.json.zst", "t.tar", "t.tar.gz", "t.tar.zst"];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, content)) = bytes.split_first() else { return };
    let path = file(NAMES[usize::from(*first) % NAMES.len()], content);
    let _ = limited(bytes, |_| open(&path));
});
