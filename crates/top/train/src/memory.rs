//! Memory of this process and of the machine, on Linux.

use steptime_ops::limits::available_memory;

use crate::error::Error;

/// Refuses a step that needs more memory than is available, before any of it is allocated.
pub fn check(needed: u64) -> Result<(), Error> {
    match available_memory() {
        Some(available) if needed > available => Err(Error::Memory { needed, available, cacheable: false }),
        _ => Ok(()),
    }
}

/// Greatest resident memory of this process in bytes, where Linux reports it.
pub fn process_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
