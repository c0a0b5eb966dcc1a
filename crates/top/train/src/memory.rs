//! Memory of this process and of the machine, on Linux.

use crate::error::Error;

/// Refuses a step that needs more memory than is available, before any of it is allocated.
pub fn check(needed: u64) -> Result<(), Error> {
    match kilobytes("/proc/meminfo", "MemAvailable:") {
        Some(available) if needed > available => Err(Error::Memory { needed, available }),
        _ => Ok(()),
    }
}

/// Greatest resident memory of this process in bytes, where Linux reports it.
pub fn process_bytes() -> Option<u64> {
    kilobytes("/proc/self/status", "VmHWM:")
}

/// Bytes of an entry `NAME: N kB`.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let entry = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = entry.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
