//! Limits that every fuzz target checks on its reader: no panic, at most a second of processor time, and at most memory of
//! 100 times the input plus 100 MB.
//!
//! A target runs its reader in [`limited`]. libFuzzer itself finds panics.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use cap::Cap;
use rustix::time::{ClockId, clock_gettime};

/// Allocator that counts bytes. An allocation above the limit fails, which aborts the program at the place of the allocation.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Largest processor time of one input.
const MOST_TIME: Duration = Duration::from_secs(1);
/// Largest memory of one input, in multiples of its length.
const MOST_LENGTHS: usize = 100;
/// Memory that every input may use in addition, in bytes.
const MOST_BYTES: usize = 100_000_000;

/// Runs a reader on an input, within the limits.
///
/// # Panics
/// If the reader takes too long. If it uses too much memory, the program aborts.
pub fn limited<R>(input: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
    let most = ALLOCATOR.allocated() + MOST_LENGTHS * input.len() + MOST_BYTES;
    ALLOCATOR.set_limit(most).expect("more than is in use");
    let start = processor_time();
    let result = read(input);
    let took = processor_time() - start;
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
    assert!(took <= MOST_TIME, "{took:?} for {} bytes", input.len());
    result
}

/// Processor time of this process; other programs on the machine do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Writes the input to a file in the folder for temporary files, for readers that take a path.
///
/// # Panics
/// If the file cannot be written.
pub fn file(name: &str, input: &[u8]) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("steptime-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for inputs");
        folder
    });
    let path = folder.join(name);
    fs::write(&path, input).expect("a file for the input");
    path
}
