//! What every fuzz target checks of its reader: no panic, no more than a second of the processor, and no more memory
//! than 100 times the input and 100 MB.
//!
//! A target calls [`limited`] around the reader. Panics are libFuzzer's to find.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use cap::Cap;
use rustix::time::{ClockId, clock_gettime};

/// Counts what is allocated. An allocation above the limit fails, which ends the program where it was asked for.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The most processor time that one input may take.
const MOST_TIME: Duration = Duration::from_secs(1);
/// The most memory that one input may take, in its own lengths.
const MOST_LENGTHS: usize = 100;
/// The memory that any input may take, however short, in bytes.
const MOST_BYTES: usize = 100_000_000;

/// Runs a reader on an input, within the limits.
///
/// # Panics
/// Where the reader takes too long. Where it takes too much memory, the program aborts.
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

/// What the process has taken of the processor: other programs on the machine do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A file of the input, in the folder for temporary files: for readers that take a path.
///
/// # Panics
/// Where it cannot be written.
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
