//! Files as memory.
#![expect(unsafe_code, reason = "mapping a file is unsafe: another process may change it")]

use memmap2::Mmap;
use std::fs::File;
use std::io;

/// Maps a whole file, to be read once from front to back.
///
/// # Errors
/// What the system says, as for pipes and empty files, which cannot be mapped.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only and private to this process, and its bytes are only ever
    // parsed, each read anew: should another process write to the file meanwhile, the parser sees
    // other bytes, which it has to expect of any input. Cutting the file short while it is mapped
    // ends this process with a signal; a profiler writes a trace once and does not do that.
    let map = unsafe { Mmap::map(file)? };
    #[cfg(unix)]
    let _ = map.advise(memmap2::Advice::Sequential);
    Ok(map)
}
